//! Facts about a text: whether a replica may execute it, and the state that it leaves in its
//! session.
//!
//! These are facts by the text alone. A router decides.

use crate::effects::Writes;
use crate::scanner::{Lexis, TokenKind};
use crate::statement::{Statement, StatementKind};
use crate::tokens::{ListedToken, Tokens};
use std::fmt;

/// Facts about a text, which may have several statements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Why a replica cannot execute it in place of the primary; `None`: it can.
    pub primary: Option<PrimaryReason>,
    pub transaction: TransactionEffect,
    /// The kinds of state that it leaves in its session or depends on.
    pub session: Vec<SessionState>,
}

/// Why a statement belongs on the primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrimaryReason {
    NotUnderstood,
    Definition,
    Write,
    RowLocks,
    File,
    SetsVariables,
    UserLock,
    LastStatement,
    ConnectionId,
    Sequence,
    Routine,
    TableLocks,
    Xa,
}

impl fmt::Display for PrimaryReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PrimaryReason::NotUnderstood => "it is not understood, so it may change anything",
            PrimaryReason::Definition => "it changes definitions",
            PrimaryReason::Write => "it changes rows",
            PrimaryReason::RowLocks => "it locks rows",
            PrimaryReason::File => "it writes a file on the server",
            PrimaryReason::SetsVariables => "it reads rows and sets variables from them",
            PrimaryReason::UserLock => "it uses the locks of GET_LOCK()",
            PrimaryReason::LastStatement => "it depends on the statement before",
            PrimaryReason::ConnectionId => "it asks for the id of its connection",
            PrimaryReason::Sequence => "it advances or reads a sequence",
            PrimaryReason::Routine => "it calls a stored routine, or a function that is not known",
            PrimaryReason::TableLocks => "it locks or unlocks tables",
            PrimaryReason::Xa => "it is part of a distributed transaction",
        })
    }
}

/// What a text does to the transaction of its session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionEffect {
    pub begins: bool,
    pub commits: bool,
    pub rolls_back: bool,
    /// It commits the open transaction although it is no COMMIT.
    pub commits_implicitly: bool,
    /// The next transaction begins at once (AND CHAIN).
    pub chains: bool,
    pub is_read_only: bool,
    /// Sets a savepoint, returns to one or releases one.
    pub is_savepoint: bool,
    pub is_xa: bool,
}

/// A kind of state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionState {
    Variables,
    UserVariables,
    CharacterSet,
    Schema,
    Role,
    NextTransaction,
    TemporaryTables,
    PreparedStatements,
    UserLocks,
    TableLocks,
    Handlers,
    LastInsertId,
    LocalFile,
    /// The statement is not understood: any of them.
    Unknown,
}

impl fmt::Display for SessionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SessionState::Variables => "system variables",
            SessionState::UserVariables => "user variables",
            SessionState::CharacterSet => "the character set",
            SessionState::Schema => "the current schema",
            SessionState::Role => "the role",
            SessionState::NextTransaction => "characteristics of the next transaction",
            SessionState::TemporaryTables => "temporary tables",
            SessionState::PreparedStatements => "prepared statements",
            SessionState::UserLocks => "locks of GET_LOCK()",
            SessionState::TableLocks => "locks of LOCK TABLES",
            SessionState::Handlers => "open handlers",
            SessionState::LastInsertId => "LAST_INSERT_ID()",
            SessionState::LocalFile => "a file of the client",
            SessionState::Unknown => "unknown state",
        })
    }
}

const USER_LOCKS: [&str; 5] = ["GET_LOCK", "RELEASE_LOCK", "RELEASE_ALL_LOCKS", "IS_FREE_LOCK", "IS_USED_LOCK"];
const SEQUENCES: [&str; 5] = ["NEXTVAL", "LASTVAL", "SETVAL", "CURRVAL", "SEQUENCE"];

impl Facts {
    /// Returns the facts about a text that has been classified.
    pub fn of(text: &str, lexis: Lexis, statement: &Statement) -> Facts {
        let unclear = || Facts {
            primary: Some(PrimaryReason::NotUnderstood),
            session: vec![SessionState::Unknown],
            ..Facts::default()
        };
        let Ok(tokens) = Tokens::of(text, lexis) else { return unclear() };
        let mut facts = Facts { primary: primary_reason(&tokens, statement), ..Facts::default() };
        for part in tokens.statements() {
            facts.add_transaction(&part);
            facts.add_session(&part);
        }
        if facts.transaction.is_xa {
            facts.primary = Some(PrimaryReason::Xa);
        } else if statement.kind == StatementKind::Unknown && facts.primary == Some(PrimaryReason::NotUnderstood) {
            facts.add(SessionState::Unknown);
        }
        facts
    }

