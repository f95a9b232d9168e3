//! Views: where their definitions are stored, and the errors for a view used as a collection.
//!
//! A view is a document `{_id: "<database>.<name>", viewOn, pipeline, collation}` in its database's
//! collection `system.views`, as in MongoDB. A store returns no documents of a view: its plan sets
//! [`crate::PlanFacts::view`], and the commands read what the view is defined on. A store only has
//! to refuse to create a collection with a view's name. It checks that only if no collection of
//! that name exists, so views cost collections nothing.

use crate::Namespace;
use error::{Code, Error};

/// The collection of a database that holds the definitions of its views.
pub const COLLECTION: &str = "system.views";

/// Returns the namespace of a database's view definitions.
pub fn definitions(database: &str) -> Namespace {
    Namespace::new(database, COLLECTION)
}

/// Returns error 166 for a scan of a view's plan, which no correct caller starts.
pub fn scanned_as_collection() -> Error {
    Error::new(Code::COMMAND_NOT_SUPPORTED_ON_VIEW, "a view was read as if it were a collection")
}

/// Returns error 166: a command that needs a collection met a view.
pub fn not_a_collection(namespace: &Namespace) -> Error {
    Error::new(Code::COMMAND_NOT_SUPPORTED_ON_VIEW, format!("Namespace {namespace} is a view, not a collection"))
}
