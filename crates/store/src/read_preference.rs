//! The servers that a read may go to, by the wish of the client.
//!
//! A command that reads runs under its preference, from its first statement to its last
//! ([`under`]). A store whose documents are on several servers ([`crate::DocumentStore`]) sends the
//! statements to one that fits. Other stores ignore the preference.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

/// The kinds of servers, in the client's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadMode {
    Primary,
    PrimaryPreferred,
    Secondary,
    SecondaryPreferred,
    Nearest,
}

impl ReadMode {
    pub const ALL: [ReadMode; 5] = [
        ReadMode::Primary,
        ReadMode::PrimaryPreferred,
        ReadMode::Secondary,
        ReadMode::SecondaryPreferred,
        ReadMode::Nearest,
    ];

    pub fn name(self) -> &'static str {
        match self {
            ReadMode::Primary => "primary",
            ReadMode::PrimaryPreferred => "primaryPreferred",
            ReadMode::Secondary => "secondary",
            ReadMode::SecondaryPreferred => "secondaryPreferred",
            ReadMode::Nearest => "nearest",
        }
    }
}

/// Tags that a server must have, all of them: names and values.
pub type TagSet = Vec<(String, String)>;

/// A client's preference, and the server that it was given.
#[derive(Debug)]
pub struct ReadPreference {
    pub mode: ReadMode,
    /// The servers of the first set that any server has are used; without sets, all are.
    pub tags: Vec<TagSet>,
    /// How far a replica may be behind.
    pub staleness_max_seconds: Option<u64>,
    /// Whether the read must see all writes that were acknowledged before it (`afterClusterTime`).
    pub is_causal: bool,
    server: Mutex<Option<Arc<str>>>,
}

impl ReadPreference {
    pub fn new(mode: ReadMode) -> ReadPreference {
        let (tags, staleness_max_seconds, is_causal) = (Vec::new(), None, false);
        ReadPreference { mode, tags, staleness_max_seconds, is_causal, server: Mutex::default() }
    }

    /// Returns the server that has answered the operation so far. A cursor stays there.
    pub fn server(&self) -> Option<Arc<str>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_server(&self, server: &Arc<str>) {
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = Some(server.clone());
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<ReadPreference>>> = const { RefCell::new(None) };
}

/// Returns the preference of the running operation; `None`: the primary.
pub fn current() -> Option<Arc<ReadPreference>> {
    CURRENT.with_borrow(Option::clone)
}

/// Returns whether the running operation may read on another server than the primary, so that
/// nothing of it may be cached, and nothing cached may answer it.
pub fn is_elsewhere() -> bool {
    CURRENT.with_borrow(Option::is_some)
}

/// Runs an operation under a preference.
pub async fn under<T>(preference: Option<Arc<ReadPreference>>, operation: impl Future<Output = T>) -> T {
    let mut operation = pin!(operation);
    let mut preference = preference;
    poll_fn(move |context| {
        let _entered = Entered::enter(&mut preference);
        operation.as_mut().poll(context)
    })
    .await
}

/// Exchanges the current preference for another one while it lives.
struct Entered<'p>(&'p mut Option<Arc<ReadPreference>>);

impl Entered<'_> {
    fn enter(preference: &mut Option<Arc<ReadPreference>>) -> Entered<'_> {
        CURRENT.with_borrow_mut(|current| std::mem::swap(current, preference));
        Entered(preference)
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        CURRENT.with_borrow_mut(|current| std::mem::swap(current, self.0));
    }
}
