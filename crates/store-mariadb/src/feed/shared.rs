//! The state of the feed that the tail writes and all workers read.

use super::checkpoint::{Checkpoint, covers};
use super::known_files::{KnownFiles, locked};
use ::store::change_feed::RecentEntries;
use ::store::{FeedEntry, FeedPosition};
use error::{Code, Error, Result};
use mariadb_binlog::{Followed, Gtid};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// How long a stream waits for the tail to reach the end of the log.
const REACH_TIMEOUT: Duration = Duration::from_secs(60);

/// Checkpoints kept; past this number every other one is dropped.
const CHECKPOINTS_MAX: usize = 1024;

/// The state of the tail.
#[derive(Clone, Debug)]
pub(super) enum TailState {
    Stopped,
    Starting,
    Running,
    Failed(Error),
}

/// The feed of a process.
pub(crate) struct Feed {
    pub(super) followed: Followed,
    pub(super) files: Arc<KnownFiles>,
    state: watch::Sender<TailState>,
    /// The position of the latest entry.
    latest: watch::Sender<FeedPosition>,
    /// The transactions up to which everything is known.
    pub(super) reached: watch::Sender<Vec<Gtid>>,
    recent: Mutex<RecentEntries>,
    checkpoints: Mutex<VecDeque<Checkpoint>>,
    /// Earlier positions belong to a log that this process has lost.
    valid_since: Mutex<FeedPosition>,
    /// The log that replaced a lost one may have other entries up to this position.
    ambiguous_until: Mutex<FeedPosition>,
    /// Ends the tail when dropped.
    stop: Mutex<Option<oneshot::Sender<()>>>,
}

impl Feed {
    pub fn new(followed: Followed) -> Feed {
        Feed {
            followed,
            files: Arc::default(),
            state: watch::Sender::new(TailState::Stopped),
            latest: watch::Sender::new(FeedPosition::default()),
            reached: watch::Sender::default(),
            recent: RecentEntries::since(FeedPosition::default()).into(),
            checkpoints: Mutex::default(),
            valid_since: Mutex::default(),
            ambiguous_until: Mutex::default(),
            stop: Mutex::default(),
        }
    }

    /// Ends the tail.
    pub fn stop(&self) {
        locked(&self.stop).take();
    }

    pub(super) fn set_state(&self, state: TailState) {
        self.state.send_replace(state);
    }

    /// Prepares the start of the tail, unless it runs. The tail must end when the sender of the
    /// returned receiver is dropped.
    pub(super) fn begin_start(&self) -> Option<oneshot::Receiver<()>> {
        let mut stop = locked(&self.stop);
        if !matches!(*self.state.borrow(), TailState::Stopped | TailState::Failed(_)) {
            return None;
        }
        self.state.send_replace(TailState::Starting);
        let (sender, stopped) = oneshot::channel();
        *stop = Some(sender);
        Some(stopped)
    }

    /// Returns the state of the tail once it has started, or has failed to.
    pub(super) async fn settled(&self) -> TailState {
        let mut state = self.state.subscribe();
        let settled = state.wait_for(|state| !matches!(state, TailState::Starting)).await;
        settled.map_or(TailState::Stopped, |state| state.clone())
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(*self.state.borrow(), TailState::Running)
    }

