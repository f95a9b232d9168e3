//! Names of tables.

/// A table's name as written in a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableName {
    pub schema: Option<String>,
    pub name: String,
}

/// Returns whether a name needs no escapes.
pub fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['`', '\\', '.', '@', '#'])
}
