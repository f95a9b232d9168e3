//! Gives the documents of the log to a sink, forwards or backwards.

use super::documents::{self, LogDocument};
use super::plan::LogPlan;
use super::window::{self, Upper, Window};
use crate::feed::log_files;
use crate::feed::past::HeldEntries;
use crate::feed::start::NO_STREAMS;
use crate::store::MariaDbStore;
use ::store::{ChangeFeed, Examined, FeedPosition, Flow, Position, ScanEnd, Sink, StoredDoc, rules};
use error::{Code, Error, Result};

/// Gives the documents behind a position. See [`::store::DocumentStore::scan`].
pub(crate) async fn scan(
    store: &MariaDbStore,
    plan: &LogPlan,
    after: Option<&Position>,
    sink: &mut dyn Sink,
) -> Result<ScanEnd> {
    let resumed = after.and_then(position_of);
    let mut giving = Giving { sink, count: 0, last: resumed };
    let scanned = match plan.forward {
        true => forwards(store, plan, resumed, &mut giving).await,
        false => backwards(store, plan, resumed, &mut giving).await,
    };
    plan.examined.add(Examined { documents: giving.count, seeks: 1, ..Examined::default() });
    scanned.map_err(|error| match (error.code(), resumed) {
        (Code::CHANGE_STREAM_HISTORY_LOST, Some(FeedPosition { time, increment })) => {
            rules::position_lost(plan.is_tail, i64::from(time) << 32 | i64::from(increment))
        }
        (Code(40573), _) => {
            let why = error.message().strip_prefix(NO_STREAMS).unwrap_or(error.message());
            Error::new(Code::NOT_IMPLEMENTED, format!("this server has no oplog: {why}"))
        }
        _ => error,
    })
}

async fn forwards(
    store: &MariaDbStore,
    plan: &LogPlan,
    resumed: Option<FeedPosition>,
    giving: &mut Giving<'_>,
) -> Result<ScanEnd> {
    let end = match resumed {
        Some(_) => store.latest(),
        None => store.current().await?,
    };
    let mut at = match resumed {
        Some(position) => position,
        None => {
            let (begin, is_of_log) = begin(store, plan.behind).await?;
            // A tail examines a document in any case: a cursor that has seen none is closed. It
            // does not match conditions on `ts`, which are about later ones.
            if (is_of_log || plan.is_tail)
                && let Some(stopped) = giving.give(documents::begin(begin))?
            {
                return Ok(stopped);
            }
            begin
        }
    };
    let mut held = resumed.and_then(|position| store.past_readers.take_held(true, position));
    loop {
        let entries = match held.take() {
            Some(HeldEntries { entries, .. }) => entries,
            None => store.read(at).await?,
        };
        let mut rest = entries.as_slice();
        while let Some(first) = rest.first() {
            let count = rest.iter().take_while(|entry| entry.position == first.position).count();
            for (ts, document) in documents::of(rest.get(..count).unwrap_or_default()) {
                if ts <= at {
                    continue;
                }
                if plan.last.is_some_and(|last| ts > last) || (!plan.is_tail && first.position > end) {
                    return Ok(ScanEnd::Exhausted);
                }
                if let Some(stopped) = giving.give((ts, document))? {
                    hold(store, true, giving.last, || Window { entries: rest.to_vec(), ..Window::default() });
                    return Ok(stopped);
                }
            }
            rest = rest.get(count..).unwrap_or_default();
        }
        let Some(last) = entries.last() else { break };
        at = last.position;
        if !plan.is_tail && at >= end {
            break;
        }
        tokio::task::coop::consume_budget().await;
    }
    Ok(if plan.is_tail { ScanEnd::Stopped(as_position(at)) } else { ScanEnd::Exhausted })
}

/// Returns the position behind which a scan begins, and whether that is the begin of the log.
async fn begin(store: &MariaDbStore, behind: Option<FeedPosition>) -> Result<(FeedPosition, bool)> {
    if let Some(behind) = behind {
        if behind >= store.latest() {
            return Ok((behind, false));
        }
        match store.check_history(behind).await {
            Ok(()) => return Ok((behind, false)),
            Err(error) if error.code() == Code::CHANGE_STREAM_HISTORY_LOST => {}
            Err(error) => return Err(error),
        }
    }
    Ok((log_files::begin(store.feed()?).await?, true))
}

