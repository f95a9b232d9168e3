//! Unique indexes whose keys SQL cannot compute: those with a collation, with a filter that SQL does not decide, and those whose columns a
//! table has no room for.
//!
//! Each key of a document is claimed: its hash is inserted into a table under a unique key, in the transaction that writes the document.
//! So of two gateways that write one key at the same time the second waits for the first, and is refused. What SQL clients write is noted
//! by triggers like all changes, and claims what is still free when it is drained. A document by SQL that has a taken key stays: MariaDB
//! cannot refuse what it cannot compute.
//!
//! A gateway that has not heard of the index would write without a claim. Triggers keep it from that: a gateway's session says which indexes
//! it claims keys of, and a session that does not name this one gets the error of a missing table, whereupon gateways look at the table anew.

use super::drain::{DRAINED_AT_ONCE, drain, drain_within};
use super::{Duplicates, KeyTable};
use crate::connection::{Connection, Event};
use crate::failure::Result;
use crate::index::Index;
use crate::names::quote;
use crate::table::Table;
use document::Doc;
use index_keys::{IndexShape, keys};
use mariadb_wire::Param;
use sha2::{Digest, Sha256};

/// Claims of one statement.
const CLAIMS_AT_ONCE: usize = 512;

/// The hash of a key, and the row that has it.
pub(super) type Claim = ([u8; 32], u64);

/// Whether gateways keep an index of the table unique.
pub(crate) fn are_needed(table: &Table) -> bool {
    table.indexes.iter().any(|index| index.claims().is_some())
}

/// Returns the statement that begins a transaction and says of which indexes keys are claimed in it.
pub(crate) fn beginning(table: &Table) -> String {
    let hashes: Vec<&str> = table.indexes.iter().filter_map(Index::claims).map(|keys| keys.hash.as_str()).collect();
    format!("SET autocommit = 0, @selkie_claims = '{}'", hashes.join(" "))
}

/// The statement of a trigger that refuses a gateway which does not claim keys of the index.
pub(super) fn guard(keys: &KeyTable) -> String {
    format!(
        "IF @selkie_gateway IS NOT NULL AND LOCATE('{}', COALESCE(@selkie_claims, '')) = 0 THEN \
         SIGNAL SQLSTATE '42S02' SET MYSQL_ERRNO = 1146, MESSAGE_TEXT = 'a unique index is not known'; END IF;",
        keys.hash
    )
}

pub(super) fn definition(table: &Table, index: &Index, keys: &KeyTable) -> String {
    format!(
        "CREATE TABLE {} (claim BINARY(32) NOT NULL, seq BIGINT UNSIGNED NOT NULL, PRIMARY KEY (seq, claim), \
         UNIQUE KEY {} (claim)) ENGINE = InnoDB",
        keys.claims(table),
        quote(&index.sql_name)
    )
}

/// Has what others have written drained, in transactions of its own, so that what is left is the caller's.
pub(crate) async fn settle(connection: &mut Connection, table: &Table) -> Result<()> {
    for (index, keys) in claimed(table) {
        let mut keys = keys.clone();
        loop {
            let probe = format!("SELECT seq FROM {} LIMIT 1", keys.pending(table));
            connection.queue_execute(&probe.into(), &[]);
            let mut any = false;
            loop {
                match connection.next().await {
                    Ok(Event::Row(_)) => any = true,
                    Ok(_) => break,
                    // The tables are being made.
                    Err(failure) if failure.is_missing_table() => break,
                    Err(failure) => return Err(failure),
                }
            }
            if !any || drain(connection, table, index, &mut keys, Duplicates::Kept).await? < DRAINED_AT_ONCE {
                break;
            }
        }
    }
    Ok(())
}

/// Claims the keys of what the transaction has written; fails with 1062 where another document has one of them.
pub(crate) async fn claim(connection: &mut Connection, table: &Table) -> Result<()> {
    for (index, keys) in claimed(table) {
        loop {
            match drain_within(connection, table, index, keys, Duplicates::Refused).await {
                Ok((count, _)) if count < DRAINED_AT_ONCE => break,
                Ok(_) => {}
                // The tables are being made.
                Err(failure) if failure.is_missing_table() => break,
                Err(failure) => return Err(failure),
            }
        }
    }
    Ok(())
}

fn claimed(table: &Table) -> impl Iterator<Item = (&Index, &KeyTable)> {
    table.indexes.iter().filter_map(|index| Some((index, index.claims()?)))
}

/// Adds what a document claims.
pub(super) fn add(document: Option<Doc<'_>>, shape: &IndexShape, seq: u64, claims: &mut Vec<Claim>) {
    let keys = document.and_then(|document| keys::index_keys(document, shape).ok()).unwrap_or_default();
    claims.extend(keys.iter().map(|key| (Sha256::digest(key).into(), seq)));
}

/// Puts claims in the place of those that some rows (`among`, `rows`) have had.
pub(super) async fn replace(
    connection: &mut Connection,
    own: &str,
    among: &str,
    rows: &[Param<'_>],
    claims: &[Claim],
    duplicates: Duplicates,
) -> Result<()> {
    connection.queue_execute(&format!("DELETE FROM {own} WHERE seq {among}").into(), rows);
    connection.finish().await?;
    let ignore = if duplicates == Duplicates::Kept { " IGNORE" } else { "" };
    for some in claims.chunks(CLAIMS_AT_ONCE) {
        let places = vec!["(?, ?)"; some.len()].join(", ");
        let params: Vec<Param<'_>> =
            some.iter().flat_map(|(claim, seq)| [Param::Bytes(claim), Param::Unsigned(*seq)]).collect();
        connection.queue_execute(&format!("INSERT{ignore} INTO {own} (claim, seq) VALUES {places}").into(), &params);
        connection.finish().await?;
    }
    Ok(())
}
