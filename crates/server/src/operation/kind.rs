//! The kind of an operation and the namespace that it is about, as `currentOp`, `top` and the
//! profiler name them.

use document::{Doc, Value};

/// The kind of an operation in MongoDB's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    Query,
    GetMore,
    Insert,
    Update,
    Remove,
    Command,
}

impl OperationKind {
    pub fn name(self) -> &'static str {
        match self {
            OperationKind::Query => "query",
            OperationKind::GetMore => "getmore",
            OperationKind::Insert => "insert",
            OperationKind::Update => "update",
            OperationKind::Remove => "remove",
            OperationKind::Command => "command",
        }
    }
}

/// Returns the namespace that a command is about, `database.$cmd` if it names no collection.
pub fn namespace_of(command: Doc<'_>) -> String {
    let database = command.get("$db").and_then(Value::as_str).unwrap_or_default();
    let named = match command.first() {
        // The explained command names the collection.
        Some(first) if *first.key() == *"explain" => first.value().as_document().and_then(Doc::first),
        first => first,
    };
    let collection = match named.map(|first| first.value()) {
        Some(Value::String(collection)) => collection,
        Some(Value::Int64(_)) => command.get("collection").and_then(Value::as_str).unwrap_or("$cmd"),
        _ => "$cmd",
    };
    format!("{database}.{collection}")
}
