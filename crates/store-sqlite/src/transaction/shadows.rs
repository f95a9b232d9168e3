//! The shadows of a connection that outlive its transactions.
//!
//! To create the temporary tables and views of a collection costs more than a small transaction
//! does, because SQLite then compiles all statements anew. So when a transaction ends, those that
//! it needed are created once more, outside of it. The next transactions on the connection find
//! them, without rows. They belong to one state of a collection: if the catalog has another one,
//! the connection is not used any more.

use super::overlay::{self, Overlay};
use crate::catalog::{Catalog, Collection};
use crate::failure::Attempt;
use rusqlite::Connection;
use std::sync::Arc;

/// The limit of collections per connection. One that has more is closed.
const KEPT_MAX: usize = 64;

/// The shadowed collections of a connection.
#[derive(Default)]
pub struct Shadows {
    kept: Vec<Shadow>,
    /// Collections that were shadowed within the transaction, and are not any more after it.
    added: Vec<Arc<Collection>>,
    /// A catalog, and that catalog with the kept collections as they are read.
    catalogs: Option<(Arc<Catalog>, Arc<Catalog>)>,
}

struct Shadow {
    collection: Arc<Collection>,
    /// The collection with statements that read the shadows well.
    shadowed: Arc<Collection>,
}

impl Shadows {
    /// Returns the catalog of a snapshot with the kept collections as they are read; `None` if one
    /// of them is another in the snapshot.
    pub fn catalog(&mut self, catalog: &Arc<Catalog>) -> Option<Arc<Catalog>> {
        if self.kept.is_empty() {
            return Some(catalog.clone());
        }
        if let Some((base, shadowed)) = &self.catalogs
            && Arc::ptr_eq(base, catalog)
        {
            return Some(shadowed.clone());
        }
        let is_current = |shadow: &Shadow| {
            let found = catalog.get(&shadow.collection.namespace);
            found.is_some_and(|found| Arc::ptr_eq(found, &shadow.collection))
        };
        if !self.kept.iter().all(is_current) {
            return None;
        }
        let mut shadowed = Catalog::clone(catalog);
        self.kept.iter().for_each(|shadow| shadowed.put(shadow.shadowed.clone()));
        let shadowed = Arc::new(shadowed);
        self.catalogs = Some((catalog.clone(), shadowed.clone()));
        Some(shadowed)
    }

    /// Returns the ids of the kept collections.
    pub fn kept_ids(&self) -> impl Iterator<Item = i64> {
        self.kept.iter().map(|shadow| shadow.collection.id)
    }

    /// Notes that the transaction has shadowed collections.
    pub fn add(&mut self, collections: Vec<Arc<Collection>>) {
        self.added.extend(collections);
    }

    /// Creates the shadows of the last transaction again, after it. Returns false if there are too
    /// many.
    pub fn keep(&mut self, connection: &Connection) -> Attempt<bool> {
        for collection in std::mem::take(&mut self.added) {
            if self.kept.len() == KEPT_MAX {
                return Ok(false);
            }
            Overlay::new(connection, &collection, false).shadow()?;
            let shadowed = Arc::new(overlay::shadowed(&collection)?);
            self.kept.push(Shadow { collection, shadowed });
            self.catalogs = None;
        }
        Ok(true)
    }
}
