//! The effects of a statement on rows, on definitions and on its session, as far as its text shows
//! them.

use crate::table_name::TableName;
use crate::tokens::Calls;

/// The rows and definitions that a statement changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Writes {
    #[default]
    Nothing,
    /// Rows of these tables.
    Tables(Vec<TableName>),
    /// Rows of any table.
    AnyRows,
    /// Rows and definitions of any table.
    Everything,
}

/// What a statement does to its session besides, from harmless to worst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SessionEffect {
    #[default]
    None,
    /// Settings may have changed.
    Settings,
    /// Visible tables may have changed: the session may have new temporary ones, for example.
    Anything,
}

/// The effects of a statement. Its routines, and views and triggers of its tables, may add others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// The tables that it reads. They change if they are views that call functions.
    pub reads: Vec<TableName>,
    pub writes: Writes,
    pub calls: Calls,
    pub session: SessionEffect,
}

impl Effects {
    /// Effects of a statement that may do anything.
    pub fn unknown() -> Effects {
        Effects { writes: Writes::Everything, session: SessionEffect::Anything, ..Effects::default() }
    }

    /// Effects of reading tables. `None`: they are not known.
    pub fn of_reading(tables: Option<Vec<TableName>>, calls: Calls) -> Effects {
        match tables {
            Some(reads) => Effects { reads, calls, ..Effects::default() },
            None => Effects { writes: Writes::AnyRows, session: SessionEffect::Anything, calls, ..Effects::default() },
        }
    }

    /// Returns whether there are names of tables or routines.
    pub fn has_names(&self) -> bool {
        !self.reads.is_empty() || !self.calls.routines.is_empty() || matches!(self.writes, Writes::Tables(_))
    }

    /// Returns whether everything follows from these effects and from definitions.
    pub fn are_known(&self) -> bool {
        !matches!(self.writes, Writes::AnyRows | Writes::Everything) && !self.calls.are_more
    }

    /// Adds the effects of another statement that is executed with this one.
    pub fn merge(&mut self, other: Effects) {
        for table in other.reads {
            if !self.reads.contains(&table) {
                self.reads.push(table);
            }
        }
        self.writes = match (std::mem::take(&mut self.writes), other.writes) {
            (Writes::Everything, _) | (_, Writes::Everything) => Writes::Everything,
            (Writes::AnyRows, _) | (_, Writes::AnyRows) => Writes::AnyRows,
            (Writes::Nothing, writes) | (writes, Writes::Nothing) => writes,
            (Writes::Tables(mut tables), Writes::Tables(more)) => {
                tables.extend(more);
                Writes::Tables(tables)
            }
        };
        self.calls.append(other.calls);
        self.session = self.session.max(other.session);
    }
}
