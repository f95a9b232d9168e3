//! Starts the tail of the feed.

use super::shared::{Feed, TailState, late};
use super::tail;
use error::{Code, Error, Result};
use std::sync::Arc;
use std::time::Duration;

/// The beginning of error 40573, before the reason.
pub(super) const NO_STREAMS: &str = "The $changeStream stage is only supported on replica sets: ";

/// How long a stream waits for the tail to start.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// Starts the tail unless it runs, and waits until it has reached the end of the log. Fails with
/// 72 if the server keeps no suitable log.
pub(crate) async fn started(feed: &Arc<Feed>) -> Result<()> {
    if feed.is_running() {
        return Ok(());
    }
    if let Some(stopped) = feed.begin_start() {
        tail::spawn(feed.clone(), stopped)?;
    }
    match tokio::time::timeout(START_TIMEOUT, feed.settled()).await {
        Ok(TailState::Failed(error)) => Err(error),
        Ok(_) => Ok(()),
        Err(_) => Err(late()),
    }
}

/// As [`started`], for a stream: fails with 40573 if the server keeps no suitable log.
pub(super) async fn started_for_stream(feed: &Arc<Feed>) -> Result<()> {
    started(feed).await.map_err(|error| match error.code() {
        Code::INVALID_OPTIONS => no_feed(error.message()),
        _ => error,
    })
}

/// Returns error 40573 with the reason for which the store has no feed.
pub(super) fn no_feed(why: &str) -> Error {
    Error::new(Code(40573), format!("{NO_STREAMS}{why}"))
}
