//! Views: where their definitions are, and what a store says when one is taken for a collection.
//!
//! A view is a document `{_id: "<database>.<name>", viewOn, pipeline, collation}` in its database's collection `system.views`, as in
//! MongoDB. A store gives no documents of a view: its plan says [`crate::PlanFacts::view`], and the commands read what the view
//! stands for. All that a store has to do is not to let a collection come into being under a view's name. It only has to
//! look where there is no collection of that name, so views cost collections nothing.

use crate::Namespace;
use error::{Code, Error};

/// The collection of a database that holds the definitions of its views.
pub const COLLECTION: &str = "system.views";

/// Where the views of a namespace's database are.
pub fn definitions(database: &str) -> Namespace {
    Namespace::new(database, COLLECTION)
}

/// The same for who scans the plan of a view: nothing but a slip gets there.
pub fn scanned_as_collection() -> Error {
    Error::new(Code::COMMAND_NOT_SUPPORTED_ON_VIEW, "a view was read as if it were a collection")
}

/// Error 166: a command that needs a collection met a view.
pub fn not_a_collection(namespace: &Namespace) -> Error {
    Error::new(Code::COMMAND_NOT_SUPPORTED_ON_VIEW, format!("Namespace {namespace} is a view, not a collection"))
}
