//! Names of users and roles.

use document::{Doc, DocWriter};
use std::fmt;

/// The database of users whose passwords other systems check, such as those of certificates.
pub const EXTERNAL: &str = "$external";

macro_rules! names {
    ($(#[$doc:meta])* $name:ident, $field:ident, $key:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name {
            pub $field: Box<str>,
            pub db: Box<str>,
        }

        impl $name {
            pub fn new($field: &str, db: &str) -> Self {
                Self { $field: $field.into(), db: db.into() }
            }

            /// Reads a document with the name and its database; `None` if either is missing or is
            /// no string.
            pub fn from_document(document: Doc<'_>) -> Option<Self> {
                Some(Self::new(document.get($key)?.as_str()?, document.get("db")?.as_str()?))
            }

            /// Appends the name and its database.
            pub fn write(&self, document: &mut DocWriter<'_>) {
                document.append($key, &*self.$field);
                document.append("db", &*self.db);
            }

            /// Returns the name as MongoDB's messages have it: `name@db`.
            pub fn at_database(&self) -> String {
                format!("{}@{}", self.$field, self.db)
            }
        }

        /// The `_id` of the stored document: `db.name`.
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}.{}", self.db, self.$field)
            }
        }
    };
}

names! {
    /// The name of a user, unique within its database.
    UserName, user, "user"
}
names! {
    /// The name of a role, unique within its database.
    RoleName, role, "role"
}
