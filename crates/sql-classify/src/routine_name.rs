//! Names of stored routines.

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RoutineKind {
    Function,
    Procedure,
}

/// A routine's name as written in a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutineName {
    pub kind: RoutineKind,
    pub schema: Option<String>,
    pub name: String,
}
