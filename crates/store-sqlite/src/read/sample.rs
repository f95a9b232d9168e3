//! `$sample` of a small part of a collection: rows whose numbers are drawn at random.

use crate::catalog::Collection;
use crate::failure::{self, Attempt, Failure};
use crate::read::scan;
use document::{Doc, DocBuf};
use rusqlite::{Connection, OptionalExtension};
use store::row_sampler::RowSampler;

/// Starts drawing. Returns `None` if reading all documents is better.
pub fn begin(connection: &Connection, collection: &Collection, size: usize) -> Attempt<Option<RowSampler<DocBuf>>> {
    let end = |order: &str| {
        let sql = format!("SELECT seq FROM {} ORDER BY seq {order} LIMIT 1", collection.sql.table);
        connection.prepare_cached(&sql)?.query_row([], |row| row.get::<_, i64>(0)).optional()
    };
    let ends = end("ASC").and_then(|first| Ok(first.zip(end("DESC")?)));
    match ends {
        Ok(Some((first, last))) => Ok(RowSampler::new(size, first..=last, collection.documents())),
        Ok(None) => Ok(None),
        // The collection was just dropped.
        Err(error) if failure::is_missing_table(&error) => Ok(None),
        Err(error) => Err(Failure::Engine(error)),
    }
}

/// Reads the rows of some numbers. Returns how many there are, or `None` if the collection has been
/// dropped.
pub fn look(
    connection: &Connection,
    collection: &Collection,
    numbers: &[i64],
    draws: &mut RowSampler<DocBuf>,
) -> Attempt<Option<u64>> {
    let mut statement = match connection.prepare_cached(&collection.sql.by_seq) {
        Err(error) if failure::is_missing_table(&error) => return Ok(None),
        statement => statement?,
    };
    let mut found = 0;
    for &number in numbers {
        let mut rows = statement.query([number])?;
        let Some(row) = rows.next()? else { continue };
        let document = Doc::from_bytes(scan::blob(row.get_ref(0)?));
        draws.add(document.ok_or_else(|| scan::damaged(collection, number))?.to_owned());
        found += 1;
    }
    Ok(Some(found))
}