    fn add(&mut self, state: SessionState) {
        if !self.session.contains(&state) {
            self.session.push(state);
        }
    }

    fn add_transaction(&mut self, tokens: &Tokens<'_>) {
        let words = tokens.first_words();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let effect = &mut self.transaction;
        match words.as_slice() {
            ["BEGIN"] | ["BEGIN", "WORK"] | ["START", "TRANSACTION", ..] => {
                effect.begins = true;
                effect.commits_implicitly = true;
                effect.is_read_only = tokens.has_word("ONLY");
            }
            ["COMMIT", ..] => effect.commits = true,
            ["ROLLBACK", "TO", ..] | ["ROLLBACK", "WORK", "TO"] | ["SAVEPOINT", ..] | ["RELEASE", "SAVEPOINT", ..] => {
                effect.is_savepoint = true;
            }
            ["ROLLBACK", ..] => effect.rolls_back = true,
            ["XA", ..] => effect.is_xa = true,
            ["CREATE" | "DROP", "TEMPORARY", ..] | ["CREATE", "OR", "REPLACE"] if tokens.has_word("TEMPORARY") => {}
            ["DROP", "PREPARE", ..] => {}
            [
                "CREATE" | "ALTER" | "DROP" | "RENAME" | "TRUNCATE" | "GRANT" | "REVOKE" | "INSTALL" | "UNINSTALL",
                ..,
            ]
            | ["LOCK", "TABLE" | "TABLES", ..]
            | ["ANALYZE" | "OPTIMIZE" | "CHECK" | "REPAIR" | "FLUSH" | "RESET" | "CACHE", ..]
            | ["LOAD", "INDEX", ..]
            | ["SET", "PASSWORD", ..]
            | ["CHANGE" | "STOP", ..]
            | ["START", ..] => effect.commits_implicitly = true,
            _ => {}
        }
        let chain = tokens.as_slice().iter().position(|token| token.is_word("CHAIN"));
        let is_refused = |at: usize| at > 0 && tokens.as_slice()[at - 1].is_word("NO");
        effect.chains |= (effect.commits || effect.rolls_back) && chain.is_some_and(|at| !is_refused(at));
    }

    fn add_session(&mut self, tokens: &Tokens<'_>) {
        let words = tokens.first_words();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["SET", "STATEMENT", ..] => {}
            ["SET", "NAMES" | "CHARACTER" | "CHARSET", ..] => self.add(SessionState::CharacterSet),
            ["SET", "ROLE", ..] | ["SET", "DEFAULT", "ROLE"] => self.add(SessionState::Role),
            ["SET", "TRANSACTION", ..] => self.add(SessionState::NextTransaction),
            ["SET", "PASSWORD", ..] => {}
            ["SET", ..] => self.add_assignments(tokens),
            ["USE", ..] => self.add(SessionState::Schema),
            ["CREATE" | "DROP", "TEMPORARY", ..] => self.add(SessionState::TemporaryTables),
            ["CREATE", "OR", "REPLACE"] if tokens.has_word("TEMPORARY") => self.add(SessionState::TemporaryTables),
            ["PREPARE" | "EXECUTE" | "DEALLOCATE", ..] | ["DROP", "PREPARE", ..] => {
                self.add(SessionState::PreparedStatements);
            }
            ["LOCK" | "UNLOCK", ..] => self.add(SessionState::TableLocks),
            ["FLUSH", ..] if tokens.has_word("LOCK") || tokens.has_word("EXPORT") => self.add(SessionState::TableLocks),
            ["HANDLER", ..] => self.add(SessionState::Handlers),
            ["LOAD", ..] if tokens.has_word("LOCAL") => self.add(SessionState::LocalFile),
            _ => {}
        }
        for (at, token) in tokens.as_slice().iter().enumerate() {
            let is_user_variable = token.token.kind == TokenKind::Variable && !token.token.text.starts_with("@@");
            let is_account =
                at > 0 && !token.token.is_spaced && tokens.as_slice()[at - 1].token.kind != TokenKind::Symbol;
            if is_user_variable && !is_account {
                self.add(SessionState::UserVariables);
            } else if is_call_of(tokens, at, &USER_LOCKS) {
                self.add(SessionState::UserLocks);
            } else if token.is_word("LAST_INSERT_ID") {
                self.add(SessionState::LastInsertId);
            }
        }
    }

    /// Adds the states that the assignments of a SET change.
    fn add_assignments(&mut self, tokens: &Tokens<'_>) {
        let mut is_target = true;
        for token in tokens.as_slice().iter().skip(1) {
            let text = token.token.text;
            let scopes = ["SESSION", "LOCAL", "GLOBAL", "@@SESSION", "@@LOCAL", "@@GLOBAL"];
            if token.is_symbol(",") {
                is_target = true;
            } else if is_target && !token.is_symbol(".") && !scopes.iter().any(|scope| text.eq_ignore_ascii_case(scope))
            {
                is_target = false;
                self.add(match text.trim_start_matches("@@").to_ascii_lowercase().as_str() {
                    name if name.starts_with('@') => SessionState::UserVariables,
                    name if name.starts_with("character_set") || name.starts_with("collation") => {
                        SessionState::CharacterSet
                    }
                    _ => SessionState::Variables,
                });
            }
        }
    }
}

