//! A batch of documents to insert, and the commands that send it.

use crate::catalog::table::Table;
use crate::encoding;
use ahash::AHashMap;
use bytes::Bytes;
use document::Doc;
use error::Error;
use mariadb_client::{Connection, Result};
use mariadb_wire::{ColumnType, Param, com_stmt_bulk_execute};
use store::{Namespace, StatementOutcome};

/// Bytes of JSON in one command. The server begins with a command when it has received all of it:
/// with many small ones it inserts while the next ones are being encoded. One of this size fits a
/// socket's buffer.
pub(super) const COMMAND_BYTES: usize = 128 << 10;

/// A batch of documents to insert into a table.
pub(super) struct Batch<'b> {
    pub namespace: &'b Namespace,
    pub table: &'b Table,
    pub documents: &'b [Bytes],
    /// Documents that the validator or an index refuses, by their position.
    pub refused: &'b AHashMap<usize, Error>,
    pub ordered: bool,
    pub packet_bytes_max: u64,
}

impl Batch<'_> {
    /// Sends documents as commands of bounded size, each while the next is being encoded; returns
    /// the number of commands.
    pub async fn send(&self, connection: &mut Connection, documents: &[Bytes], command_bytes: usize) -> Result<usize> {
        let (mut rest, mut commands) = (documents.iter(), 0);
        while !rest.as_slice().is_empty() {
            connection.queue_bulk(&self.table.statements.insert, &[ColumnType::VAR_STRING], |out| {
                push_texts(&mut rest, command_bytes, out, |_| {});
            });
            connection.flush().await?;
            commands += 1;
        }
        Ok(commands)
    }

    /// As [`Batch::send`], with row keys from `key` on.
    pub async fn send_at(&self, connection: &mut Connection, documents: &[Bytes], mut key: u64) -> Result<usize> {
        let (mut rest, mut commands) = (documents.iter(), 0);
        while !rest.as_slice().is_empty() {
            let types = [ColumnType::LONG_LONG, ColumnType::VAR_STRING];
            connection.queue_bulk(&self.table.statements.insert_at, &types, |out| {
                push_texts(&mut rest, COMMAND_BYTES, out, |out| {
                    com_stmt_bulk_execute::push(Param::Unsigned(key), out);
                    key += 1;
                });
            });
            connection.flush().await?;
            commands += 1;
        }
        Ok(commands)
    }
}

/// Appends documents as parameters, each after what `before` appends, up to this many bytes.
fn push_texts(
    rest: &mut std::slice::Iter<'_, Bytes>,
    bytes: usize,
    out: &mut Vec<u8>,
    mut before: impl FnMut(&mut Vec<u8>),
) {
    let end = out.len().saturating_add(bytes);
    let mut text = Vec::new();
    while out.len() < end
        && let Some(document) = rest.next()
    {
        text.clear();
        encode_document(document, &mut text);
        before(out);
        com_stmt_bulk_execute::push(Param::Text(&text), out);
    }
}

pub(super) fn encode_document(document: &[u8], out: &mut Vec<u8>) {
    encoding::encode(Doc::from_bytes(document).unwrap_or(Doc::EMPTY), out);
}

pub(super) fn inserted() -> StatementOutcome {
    StatementOutcome { matched: 1, ..StatementOutcome::default() }
}
