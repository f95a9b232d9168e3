//! The documents of the entries of one position.
//!
//! Entries of a client's transaction are one document, whose `ts` is the position. Others are
//! documents of their own with a `ts` each: the last has the position, and those before it the
//! positions of the rows before. These are free, since each entry has counted as a row at least.

use ::store::change_feed::{LoggedTransaction, in_one};
use ::store::{FeedEntry, FeedPosition, LoggedChange, Namespace, Operation};
use document::{DocBuf, doc};
use std::sync::Arc;

/// A document of the log, by its `ts`.
pub(super) type LogDocument = (FeedPosition, DocBuf);

/// Returns the documents of all entries of a position.
pub(super) fn of(entries: &[Arc<FeedEntry>]) -> Vec<LogDocument> {
    let Some(first) = entries.first() else { return Vec::new() };
    if let Some(transaction) = LoggedTransaction::decode(first.document.as_doc()) {
        return of_transaction(entries, transaction);
    }
    let documents = entries.iter().enumerate().filter_map(|(index, entry)| {
        let change = entry.change().filter(|change| !matches!(change.operation, Operation::Note { .. }))?;
        let ts = at(entry.position, entries.len() - 1 - index);
        Some((ts, if ts == entry.position { entry.document.clone() } else { change.encode(ts) }))
    });
    documents.collect()
}

fn of_transaction(entries: &[Arc<FeedEntry>], transaction: LoggedTransaction<'_>) -> Vec<LogDocument> {
    let wall_ms = entries.first().and_then(|entry| entry.change()).map_or(0, |change| change.wall_ms);
    let combined = in_one(entries.iter().map(|entry| FeedEntry::clone(entry)).collect(), transaction, wall_ms);
    let combined = match combined.len() {
        1 => combined,
        _ => {
            let placed = entries.iter().enumerate().map(|(index, entry)| {
                let position = at(entry.position, entries.len() - 1 - index);
                FeedEntry { position, ..FeedEntry::clone(entry) }
            });
            in_one(placed.collect(), transaction, wall_ms)
        }
    };
    combined.into_iter().map(|entry| (entry.position, entry.document)).collect()
}

/// Returns the position this many rows before another.
fn at(position: FeedPosition, before: usize) -> FeedPosition {
    FeedPosition { increment: position.increment.saturating_sub(before as u32), ..position }
}

/// Returns the document with which the log begins, so that it is never empty.
pub(super) fn begin(position: FeedPosition) -> LogDocument {
    let note = doc! { "msg": "begin of the log" };
    let change = LoggedChange {
        namespace: Namespace::new("", ""),
        collection_uuid: None,
        operation: Operation::Note { note: note.as_doc() },
        wall_ms: i64::from(position.time) * 1000,
        transaction: None,
    };
    (position, change.encode(position))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(operation: u32, transaction: Option<LoggedTransaction<'_>>) -> Arc<FeedEntry> {
        let document = doc! { "_id": operation as i32 };
        let change = LoggedChange {
            namespace: Namespace::new("d", "c"),
            collection_uuid: Some([7; 16]),
            operation: Operation::Insert { document: document.as_doc() },
            wall_ms: 12,
            transaction,
        };
        let position = FeedPosition { time: 5, increment: 9 };
        Arc::new(FeedEntry { position, operation, document: change.encode(position), before: None })
    }

    #[test]
    fn documents_have_different_times() {
        let entries: Vec<_> = (0..3).map(|operation| entry(operation, None)).collect();
        let documents = of(&entries);
        assert_eq!(documents.iter().map(|(ts, _)| ts.increment).collect::<Vec<_>>(), [7, 8, 9]);
        for (ts, document) in documents {
            assert_eq!(document.as_doc().get("ts"), Some(ts.as_value()));
        }
    }

    #[test]
    fn a_transaction_is_one_document() {
        let session = doc! { "id": 1 };
        let transaction = LoggedTransaction { session: session.as_doc(), number: 3 };
        let entries: Vec<_> = (0..3).map(|operation| entry(operation, Some(transaction))).collect();
        let documents = of(&entries);
        assert_eq!(documents.iter().map(|(ts, _)| ts.increment).collect::<Vec<_>>(), [9]);
        assert_eq!(LoggedTransaction::decode(documents[0].1.as_doc()), Some(transaction));
    }
}
