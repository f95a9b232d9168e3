//! Duplicate keys that a transaction meets: of documents that it sees, or of others' documents.

use crate::read::scan;
use crate::store::MariaDbStore;
use document::{Doc, DocBuf, Value};
use error::{Code, Error};
use query::{Context, Predicate};
use store::{Flow, Namespace, Query};

/// Returns whether an error is no duplicate key, or that of a document that the transaction sees.
/// Otherwise another transaction was first: the snapshot does not have the document.
pub(super) async fn is_of_snapshot(
    store: &MariaDbStore,
    namespace: &Namespace,
    error: &Error,
) -> mariadb_client::Result<bool> {
    if error.code() != Code::DUPLICATE_KEY {
        return Ok(true);
    }
    let Some(filter) = filter(error) else { return Ok(true) };
    let predicate = Predicate::parse(filter.as_doc(), &Context::at(0))?;
    let table = store.known_table(namespace).await?;
    let query = Query { predicate: &predicate, sort: None, limit: Some(1), hint: None, fields: None };
    let plan = store.plan_on(namespace, table, &query).await?;
    let (mut found, mut bson) = (false, Vec::new());
    let mut take = |_: &[u8], json: &[u8]| {
        bson.clear();
        crate::encoding::decode(json, &mut bson)?;
        found |= predicate.matches(Doc::from_bytes(&bson).unwrap_or(Doc::EMPTY))?;
        Ok(if found { Flow::StopAfter } else { Flow::Continue })
    };
    scan::rows(store, &plan, None, 1, &mut take).await?;
    Ok(found)
}

/// Returns a filter for the documents with the duplicate key; `None` if the error does not have it
/// as it is in documents.
fn filter(error: &Error) -> Option<DocBuf> {
    let details = Doc::from_bytes(error.details()?)?;
    if details.get("collation").is_some() || details.get("hexEncoded").is_some() {
        return None;
    }
    let key = details.get("keyValue").and_then(Value::as_document)?;
    Some(DocBuf::build(|writer| {
        for (path, value) in key.iter() {
            let mut condition = writer.document(path);
            condition.append("$eq", value);
        }
    }))
}
