//! Reads the log backwards, part by part: each part is read forwards from a place at which reading
//! can begin. If it is large, only its end is kept, and the rest is read again.

use crate::feed::log_files;
use crate::store::MariaDbStore;
use ::store::{ChangeFeed, FeedEntry, FeedPosition};
use error::Result;
use std::collections::VecDeque;
use std::sync::Arc;

/// The most bytes of entries that are kept.
const BYTES_MAX: usize = 8 << 20;

/// The end of a part of the log that is to be read backwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Upper {
    pub position: FeedPosition,
    /// The next position is part of it: some documents of its entries may be before.
    pub with_next: bool,
}

/// Some entries in order, all of their positions, and the position behind which they begin.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    pub entries: Vec<Arc<FeedEntry>>,
    pub behind: FeedPosition,
}

/// Returns the last entries up to `upper`; `None` if nothing of the log is before. Nothing that is
/// not behind `lower` is needed.
pub(super) async fn before(store: &MariaDbStore, upper: Upper, lower: FeedPosition) -> Result<Option<Window>> {
    let feed = store.feed()?;
    let (entries, behind) = feed.recent_up_to(upper.position, upper.with_next);
    if !entries.is_empty() {
        return Ok(Some(Window { entries, behind }));
    }
    let upper = match upper.position <= behind {
        true => upper,
        false => Upper { position: behind, with_next: false },
    };
    let Some(start) = log_files::start_before(feed, upper.position).await? else { return Ok(None) };
    let mut window = Window { entries: Vec::new(), behind: start.max(lower) };
    let (mut kept, mut bytes, mut at) = (VecDeque::<Arc<FeedEntry>>::new(), 0, window.behind);
    while at < upper.position {
        let read = store.read(at).await?;
        let Some(last) = read.last() else { break };
        at = last.position;
        for entry in read {
            let is_next = upper.with_next && kept.back().is_none_or(|last| last.position < upper.position);
            let continues = kept.back().is_some_and(|last| last.position == entry.position);
            if entry.position > upper.position && !is_next && !continues {
                break;
            }
            bytes += entry.bytes();
            kept.push_back(entry);
        }
        while bytes > BYTES_MAX
            && let Some(oldest) = kept.front().map(|oldest| oldest.position)
            && kept.back().is_some_and(|last| last.position > oldest)
        {
            window.behind = oldest;
            while kept.front().is_some_and(|entry| entry.position == oldest)
                && let Some(dropped) = kept.pop_front()
            {
                bytes -= dropped.bytes();
            }
        }
    }
    window.entries = kept.into();
    Ok(Some(window))
}
