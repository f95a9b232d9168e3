//! Packets with wrong lengths never get another client's bytes as a reply, and never carry them to
//! MariaDB. They come from clients, and from a MariaDB that is not one.
//!
//! Each frame is sent to two servers: to one whose memory is full of the letter A, in its free
//! memory and in the traffic of another client, and to one that is full of the letter B. So a
//! single byte of that memory makes the replies differ. `SELKIE_FRAMES` is the number of random
//! frames.
//!
//! A gateway that forwards as many bytes as a packet claims shows that the test finds such a leak.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

#[path = "frames/backend.rs"]
mod backend;
#[path = "frames/messages.rs"]
mod messages;
#[path = "frames/packets.rs"]
mod packets;
#[path = "frames/serving.rs"]
mod serving;
#[path = "frames/trusting.rs"]
mod trusting;

use frame_mutator::compare::{Leak, Target, Worlds, contains};
use frame_mutator::memory::Filling;
use frame_mutator::{Change, Random};
use messages::{CANARY, Kind, Sender};
use serving::Serving;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;
use trusting::Trusting;

#[global_allocator]
static ALLOCATOR: Filling = Filling;

/// The free memory belongs to the process, so the tests take turns.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A server to which frames are sent, or whose MariaDB sends them.
trait FrameTarget: Target {
    fn set_sender(&mut self, sender: Sender);
}

/// The outcome of a search.
#[derive(Default)]
struct Search {
    leak: Option<Box<Leak>>,
    sent: usize,
    /// Frames whose replies differed once and then no more: a busy machine delays a reply, too.
    unsteady: usize,
}

impl Search {
    /// Sends every single change of each frame, up to `singles_max` of each, and `count` random
    /// ones, until a leak is found.
    fn run<T: FrameTarget>(worlds: [T; 2], singles_max: usize, count: usize, seed: u64) -> Search {
        let (mut worlds, mut random) = (Worlds::new(worlds, CANARY), Random::new(seed));
        let (kinds, mut search) = (messages::kinds(), Search::default());
        for kind in &kinds {
            let changes = Change::all(&kind.frame);
            let step = changes.len().div_ceil(singles_max).max(1);
            for change in changes.iter().step_by(step) {
                search.send(&mut worlds, kind, change);
            }
        }
        for _ in 0..count {
            let kind = &kinds[random.below(kinds.len())];
            let change = random.change(&kind.frame);
            search.send(&mut worlds, kind, &change);
        }
        search
    }

    fn send<T: FrameTarget>(&mut self, worlds: &mut Worlds<T>, kind: &Kind, change: &Change) {
        if self.leak.is_some() {
            return;
        }
        self.sent += 1;
        worlds.worlds.iter_mut().for_each(|world| world.set_sender(kind.sender));
        let bytes = change.apply(&kind.frame);
        let mut check = || worlds.check(&bytes, &kind.frame.name, Some(change));
        let Some(leak) = check() else { return };
        let has_canary = leak.replies.iter().any(|reply| contains(reply, CANARY));
        if has_canary || check().is_some() && check().is_some() {
            self.leak = Some(leak);
        } else {
            self.unsteady += 1;
        }
    }

    /// Describes the leak.
    fn describe(&self) -> String {
        let Some(Leak { frame, change, replies: [first, second] }) = self.leak.as_deref() else { return String::new() };
        let [first, second] = [first, second].map(|reply| reply.escape_ascii());
        format!("{frame}, {change:?}\n{first}\n{second}")
    }

    /// Prints the figures, with `cargo test -- --nocapture`.
    fn report(&self, name: &str, began: Instant) {
        let Search { sent, unsteady, .. } = self;
        println!("{name}: {sent} frames, {unsteady} unsteady, {:.1} s", began.elapsed().as_secs_f64());
    }
}

/// Returns the number of random frames.
fn frames_wanted(default: usize) -> usize {
    std::env::var("SELKIE_FRAMES").map_or(default, |text| text.parse().expect("SELKIE_FRAMES is a number"))
}

#[test]
fn valid_frames_are_answered() {
    let _turn = turn();
    let mut server = Serving::new(b'A');
    for kind in messages::kinds() {
        server.set_sender(kind.sender);
        let seen = server.exchange(&kind.frame.bytes);
        let text = String::from_utf8_lossy(&seen);
        assert!(contains(&seen, kind.expected), "{}: {text:?}", kind.frame.name);
        assert!(!contains(&seen, CANARY), "{}: {text:?}", kind.frame.name);
    }
    assert!(server.cache_hits() > 0, "SELECTs are answered from the cache");
}

#[test]
fn a_gateway_sends_no_foreign_bytes() {
    let _turn = turn();
    let began = Instant::now();
    let worlds = [Serving::new(b'A'), Serving::new(b'B')];
    let search = Search::run(worlds, 20, frames_wanted(1000), 1);
    search.report("SQL session", began);
    assert!(search.leak.is_none(), "{}", search.describe());
}

/// The planted error: a gateway that believes what a packet claims.
#[test]
fn a_gateway_that_trusts_the_claimed_length_is_found() {
    let _turn = turn();
    let began = Instant::now();
    let search = Search::run([b'A', b'B'].map(Trusting::new), 20, 100_000, 2);
    search.report("planted leak found after", began);
    assert!(search.leak.is_some(), "the planted leak was not found");
}
