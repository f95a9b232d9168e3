//! Writes the same documents by SQL, not through the gateways.

use super::kind::OperationKind;
use super::layout::{BLOCK, Id, Layout, Version, visible_version};
use super::model::{Model, Propagations, Source};
use super::read::collection;
use super::tally::Tally;
use anyhow::Result;
use harness::message::DATABASE;
use harness::random::SplitMix;
use harness::sql_connection::{SqlConnection, SqlError, SqlTarget};
use mariadb_wire::Param;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A thread that writes by SQL.
pub struct SqlWriter<'m> {
    pub model: &'m Model,
    pub source: Source,
    pub random: SplitMix,
    /// The pause between two writes.
    pub pause: Duration,
}

/// Kills the connections of the server's replicas.
const KILL_REPLICAS: &str = "BEGIN NOT ATOMIC FOR replica IN (SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%') \
     DO KILL replica.ID; END FOR; END";

/// Disconnects all readers of the binary log, at this interval, until `done` is set.
pub fn disconnect_replicas(target: &SqlTarget, pause: Duration, done: &AtomicBool) -> Result<()> {
    let mut connection = SqlConnection::open(target)?;
    let mut last = Instant::now();
    while !done.load(Relaxed) {
        std::thread::sleep(Duration::from_millis(20).min(pause));
        if last.elapsed() >= pause {
            last = Instant::now();
            match connection.query(KILL_REPLICAS) {
                // A replica that has disconnected by itself meanwhile.
                Err(error) if error.downcast_ref::<SqlError>().is_some_and(|one| one.code == 1094) => {}
                outcome => outcome?,
            }
        }
    }
    Ok(())
}

/// Errors after which nothing was written: deadlocks, lock wait timeouts, and tables or rows that
/// have changed meanwhile.
const RETRYABLE: [u16; 5] = [1213, 1205, 1412, 1020, 1615];

impl SqlWriter<'_> {
    /// Writes until `done` is set.
    pub fn run(mut self, target: &SqlTarget, done: &AtomicBool, tally: &mut Tally) -> Result<()> {
        let mut connection = SqlConnection::open(target)?;
        let mut propagations = Propagations::default();
        while !done.load(Relaxed) {
            self.model.propagate_due(&mut propagations);
            std::thread::sleep(self.pause);
            let id = self.random.below(self.model.layout.side().end.into()) as Id;
            if !self.model.claim(id) {
                continue;
            }
            let judged = self.write(&mut connection, id, &mut propagations)?;
            tally.count(OperationKind::Sql, judged);
        }
        Ok(())
    }

    /// Writes to the claimed block of the document and releases it.
    fn write(
        &mut self,
        connection: &mut SqlConnection,
        id: Id,
        propagations: &mut Propagations,
    ) -> Result<Result<(), String>> {
        let ids = match self.random.below(4) {
            0 => self.model.layout.block(id / BLOCK).step_by(3).collect(),
            _ => vec![id],
        };
        // A write that is rolled back is never recorded as begun.
        if self.random.below(10) == 0 {
            self.statements(connection, &ids, "ROLLBACK")?;
            self.model.release(id);
            return Ok(Ok(()));
        }
        // The write may be visible from when the statement is sent.
        let versions: Vec<Version> = ids.iter().map(|id| self.model.current(*id)).collect();
        ids.iter().for_each(|id| self.model.begin(*id));
        let rows = self.statements_from(connection, &ids, &versions, "COMMIT")?;
        ids.iter().for_each(|id| self.model.acknowledge(*id, self.source, propagations));
        self.model.release(id);
        let expected = ids.len() as u64;
        Ok(if rows == expected {
            Ok(())
        } else {
            Err(format!("SQL changed {rows} rows instead of {expected}: {ids:?}"))
        })
    }

    fn statements(&mut self, connection: &mut SqlConnection, ids: &[Id], end: &str) -> Result<u64> {
        let versions: Vec<Version> = ids.iter().map(|id| self.model.current(*id)).collect();
        self.statements_from(connection, ids, &versions, end)
    }

    /// Takes the documents from these versions to the next, in one transaction that is retried
    /// until it succeeds.
    fn statements_from(
        &mut self,
        connection: &mut SqlConnection,
        ids: &[Id],
        versions: &[Version],
        end: &str,
    ) -> Result<u64> {
        loop {
            match self.transaction(connection, ids, versions, end) {
                Err(error) if error.downcast_ref::<SqlError>().is_some_and(|one| RETRYABLE.contains(&one.code)) => {
                    connection.query("ROLLBACK")?;
                }
                outcome => return outcome,
            }
        }
    }

    fn transaction(
        &mut self,
        connection: &mut SqlConnection,
        ids: &[Id],
        versions: &[Version],
        end: &str,
    ) -> Result<u64> {
        let autocommit = ids.len() == 1 && end == "COMMIT";
        if !autocommit {
            connection.query("START TRANSACTION")?;
        }
        let mut rows = 0;
        for (id, version) in ids.iter().zip(versions) {
            rows += self.one(connection, *id, *version)?;
        }
        if !autocommit {
            connection.query(end)?;
        }
        Ok(rows)
    }

    /// Takes one document to its next version; returns the number of changed rows.
    fn one(&mut self, connection: &mut SqlConnection, id: Id, version: Version) -> Result<u64> {
        let layout = &self.model.layout;
        let location = layout.location(id);
        let table = format!("`{DATABASE}`.`{}`", collection(location));
        let key = id.to_string();
        let key = Param::Text(key.as_bytes());
        let next = version + 1;
        let json = json(layout, id, next);
        let whole = Param::Text(json.as_bytes());
        match (visible_version(location, id, version).is_some(), visible_version(location, id, next).is_some()) {
            (_, false) => connection.execute(&format!("DELETE FROM {table} WHERE id = ?"), &[key]),
            (false, true) => connection.execute(&format!("INSERT INTO {table} (doc) VALUES (?)"), &[whole]),
            (true, true) if self.random.below(3) == 0 => {
                connection.execute(&format!("UPDATE {table} SET doc = ? WHERE id = ?"), &[whole, key])
            }
            (true, true) => {
                let fields = layout.fields(id, next);
                let number = |number: i32| Param::Signed(number.into());
                let sql = format!(
                    "UPDATE {table} SET doc = JSON_SET(doc, '$.v', ?, '$.g', ?, '$.n', ?, '$.s', ?) WHERE id = ?"
                );
                let text = Param::Text(fields.s.as_bytes());
                connection.execute(&sql, &[number(fields.v), number(fields.g), number(fields.n), text, key])
            }
        }
    }
}

fn json(layout: &Layout, id: Id, version: Version) -> String {
    let mut out = Vec::new();
    document::json::bson_to_json(layout.document(id, version).as_doc(), &mut out);
    String::from_utf8_lossy(&out).into_owned()
}
