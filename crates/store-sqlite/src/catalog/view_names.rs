//! Checks whether a name is a view's. Called only if no collection of that name exists.

use crate::catalog::Catalog;
use crate::failure::Attempt;
use document::Value;
use index_keys::keys;
use rusqlite::Connection;
use store::{Namespace, views};

/// Returns whether the database's `system.views` has a definition for this name.
pub fn is_view(connection: &Connection, catalog: &Catalog, namespace: &Namespace) -> Attempt<bool> {
    let Some(definitions) = catalog.get(&views::definitions(&namespace.database)) else { return Ok(false) };
    let mut key = Vec::new();
    keys::encode(Value::String(&namespace.to_string()), &mut key);
    let mut statement = connection.prepare_cached(&definitions.sql.by_id)?;
    Ok(statement.exists([key.as_slice()])?)
}
