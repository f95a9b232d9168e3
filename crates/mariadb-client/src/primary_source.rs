//! The primary of servers that replicate, as their monitor sees it.

use crate::server_url::ServerUrl;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// The primary, and the monitor that decides about it.
#[derive(Clone)]
pub struct PrimarySource {
    /// The present primary, with the account to log in with.
    pub server: watch::Receiver<Option<ServerUrl>>,
    /// How long an operation waits for a primary.
    pub wait: Duration,
    pub monitor: Arc<dyn PrimaryMonitor>,
    /// How often a server has refused a write because it is read-only.
    refusals: Arc<AtomicU64>,
}

impl PrimarySource {
    pub fn new(
        server: watch::Receiver<Option<ServerUrl>>,
        wait: Duration,
        monitor: Arc<dyn PrimaryMonitor>,
    ) -> PrimarySource {
        PrimarySource { server, wait, monitor, refusals: Arc::default() }
    }

    /// Notes that a server has refused a write because it is read-only: no worker uses its idle
    /// connections again, as each would be refused once.
    pub fn note_refusal(&self) {
        self.refusals.fetch_add(1, Ordering::Relaxed);
        self.monitor.suspect();
    }

    pub(crate) fn refusals(&self) -> u64 {
        self.refusals.load(Ordering::Relaxed)
    }
}

/// Observes servers, and decides which is the primary.
pub trait PrimaryMonitor: Send + Sync {
    /// Observes the primary at once, as a connection to it has failed.
    fn suspect(&self);

    /// Says why there is no primary.
    fn why_none(&self) -> String;
}
