//! Maps the server's refusal of a write to MongoDB's errors.

use crate::catalog::id_text;
use crate::catalog::table::Table;
use crate::index::{Index, array_in_unique, column_key};
use document::{Collation, Doc, DocBuf, Value};
use error::{Code, Error};
use index_keys::{IndexShape, keys};
use mariadb_client::{Failure, server_error};
use sha2::{Digest, Sha256};
use store::Namespace;
use store::duplicate::duplicate_key;

/// Returns the error of a document that the server refused.
pub(super) fn of(failure: Failure, namespace: &Namespace, table: &Table, document: Doc<'_>) -> Error {
    match &failure {
        Failure::Sql { code: server_error::DUPLICATE_ENTRY, message } => duplicate(message, namespace, table, document),
        Failure::Sql { code: server_error::DATA_TOO_LONG, .. } => Error::bad_value(format!(
            "the _id is too long for the column 'id' of the table of {namespace}, which was not made by Selkie"
        )),
        Failure::Sql { code: server_error::CHECK_VIOLATED, message } if message.contains(".array") => array_in_unique(),
        Failure::Sql { code: server_error::PACKET_TOO_LARGE, .. } => too_large(),
        _ => failure.into(),
    }
}

pub(super) fn too_large() -> Error {
    Error::new(
        Code::BSON_OBJECT_TOO_LARGE,
        "the document's JSON text exceeds MariaDB's max_allowed_packet; raise that setting on the server",
    )
}

/// Parses `Duplicate entry '…' for key '…'`: the key's name follows the last such words.
fn duplicate(message: &str, namespace: &Namespace, table: &Table, document: Doc<'_>) -> Error {
    let (entry, name) = message.rsplit_once("for key '").unwrap_or((message, ""));
    let name = name.trim_end_matches('\'');
    let Some(index) = table.indexes.iter().find(|index| index.sql_name == name) else {
        let pattern = document::doc! { "_id": 1 };
        let value = DocBuf::build(|writer| writer.append("_id", document.get("_id").unwrap_or(Value::Null)));
        return duplicate_key(namespace, "_id_", pattern.as_doc(), value.as_doc(), &Collation::SIMPLE);
    };
    let value = values_of(entry, index, document);
    duplicate_key(namespace, &index.spec.name, index.spec.key.as_doc(), value.as_doc(), &index.collation())
}

/// Returns the duplicate values of a document. If it has several keys, the entry shows which.
fn values_of(entry: &str, index: &Index, document: Doc<'_>) -> DocBuf {
    let mut candidates: Vec<(Vec<u8>, DocBuf)> = Vec::new();
    if let Ok(shape) = IndexShape::new((*index.spec).clone()) {
        // A document without keys was refused for another reason.
        let _ = keys::visit_keys(document, &shape, &mut |key, values| {
            let mut named = DocBuf::new();
            index.fields().zip(values).for_each(|(path, value)| named.append(path, *value));
            candidates.push((key.to_vec(), named));
        });
    }
    candidates.sort_by(|(left, _), (right, _)| left.cmp(right));
    let entry = entry.split_once('\'').map_or("", |(_, rest)| rest).trim_end().trim_end_matches('\'');
    let matches_entry = |values: &DocBuf| {
        let keys: Vec<String> = values.as_doc().values().map(|value| shown(&unique_key(value))).collect();
        let keys = keys.join("-");
        // MariaDB truncates long entries.
        keys == entry || entry.strip_suffix("...").is_some_and(|front| keys.starts_with(front))
    };
    let position = candidates.iter().position(|(_, values)| matches_entry(values)).unwrap_or_default();
    candidates.into_iter().nth(position).map(|(_, values)| values).unwrap_or_default()
}

/// Returns a value's key in a unique index, as far as gateways can compute it.
fn unique_key(value: Value<'_>) -> Vec<u8> {
    let hashed = |front: u8| {
        let hash = Sha256::digest(id_text::text_within(value, usize::MAX));
        std::iter::once(front).chain(hash).collect()
    };
    match value {
        Value::Null => b"2".to_vec(),
        Value::Undefined => b"1".to_vec(),
        Value::Document(_) => hashed(b'D'),
        Value::Array(_) => hashed(b'F'),
        value => column_key::key_of(value).map_or_else(Vec::new, |(key, _)| key),
    }
}

/// Formats bytes as the server does in its messages.
fn shown(bytes: &[u8]) -> String {
    let byte = |byte: &u8| match byte {
        b' '..=b'~' => char::from(*byte).to_string(),
        byte => format!("\\x{byte:02X}"),
    };
    bytes.iter().map(byte).collect()
}
