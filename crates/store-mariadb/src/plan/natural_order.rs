//! The natural order of clustered collections, which is that of `_id`.
//!
//! An index has the order of most ids ([`crate::index::column_key`]). If a collection has others
//! (decimals, documents, dates far away), or a collation, the gateway sorts.

use crate::catalog::table::Table;
use query::{Context, Sort};
use store::{Hint, Query};

/// Returns the sort that gives the natural order of a clustered collection, if the query asks for
/// that.
pub(crate) fn natural_order(table: Option<&Table>, query: &Query<'_>) -> Option<Sort> {
    let table = table.filter(|table| table.rules.as_ref().is_some_and(|rules| rules.clustered))?;
    let forward = match query.sort {
        None => Hint::of(query.hint).and_then(Hint::natural).unwrap_or(true),
        Some(sort) => sort.natural()?,
    };
    if query.predicate.near().is_some() {
        return None;
    }
    let order = document::doc! { "_id": if forward { 1 } else { -1 } };
    let context = Context { collation: table.collation.clone(), ..Context::at(0) };
    Sort::parse(order.as_doc(), &context).ok()
}
