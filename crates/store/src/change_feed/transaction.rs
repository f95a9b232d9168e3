//! Transactions in a log: one entry of the log (`applyOps`) for all operations, as MongoDB writes
//! it. Readers of the feed get an entry for each operation, with the same position.
//!
//! Source: <https://www.mongodb.com/docs/v6.0/core/transactions-production-consideration/>

use super::entry::{LoggedTransaction, append_end};
use super::{FeedEntry, FeedPosition};
use document::{Doc, DocBuf, Value};

/// The fields of an entry that its operations do not have.
const OF_ENTRY: [&str; 6] = ["lsid", "txnNumber", "ts", "t", "v", "wall"];

/// The most bytes of the operations in an entry. A transaction with more has several entries.
const OPERATIONS_BYTES_MAX: usize = 15 << 20;

/// Combines the entries of a transaction's operations, whose positions are free to be used.
/// Returns the entries of the log, with the documents before the changes by number of operation.
pub fn in_one(operations: Vec<FeedEntry>, transaction: LoggedTransaction<'_>, wall_ms: i64) -> Vec<FeedEntry> {
    let mut combined = Vec::new();
    let mut rest = operations.as_slice();
    while let Some(first) = rest.first() {
        let mut bytes = 0;
        let fit = rest.iter().take_while(|operation| {
            bytes += operation.document.as_bytes().len();
            bytes <= OPERATIONS_BYTES_MAX
        });
        let (part, behind) = rest.split_at(fit.count().max(1));
        combined.push(combine(part, first.position, transaction, wall_ms, !behind.is_empty()));
        rest = behind;
    }
    combined
}

fn combine(
    operations: &[FeedEntry],
    position: FeedPosition,
    transaction: LoggedTransaction<'_>,
    wall_ms: i64,
    is_partial: bool,
) -> FeedEntry {
    let document = DocBuf::build(|writer| {
        transaction.append(writer);
        writer.append("op", "c");
        writer.append("ns", "admin.$cmd");
        let mut object = writer.document("o");
        let mut list = object.array("applyOps");
        for operation in operations {
            let mut shown = list.document();
            let fields = operation.document.as_doc().elements();
            fields.filter(|field| !OF_ENTRY.contains(&field.key())).for_each(|field| shown.append_element(field));
        }
        drop(list);
        if is_partial {
            object.append("partialTxn", true);
        }
        drop(object);
        append_end(position, wall_ms, writer);
        let mut previous = writer.document("prevOpTime");
        previous.append("ts", FeedPosition::default().as_value());
        previous.append("t", -1_i64);
    });
    let images = operations.iter().enumerate().filter_map(|(at, operation)| Some((at, operation.before.as_ref()?)));
    let before = DocBuf::build(|writer| images.for_each(|(at, image)| writer.append(&at.to_string(), image)));
    FeedEntry { position, operation: 0, document, before: (!before.as_doc().is_empty()).then_some(before) }
}

impl FeedEntry {
    /// Returns the entries that readers get of an entry of the log: one for each operation, if it
    /// is that of a transaction.
    pub fn operations(self) -> Vec<FeedEntry> {
        match self.of_transaction() {
            Some(entries) => entries,
            None => vec![self],
        }
    }

    fn of_transaction(&self) -> Option<Vec<FeedEntry>> {
        let entry = self.document.as_doc();
        let transaction = LoggedTransaction::decode(entry)?;
        let object = entry.get("o")?.as_document()?.first().filter(|first| first.key() == "applyOps")?;
        let Value::DateTime(wall_ms) = entry.get("wall")? else { return None };
        let before = self.before.as_ref().map_or(Doc::EMPTY, DocBuf::as_doc);
        let operations = object.value().as_array()?.values().filter_map(Value::as_document).zip(0..);
        Some(
            operations
                .map(|(operation, number)| self.operation(operation, number, transaction, wall_ms, before))
                .collect(),
        )
    }

    fn operation(
        &self,
        operation: Doc<'_>,
        number: u32,
        transaction: LoggedTransaction<'_>,
        wall_ms: i64,
        before: Doc<'_>,
    ) -> FeedEntry {
        let document = DocBuf::build(|writer| {
            transaction.append(writer);
            operation.elements().for_each(|field| writer.append_element(field));
            append_end(self.position, wall_ms, writer);
        });
        let before = before.get(&number.to_string()).and_then(Value::as_document).map(Doc::to_owned);
        FeedEntry { position: self.position, operation: number, document, before }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LoggedChange, Namespace, Operation};
    use document::doc;

    fn insert(number: u32, text: &str, before: Option<DocBuf>) -> FeedEntry {
        let position = FeedPosition { time: 5, increment: number + 3 };
        let document = doc! { "_id": number as i32, "text": text };
        let change = LoggedChange {
            namespace: Namespace::new("d", "c"),
            collection_uuid: Some([7; 16]),
            operation: Operation::Insert { document: document.as_doc() },
            wall_ms: 12,
            transaction: None,
        };
        FeedEntry { position, operation: 0, document: change.encode(position), before }
    }

    #[test]
    fn operations_survive_being_combined() {
        let session = doc! { "id": 1, "uid": 2 };
        let transaction = LoggedTransaction { session: session.as_doc(), number: 9 };
        let image = doc! { "_id": 0, "old": true };
        let single = [insert(0, "", None), insert(1, "", Some(image.clone()))];
        let [combined] = &in_one(single.to_vec(), transaction, 12)[..] else { panic!("not one entry") };
        assert_eq!(combined.position, single[0].position);
        let operations = combined.clone().operations();
        assert_eq!(operations.iter().map(|entry| entry.operation).collect::<Vec<_>>(), [0, 1]);
        assert_eq!((&operations[0].before, &operations[1].before), (&None, &Some(image)));
        for (entry, single) in operations.iter().zip(&single) {
            let expected = LoggedChange { transaction: Some(transaction), ..single.change().unwrap() };
            assert_eq!((entry.position, entry.change()), (combined.position, Some(expected)));
        }
        assert_eq!(single[0].clone().operations(), single[..1]);
    }

    #[test]
    fn large_transactions_have_several_entries() {
        let session = doc! { "id": 1 };
        let transaction = LoggedTransaction { session: session.as_doc(), number: 9 };
        let text = "x".repeat(7 << 20);
        let single = (0..3).map(|number| insert(number, &text, None)).collect();
        let combined = in_one(single, transaction, 12);
        let is_partial = |entry: &FeedEntry| {
            let object = entry.document.as_doc().get("o").and_then(Value::as_document);
            object.is_some_and(|object| object.get("partialTxn").is_some())
        };
        assert_eq!(combined.iter().map(is_partial).collect::<Vec<_>>(), [true, false]);
        let counts: Vec<_> = combined.into_iter().map(|entry| entry.operations().len()).collect();
        assert_eq!(counts, [2, 1]);
    }
}