async fn backwards(
    store: &MariaDbStore,
    plan: &LogPlan,
    resumed: Option<FeedPosition>,
    giving: &mut Giving<'_>,
) -> Result<ScanEnd> {
    let (mut upper, last) = match resumed {
        Some(position) => (Upper { position: position.before(), with_next: true }, Some(position.before())),
        None => match (store.current().await?, plan.last) {
            (end, Some(last)) if last < end => (Upper { position: last, with_next: true }, Some(last)),
            (end, _) => (Upper { position: end, with_next: false }, None),
        },
    };
    let lower = plan.behind.unwrap_or_default();
    let is_wanted = |ts: FeedPosition| last.is_none_or(|last| ts <= last);
    let mut held = resumed.and_then(|position| store.past_readers.take_held(false, position));
    loop {
        let window = match held.take() {
            Some(HeldEntries { entries, behind }) => Window { entries, behind },
            None => match window::before(store, upper, lower).await? {
                Some(window) => window,
                None => break,
            },
        };
        let mut rest = window.entries.as_slice();
        while let Some(last) = rest.last() {
            let count = rest.iter().rev().take_while(|entry| entry.position == last.position).count();
            let (before, same) = rest.split_at(rest.len() - count);
            for (ts, document) in documents::of(same).into_iter().rev().filter(|(ts, _)| is_wanted(*ts)) {
                if ts <= lower {
                    return Ok(ScanEnd::Exhausted);
                }
                if let Some(stopped) = giving.give((ts, document))? {
                    let behind = window.behind;
                    hold(store, false, giving.last, || Window { entries: rest.to_vec(), behind });
                    return Ok(stopped);
                }
            }
            rest = before;
        }
        if window.behind <= lower {
            return Ok(ScanEnd::Exhausted);
        }
        upper = Upper { position: window.behind, with_next: false };
        tokio::task::coop::consume_budget().await;
    }
    let begin = log_files::begin(store.feed()?).await?;
    if begin > lower && is_wanted(begin) {
        return Ok(giving.give(documents::begin(begin))?.unwrap_or(ScanEnd::Exhausted));
    }
    Ok(ScanEnd::Exhausted)
}

/// Keeps entries that were read from the log for the scan that goes on behind `position`.
fn hold(store: &MariaDbStore, forward: bool, position: Option<FeedPosition>, rest: impl FnOnce() -> Window) {
    let Some(position) =
        position.filter(|position| !store.feed.as_ref().is_some_and(|feed| feed.has_recent(*position)))
    else {
        return;
    };
    let Window { entries, behind } = rest();
    store.past_readers.hold(forward, position, HeldEntries { entries, behind });
}

/// Gives documents to a sink.
struct Giving<'s> {
    sink: &'s mut dyn Sink,
    count: u64,
    /// The `ts` of the last document.
    last: Option<FeedPosition>,
}

impl Giving<'_> {
    /// Returns where the scan stops, if it does.
    fn give(&mut self, (ts, document): LogDocument) -> Result<Option<ScanEnd>> {
        steps::step();
        let flow = self.sink.accept(StoredDoc::Bson(document.as_doc()))?;
        if flow == Flow::StopBefore {
            // Without a document, the next scan begins as this one.
            return Ok(Some(ScanEnd::Stopped(self.last.map_or(Position(Vec::new()), as_position))));
        }
        (self.last, self.count) = (Some(ts), self.count + 1);
        Ok((flow == Flow::StopAfter).then(|| ScanEnd::Stopped(as_position(ts))))
    }
}

fn as_position(position: FeedPosition) -> Position {
    Position([position.time.to_be_bytes(), position.increment.to_be_bytes()].concat())
}

/// Returns the `ts` behind which a scan goes on; `None` if it has not begun.
fn position_of(position: &Position) -> Option<FeedPosition> {
    let (time, increment) = position.0.split_first_chunk::<4>()?;
    let increment = u32::from_be_bytes(*increment.first_chunk()?);
    Some(FeedPosition { time: u32::from_be_bytes(*time), increment })
}
