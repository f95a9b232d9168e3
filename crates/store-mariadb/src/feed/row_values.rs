//! The values in rows of the log.

use ::store::change_feed::history_lost;
use document::{Doc, DocBuf};
use mariadb_client::{Failure, Result};
use mariadb_wire::binlog::column;
use mariadb_wire::binlog::rows::{Field, Image, Row};
use mariadb_wire::binlog::table_map::TableMap;

/// Returns the time of an event in milliseconds.
pub(super) fn wall_ms(time: u32) -> i64 {
    i64::from(time) * 1000
}

/// Returns the bytes of a text or blob in a row; `None` for NULL. Fails with 286 if the log omits
/// it.
pub(super) fn bytes<'r>(image: &Image<'r>, map: &TableMap, column: usize) -> Result<Option<&'r [u8]>> {
    match image.fields().nth(column).ok_or_else(lost)?? {
        Field::Null => Ok(None),
        Field::Absent => Err(lost()),
        Field::Value(bytes) => match map.columns.get(column).map(|column| column.value(bytes, false)) {
            Some(column::Value::Bytes(bytes)) => Ok(Some(bytes)),
            _ => Err(lost()),
        },
    }
}

/// Returns a signed integer in a row. Fails with 286 if the log omits it.
pub(super) fn integer(image: &Image<'_>, map: &TableMap, column: usize) -> Result<i64> {
    match (image.fields().nth(column).ok_or_else(lost)??, map.columns.get(column)) {
        (Field::Value(bytes), Some(column)) => match column.value(bytes, false) {
            column::Value::Signed(number) => Ok(number),
            _ => Err(lost()),
        },
        _ => Err(lost()),
    }
}

/// Returns how many bytes the values of a row have.
pub(super) fn size(row: &Row<'_>) -> usize {
    let fields = [&row.before, &row.after].into_iter().flatten().flat_map(Image::fields);
    fields.map(|field| if let Ok(Field::Value(bytes)) = field { bytes.len() } else { 0 }).sum()
}

/// Returns a document that is in a blob.
pub(super) fn blob(bytes: Option<&[u8]>) -> DocBuf {
    bytes.and_then(Doc::from_bytes).map(Doc::to_owned).unwrap_or_default()
}

/// Returns error 286: the log cannot be understood.
pub(super) fn lost() -> Failure {
    history_lost().into()
}
