//! Waits until readers see the transactions of the log.
//!
//! A transaction is in the log, and sent to replicas, before the engine has committed it. A reader
//! at that moment still gets the old rows, and a cache would keep them. Two facts about the server
//! (10.6 to 11.x) show when the transaction is visible:
//!
//! - A leader commits a group of transactions in the engine in the order of the log, all under one
//!   lock (`LOCK_commit_ordered`), which it takes before the next leader can. Under the same lock
//!   it sets the status variable `Binlog_snapshot_position`, and reading that takes the lock. So if
//!   the position is the end of a transaction, this one and all before it are visible.
//! - InnoDB releases a transaction's locks after it has become visible. So a read that waits for
//!   locks proves the same.
//!
//! Other events move the position too: a new file, checkpoint events, which wait for no commit.
//! Hence a position counts only if it is exactly the end of a received transaction. If it is not (a
//! new file and nothing since), and for XA COMMIT, which the engine executes out of turn, the row
//! is read.

use crate::changes::Key;
use crate::event_groups::{Group, LogOffset, RowProbe};
use mariadb_client::{Failure, Result, TextConnection, quote};
use mariadb_wire::Param;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a position that proves nothing is read again before the row is read.
const AMBIGUOUS_MAX: Duration = Duration::from_millis(20);

/// How long to wait for a transaction that is logged but not committed in the engine: the server
/// may first wait for another replica.
const LATE_MAX: Duration = Duration::from_secs(15);

/// Bounds of the pause between two reads of the position.
const PAUSE_MIN: Duration = Duration::from_micros(100);
const PAUSE_MAX: Duration = Duration::from_millis(5);

const SNAPSHOT: &str = "SELECT VARIABLE_VALUE FROM information_schema.SESSION_STATUS \
     WHERE VARIABLE_NAME IN ('Binlog_snapshot_file', 'Binlog_snapshot_position') ORDER BY VARIABLE_NAME";

/// The visibility of the groups that wait for delivery.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// This many in front are visible to readers that start now.
    Visible(usize),
    /// This many in front are likely visible, but unproved: deliver them now and once more later.
    Likely(usize),
    /// None is visible yet; check again after a pause.
    NotYet(Duration),
}

/// Tracks how long the groups in front have been waiting, and positions ahead of the received
/// groups.
#[derive(Default)]
pub struct Visibility {
    waiting: Option<Wait>,
    ahead: VecDeque<LogOffset>,
}

/// Positions kept.
const AHEAD_MAX: usize = 16;

#[derive(Clone, Copy)]
struct Wait {
    since: Instant,
    /// Since when the position has proved nothing.
    ambiguous_since: Option<Instant>,
    pause: Duration,
}

/// What the server's position proves.
#[derive(Debug, PartialEq, Eq)]
enum Proof {
    Visible(usize),
    /// The engine has not committed the last group.
    Behind,
    /// The engine may have committed it, or not.
    Ambiguous,
}

impl Visibility {
    /// Returns how many of the groups are visible. `groups` must not be empty.
    pub async fn judge(&mut self, groups: &VecDeque<Group>, queries: &mut TextConnection) -> Result<Verdict> {
        let now = Instant::now();
        let mut wait = self.waiting.unwrap_or(Wait { since: now, ambiguous_since: None, pause: PAUSE_MIN });
        let proof = match self.ahead.iter().filter_map(|place| end_of(place, groups)).max() {
            Some(count) => Proof::Visible(count),
            None => {
                let snapshot = snapshot(queries).await?;
                let proof = prove(&snapshot, groups);
                if proof == Proof::Ambiguous && !self.ahead.contains(&snapshot) {
                    self.ahead.push_back(snapshot);
                    self.ahead.drain(..self.ahead.len().saturating_sub(AHEAD_MAX));
                }
                proof
            }
        };
        let verdict = match proof {
            Proof::Visible(count) => visible(groups, count, queries).await?,
            Proof::Behind if wait.since.elapsed() < LATE_MAX => {
                wait.ambiguous_since = None;
                Verdict::NotYet(wait.pause)
            }
            Proof::Ambiguous if wait.ambiguous_since.get_or_insert(now).elapsed() < AMBIGUOUS_MAX => {
                Verdict::NotYet(wait.pause)
            }
            Proof::Behind | Proof::Ambiguous => by_row(groups, queries).await?,
        };
        wait.pause = (wait.pause * 2).min(PAUSE_MAX);
        self.waiting = matches!(verdict, Verdict::NotYet(_)).then_some(wait);
        Ok(verdict)
    }

    /// Waits until the transactions now in the log are visible, as far as the position shows.
    pub async fn wait_for_log_end(queries: &mut TextConnection) -> Result<()> {
        let end =
            parse_offset(&queries.rows("SHOW MASTER STATUS").await?.into_iter().flatten().take(2).collect::<Vec<_>>());
        let deadline = Instant::now() + LATE_MAX;
        loop {
            let now = snapshot(queries).await?;
            if now.file != end.file || now.end >= end.end || Instant::now() > deadline {
                break;
            }
            tokio::time::sleep(PAUSE_MAX).await;
        }
        tokio::time::sleep(AMBIGUOUS_MAX).await;
        Ok(())
    }
}

