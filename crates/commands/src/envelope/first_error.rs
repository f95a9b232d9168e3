//! Which of several mistakes in a command is told: the one that MongoDB meets first on its way through the command.

use error::{Error, Result};

/// Where on that way a mistake is met. Within one of them the fields' own order decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// `$db`, before it is known which command it is.
    Database,
    /// The versioned API.
    Api,
    /// Whether the database is `admin`, where it has to be.
    AdminOnly,
    /// The command's own fields, of commands that are read as a whole (see `Spec::reads`).
    OwnFields,
    ReadPreference,
    /// Who asks.
    Metadata,
    /// The logical session and the transaction, as they are spelled.
    Session,
    /// Whether they make sense with each other and with the command.
    SessionUse,
    DatabaseName,
    /// The collection's name, where whoever asks has to be allowed to touch it.
    Authorization,
    /// Fields that no client may send.
    Internal,
    TimeLimit,
    ReadConcern,
    ShardVersion,
    /// What the read has to wait for.
    ReadConcernWait,
    WriteConcern,
    /// The command's own fields, of commands that read them when they run.
    Running,
}

/// The mistake that is told, among those heard of so far.
#[derive(Default)]
pub struct Mistakes(Option<(Phase, Error)>);

impl Mistakes {
    /// What was read; a mistake is kept if none is known that is met earlier.
    #[inline]
    pub fn hear<T>(&mut self, phase: Phase, read: Result<T>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(error) => {
                if self.0.as_ref().is_none_or(|(known, _)| phase < *known) {
                    self.0 = Some((phase, error));
                }
                None
            }
        }
    }

    pub fn into_first(self) -> Option<(Phase, Error)> {
        self.0
    }
}
