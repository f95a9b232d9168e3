//! The destination of a statement, and the reason for it: a pure decision by the facts of its text
//! and the state of its session.

use sql_classify::{Facts, PrimaryReason, RouteHint, SessionState, Statement, StatementKind};
use std::fmt;

/// The state of a session, as far as the decision depends on it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Situation {
    /// Why all statements belong on the session's own connection.
    pub bound: Option<&'static str>,
    /// A transaction is open there.
    pub is_in_transaction: bool,
    /// Each statement begins a transaction (`autocommit = 0`).
    pub begins_by_itself: bool,
    /// Characteristics of the next transaction are set.
    pub has_next_transaction: bool,
    /// A transaction that only reads is open on a replica.
    pub is_reading: bool,
    /// The session has no connection of its own at the moment: its server was lost.
    pub is_detached: bool,
}

/// A server, by its use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The session's own connection, which is to the primary.
    Primary,
    Replica,
    /// A replica, for a transaction that begins with this statement and only reads.
    ReplicaForTransaction,
    /// The server of the transaction that is open and only reads.
    Reading,
    /// The server of the statement before.
    Last,
    /// The server of this name.
    Named(String),
}

/// A destination, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    pub destination: Destination,
    pub reason: Reason,
}

/// Why a statement goes to its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    Text(&'static str),
    Primary(PrimaryReason),
    State(SessionState),
    Bound(&'static str),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Text(text) => f.write_str(text),
            Reason::Primary(reason) => reason.fmt(f),
            Reason::State(state) => write!(f, "it uses or changes {state}"),
            Reason::Bound(reason) => write!(f, "the session stays on the primary: {reason}"),
        }
    }
}

/// Schemas whose tables show the server itself.
const OF_THE_SERVER: [&str; 4] = ["information_schema", "performance_schema", "sys", "mysql"];

