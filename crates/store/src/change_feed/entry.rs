//! The content of an entry, and its format: that of MongoDB's oplog.

use super::FeedPosition;
use crate::Namespace;
use document::{Doc, DocBuf, DocWriter, Value};

/// A change, as a feed's entry describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedChange<'a> {
    /// The collection; for a command, the database with the collection `$cmd`.
    pub namespace: Namespace,
    pub collection_uuid: Option<[u8; 16]>,
    pub operation: Operation<'a>,
    /// The time of the change, in milliseconds since 1970.
    pub wall_ms: i64,
    /// The client's transaction that the change is part of.
    pub transaction: Option<LoggedTransaction<'a>>,
}

/// The transaction of an entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoggedTransaction<'a> {
    /// The `lsid`: the session's UUID, and the digest of its user.
    pub session: Doc<'a>,
    pub number: i64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operation<'a> {
    Insert {
        document: Doc<'a>,
    },
    /// A change of some fields, with the [difference](update::diff).
    Update {
        id: Value<'a>,
        difference: Doc<'a>,
    },
    Replace {
        id: Value<'a>,
        document: Doc<'a>,
    },
    Delete {
        id: Value<'a>,
    },
    /// A change of the catalog: `create`, `drop`, `renameCollection`, `dropDatabase`,
    /// `createIndexes`, `startIndexBuild`, `commitIndexBuild`, `dropIndexes` or `collMod`.
    Command {
        command: Doc<'a>,
        details: Option<Doc<'a>>,
    },
    Note {
        note: Doc<'a>,
    },
}

impl<'a> LoggedChange<'a> {
    /// Returns the entry at this position.
    pub fn encode(&self, position: FeedPosition) -> DocBuf {
        let (op, object) = match self.operation {
            Operation::Insert { document } => ("i", document),
            Operation::Update { .. } => ("u", Doc::EMPTY),
            Operation::Replace { document, .. } => ("u", document),
            Operation::Delete { .. } => ("d", Doc::EMPTY),
            Operation::Command { command, .. } => ("c", command),
            Operation::Note { note } => ("n", note),
        };
        DocBuf::build(|writer| {
            if let Some(transaction) = &self.transaction {
                transaction.append(writer);
            }
            writer.append("op", op);
            match self.operation {
                Operation::Note { .. } => writer.append("ns", ""),
                _ => writer.append("ns", self.namespace.to_string().as_str()),
            }
            if let Some(uuid) = &self.collection_uuid {
                writer.append("ui", Value::Binary { subtype: 4, bytes: uuid });
            }
            match self.operation {
                Operation::Update { difference, .. } => {
                    let mut object = writer.document("o");
                    object.append("$v", 2);
                    object.append("diff", difference);
                }
                Operation::Delete { id } => writer.document("o").append("_id", id),
                _ => writer.append("o", object),
            }
            match self.operation {
                Operation::Insert { document } => {
                    if let Some(id) = document.get("_id") {
                        writer.document("o2").append("_id", id);
                    }
                }
                Operation::Update { id, .. } | Operation::Replace { id, .. } => {
                    writer.document("o2").append("_id", id);
                }
                Operation::Command { details: Some(details), .. } => writer.append("o2", details),
                Operation::Delete { .. } | Operation::Command { .. } | Operation::Note { .. } => {}
            }
            append_end(position, self.wall_ms, writer);
        })
    }

    /// Returns the content of an entry; `None` if it is malformed.
    pub fn decode(entry: Doc<'a>) -> Option<LoggedChange<'a>> {
        let object = entry.get("o")?.as_document()?;
        let details = entry.get("o2").and_then(Value::as_document);
        let id = || details?.get("_id");
        let operation = match entry.get("op")?.as_str()? {
            "i" => Operation::Insert { document: object },
            "u" => match object.first().filter(|first| first.key() == "$v") {
                Some(_) => Operation::Update { id: id()?, difference: object.get("diff")?.as_document()? },
                None => Operation::Replace { id: id()?, document: object },
            },
            "d" => Operation::Delete { id: object.get("_id")? },
            "c" => Operation::Command { command: object, details },
            "n" => Operation::Note { note: object },
            _ => return None,
        };
        let (database, collection) = entry.get("ns")?.as_str()?.split_once('.').unwrap_or_default();
        let collection_uuid = match entry.get("ui") {
            Some(Value::Binary { bytes, .. }) => Some(bytes.try_into().ok()?),
            _ => None,
        };
        let Value::DateTime(wall_ms) = entry.get("wall")? else { return None };
        let (namespace, transaction) = (Namespace::new(database, collection), LoggedTransaction::decode(entry));
        Some(LoggedChange { namespace, collection_uuid, operation, wall_ms, transaction })
    }
}

impl<'a> LoggedTransaction<'a> {
    /// Returns the transaction of an entry; `None` if it is part of none.
    pub fn decode(entry: Doc<'a>) -> Option<LoggedTransaction<'a>> {
        // It is in front, if there is one.
        let first = entry.first().filter(|first| first.key() == "lsid")?;
        let Value::Int64(number) = entry.get("txnNumber")? else { return None };
        Some(LoggedTransaction { session: first.value().as_document()?, number })
    }

    pub fn append(&self, writer: &mut DocWriter<'_>) {
        writer.append("lsid", self.session);
        writer.append("txnNumber", self.number);
    }
}

/// Appends the fields with which all entries end.
pub(super) fn append_end(position: FeedPosition, wall_ms: i64, writer: &mut DocWriter<'_>) {
    writer.append("ts", position.as_value());
    writer.append("t", 1_i64);
    writer.append("v", 2_i64);
    writer.append("wall", Value::DateTime(wall_ms));
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::doc;

    #[test]
    fn content_survives_being_encoded() {
        let (document, difference) = (doc! { "_id": 1, "a": 2 }, doc! { "u": &doc! { "a": 2 } });
        let (document, difference) = (document.as_doc(), difference.as_doc());
        let id = Value::Int32(1);
        let command = doc! { "drop": "c" };
        let operations = [
            Operation::Insert { document },
            Operation::Update { id, difference },
            Operation::Replace { id, document },
            Operation::Delete { id },
            Operation::Command { command: command.as_doc(), details: None },
            Operation::Command { command: command.as_doc(), details: Some(document) },
        ];
        for operation in operations {
            let namespace = Namespace::new("d", "c.e");
            let session = doc! { "id": 1 };
            let transaction = Some(LoggedTransaction { session: session.as_doc(), number: 5 });
            let change =
                LoggedChange { namespace, collection_uuid: Some([7; 16]), operation, wall_ms: 12, transaction };
            let entry = change.encode(FeedPosition { time: 3, increment: 4 });
            assert_eq!(LoggedChange::decode(entry.as_doc()), Some(change));
        }
    }

    /// Entries are stored, and clients read them, so their fields must not change.
    #[test]
    fn the_format_is_that_of_an_oplog() {
        let operation = Operation::Delete { id: Value::Int32(1) };
        let namespace = Namespace::new("d", "c");
        let change = LoggedChange { namespace, collection_uuid: None, operation, wall_ms: 12, transaction: None };
        let expected = doc! {
            "op": "d", "ns": "d.c", "o": &doc! { "_id": 1 }, "ts": Value::Timestamp { time: 3, increment: 4 },
            "t": 1_i64, "v": 2_i64, "wall": Value::DateTime(12)
        };
        assert_eq!(change.encode(FeedPosition { time: 3, increment: 4 }), expected);
    }
}
