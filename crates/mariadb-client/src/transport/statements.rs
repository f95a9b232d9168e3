//! The statements a connection has prepared.

use crate::failure::Failure;
use ahash::AHashMap;
use mariadb_wire::ColumnType;
use mariadb_wire::com::LAST_PREPARED;
use selkie_runtime::busy_poll::Expectation;
use std::rc::Rc;
use std::sync::Arc;

/// Past it the statement unused for the longest time is closed. The server allows 16,382 for all connections together.
const STATEMENTS_MAX: usize = 128;

#[derive(Default)]
pub struct Statements {
    known: AHashMap<Arc<str>, Statement>,
    /// Asked for last; it can be executed before its id is known.
    last_begun: Option<Arc<str>>,
    clock: u64,
}

enum Preparation {
    /// Asked for, not answered yet.
    Begun,
    Done(u32),
    /// Refused; the executions that were sent behind it report why.
    Refused(Failure),
}

struct Statement {
    preparation: Preparation,
    types: Rc<[ColumnType]>,
    expectation: Expectation,
    used: u64,
}

impl Statements {
    /// The id to execute the statement by, if it has been prepared on this connection.
    pub fn id(&mut self, sql: &Arc<str>) -> Option<u32> {
        self.clock += 1;
        let statement = self.known.get_mut(sql)?;
        statement.used = self.clock;
        match statement.preparation {
            Preparation::Done(id) => Some(id),
            Preparation::Begun => (self.last_begun.as_ref() == Some(sql)).then_some(LAST_PREPARED),
            Preparation::Refused(_) => None,
        }
    }

    pub fn begin(&mut self, sql: &Arc<str>) {
        let (types, expectation) = (Rc::new([]), Expectation::default());
        let statement = Statement { preparation: Preparation::Begun, types, expectation, used: self.clock };
        self.known.insert(sql.clone(), statement);
        self.last_begun = Some(sql.clone());
    }

    /// Forgets a statement when there are too many; gives the id to close.
    pub fn make_room(&mut self) -> Option<u32> {
        if self.known.len() < STATEMENTS_MAX {
            return None;
        }
        self.known.retain(|_, statement| !matches!(statement.preparation, Preparation::Refused(_)));
        let done = self.known.iter().filter(|(_, statement)| matches!(statement.preparation, Preparation::Done(_)));
        let oldest = done.min_by_key(|(_, statement)| statement.used).map(|(sql, _)| sql.clone())?;
        match self.known.remove(&oldest)?.preparation {
            Preparation::Done(id) => Some(id),
            _ => None,
        }
    }

    /// Forgets a statement that is not on its way; gives the id to close.
    pub fn forget(&mut self, sql: &Arc<str>) -> Option<u32> {
        let Preparation::Done(id) = self.known.get(sql)?.preparation else { return None };
        self.known.remove(sql);
        Some(id)
    }

    /// The server has prepared it. Gives an id this one replaces (a statement begun twice), to be closed.
    pub fn prepared(&mut self, sql: &Arc<str>, id: u32, types: Rc<[ColumnType]>) -> Option<u32> {
        let Some(statement) = self.known.get_mut(sql) else { return Some(id) };
        statement.types = types;
        match std::mem::replace(&mut statement.preparation, Preparation::Done(id)) {
            Preparation::Done(replaced) => Some(replaced),
            _ => None,
        }
    }

    pub fn refused(&mut self, sql: &Arc<str>, failure: Failure) {
        if let Some(statement) = self.known.get_mut(sql) {
            statement.preparation = Preparation::Refused(failure);
        }
        self.last_begun = None;
    }

    /// Why preparing was refused, if it was: of each execution that was sent behind it. The
    /// statement may be tried again.
    pub fn refusal(&self, sql: &Arc<str>) -> Option<Failure> {
        match &self.known.get(sql)?.preparation {
            Preparation::Refused(failure) => Some(failure.clone()),
            _ => None,
        }
    }

    pub fn types(&self, sql: &Arc<str>) -> Option<Rc<[ColumnType]>> {
        self.known.get(sql).map(|statement| statement.types.clone())
    }

    /// Of how long its answer takes to come.
    pub fn expectation(&mut self, sql: &Arc<str>) -> Option<&mut Expectation> {
        self.known.get_mut(sql).map(|statement| &mut statement.expectation)
    }

    pub fn set_types(&mut self, sql: &Arc<str>, types: Rc<[ColumnType]>) {
        if let Some(statement) = self.known.get_mut(sql) {
            statement.types = types;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_executions_behind_a_refused_preparation_hear_why() {
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
