//! The trait of all filters.

use crate::counters::Counters;
use crate::refusal::Refusal;
use crate::result_set::ResultEditor;
use crate::statement::Statement;
use ahash::AHashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A step that the statements of a service pass. Called on workers: it must not block.
pub trait Filter: fmt::Debug + Send + Sync {
    /// Decides about a statement, before its server is chosen.
    fn check(&self, _call: &Call<'_>) -> Verdict {
        Verdict::Pass
    }

    /// Returns the editor of a statement's result sets. `None`: they stay as they are.
    fn results(&self, _call: &Call<'_>) -> Option<Box<dyn ResultEditor>> {
        None
    }

    /// Notes the end of a statement that has reached this filter.
    fn finished(&self, _call: &Call<'_>, _outcome: &Outcome<'_>) {}

    /// Returns the name of the server that also executes the statements.
    fn mirror(&self) -> Option<&str> {
        None
    }

    /// Returns whether it must know the views of the server, for the statements of this user.
    fn needs_views(&self, _user: &str) -> bool {
        false
    }

    /// Opens its files again: they may have been moved or changed.
    fn reopen(&self) {}
}

/// A filter's decision about a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    /// The client gets an error, and the server does not receive the statement.
    Refuse(Refusal),
    /// The statement is replaced by this one. COM_QUERY and COM_STMT_PREPARE alone can be.
    Replace(String),
    /// The statement passes after this time.
    Wait(Duration),
}

/// The use that a client makes of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// COM_QUERY
    Query,
    /// COM_STMT_PREPARE
    Prepare,
    /// COM_STMT_EXECUTE and COM_STMT_BULK_EXECUTE
    Execute,
}

impl Action {
    pub fn name(self) -> &'static str {
        match self {
            Action::Query => "query",
            Action::Prepare => "prepare",
            Action::Execute => "execute",
        }
    }
}

/// A client of a service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Client {
    pub user: String,
    /// Its address; `localhost` for a Unix socket.
    pub host: String,
    /// The current schema, as far as the client has chosen it; empty: none.
    pub schema: String,
    /// The views that it may use, in any schema, folded by [`fold`](crate::mask_rule::fold);
    /// `None`: they are not known.
    pub views: Option<Arc<AHashSet<String>>>,
}

/// A statement of a client, as a filter sees it.
#[derive(Debug)]
pub struct Call<'c> {
    pub statement: &'c Statement,
    pub action: Action,
    pub client: &'c Client,
    pub service: &'c str,
    pub counters: &'c Arc<Counters>,
}

/// The end of a statement.
#[derive(Clone, Debug)]
pub struct Outcome<'o> {
    pub duration: Duration,
    /// The server that has replied; `None`: none has.
    pub server: Option<&'o str>,
    /// Rows of all its result sets.
    pub rows: u64,
    /// The number of the error that the client got.
    pub error: Option<u16>,
}

impl Client {
    /// Returns the refusal of a statement by the filter of this name. `reason`: a clause about the
    /// statement.
    pub fn denied(&self, filter: &str, reason: &str) -> Refusal {
        let Client { user, host, .. } = self;
        Refusal::denied(format!("Access denied for user '{user}'@'{host}' by the filter {filter}: {reason}"))
    }
}
