//! Selects the error to report: the first in MongoDB's order of checks.

use error::{Error, Result};

/// The steps of MongoDB's checks, in its order. Within a step, the order of the fields decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// `$db`, before the command is known.
    Database,
    /// The stable API's parameters.
    Api,
    /// Whether the database is `admin`, for commands that require it.
    AdminOnly,
    /// The own fields of commands that are parsed first (see `Spec::parsing`).
    OwnFields,
    ReadPreference,
    /// The client's metadata.
    Metadata,
    /// The types of the fields about session and transaction.
    Session,
    /// Whether these fields fit one another and the command.
    SessionUse,
    DatabaseName,
    /// The collection's name, for the authorization.
    Authorization,
    /// Fields that clients must not send.
    Internal,
    TimeLimit,
    ReadConcern,
    ShardVersion,
    /// The events that a read must wait for.
    ReadConcernWait,
    WriteConcern,
    /// The own fields of commands that parse them when they run.
    Running,
}

/// The first error in MongoDB's order, among those recorded so far.
#[derive(Default)]
pub struct FirstError(Option<(Phase, Error)>);

impl FirstError {
    /// Returns the value of a result; keeps its error unless one of an earlier phase is known.
    #[inline]
    pub fn record<T>(&mut self, phase: Phase, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                if self.0.as_ref().is_none_or(|(known, _)| phase < *known) {
                    self.0 = Some((phase, error));
                }
                None
            }
        }
    }

    /// Returns whether an error of an earlier phase is known.
    pub fn is_before(&self, phase: Phase) -> bool {
        self.0.as_ref().is_some_and(|(known, _)| *known < phase)
    }

    pub fn into_inner(self) -> Option<(Phase, Error)> {
        self.0
    }
}