/// Returns where a statement goes. `hint`: the server that a comment asks for.
pub fn route(statement: &Statement, facts: &Facts, hint: Option<RouteHint<'_>>, session: Situation) -> Route {
    let to = |destination, reason| Route { destination, reason };
    let primary = |reason| to(Destination::Primary, reason);
    if let Some(reason) = session.bound {
        return primary(Reason::Bound(reason));
    }
    if session.is_reading {
        return match facts.session.iter().find(|state| **state != SessionState::LastInsertId) {
            Some(state) => primary(Reason::State(*state)),
            None => to(Destination::Reading, Reason::Text("a transaction that only reads is open there")),
        };
    }
    if session.is_in_transaction {
        return primary(Reason::Text("a transaction is open"));
    }
    if session.begins_by_itself {
        return primary(Reason::Text("autocommit is off, so it begins a transaction"));
    }
    if session.has_next_transaction {
        return primary(Reason::Text("characteristics of the next transaction are set"));
    }
    let effect = facts.transaction;
    if effect.begins {
        let is_alone = matches!(statement.kind, StatementKind::Transaction);
        return match effect.is_read_only && is_alone && facts.session.is_empty() {
            true => to(Destination::ReplicaForTransaction, Reason::Text("it begins a transaction that only reads")),
            false => primary(Reason::Text("it begins a transaction that may write")),
        };
    }
    if effect.commits || effect.rolls_back || effect.is_savepoint {
        return primary(Reason::Text("it ends a transaction, or sets a savepoint"));
    }
    let shows_last = statement.kind == StatementKind::Show && statement.diagnostics_use.is_explicit();
    if facts.primary == Some(PrimaryReason::LastStatement) || shows_last {
        let names_insert_id = facts.session.contains(&SessionState::LastInsertId);
        return match names_insert_id {
            true => primary(Reason::State(SessionState::LastInsertId)),
            false => to(Destination::Last, Reason::Primary(PrimaryReason::LastStatement)),
        };
    }
    if let Some(reason) = facts.primary {
        return primary(Reason::Primary(reason));
    }
    if let Some(state) = facts.session.first() {
        return primary(Reason::State(*state));
    }
    match hint {
        Some(RouteHint::Primary) => return primary(Reason::Text("a comment asks for the primary")),
        Some(RouteHint::Replica) => return to(Destination::Replica, Reason::Text("a comment asks for a replica")),
        Some(RouteHint::Last) => {
            return to(Destination::Last, Reason::Text("a comment asks for the server of the last statement"));
        }
        Some(RouteHint::Server(name)) => {
            return to(Destination::Named(name.to_owned()), Reason::Text("a comment names the server"));
        }
        None => {}
    }
    if !matches!(statement.kind, StatementKind::PureSelect | StatementKind::Read) {
        return primary(Reason::Text("it is not a SELECT"));
    }
    let reads = &statement.effects.reads;
    let is_of_server = |schema: &str| OF_THE_SERVER.iter().any(|name| schema.eq_ignore_ascii_case(name));
    if reads.iter().any(|table| table.schema.as_deref().is_some_and(is_of_server)) {
        return primary(Reason::Text("it reads tables that describe the server"));
    }
    if reads.is_empty() && !session.is_detached {
        return primary(Reason::Text("it reads no table"));
    }
    to(Destination::Replica, Reason::Text("it only reads"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sql_classify::{ClassCache, Lexis, ParseContext};

    fn to(sql: &str, hint: Option<RouteHint<'_>>, session: Situation) -> Destination {
        let lexis = Lexis { server_version: 101_119, ..Lexis::default() };
        let class = ClassCache::default().class(sql.as_bytes(), lexis, ParseContext::default());
        route(class.statement(), class.facts(), hint, session).destination
    }

    #[test]
    fn reads_go_to_replicas() {
        use Destination::{Last, Primary, Replica, ReplicaForTransaction};
        for (sql, expected) in [
            ("SELECT a FROM t WHERE b = 1", Replica),
            ("WITH x AS (SELECT a FROM t) SELECT * FROM x", Replica),
            ("SELECT NOW(), a FROM t JOIN d.u USING (a)", Replica),
            ("SELECT a FROM t UNION SELECT a FROM u", Replica),
            ("START TRANSACTION READ ONLY", ReplicaForTransaction),
            ("SELECT FOUND_ROWS()", Last),
            ("SHOW WARNINGS", Last),
            ("SELECT LAST_INSERT_ID()", Primary),
            ("SELECT 1", Primary),
            ("SELECT CONNECTION_ID() FROM t", Primary),
            ("SELECT * FROM information_schema.processlist", Primary),
            ("SHOW TABLES", Primary),
            ("SELECT a FROM t FOR UPDATE", Primary),
            ("SELECT a FROM t LOCK IN SHARE MODE", Primary),
            ("SELECT a INTO @x FROM t", Primary),
            ("SELECT @x, a FROM t", Primary),
            ("SELECT GET_LOCK('a', 1) FROM t", Primary),
            ("SELECT f(a) FROM t", Primary),
            ("SELECT NEXT VALUE FOR s FROM t", Primary),
            ("SELECT a FROM t; DELETE FROM t", Primary),
            ("INSERT INTO t VALUES (1)", Primary),
            ("SET NAMES utf8", Primary),
            ("BEGIN", Primary),
            ("COMMIT", Primary),
            ("nonsense", Primary),
        ] {
            assert_eq!(to(sql, None, Situation::default()), expected, "{sql}");
        }
    }

    #[test]
    fn the_state_of_the_session_decides() {
        use Destination::{Primary, Reading, Replica};
        let none = Situation::default();
        let read = "SELECT a FROM t";
        for session in [
            Situation { bound: Some("x"), ..none },
            Situation { is_in_transaction: true, ..none },
            Situation { begins_by_itself: true, ..none },
            Situation { has_next_transaction: true, ..none },
        ] {
            assert_eq!(to(read, Some(RouteHint::Replica), session), Primary);
        }
        let reading = Situation { is_reading: true, ..none };
        assert_eq!((to(read, None, reading), to("COMMIT", None, reading)), (Reading, Reading));
        assert_eq!(to("SET NAMES utf8", None, reading), Primary);
        assert_eq!(to("SELECT 1", None, Situation { is_detached: true, ..none }), Replica);
    }

    #[test]
    fn a_comment_decides_about_reads_alone() {
        use Destination::{Named, Primary};
        let none = Situation::default();
        assert_eq!(to("SELECT a FROM t", Some(RouteHint::Primary), none), Primary);
        assert_eq!(to("SELECT a FROM t", Some(RouteHint::Server("db2")), none), Named("db2".into()));
        assert_eq!(to("DELETE FROM t", Some(RouteHint::Replica), none), Primary);
        assert_eq!(to("SHOW TABLES", Some(RouteHint::Replica), none), Destination::Replica);
    }
}
