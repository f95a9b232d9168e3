//! The error of a unique index: code 11000 with MongoDB's message, `keyPattern` and `keyValue`.

use crate::Namespace;
use document::{Doc, DocBuf, Value};
use error::{Code, Error};
use query::text;
use std::fmt::Write;

/// `E11000 duplicate key error collection: db.coll index: a_1 dup key: { a: 5 }`.
///
/// `key_value` holds the values that are taken, under the names of the index's fields.
pub fn duplicate_key(namespace: &Namespace, index: &str, key_pattern: Doc<'_>, key_value: Doc<'_>) -> Error {
    let mut message = format!("E11000 duplicate key error collection: {namespace} index: {index} dup key: ");
    write_document(key_value, &mut message);
    let details = DocBuf::build(|writer| {
        writer.append("keyPattern", key_pattern);
        writer.append("keyValue", key_value);
    });
    Error::new(Code::DUPLICATE_KEY, message).with_details(details.into_vec())
}

/// Writes a document as MongoDB's messages spell it: `{ a: 5, b: "x" }`. Strings are not escaped, as there.
pub fn write_document(document: Doc<'_>, out: &mut String) {
    write_value(Value::Document(document), out);
}

/// Writes a value as MongoDB's messages spell it: `5`, `1.0`, `ObjectId('…')`, `new Date(0)`.
pub fn write_value(value: Value<'_>, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = write!(out, "{}", text::value(value));
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{ObjectId, array, doc};

    fn check(key_value: DocBuf, expected: &str) {
        let pattern = doc! { "_id": 1 };
        let error = duplicate_key(&Namespace::new("t", "c"), "_id_", pattern.as_doc(), key_value.as_doc());
        let text = format!("E11000 duplicate key error collection: t.c index: _id_ dup key: {expected}");
        assert_eq!(error.message(), text);
        assert_eq!(error.code(), Code::DUPLICATE_KEY);
        let details = Doc::from_bytes(error.details().unwrap()).unwrap();
        assert_eq!(details.get("keyValue"), Some(Value::Document(key_value.as_doc())));
    }

    /// The expectations are what a 6.0 server answers.
    #[test]
    fn messages_are_spelled_as_mongodb_spells_them() {
        check(doc! { "_id": 1.0 }, "{ _id: 1.0 }");
        check(doc! { "_id": 7i64 }, "{ _id: 7 }");
        check(doc! { "_id": "a\"b" }, "{ _id: \"a\"b\" }");
        check(doc! { "_id": &doc! { "x": 1 } }, "{ _id: { x: 1 } }");
        check(doc! { "_id": ObjectId([0; 12]) }, "{ _id: ObjectId('000000000000000000000000') }");
        check(doc! { "_id": Value::Binary { subtype: 0, bytes: b"ab" } }, "{ _id: BinData(0, 6162) }");
        let uuid = Value::Binary { subtype: 4, bytes: &[5; 16] };
        check(doc! { "_id": uuid }, "{ _id: UUID(\"05050505-0505-0505-0505-050505050505\") }");
        check(doc! { "_id": Value::Null }, "{ _id: null }");
        check(doc! { "_id": Value::DateTime(1577836800000) }, "{ _id: new Date(1577836800000) }");
        check(doc! { "_id": Value::Timestamp { time: 3, increment: 4 } }, "{ _id: Timestamp(3, 4) }");
        check(doc! { "_id": Value::MinKey }, "{ _id: MinKey }");
        check(doc! { "a": Value::Null, "b.c": &array![1, 2] }, "{ a: null, b.c: [ 1, 2 ] }");
    }
}
