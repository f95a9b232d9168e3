//! What a refused write is called in MongoDB's terms.

use crate::failure::{Failure, sql};
use crate::indexes::array_in_unique;
use crate::table::Table;
use document::{Collation, Doc, DocBuf, Path, Value};
use error::{Code, Error};
use store::Namespace;
use store::duplicate::duplicate_key;

/// The error of a document that the server refused.
pub(super) fn of(failure: Failure, namespace: &Namespace, table: &Table, document: Doc<'_>) -> Error {
    match &failure {
        Failure::Sql { code: sql::DUPLICATE_ENTRY, message } => duplicate(message, namespace, table, document),
        Failure::Sql { code: sql::DATA_TOO_LONG, .. } => Error::bad_value(format!(
            "the _id is too long for the column 'id' of the table of {namespace}, which was not made by Selkie"
        )),
        Failure::Sql { code: sql::CHECK_VIOLATED, message } if message.contains(".array") => array_in_unique(),
        Failure::Sql { code: sql::PACKET_TOO_LARGE, .. } => too_large(),
        _ => failure.into(),
    }
}

pub(super) fn too_large() -> Error {
    Error::new(
        Code::BSON_OBJECT_TOO_LARGE,
        "the document's JSON text exceeds MariaDB's max_allowed_packet; raise that setting on the server",
    )
}

/// `Duplicate entry '…' for key '…'`: the key's name is behind the last such words.
fn duplicate(message: &str, namespace: &Namespace, table: &Table, document: Doc<'_>) -> Error {
    let name = message.rsplit_once("for key '").map_or("", |(_, rest)| rest.trim_end_matches('\''));
    let Some(index) = table.indexes.iter().find(|index| index.sql_name == name) else {
        let pattern = document::doc! { "_id": 1 };
        let value = DocBuf::build(|writer| writer.append("_id", document.get("_id").unwrap_or(Value::Null)));
        return duplicate_key(namespace, "_id_", pattern.as_doc(), value.as_doc(), &Collation::SIMPLE);
    };
    let value = DocBuf::build(|writer| {
        for (path, _) in index.spec.key.as_doc().iter() {
            writer.append(path, Path::new(path).get(document).unwrap_or(Value::Null));
        }
    });
    duplicate_key(namespace, &index.spec.name, index.spec.key.as_doc(), value.as_doc(), &Collation::SIMPLE)
}
