//! The table of claimed keys of a unique side index: its definition, its guard, and its rows.

use crate::catalog::table::Table;
use crate::index::Index;
use crate::index::side_index::side_table::{Duplicates, SideTable};
use document::Doc;
use index_keys::{IndexShape, keys};
use mariadb_client::{Connection, Result, quote};
use mariadb_wire::Param;
use sha2::{Digest, Sha256};

/// Claims inserted by one statement.
const CLAIMS_AT_ONCE: usize = 512;

/// The hash of a key, and its row key.
pub(crate) type Claim = ([u8; 32], u64);

/// Returns whether the table has a unique side index.
pub(crate) fn are_needed(table: &Table) -> bool {
    table.indexes.iter().any(|index| index.claims().is_some())
}

/// Returns the statement that begins a transaction and names the indexes whose keys it claims.
pub(crate) fn beginning(table: &Table) -> String {
    let hashes: Vec<&str> = table.indexes.iter().filter_map(Index::claims).map(|keys| keys.hash.as_str()).collect();
    format!("SET autocommit = 0, @selkie_claims = '{}'", hashes.join(" "))
}

/// Returns the statement of a trigger that refuses a gateway which does not claim keys of the
/// index.
pub(crate) fn guard(keys: &SideTable) -> String {
    format!(
        "IF @selkie_gateway IS NOT NULL AND LOCATE('{}', COALESCE(@selkie_claims, '')) = 0 THEN \
         SIGNAL SQLSTATE '42S02' SET MYSQL_ERRNO = 1146, MESSAGE_TEXT = 'a unique index is not known'; END IF;",
        keys.hash
    )
}

pub(crate) fn definition(table: &Table, index: &Index, keys: &SideTable) -> String {
    format!(
        "CREATE TABLE {} (claim BINARY(32) NOT NULL, seq BIGINT UNSIGNED NOT NULL, PRIMARY KEY (seq, claim), \
         UNIQUE KEY {} (claim)) ENGINE = InnoDB",
        keys.claims(&table.schema),
        quote(&index.sql_name)
    )
}

/// Adds the claims of a document.
pub(crate) fn add(document: Option<Doc<'_>>, shape: &IndexShape, seq: u64, claims: &mut Vec<Claim>) {
    let keys = document.and_then(|document| keys::index_keys(document, shape).ok()).unwrap_or_default();
    claims.extend(keys.iter().map(|key| (Sha256::digest(key).into(), seq)));
}

/// Replaces the claims of some rows (`among`, `rows`).
pub(crate) async fn replace(
    connection: &mut Connection,
    own: &str,
    among: &str,
    rows: &[Param<'_>],
    claims: &[Claim],
    duplicates: Duplicates,
) -> Result<()> {
    connection.queue_execute(&format!("DELETE FROM {own} WHERE seq {among}").into(), rows);
    connection.finish().await?;
    let ignore = if duplicates == Duplicates::Tolerated { " IGNORE" } else { "" };
    for some in claims.chunks(CLAIMS_AT_ONCE) {
        let places = vec!["(?, ?)"; some.len()].join(", ");
        let params: Vec<Param<'_>> =
            some.iter().flat_map(|(claim, seq)| [Param::Bytes(claim), Param::Unsigned(*seq)]).collect();
        connection.queue_execute(&format!("INSERT{ignore} INTO {own} (claim, seq) VALUES {places}").into(), &params);
        connection.finish().await?;
    }
    Ok(())
}
