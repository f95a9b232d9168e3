//! The name of a collection: `database.collection`.

use std::fmt;

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Namespace {
    pub database: Box<str>,
    pub collection: Box<str>,
}

impl Namespace {
    pub fn new(database: &str, collection: &str) -> Self {
        Namespace { database: database.into(), collection: collection.into() }
    }
}

/// A namespace with borrowed names. It hashes as [`Namespace`] does, so that maps are searched
/// without an allocation.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct BorrowedNamespace<'a> {
    pub database: &'a str,
    pub collection: &'a str,
}

impl hashbrown::Equivalent<Namespace> for BorrowedNamespace<'_> {
    fn equivalent(&self, other: &Namespace) -> bool {
        self.collection == &*other.collection && self.database == &*other.database
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.database, self.collection)
    }
}

impl fmt::Debug for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
