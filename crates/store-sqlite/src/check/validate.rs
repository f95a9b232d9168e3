//! `validate`: reads everything of a collection and reports damage.
//!
//! Runs on a thread and a connection of its own and in one snapshot, so that neither the worker nor
//! the writer waits for it, and concurrent writes do not look like damage.

use crate::catalog::{Collection, Index};
use crate::connection::{self, Role};
use crate::failure::{Attempt, Failure, is_damage};
use crate::read::scan::blob;
use crate::shared::Shared;
use document::Doc;
use error::{Error, Result};
use index_keys::keys;
use rusqlite::{Connection, OptionalExtension};
use std::sync::Arc;
use store::Validation;
use tokio::sync::oneshot;

/// The limit of findings: a damaged file can have millions.
const FINDINGS_MAX: usize = 100;

pub async fn on_its_own_thread(shared: Arc<Shared>, collection: Arc<Collection>) -> Result<Validation> {
    let (reply, answer) = oneshot::channel();
    let work = move || {
        let connection = connection::open(&shared.path, Role::Reader, &shared.options).map_err(Failure::from);
        let findings = connection.and_then(|connection| validate(&connection, &collection));
        let _ = reply.send(findings.map_err(Error::from));
    };
    let spawned = std::thread::Builder::new().name("sqlite-validate".into()).spawn(work);
    spawned.map_err(|error| Error::internal(error.to_string()))?;
    answer.await.map_err(|_| Error::internal("validation ended without an answer"))?
}

/// Reads everything of a collection. A part that cannot be read is a finding; the others are still
/// checked.
pub fn validate(connection: &Connection, collection: &Collection) -> Attempt<Validation> {
    let snapshot = connection.unchecked_transaction()?;
    let mut findings = Vec::new();
    check_tables(&snapshot, collection, &mut findings)?;
    let mut entries = vec![IndexEntries::default(); collection.indexes.len()];
    // Entries of documents behind this one may be deferred.
    let sql = "SELECT first_seq FROM late WHERE collection = ?1";
    let late_from: Option<i64> = snapshot.query_row(sql, [collection.id], |row| row.get(0)).optional()?;
    let late_from = late_from.unwrap_or(i64::MAX);
    let documents = check_documents(&snapshot, collection, late_from, &mut entries, &mut findings);
    let Some(documents) = or_finding(documents, "the documents cannot all be read", &mut findings)? else {
        return Ok(Validation { findings, keys: Vec::new() });
    };
    // Keys of `_id` are columns of the documents themselves.
    let mut keys = vec![("_id_".to_owned(), documents as u64)];
    for (index, entries) in collection.indexes.iter().zip(entries).filter(|(index, _)| !index.building) {
        let sql = format!("SELECT count(*) FROM {} WHERE seq < ?1", index.sql.table);
        let found = snapshot.query_row(&sql, [late_from], |row| row.get(0)).map_err(Failure::from);
        let unreadable = format!("index {} cannot be read", index.spec.name);
        let Some(found) = or_finding::<i64>(found, &unreadable, &mut findings)? else { continue };
        let made = entries.made;
        if found != made {
            findings.push(format!("index {} has {found} entries, the documents make {made}", index.spec.name));
        }
        keys.push((index.spec.name.clone(), (found + entries.deferred) as u64));
    }
    Ok(Validation { findings, keys })
}

/// Turns a failure caused by damage into a finding.
fn or_finding<T>(attempt: Attempt<T>, what: &str, findings: &mut Vec<String>) -> Attempt<Option<T>> {
    match attempt {
        Ok(value) => Ok(Some(value)),
        Err(Failure::Engine(error)) if is_damage(&error) => {
            findings.push(format!("{what}: {error}"));
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

/// Runs SQLite's own check of the trees.
fn check_tables(connection: &Connection, collection: &Collection, findings: &mut Vec<String>) -> Attempt<()> {
    let indexes = collection.indexes.iter().map(|index| (&index.sql.table, format!("index {}", index.spec.name)));
    let documents = (&collection.sql.table, "the table of documents".to_owned());
    for (table, name) in std::iter::once(documents).chain(indexes) {
        let checked = check_table(connection, table, &name, findings);
        or_finding(checked, &format!("{name} cannot be read whole"), findings)?;
    }
    Ok(())
}

fn check_table(connection: &Connection, table: &str, name: &str, findings: &mut Vec<String>) -> Attempt<()> {
    let mut statement = connection.prepare(&format!("PRAGMA integrity_check({table})"))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let finding: String = row.get(0)?;
        if finding != "ok" && findings.len() < FINDINGS_MAX {
            findings.push(format!("{name}: {finding}"));
        }
    }
    Ok(())
}

/// The numbers of entries that documents have in an index.
#[derive(Clone, Copy, Default)]
struct IndexEntries {
    made: i64,
    /// Entries that may be deferred.
    deferred: i64,
}

/// Returns the number of documents.
fn check_documents(
    connection: &Connection,
    collection: &Collection,
    late_from: i64,
    entries: &mut [IndexEntries],
    findings: &mut Vec<String>,
) -> Attempt<i64> {
    let sql = format!("SELECT seq, id, doc FROM {} ORDER BY seq", collection.sql.table);
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    let (mut documents, mut data_bytes) = (0i64, 0i64);
    let mut key = Vec::new();
    while let Some(row) = rows.next()? {
        let seq: i64 = row.get(0)?;
        let bytes = blob(row.get_ref(2)?);
        documents += 1;
        data_bytes += bytes.len() as i64;
        if findings.len() >= FINDINGS_MAX {
            continue;
        }
        let document = match document::validate::check(bytes) {
            Ok(document) if document.size() == bytes.len() => document,
            Ok(_) => {
                findings.push(format!("document {seq} has bytes behind its end"));
                continue;
            }
            Err(invalid) => {
                findings.push(format!("document {seq} is not valid BSON: {invalid}"));
                continue;
            }
        };
        keys::id_key(document, &collection.collation, &mut key);
        if blob(row.get_ref(1)?) != key {
            findings.push(format!("document {seq} is stored under another _id than its own"));
        }
        for (index, entries) in collection.indexes.iter().zip(&mut *entries).filter(|(index, _)| !index.building) {
            if seq >= late_from {
                entries.deferred += keys::index_keys(document, index)?.len() as i64;
                continue;
            }
            match check_entries(connection, index, seq, document, findings) {
                Ok(made) => entries.made += made,
                // Damage of the index has been reported already.
                Err(Failure::Engine(error)) if is_damage(&error) => {}
                Err(failure) => return Err(failure),
            }
        }
    }
    let sql = "SELECT documents, data_bytes FROM counters WHERE collection = ?1";
    let counted = connection.query_row(sql, [collection.id], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    if counted != Some((documents, data_bytes)) {
        findings.push(format!("there are {documents} documents of {data_bytes} bytes, the catalog says {counted:?}"));
    }
    Ok(documents)
}

/// Returns the number of the document's entries, and adds a finding for each missing one.
fn check_entries(
    connection: &Connection,
    index: &Index,
    seq: i64,
    document: Doc<'_>,
    findings: &mut Vec<String>,
) -> Attempt<i64> {
    let keys = keys::index_keys(document, index)?;
    let sql = format!("SELECT 1 FROM {} WHERE key = ?1 AND seq = ?2", index.sql.table);
    let mut statement = connection.prepare_cached(&sql)?;
    for key in &keys {
        if !statement.exists((key.as_slice(), seq))? {
            findings.push(format!("document {seq} has no entry in index {}", index.spec.name));
        }
    }
    Ok(keys.len() as i64)
}
