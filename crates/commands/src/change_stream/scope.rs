//! The changes that a stream is about: those of a collection, of a database, or of all.

use document::{Doc, Value};
use store::Namespace;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    Collection(Namespace),
    Database(Box<str>),
    Cluster,
}

/// Databases of the server's own, which no stream is about.
pub fn is_internal_database(database: &str) -> bool {
    matches!(database, "admin" | "config" | "local")
}

impl Scope {
    /// Returns whether an entry of the log may concern the stream. Called for each entry and each
    /// stream, so it reads little.
    pub fn concerns(&self, entry: Doc<'_>) -> bool {
        let Some((database, collection)) = entry.get("ns").and_then(Value::as_str).and_then(|ns| ns.split_once('.'))
        else {
            return false;
        };
        if collection == "$cmd" {
            let command = entry.get("o").and_then(Value::as_document).unwrap_or(Doc::EMPTY);
            return self.concerns_command(database, command);
        }
        match self {
            Scope::Collection(namespace) => *namespace.database == *database && *namespace.collection == *collection,
            Scope::Database(own) => **own == *database && is_shown(collection),
            Scope::Cluster => !is_internal_database(database) && is_shown(collection),
        }
    }

    fn concerns_command(&self, database: &str, command: Doc<'_>) -> bool {
        let Some(first) = command.first() else { return false };
        let Some(name) = first.value().as_str() else {
            // It drops the database.
            return match self {
                Scope::Collection(_) => false,
                Scope::Database(own) => **own == *database,
                Scope::Cluster => !is_internal_database(database),
            };
        };
        match (first.key(), name.split_once('.')) {
            ("renameCollection", Some((from_database, from))) => {
                let to = command.get("to").and_then(Value::as_str).and_then(|to| to.split_once('.'));
                self.has(from_database, from) || to.is_some_and(|(database, to)| self.has(database, to))
            }
            _ => self.has(database, name),
        }
    }

    /// Returns whether the stream is about a collection.
    fn has(&self, database: &str, collection: &str) -> bool {
        match self {
            Scope::Collection(namespace) => *namespace.database == *database && *namespace.collection == *collection,
            Scope::Database(own) => **own == *database && !collection.starts_with("system."),
            Scope::Cluster => !is_internal_database(database) && !collection.starts_with("system."),
        }
    }
}

/// Returns whether changes of documents in a collection are events: definitions of views are.
fn is_shown(collection: &str) -> bool {
    !collection.starts_with("system.") || collection == "system.views"
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::doc;

    #[test]
    fn entries_concern_streams() {
        let collection = Scope::Collection(Namespace::new("d", "c"));
        let database = Scope::Database("d".into());
        let insert = |ns: &str| doc! { "op": "i", "ns": ns, "o": &doc! {} };
        let command = |command| doc! { "op": "c", "ns": "d.$cmd", "o": &command };
        for (entry, expected) in [
            (insert("d.c"), [true, true, true]),
            (insert("d.c.e"), [false, true, true]),
            (insert("e.c"), [false, false, true]),
            (insert("d.system.buckets.c"), [false, false, false]),
            (insert("d.system.views"), [false, true, true]),
            (insert("config.c"), [false, false, false]),
            (insert(""), [false, false, false]),
            (command(doc! { "drop": "c" }), [true, true, true]),
            (command(doc! { "drop": "e" }), [false, true, true]),
            (command(doc! { "drop": "system.views" }), [false, false, false]),
            (command(doc! { "dropDatabase": 1 }), [false, true, true]),
            (command(doc! { "renameCollection": "d.c", "to": "d.e" }), [true, true, true]),
            (command(doc! { "renameCollection": "e.e", "to": "d.c" }), [true, true, true]),
            (command(doc! { "renameCollection": "d.e", "to": "d.f" }), [false, true, true]),
        ] {
            let concerned = [&collection, &database, &Scope::Cluster].map(|scope| scope.concerns(entry.as_doc()));
            assert_eq!(concerned, expected, "{entry:?}");
        }
    }
}