/// Reads the engine's position in the log.
async fn snapshot(queries: &mut TextConnection) -> Result<LogOffset> {
    Ok(parse_offset(&queries.rows(SNAPSHOT).await?.into_iter().flatten().collect::<Vec<_>>()))
}

/// Parses a file name and an offset.
fn parse_offset(texts: &[Option<String>]) -> LogOffset {
    let text = |at: usize| texts.get(at).and_then(Option::as_deref).unwrap_or_default();
    LogOffset { file: text(0).as_bytes().into(), end: text(1).parse::<u64>().unwrap_or(0) as u32 }
}

/// Returns the number of groups up to the one that ends at this offset.
fn end_of(offset: &LogOffset, groups: &VecDeque<Group>) -> Option<usize> {
    groups.iter().rposition(|group| group.offset == *offset).map(|last| last + 1)
}

fn prove(snapshot: &LogOffset, groups: &VecDeque<Group>) -> Proof {
    if let Some(count) = end_of(snapshot, groups) {
        return Proof::Visible(count);
    }
    match groups.back() {
        Some(last) if last.offset.file == snapshot.file && snapshot.end < last.offset.end => Proof::Behind,
        _ => Proof::Ambiguous,
    }
}

/// Returns that the first `count` groups are visible, after checking those committed out of order.
async fn visible(groups: &VecDeque<Group>, count: usize, queries: &mut TextConnection) -> Result<Verdict> {
    for group in groups.iter().take(count).filter(|group| group.out_of_order) {
        if !is_row_visible(group.probe.as_ref(), queries).await? {
            return Ok(Verdict::Likely(count));
        }
    }
    Ok(Verdict::Visible(count))
}

/// Proves visibility by the last group that has a row to read.
async fn by_row(groups: &VecDeque<Group>, queries: &mut TextConnection) -> Result<Verdict> {
    let in_order = |group: &Group| group.probe.is_some() && !group.out_of_order;
    let Some(last) = groups.iter().rposition(in_order) else { return Ok(Verdict::Likely(groups.len())) };
    let is_visible = is_row_visible(groups.get(last).and_then(|group| group.probe.as_ref()), queries).await?;
    // The groups after it changed definitions or nothing; they are checked next.
    if is_visible { visible(groups, last + 1, queries).await } else { Ok(Verdict::Likely(last + 1)) }
}

/// Reads a changed row, waiting for its lock. Returns false if it cannot be read, or is locked for
/// too long (perhaps by a later writer).
async fn is_row_visible(probe: Option<&RowProbe>, queries: &mut TextConnection) -> Result<bool> {
    let Some(RowProbe { table, key }) = probe else { return Ok(false) };
    let Some(columns) = &table.columns else { return Ok(false) };
    let Some(params) = key.iter().map(param).collect::<Option<Vec<_>>>() else { return Ok(false) };
    let conditions: Vec<String> = columns.key.iter().map(|column| format!("{} = ?", quote(&column.name))).collect();
    let sql: Arc<str> = format!(
        "SELECT 1 FROM {}.{} WHERE {} LOCK IN SHARE MODE",
        quote(&table.name.database),
        quote(&table.name.table),
        conditions.join(" AND "),
    )
    .into();
    match queries.run(&sql, &params).await {
        Ok(()) => Ok(true),
        // The table was dropped or is not readable, or the row stayed locked.
        Err(Failure::Sql { .. }) => Ok(false),
        Err(failure) => Err(failure),
    }
}

/// Returns a key as a parameter; `None` if it would not be compared by the index, so that all rows
/// would be locked.
fn param(key: &Key) -> Option<Param<'_>> {
    match key {
        Key::Signed(number) => Some(Param::Signed(*number)),
        Key::Unsigned(number) => Some(Param::Unsigned(*number)),
        Key::Bytes(bytes) if bytes.is_ascii() => Some(Param::Text(bytes)),
        Key::Bytes(_) | Key::Packed(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::Transaction;

    fn at(file: &str, end: u32) -> LogOffset {
        LogOffset { file: file.as_bytes().into(), end }
    }

    #[test]
    fn only_the_end_of_a_transaction_is_a_proof() {
        let group = |offset: LogOffset| Group {
            transaction: Transaction { gtid: None, changes: Vec::new() },
            offset,
            out_of_order: false,
            probe: None,
            wants_acknowledgement: false,
            bytes: 0,
        };
        let groups: VecDeque<Group> = [at("a", 100), at("a", 200), at("b", 150)].map(group).into();
        assert_eq!(prove(&at("a", 100), &groups), Proof::Visible(1));
        assert_eq!(prove(&at("b", 150), &groups), Proof::Visible(3));
        assert_eq!(prove(&at("b", 100), &groups), Proof::Behind);
        assert_eq!(prove(&at("b", 151), &groups), Proof::Ambiguous);
        assert_eq!(prove(&at("c", 4), &groups), Proof::Ambiguous);
    }
}