fn is_call_of(tokens: &Tokens<'_>, at: usize, names: &[&str]) -> bool {
    let next = tokens.as_slice().get(at + 1);
    next.is_some_and(|next| next.is_symbol("(")) && names.iter().any(|name| tokens.as_slice()[at].is_word(name))
}

/// Returns why a text belongs on the primary.
fn primary_reason(tokens: &Tokens<'_>, statement: &Statement) -> Option<PrimaryReason> {
    let effects = &statement.effects;
    let list = tokens.as_slice();
    let calls = |names: &[&str]| (0..list.len()).any(|at| is_call_of(tokens, at, names));
    let pairs =
        |first: &str, second: &str| list.windows(2).any(|pair| pair[0].is_word(first) && pair[1].is_word(second));
    let defines = ["CREATE", "ALTER", "DROP", "RENAME"].iter().any(|word| tokens.begins_with(&[word]));
    Some(match (&statement.kind, &effects.writes) {
        (StatementKind::Unknown | StatementKind::Execute { .. }, _) => PrimaryReason::NotUnderstood,
        (_, Writes::Everything) => PrimaryReason::Definition,
        (_, Writes::Tables(_) | Writes::AnyRows) => PrimaryReason::Write,
        _ if defines && !tokens.begins_with(&["DROP", "PREPARE"]) => PrimaryReason::Definition,
        _ if !effects.calls.is_empty() => PrimaryReason::Routine,
        _ if tokens.begins_with(&["LOCK"]) || tokens.begins_with(&["UNLOCK"]) => PrimaryReason::TableLocks,
        _ if tokens.has_any_word(&["OUTFILE", "DUMPFILE"]) => PrimaryReason::File,
        (StatementKind::Show, _) => return None,
        _ if pairs("FOR", "UPDATE") || pairs("IN", "SHARE") || pairs("FOR", "SHARE") => PrimaryReason::RowLocks,
        _ if calls(&USER_LOCKS) => PrimaryReason::UserLock,
        _ if calls(&SEQUENCES) || pairs("NEXT", "VALUE") || pairs("PREVIOUS", "VALUE") => PrimaryReason::Sequence,
        _ if calls(&["LAST_INSERT_ID", "FOUND_ROWS", "ROW_COUNT"]) || names_diagnostics(list) => {
            PrimaryReason::LastStatement
        }
        _ if calls(&["CONNECTION_ID"]) => PrimaryReason::ConnectionId,
        (StatementKind::Settings, _) if !tokens.has_word("SELECT") => return None,
        _ if tokens.has_symbol(":=") || tokens.has_word("INTO") => PrimaryReason::SetsVariables,
        _ => return None,
    })
}

