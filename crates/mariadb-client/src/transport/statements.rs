//! The statements a connection has prepared.

use crate::failure::Failure;
use ahash::AHashMap;
use mariadb_wire::ColumnType;
use mariadb_wire::com::LAST_PREPARED;
use selkie_runtime::busy_poll::Expectation;
use std::sync::Arc;

/// Past this number the least recently used statement is closed. The server allows 16,382 for all
/// connections together.
const STATEMENTS_MAX: usize = 128;

#[derive(Default)]
pub struct Statements {
    statements: AHashMap<Arc<str>, Statement>,
    /// The last one whose preparation was sent; it can be executed before its id is known.
    last_begun: Option<Arc<str>>,
    clock: u64,
}

enum Preparation {
    /// Sent, not answered yet.
    Sent,
    Done(u32),
    /// Refused; the executions pipelined behind it report why.
    Refused(Failure),
}

struct Statement {
    preparation: Preparation,
    types: Arc<[ColumnType]>,
    expectation: Expectation,
    used: u64,
}

impl Statements {
    /// Returns the id to execute the statement with, if this connection has prepared it.
    pub fn id(&mut self, sql: &Arc<str>) -> Option<u32> {
        self.clock += 1;
        let statement = self.statements.get_mut(sql)?;
        statement.used = self.clock;
        match statement.preparation {
            Preparation::Done(id) => Some(id),
            Preparation::Sent => (self.last_begun.as_ref() == Some(sql)).then_some(LAST_PREPARED),
            Preparation::Refused(_) => None,
        }
    }

    /// Notes that the statement's preparation was sent.
    pub fn begin(&mut self, sql: &Arc<str>) {
        let (types, expectation) = (Arc::new([]), Expectation::default());
        let statement = Statement { preparation: Preparation::Sent, types, expectation, used: self.clock };
        self.statements.insert(sql.clone(), statement);
        self.last_begun = Some(sql.clone());
    }

    /// Makes the next execution of a statement that is being prepared prepare it once more: its
    /// preparation may be refused for reasons that do not concern the next role.
    pub fn role_changes(&mut self) {
        self.last_begun = None;
    }

    /// Forgets a statement if there are too many; returns the id to close.
    pub fn make_room(&mut self) -> Option<u32> {
        if self.statements.len() < STATEMENTS_MAX {
            return None;
        }
        self.statements.retain(|_, statement| !matches!(statement.preparation, Preparation::Refused(_)));
        let done =
            self.statements.iter().filter(|(_, statement)| matches!(statement.preparation, Preparation::Done(_)));
        let oldest = done.min_by_key(|(_, statement)| statement.used).map(|(sql, _)| sql.clone())?;
        match self.statements.remove(&oldest)?.preparation {
            Preparation::Done(id) => Some(id),
            _ => None,
        }
    }

    /// Forgets a prepared statement; returns the id to close.
    pub fn forget(&mut self, sql: &Arc<str>) -> Option<u32> {
        let Preparation::Done(id) = self.statements.get(sql)?.preparation else { return None };
        self.statements.remove(sql);
        Some(id)
    }

    /// Notes that the server has prepared the statement. Returns the id that this one replaces, if
    /// it was prepared twice, which must be closed.
    pub fn prepared(&mut self, sql: &Arc<str>, id: u32, types: Arc<[ColumnType]>) -> Option<u32> {
        let Some(statement) = self.statements.get_mut(sql) else { return Some(id) };
        statement.types = types;
        match std::mem::replace(&mut statement.preparation, Preparation::Done(id)) {
            Preparation::Done(replaced) => Some(replaced),
            _ => None,
        }
    }

    pub fn refused(&mut self, sql: &Arc<str>, failure: Failure) {
        if let Some(statement) = self.statements.get_mut(sql) {
            statement.preparation = Preparation::Refused(failure);
        }
        self.last_begun = None;
    }

    /// Returns why the preparation was refused, if it was, for each execution pipelined behind it.
    /// The statement may be prepared again.
    pub fn refusal(&self, sql: &Arc<str>) -> Option<Failure> {
        match &self.statements.get(sql)?.preparation {
            Preparation::Refused(failure) => Some(failure.clone()),
            _ => None,
        }
    }

    pub fn types(&self, sql: &Arc<str>) -> Option<Arc<[ColumnType]>> {
        self.statements.get(sql).map(|statement| statement.types.clone())
    }

    /// Returns the expectation of how long its answer takes.
    pub fn expectation(&mut self, sql: &Arc<str>) -> Option<&mut Expectation> {
        self.statements.get_mut(sql).map(|statement| &mut statement.expectation)
    }

    pub fn set_types(&mut self, sql: &Arc<str>, types: Arc<[ColumnType]>) {
        if let Some(statement) = self.statements.get_mut(sql) {
            statement.types = types;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_executions_behind_a_refused_preparation_report_it() {
        let sql: Arc<str> = "SELECT 1 FROM missing".into();
        let mut statements = Statements::default();
        statements.begin(&sql);
        assert_eq!(statements.id(&sql), Some(LAST_PREPARED));
        statements.refused(&sql, Failure::Lost("why".into()));
        assert!(statements.refusal(&sql).is_some() && statements.refusal(&sql).is_some());
        assert_eq!(statements.id(&sql), None);
        statements.begin(&sql);
        assert!(statements.refusal(&sql).is_none());
    }
}
