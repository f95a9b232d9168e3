//! Waiting until readers see what the log has.
//!
//! A transaction is in the log, and on its way to us, before the engine has committed it: whoever reads at that moment still gets the old rows, and a
//! cache would keep them. Two facts about the server (10.6 to 11.x) tell when it is over:
//!
//! - A leader commits a group of transactions in the engine in the order of the log, all under one lock
//!   (`LOCK_commit_ordered`), which it takes before the next leader can. Under the same lock it sets the
//!   status variable `Binlog_snapshot_position`, and reading that takes the lock. So when the position is the end of a
//!   transaction, this and all before it are visible.
//! - InnoDB gives up a transaction's locks after it has become visible. So a read that waits for locks proves as much.
//!
//! The position is moved by other things too: a new file, notes about checkpoints, which wait for nobody. Hence a position counts only when
//! it is exactly the end of a transaction that has come in. Where it is not (a new file and nothing since), and for XA
//! COMMIT, which the engine does after its turn, the row is asked.

use crate::changes::Key;
use crate::groups::{Group, Place, Probe};
use mariadb_client::{Failure, Result, TextConnection, quote};
use mariadb_wire::Param;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a position that proves nothing is asked for again before the row is.
const VAGUE_MAX: Duration = Duration::from_millis(20);

/// How long to wait for a transaction that the log has and the engine has not: another replica may be waited for first.
const LATE_MAX: Duration = Duration::from_secs(15);

/// The last time of asking, and between.
const PAUSE_MIN: Duration = Duration::from_micros(100);
const PAUSE_MAX: Duration = Duration::from_millis(5);

const SNAPSHOT: &str = "SELECT VARIABLE_VALUE FROM information_schema.SESSION_STATUS \
     WHERE VARIABLE_NAME IN ('Binlog_snapshot_file', 'Binlog_snapshot_position') ORDER BY VARIABLE_NAME";

/// What can be said of the groups that wait.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// So many in front are visible to whoever starts reading now.
    Visible(usize),
    /// So many in front are likely to be, but nothing proves it: hand them on, and again later.
    Likely(usize),
    /// None is yet; ask again after a pause.
    NotYet(Duration),
}

/// Remembers since when the groups in front have been waiting, and positions that were ahead of what had come in.
#[derive(Default)]
pub struct Visibility {
    waiting: Option<Wait>,
    ahead: VecDeque<Place>,
}

/// Positions remembered.
const AHEAD_MAX: usize = 16;

#[derive(Clone, Copy)]
struct Wait {
    since: Instant,
    /// Since when the position has proved nothing.
    vague_since: Option<Instant>,
    pause: Duration,
}

/// What the position says.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Visible(usize),
    /// The engine has not come so far.
    Behind,
    /// It may have come further, or only seem so.
    Vague,
}

impl Visibility {
    /// `groups` is not empty.
    pub async fn judge(&mut self, groups: &VecDeque<Group>, helper: &mut TextConnection) -> Result<Verdict> {
        let now = Instant::now();
        let mut wait = self.waiting.unwrap_or(Wait { since: now, vague_since: None, pause: PAUSE_MIN });
        let said = match self.ahead.iter().filter_map(|place| end_of(place, groups)).max() {
            Some(count) => Said::Visible(count),
            None => {
                let snapshot = snapshot(helper).await?;
                let said = said(&snapshot, groups);
                if said == Said::Vague && !self.ahead.contains(&snapshot) {
                    self.ahead.push_back(snapshot);
                    self.ahead.drain(..self.ahead.len().saturating_sub(AHEAD_MAX));
                }
                said
            }
        };
        let verdict = match said {
            Said::Visible(count) => visible(groups, count, helper).await?,
            Said::Behind if wait.since.elapsed() < LATE_MAX => {
                wait.vague_since = None;
                Verdict::NotYet(wait.pause)
            }
            Said::Vague if wait.vague_since.get_or_insert(now).elapsed() < VAGUE_MAX => Verdict::NotYet(wait.pause),
            Said::Behind | Said::Vague => by_row(groups, helper).await?,
        };
        wait.pause = (wait.pause * 2).min(PAUSE_MAX);
        self.waiting = matches!(verdict, Verdict::NotYet(_)).then_some(wait);
        Ok(verdict)
    }

