//! Resources that commands touch, and patterns of resources that privileges name.

use document::{Doc, DocWriter};

/// A resource that a command asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource<'a> {
    /// The server as a whole.
    Cluster,
    Database(&'a str),
    /// A collection: its database, and its name.
    Collection(&'a str, &'a str),
    /// All databases, except `local` and `config`, without system collections.
    AnyOrdinary,
    /// Each resource there is.
    Any,
}

/// The resources that a privilege covers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ResourcePattern {
    /// `{cluster: true}`.
    Cluster,
    /// `{anyResource: true}`: each resource, system collections as well.
    AnyResource,
    /// `{db, collection}`. An empty database is any, except `local` and `config` if the collection
    /// is empty, too. An empty collection is each that is no system collection.
    Collection { db: Box<str>, collection: Box<str> },
    /// `{db, system_buckets}`: the buckets of a time series. Empty names are any.
    Buckets { db: Box<str>, collection: Box<str> },
}

impl ResourcePattern {
    /// All collections of all databases: `{db: "", collection: ""}`.
    pub fn any_ordinary() -> ResourcePattern {
        ResourcePattern::collection("", "")
    }

    /// All collections of a database: `{db, collection: ""}`.
    pub fn database(db: &str) -> ResourcePattern {
        ResourcePattern::collection(db, "")
    }

    pub fn collection(db: &str, collection: &str) -> ResourcePattern {
        ResourcePattern::Collection { db: db.into(), collection: collection.into() }
    }

    pub fn buckets(db: &str, collection: &str) -> ResourcePattern {
        ResourcePattern::Buckets { db: db.into(), collection: collection.into() }
    }

    /// Returns the database that alone contains the resources; `None` if others may, too.
    pub fn only_database(&self) -> Option<&str> {
        match self {
            ResourcePattern::Collection { db, .. } | ResourcePattern::Buckets { db, .. } if !db.is_empty() => Some(db),
            _ => None,
        }
    }

    /// Reads a privilege's `resource`; `None` if it is malformed.
    pub fn from_document(document: Doc<'_>) -> Option<ResourcePattern> {
        let is_set = |key: &str| document.get(key).is_some_and(|value| value.is_truthy());
        let text = |key: &str| document.get(key).map_or(Some(""), |value| value.as_str());
        if is_set("anyResource") {
            return Some(ResourcePattern::AnyResource);
        }
        if is_set("cluster") {
            return Some(ResourcePattern::Cluster);
        }
        if let Some(buckets) = document.get("system_buckets") {
            return Some(ResourcePattern::buckets(text("db")?, buckets.as_str()?));
        }
        Some(ResourcePattern::collection(document.get("db")?.as_str()?, document.get("collection")?.as_str()?))
    }

    /// Appends the fields of a privilege's `resource`.
    pub fn write(&self, resource: &mut DocWriter<'_>) {
        match self {
            ResourcePattern::Cluster => resource.append("cluster", true),
            ResourcePattern::AnyResource => resource.append("anyResource", true),
            ResourcePattern::Collection { db, collection } => {
                resource.append("db", &**db);
                resource.append("collection", &**collection);
            }
            ResourcePattern::Buckets { db, collection } => {
                resource.append("system_buckets", &**collection);
                if !db.is_empty() {
                    resource.append("db", &**db);
                }
            }
        }
    }
}

/// Returns whether privileges on a whole database cover a collection.
pub(crate) fn is_ordinary(db: &str, collection: &str) -> bool {
    let of_replication = db == "local" && collection.starts_with("replset.");
    !of_replication && !collection.starts_with("system.")
}

/// Returns whether privileges on all databases cover a database.
pub(crate) fn is_ordinary_database(db: &str) -> bool {
    db != "local" && db != "config"
}
