//! Finding one document by its `_id`, with as little between the key and the page as SQLite allows.
//!
//! The statements stay prepared with their connection, one per collection: taking a statement from
//! rusqlite's cache and putting it back costs as much as descending one of the two trees. The
//! connection of a transaction is taken for each of its statements; the cache keeps them meanwhile.

use crate::catalog::Collection;
use crate::failure::{Attempt, in_collection};
use crate::read::scan;
use ahash::AHashMap;
use document::{Doc, Value};
use error::Result;
use index_keys::keys;
use rusqlite::{CachedStatement, Connection};
use self_cell::self_cell;
use std::cell::RefCell;
use std::collections::hash_map::Entry;

/// The limit of prepared statements; past it, all are dropped.
const STATEMENTS_MAX: usize = 64;

self_cell!(
    /// A worker's connection, with the statements prepared on it.
    pub struct ReadConnection {
        owner: Connection,
        #[not_covariant]
        dependent: Lookups,
    }
);

type Lookups<'c> = RefCell<PreparedLookups<'c>>;

#[derive(Default)]
pub struct PreparedLookups<'c> {
    statements: AHashMap<i64, CachedStatement<'c>>,
    /// Reused buffer for the key.
    key: Vec<u8>,
}

impl ReadConnection {
    pub fn on(connection: Connection) -> ReadConnection {
        ReadConnection::new(connection, |_| RefCell::default())
    }

    pub fn connection(&self) -> &Connection {
        self.borrow_owner()
    }

    /// Gives the document with this `_id` to `visit`. Returns false if it does not exist.
    pub fn look_up(
        &self,
        collection: &Collection,
        id: Value<'_>,
        visit: &mut dyn FnMut(Doc<'_>) -> Result<()>,
    ) -> Attempt<bool> {
        self.with_dependent(|connection, prepared| {
            let PreparedLookups { statements, key } = &mut *prepared.borrow_mut();
            if statements.len() >= STATEMENTS_MAX && !statements.contains_key(&collection.id) {
                statements.clear();
            }
            let statement = match statements.entry(collection.id) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => entry.insert(connection.prepare_cached(&collection.sql.document_by_id)?),
            };
            key.clear();
            keys::encode(id, key);
            statement.raw_bind_parameter(1, key.as_slice())?;
            let mut rows = statement.raw_query();
            let row = rows.next().map_err(|error| in_collection(error.into(), &collection.namespace))?;
            let Some(row) = row else { return Ok(false) };
            let document = Doc::from_bytes(scan::blob(row.get_ref(0)?));
            visit(document.ok_or_else(|| scan::damaged_id(collection, id))?)?;
            Ok(true)
        })
    }
}