/// Returns whether variables about the statement before are used.
fn names_diagnostics(list: &[ListedToken<'_>]) -> bool {
    let names = ["@@identity", "@@last_insert_id", "@@insert_id", "@@warning_count", "@@error_count", "DIAGNOSTICS"];
    list.iter().any(|token| names.iter().any(|name| token.token.text.eq_ignore_ascii_case(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::ClassCache;
    use crate::statement::ParseContext;

    fn facts(sql: &str) -> Facts {
        let class = ClassCache::default().class(sql.as_bytes(), Lexis::default(), ParseContext::default());
        class.facts().clone()
    }

    #[test]
    fn some_statements_belong_on_the_primary() {
        use PrimaryReason::*;
        for (sql, reason) in [
            ("SELECT a FROM t WHERE b = 1", None),
            ("WITH x AS (SELECT 1) SELECT * FROM x", None),
            ("SHOW TABLES", None),
            ("SELECT NOW(), @a, @@sql_mode FROM t", None),
            ("SET NAMES utf8mb4", None),
            ("SET @a := 1", None),
            ("BEGIN", None),
            ("PREPARE s FROM 'SELECT 1'", None),
            ("SELECT a FROM t FOR UPDATE", Some(RowLocks)),
            ("SELECT a FROM t LOCK IN SHARE MODE", Some(RowLocks)),
            ("SELECT a FROM t INTO OUTFILE 'x'", Some(File)),
            ("SELECT a INTO @x FROM t", Some(SetsVariables)),
            ("SELECT @x := a FROM t", Some(SetsVariables)),
            ("SELECT GET_LOCK('a', 1)", Some(UserLock)),
            ("SELECT LAST_INSERT_ID()", Some(LastStatement)),
            ("SELECT @@identity", Some(LastStatement)),
            ("SELECT FOUND_ROWS()", Some(LastStatement)),
            ("SELECT connection_id(), a FROM t", Some(ConnectionId)),
            ("SELECT NEXT VALUE FOR s", Some(Sequence)),
            ("SELECT NEXTVAL(s)", Some(Sequence)),
            ("SELECT f(1)", Some(Routine)),
            ("CALL p()", Some(Routine)),
            ("INSERT INTO t VALUES (1)", Some(Write)),
            ("SELECT 1; DELETE FROM t", Some(Write)),
            ("CREATE TABLE t (a INT)", Some(Definition)),
            ("CREATE TEMPORARY TABLE t (a INT)", Some(Definition)),
            ("LOCK TABLES t READ", Some(TableLocks)),
            ("XA START 'x'", Some(Xa)),
            ("nonsense", Some(NotUnderstood)),
            ("EXECUTE s", Some(NotUnderstood)),
            ("SELECT 'a", Some(NotUnderstood)),
        ] {
            assert_eq!(facts(sql).primary, reason, "{sql}");
        }
    }

    #[test]
    fn states_of_the_session_have_names() {
        use SessionState::*;
        for (sql, states) in [
            ("SELECT a FROM t", &[][..]),
            ("SET @a = 1", &[UserVariables]),
            ("SET @@session.sql_mode = '', @b = 2, SESSION wait_timeout = 5", &[Variables, UserVariables]),
            ("SET character_set_client = utf8", &[CharacterSet]),
            ("SET NAMES utf8", &[CharacterSet]),
            ("SET ROLE r", &[Role]),
            ("SET TRANSACTION READ ONLY", &[NextTransaction]),
            ("SELECT @a, 'u'@'h'", &[UserVariables]),
            ("GRANT ALL ON t TO 'u'@'h'", &[Unknown]),
            ("USE d", &[Schema]),
            ("CREATE OR REPLACE TEMPORARY TABLE t (a INT)", &[TemporaryTables]),
            ("PREPARE s FROM 'SELECT 1'", &[PreparedStatements]),
            ("DO GET_LOCK('a', 1)", &[UserLocks]),
            ("LOCK TABLES t READ", &[TableLocks]),
            ("HANDLER t OPEN", &[Handlers]),
            ("SELECT LAST_INSERT_ID()", &[LastInsertId]),
            ("LOAD DATA LOCAL INFILE 'x' INTO TABLE t", &[LocalFile]),
            ("nonsense", &[Unknown]),
        ] {
            assert_eq!(facts(sql).session, states, "{sql}");
        }
    }

    #[test]
    fn transactions() {
        let effect = |sql: &str| facts(sql).transaction;
        let none = TransactionEffect::default();
        let begins = TransactionEffect { begins: true, commits_implicitly: true, ..none };
        for (sql, expected) in [
            ("SELECT 1", none),
            ("BEGIN", begins),
            ("START TRANSACTION READ ONLY", TransactionEffect { is_read_only: true, ..begins }),
            ("COMMIT AND CHAIN", TransactionEffect { commits: true, chains: true, ..none }),
            ("COMMIT AND NO CHAIN", TransactionEffect { commits: true, ..none }),
            ("ROLLBACK TO a", TransactionEffect { is_savepoint: true, ..none }),
            ("ROLLBACK", TransactionEffect { rolls_back: true, ..none }),
            ("TRUNCATE t", TransactionEffect { commits_implicitly: true, ..none }),
            ("CREATE TABLE t (a INT)", TransactionEffect { commits_implicitly: true, ..none }),
            ("CREATE TEMPORARY TABLE t (a INT)", none),
            ("XA START 'x'", TransactionEffect { is_xa: true, ..none }),
            ("SELECT 1; COMMIT", TransactionEffect { commits: true, ..none }),
        ] {
            assert_eq!(effect(sql), expected, "{sql}");
        }
    }
}