    /// Waits until the tail has reached a position of the log.
    pub(super) async fn reached(&self, end: &[Gtid]) -> Result<()> {
        let mut reached = self.reached.subscribe();
        match tokio::time::timeout(REACH_TIMEOUT, reached.wait_for(|reached| covers(reached, end))).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(late()),
        }
    }

    pub fn latest(&self) -> FeedPosition {
        *self.latest.borrow()
    }

    pub fn watch(&self) -> watch::Receiver<FeedPosition> {
        self.latest.subscribe()
    }

    /// Returns whether all entries behind a position are in memory.
    pub(super) fn has_recent(&self, position: FeedPosition) -> bool {
        !self.has_lost(position) && position <= self.latest() && locked(&self.recent).behind(position).is_some()
    }

    /// Returns entries behind a position; `None` if some are not in memory any more.
    pub(super) fn recent(&self, position: FeedPosition) -> Option<Vec<Arc<FeedEntry>>> {
        locked(&self.recent).behind(position)
    }

    /// Returns the last entries in memory up to a position: see [`RecentEntries::up_to`].
    pub(super) fn recent_up_to(&self, position: FeedPosition, with_next: bool) -> (Vec<Arc<FeedEntry>>, FeedPosition) {
        locked(&self.recent).up_to(position, with_next)
    }

    /// Returns the position before which nothing belongs to the log.
    pub(super) fn valid_since(&self) -> FeedPosition {
        *locked(&self.valid_since)
    }

    /// Returns whether a position belongs to a log that has been lost.
    pub(super) fn has_lost(&self, position: FeedPosition) -> bool {
        position < *locked(&self.valid_since)
    }

    /// Begins at a position, with entries before it.
    pub(super) fn begin(&self, position: FeedPosition, recent: RecentEntries) {
        *locked(&self.recent) = recent;
        self.latest.send_replace(position);
    }

    /// Starts over: earlier positions belong to another log, or the log lacks changes. If the new
    /// log has not reached the position of the old one, the feed continues behind that, so that all
    /// streams learn of the loss.
    pub(super) fn lose(&self, position: FeedPosition) {
        locked(&self.checkpoints).clear();
        self.files.clear();
        let latest = self.latest();
        let since = if position > latest { position } else { latest.next(latest.time) };
        if since > position {
            *locked(&self.ambiguous_until) = since;
        }
        *locked(&self.valid_since) = since;
        self.begin(since, RecentEntries::since(since));
    }

    /// Returns the second that must have passed before a stream may begin at the latest position.
    pub(super) fn ambiguous_second(&self) -> Option<u32> {
        let until = *locked(&self.ambiguous_until);
        (until != FeedPosition::default() && self.latest() <= until).then_some(until.time)
    }

    /// Adds entries that readers may see.
    pub(super) fn publish(&self, entries: Vec<FeedEntry>) {
        let Some(last) = entries.last().map(|entry| entry.position) else { return };
        locked(&self.recent).extend(entries);
        self.rise_to(last);
    }

    /// As [`Feed::publish`], of entries up to `last` that do not fit into memory.
    pub(super) fn skip(&self, last: FeedPosition) {
        *locked(&self.recent) = RecentEntries::since(last);
        self.rise_to(last);
    }

    /// Wakes the streams before `last`. The latest position never falls.
    fn rise_to(&self, last: FeedPosition) {
        self.latest.send_if_modified(|latest| {
            let rises = *latest < last;
            *latest = last.max(*latest);
            rises
        });
    }

    pub(super) fn add_checkpoint(&self, checkpoint: Checkpoint) {
        let mut checkpoints = locked(&self.checkpoints);
        let place = checkpoints.partition_point(|known| known.position < checkpoint.position);
        if checkpoints.get(place).is_some_and(|known| known.position == checkpoint.position) {
            return;
        }
        checkpoints.insert(place, checkpoint);
        if checkpoints.len() > CHECKPOINTS_MAX {
            let mut is_kept = false;
            checkpoints.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
        }
    }

    /// Returns the last checkpoint that is not behind a position.
    pub(super) fn checkpoint(&self, position: FeedPosition) -> Option<Checkpoint> {
        let checkpoints = locked(&self.checkpoints);
        let count = checkpoints.partition_point(|checkpoint| checkpoint.position <= position);
        checkpoints.get(count.checked_sub(1)?).cloned()
    }
}

/// Returns error 262: the log was not read to its end in time.
pub(super) fn late() -> Error {
    Error::new(Code::EXCEEDED_TIME_LIMIT, "MariaDB's binary log was not read to its end in time")
}