    /// Waits until what is in the log now is visible, as far as that can be told without having seen it.
    pub async fn settle(helper: &mut TextConnection) -> Result<()> {
        let end = place(&helper.rows("SHOW MASTER STATUS").await?.into_iter().flatten().take(2).collect::<Vec<_>>());
        let deadline = Instant::now() + LATE_MAX;
        loop {
            let now = snapshot(helper).await?;
            if now.file != end.file || now.end >= end.end || Instant::now() > deadline {
                break;
            }
            tokio::time::sleep(PAUSE_MAX).await;
        }
        tokio::time::sleep(VAGUE_MAX).await;
        Ok(())
    }
}

/// How far the engine has come.
async fn snapshot(helper: &mut TextConnection) -> Result<Place> {
    Ok(place(&helper.rows(SNAPSHOT).await?.into_iter().flatten().collect::<Vec<_>>()))
}

/// From the names of a file and a position in it.
fn place(texts: &[Option<String>]) -> Place {
    let text = |at: usize| texts.get(at).and_then(Option::as_deref).unwrap_or_default();
    Place { file: text(0).as_bytes().into(), end: text(1).parse::<u64>().unwrap_or(0) as u32 }
}

/// How many groups there are up to the one that ends at this place.
fn end_of(place: &Place, groups: &VecDeque<Group>) -> Option<usize> {
    groups.iter().rposition(|group| group.place == *place).map(|last| last + 1)
}

fn said(snapshot: &Place, groups: &VecDeque<Group>) -> Said {
    if let Some(count) = end_of(snapshot, groups) {
        return Said::Visible(count);
    }
    match groups.back() {
        Some(last) if last.place.file == snapshot.file && snapshot.end < last.place.end => Said::Behind,
        _ => Said::Vague,
    }
}

/// The first `count` are, unless the engine has not kept to the order.
async fn visible(groups: &VecDeque<Group>, count: usize, helper: &mut TextConnection) -> Result<Verdict> {
    for group in groups.iter().take(count).filter(|group| group.out_of_order) {
        if !ask(group.probe.as_ref(), helper).await? {
            return Ok(Verdict::Likely(count));
        }
    }
    Ok(Verdict::Visible(count))
}

/// The last group that has a row to ask for stands for those before it.
async fn by_row(groups: &VecDeque<Group>, helper: &mut TextConnection) -> Result<Verdict> {
    let in_order = |group: &Group| group.probe.is_some() && !group.out_of_order;
    let Some(last) = groups.iter().rposition(in_order) else { return Ok(Verdict::Likely(groups.len())) };
    let is_visible = ask(groups.get(last).and_then(|group| group.probe.as_ref()), helper).await?;
    // Those behind it have changed definitions or nothing; the next look is at them.
    if is_visible { visible(groups, last + 1, helper).await } else { Ok(Verdict::Likely(last + 1)) }
}

/// Reads a row that was changed, waiting for whoever holds it. `false`: it cannot be asked for, or is held for too long (perhaps by somebody
/// who came later).
async fn ask(probe: Option<&Probe>, helper: &mut TextConnection) -> Result<bool> {
    let Some(Probe { table, key }) = probe else { return Ok(false) };
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
    match helper.run(&sql, &params).await {
        Ok(()) => Ok(true),
        // The table is gone, or not for us to read, or the row is held.
        Err(Failure::Sql { .. }) => Ok(false),
        Err(failure) => Err(failure),
    }
}

/// `None` for what would not be compared by the key's index, so that all rows would be locked.
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

    fn at(file: &str, end: u32) -> Place {
        Place { file: file.as_bytes().into(), end }
    }

    #[test]
    fn only_the_end_of_a_transaction_proves_anything() {
        let group = |place: Place| Group {
            transaction: Transaction { gtid: None, changes: Vec::new() },
            place,
            out_of_order: false,
            probe: None,
            wants_answer: false,
            bytes: 0,
        };
        let groups: VecDeque<Group> = [at("a", 100), at("a", 200), at("b", 150)].map(group).into();
        assert_eq!(said(&at("a", 100), &groups), Said::Visible(1));
        assert_eq!(said(&at("b", 150), &groups), Said::Visible(3));
        assert_eq!(said(&at("b", 100), &groups), Said::Behind);
        assert_eq!(said(&at("b", 151), &groups), Said::Vague);
        assert_eq!(said(&at("c", 4), &groups), Said::Vague);
    }
}
