//! The natural order of clustered collections, which is that of `_id`.
//!
//! An index has the order of most ids ([`crate::index::column_key`]). If a collection has others
//! (decimals, documents, dates far away), or a collation, the gateway sorts.

use crate::catalog::table::Table;
use document::Value;
use query::{Context, Sort};
use store::Query;

/// Returns the sort that gives the natural order of a clustered collection, if the query asks for
/// that.
pub(crate) fn natural_order(table: Option<&Table>, query: &Query<'_>) -> Option<Sort> {
    let table = table.filter(|table| table.rules.as_ref().is_some_and(|rules| rules.clustered))?;
    let hinted = match query.hint {
        Some(Value::Document(hint)) => hint.get("$natural").and_then(Value::to_i64),
        _ => None,
    };
    let direction = match (query.sort, hinted) {
        (None, hinted) => hinted.unwrap_or(1),
        (Some(sort), _) if sort.natural().is_none() => return None,
        (Some(sort), _) => {
            if sort.natural() == Some(false) {
                -1
            } else {
                1
            }
        }
    };
    if query.predicate.near().is_some() {
        return None;
    }
    let order = document::doc! { "_id": if direction < 0 { -1 } else { 1 } };
    let context = Context { collation: table.collation.clone(), ..Context::at(0) };
    Sort::parse(order.as_doc(), &context).ok()
}
