//! Frames with wrong lengths never get another client's bytes as a reply.
//!
//! Each frame is sent to two servers: to one whose memory is full of the letter A, in its free
//! memory and in the traffic of another client, and to one that is full of the letter B. So a
//! single byte of that memory makes the replies differ. `SELKIE_FRAMES` is the number of random
//! frames.
//!
//! A decompressor that trusts the size that a message claims (CVE-2025-14847) shows that the test
//! finds such a leak.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

#[path = "frames/decoding.rs"]
mod decoding;
#[path = "frames/messages.rs"]
mod messages;
#[path = "frames/serving.rs"]
mod serving;

use decoding::Decoding;
use frame_mutator::compare::{Leak, Target, Worlds};
use frame_mutator::memory::Filling;
use frame_mutator::{Change, Random};
use messages::{CANARY, Kind};
use serving::Serving;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: Filling = Filling;

/// The free memory belongs to the process, so the tests take turns.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Returns the number of random frames.
fn frames_wanted(default: usize) -> usize {
    std::env::var("SELKIE_FRAMES").map_or(default, |text| text.parse().expect("SELKIE_FRAMES is a number"))
}

/// Sends every single change of each frame and of its compressed forms, up to `singles_max` of
/// each, and `count` random ones. Returns the first leak, and the number of frames sent.
fn search<T: Target>(worlds: [T; 2], singles_max: usize, count: usize, seed: u64) -> (Option<Box<Leak>>, usize) {
    let (mut worlds, mut random, mut sent) = (Worlds::new(worlds, CANARY), Random::new(seed), 0);
    let kinds = messages::kinds();
    let mut send = |kind: &Kind, change: &Change| {
        sent += 1;
        worlds.check(&kind.changed(change), &kind.frame.name, Some(change))
    };
    let mut leak = None;
    for kind in &kinds {
        let changes = Change::all(&kind.frame);
        let step = changes.len().div_ceil(singles_max).max(1);
        leak = leak.or_else(|| changes.iter().step_by(step).find_map(|change| send(kind, change)));
    }
    let leak = leak.or_else(|| {
        (0..count).find_map(|_| {
            let kind = &kinds[random.below(kinds.len())];
            send(kind, &random.change(&kind.frame))
        })
    });
    (leak, sent)
}

/// Prints the figures, with `cargo test -- --nocapture`.
fn report(name: &str, began: Instant, sent: usize) {
    println!("{name}: {sent} frames, {:.1} s", began.elapsed().as_secs_f64());
}

#[test]
fn valid_frames_are_answered() {
    let _turn = turn();
    let mut server = Decoding::new(b'A');
    for kind in messages::kinds() {
        let reply = server.exchange(&kind.whole());
        assert!(reply.len() > 30, "{}: {:?}", kind.frame.name, String::from_utf8_lossy(&reply));
        assert!(!reply.starts_with(b"closed"), "{}: {:?}", kind.frame.name, String::from_utf8_lossy(&reply));
    }
}

/// The decoder, the commands and the encoder, without sockets: fast.
#[test]
fn replies_depend_on_nothing_but_the_request() {
    let _turn = turn();
    let began = Instant::now();
    let worlds = [Decoding::new(b'A'), Decoding::new(b'B')];
    let (leak, sent) = search(worlds, 150, frames_wanted(3000), 1);
    report("decoding", began, sent);
    assert!(leak.is_none(), "{leak:#?}");
}

/// The whole server, with a socket for each frame.
#[test]
fn a_server_sends_no_foreign_bytes() {
    let _turn = turn();
    let began = Instant::now();
    let worlds = [Serving::new(b'A'), Serving::new(b'B')];
    let (leak, sent) = search(worlds, 20, frames_wanted(8000) / 20, 2);
    report("serving", began, sent);
    assert!(leak.is_none(), "{leak:#?}");
}

/// The planted error: a decompressor that believes what the message claims.
#[test]
fn a_decompressor_that_trusts_the_claimed_size_is_found() {
    let _turn = turn();
    let began = Instant::now();
    let worlds = [b'A', b'B'].map(|letter| Decoding::new(letter).with_trusting_decompressor());
    let (leak, sent) = search(worlds, 150, 100_000, 3);
    report("planted leak found after", began, sent);
    let leak = leak.expect("the planted leak was not found");
    assert!(leak.frame.contains("compressed"), "{leak:#?}");
}
