//! A MariaDB server: its settings, its condition, and the connections of sessions to it.

use crate::activity::Activity;
use crate::condition::Condition;
use crate::gtid::GtidPosition;
use crate::observation::Facts;
use crate::settings::ServerSettings;
use crate::slots::Slots;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::{Notify, watch};

/// A server on which sessions can run.
#[derive(Debug)]
pub struct Backend {
    settings: RwLock<Arc<ServerSettings>>,
    condition: watch::Sender<Condition>,
    details: Mutex<Details>,
    pub slots: Slots,
    pub activity: Activity,
    /// Asks the monitor to poll at once, because a session has met an error.
    pub suspicion: Notify,
    /// When the state or the role last changed, in milliseconds since 1970.
    changed_ms: AtomicI64,
}

/// State that no decision depends on.
#[derive(Clone, Debug, Default)]
pub struct Details {
    pub monitor: Option<String>,
    /// The facts of the last poll that succeeded.
    pub facts: Option<Facts>,
    /// Why the last poll failed; empty if it has not.
    pub error: String,
}

impl Backend {
    pub fn new(settings: ServerSettings) -> Arc<Backend> {
        Arc::new(Backend {
            slots: Slots::new(settings.connections_max),
            activity: Activity::default(),
            settings: RwLock::new(Arc::new(settings)),
            condition: watch::Sender::default(),
            details: Mutex::default(),
            suspicion: Notify::new(),
            changed_ms: AtomicI64::new(now_ms()),
        })
    }

    pub fn settings(&self) -> Arc<ServerSettings> {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes settings that leave the connections as they are.
    pub fn set_settings(&self, settings: ServerSettings) {
        self.slots.set_max(settings.connections_max);
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
    }

    pub fn condition(&self) -> Condition {
        *self.condition.borrow()
    }

    pub fn conditions(&self) -> watch::Receiver<Condition> {
        self.condition.subscribe()
    }

    /// Changes the condition. Returns the one before it if it differs.
    pub fn change(&self, change: impl FnOnce(&mut Condition)) -> Option<Condition> {
        let mut before = None;
        self.condition.send_if_modified(|condition| {
            let old = *condition;
            change(condition);
            before = (old != *condition).then_some(old);
            before.is_some()
        });
        if before.is_some() {
            self.changed_ms.store(now_ms(), Ordering::Relaxed);
        }
        before
    }

    pub fn changed_ms(&self) -> i64 {
        self.changed_ms.load(Ordering::Relaxed)
    }

    /// Returns how far the server is behind its primary, by the last poll; `None`: it is not known.
    pub fn lag_seconds(&self) -> Option<u64> {
        let details = self.details();
        let facts = details.facts.as_ref()?;
        // The nodes of a Galera cluster get each write before it is acknowledged.
        if facts.galera().is_some() { Some(0) } else { facts.lag_seconds() }
    }

    /// Returns whether the server had all these transactions at the last poll.
    pub fn includes(&self, position: &GtidPosition) -> bool {
        self.details().facts.as_ref().is_some_and(|facts| facts.current.includes(position))
    }

    /// Returns whether the server is a node of a Galera cluster.
    pub fn is_galera(&self) -> bool {
        self.details().facts.as_ref().is_some_and(|facts| facts.galera().is_some())
    }

    pub fn details(&self) -> MutexGuard<'_, Details> {
        self.details.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| i64::try_from(time.as_millis()).unwrap_or(i64::MAX))
}
