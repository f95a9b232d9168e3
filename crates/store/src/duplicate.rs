//! The error of a unique index: code 11000 with MongoDB's message, `keyPattern` and `keyValue`.

use crate::Namespace;
use document::{ArrayWriter, Collation, Doc, DocBuf, DocWriter, Value, ValueBuf};
use error::{Code, Error};
use std::fmt::Write;
use values::text;

/// Returns `E11000 duplicate key error collection: db.coll index: a_1 dup key: { a: 5 }`.
///
/// `key_value` has the duplicate values under the names of the index's fields. If the index has a
/// collation, the message shows the sort keys of strings: as hexadecimal digits at the top level,
/// as raw keys within documents and arrays. Strings that are not UTF-8 appear as hexadecimal digits
/// of their bytes.
pub fn duplicate_key(
    namespace: &Namespace,
    index: &str,
    key_pattern: Doc<'_>,
    key_value: Doc<'_>,
    collation: &Collation,
) -> Error {
    let mut message = format!("E11000 duplicate key error collection: {namespace} index: {index}");
    let keys: Vec<Option<String>> = key_value.values().map(|value| key_in_digits(value, collation)).collect();
    if collation.is_simple() && keys.iter().all(Option::is_none) {
        message.push_str(" dup key: ");
        write_document(key_value, &mut message);
        return refusal(message, key_pattern, key_value, |_| {});
    }
    let shown = |prefix: &str| {
        DocBuf::build(|writer| {
            for ((name, value), key) in key_value.iter().zip(&keys) {
                match key {
                    Some(key) => writer.append(name, format!("{prefix}{key}").as_str()),
                    None => writer.append(name, with_keys(value, collation).as_value()),
                }
            }
        })
    };
    if let Some(specification) = collation.specification() {
        message.push_str(" collation: ");
        write_document(specification.as_doc(), &mut message);
    }
    message.push_str(" dup key: ");
    write_document(shown("0x").as_doc(), &mut message);
    refusal(message, key_pattern, shown("").as_doc(), |writer| {
        if keys.iter().any(Option::is_some) {
            let mut encoded = writer.array("hexEncoded");
            keys.iter().for_each(|key| encoded.push(key.is_some()));
        }
        if let Some(specification) = collation.specification() {
            writer.append("collation", specification.as_doc());
        }
    })
}

fn refusal(message: String, key_pattern: Doc<'_>, key_value: Doc<'_>, rest: impl Fn(&mut DocWriter<'_>)) -> Error {
    let details = DocBuf::build(|writer| {
        writer.append("keyPattern", key_pattern);
        writer.append("keyValue", key_value);
        rest(writer);
    });
    Error::new(Code::DUPLICATE_KEY, message).with_details(details.into_vec())
}

fn key_in_digits(value: Value<'_>, collation: &Collation) -> Option<String> {
    let ill_formed = || value.well_formed().is_none().then(|| value.string_bytes().map(<[u8]>::to_vec));
    let key = collation.sort_key(value).or_else(|| ill_formed().flatten())?;
    Some(key.iter().fold(String::with_capacity(2 * key.len()), |mut digits, byte| {
        // Writing to a string cannot fail.
        let _ = write!(digits, "{byte:02x}");
        digits
    }))
}

/// Returns the value with each string replaced by its sort key.
fn with_keys(value: Value<'_>, collation: &Collation) -> ValueBuf {
    match value {
        Value::Document(document) => {
            let inner = DocBuf::build(|writer| {
                for (name, value) in document.iter() {
                    writer.append(name, with_keys(value, collation).as_value());
                }
            });
            Value::Document(inner.as_doc()).to_owned()
        }
        Value::Array(array) => {
            let mut bytes = Vec::new();
            let mut writer = ArrayWriter::begin(&mut bytes);
            array.values().for_each(|value| writer.push(with_keys(value, collation).as_value()));
            drop(writer);
            Value::Array(Doc::from_bytes(&bytes).unwrap_or(Doc::EMPTY)).to_owned()
        }
        value => match collation.key_of_string(value) {
            Some(key) => Value::String(&key).to_owned(),
            None => value.to_owned(),
        },
    }
}

/// Appends a document in the syntax of MongoDB's messages: `{ a: 5, b: "x" }`. Strings are not
/// escaped, as in MongoDB.
/// Returns a document as errors show it.
pub fn text_of(document: Doc<'_>) -> String {
    let mut text = String::new();
    write_document(document, &mut text);
    text
}

pub fn write_document(document: Doc<'_>, out: &mut String) {
    write_value(Value::Document(document), out);
}

/// Appends a value in the syntax of MongoDB's messages: `5`, `1.0`, `ObjectId('…')`, `new Date(0)`.
pub fn write_value(value: Value<'_>, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = write!(out, "{}", text::value(value));
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{ObjectId, Path, array, doc};

    fn check(key_value: DocBuf, expected: &str) {
        let pattern = doc! { "_id": 1 };
        let error =
            duplicate_key(&Namespace::new("t", "c"), "_id_", pattern.as_doc(), key_value.as_doc(), &Collation::SIMPLE);
        let text = format!("E11000 duplicate key error collection: t.c index: _id_ dup key: {expected}");
        assert_eq!(error.message(), text);
        assert_eq!(error.code(), Code::DUPLICATE_KEY);
        let details = Doc::from_bytes(error.details().unwrap()).unwrap();
        assert_eq!(details.get("keyValue"), Some(Value::Document(key_value.as_doc())));
    }

    /// The expected texts are those of a 6.0 server.
    #[test]
    fn messages_have_the_syntax_of_mongodb() {
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

    #[test]
    fn strings_appear_as_sort_keys_with_a_collation() {
        let specification = doc! { "locale": "en", "strength": 2 };
        let collation = Collation::parse(specification.as_doc(), "").unwrap();
        let pattern = doc! { "a": 1, "b": 1, "c": 1 };
        let values = doc! { "a": "abc", "b": 5, "c": &doc! { "a": "x" } };
        let namespace = Namespace::new("t", "c");
        let error = duplicate_key(&namespace, "i", pattern.as_doc(), values.as_doc(), &collation);
        let key = key_in_digits(Value::String("abc"), &collation).unwrap();
        let end = format!("version: \"57.1\" }} dup key: {{ a: \"0x{key}\", b: 5, c: {{ a: ");
        assert!(error.message().contains(&end), "{}", error.message());
        let details = Doc::from_bytes(error.details().unwrap()).unwrap();
        let reported = Path::new("keyValue.a").get(details);
        assert_eq!(reported, Some(Value::String(&key)));
        assert_eq!(details.get("hexEncoded"), Some(array![true, false, false].as_value()));
    }
}
