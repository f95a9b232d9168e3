//! The settings of a session that its further connections must have: a model of the differences
//! from a new connection.
//!
//! Each setting is kept with the statement that set it last. A new connection gets those
//! statements; one that is a few settings behind gets these alone.

use ahash::AHashMap;
use sql_classify::scanner::{Scanner, Token, TokenKind};
use sql_classify::{Facts, Lexis, PrimaryReason, SessionState};
use std::rc::Rc;

/// The settings of a session.
#[derive(Debug, Default)]
pub struct Carried {
    version: u64,
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    version: u64,
    keys: Vec<String>,
    packet: Rc<[u8]>,
    is_for_primary: bool,
}

/// What a statement does to the state of its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateChange {
    None,
    /// It sets these settings, to constants. `is_for_primary`: on the primary alone.
    Carry {
        keys: Vec<String>,
        is_for_primary: bool,
    },
    /// It leaves something on its connection that no other can get: the session cannot change its
    /// primary.
    Pin(&'static str),
    /// From now on, only this connection executes the session's statements as the client expects.
    Bind(&'static str),
    LocksTables,
    UnlocksTables,
}

/// Settings that belong to the connection for writes.
const FOR_PRIMARY: [&str; 3] = ["autocommit", "sql_log_bin", "unique_checks"];

/// Variables that are no settings: the next statement uses them up, or they show a state.
const MOMENTARY: [&str; 9] = [
    "insert_id",
    "last_insert_id",
    "identity",
    "rand_seed1",
    "rand_seed2",
    "gtid_seq_no",
    "gtid_domain_id",
    "server_id",
    "pseudo_thread_id",
];

/// The key of the current schema.
pub const SCHEMA: &str = "schema";

impl Carried {
    /// Records a statement that has set `keys`. `packet`: its command.
    pub fn add(&mut self, keys: Vec<String>, packet: &[u8], is_for_primary: bool) {
        self.version += 1;
        self.entries.retain(|entry| !entry.keys.iter().all(|key| keys.contains(key)));
        self.entries.push(Entry { version: self.version, keys, packet: packet.into(), is_for_primary });
    }

    /// Returns whether the session has a setting of this name.
    pub fn sets(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.keys.iter().any(|one| one == key))
    }

    /// Forgets all settings but one.
    pub fn keep_only(&mut self, key: &str) {
        self.version += 1;
        self.entries.retain(|entry| entry.keys == [key]);
    }

    /// Returns the version that a connection has after [`Carried::since`].
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns the commands that a connection with a version lacks.
    pub fn since(&self, version: u64, is_primary: bool) -> Vec<Rc<[u8]>> {
        let lacking = self.entries.iter().filter(|entry| entry.version > version);
        lacking.filter(|entry| is_primary || !entry.is_for_primary).map(|entry| entry.packet.clone()).collect()
    }
}

impl StateChange {
    /// Returns what a text does, by its facts.
    pub fn of(sql: &str, lexis: Lexis, facts: &Facts) -> StateChange {
        let has = |state| facts.session.contains(&state);
        if has(SessionState::Unknown) {
            return StateChange::Bind("it has executed a statement that is not understood");
        }
        if has(SessionState::TemporaryTables) {
            return StateChange::Bind("it may have temporary tables");
        }
        match facts.primary {
            Some(PrimaryReason::Routine) => {
                return StateChange::Bind("it has called a routine, which may have left anything");
            }
            Some(PrimaryReason::Xa) => return StateChange::Bind("it takes part in distributed transactions"),
            _ => {}
        }
        let settings = [SessionState::Variables, SessionState::CharacterSet, SessionState::Schema, SessionState::Role];
        let sets = settings.into_iter().any(has);
        if !sets && facts.session.is_empty() {
            return StateChange::None;
        }
        let Some(tokens) = tokens(sql, lexis) else {
            return StateChange::Bind("it has changed settings in a way that is not understood");
        };
        if has(SessionState::TableLocks) {
            let is_unlock = tokens.first().is_some_and(|token| token.text.eq_ignore_ascii_case("UNLOCK"));
            return if is_unlock && tokens.len() <= 3 { StateChange::UnlocksTables } else { StateChange::LocksTables };
        }
        if sets {
            return settings_of(&tokens);
        }
        if has(SessionState::LastInsertId) && sets_last_insert_id(&tokens) {
            return StateChange::Pin("it has set LAST_INSERT_ID()");
        }
        for (state, reason) in [
            (SessionState::UserLocks, "it may hold locks of GET_LOCK()"),
            (SessionState::UserVariables, "it has user variables"),
            (SessionState::PreparedStatements, "it has prepared statements by name"),
            (SessionState::Handlers, "it has used HANDLER"),
        ] {
            if has(state) {
                return StateChange::Pin(reason);
            }
        }
        StateChange::None
    }
}

/// Returns whether LAST_INSERT_ID() has an argument, which it returns from then on.
fn sets_last_insert_id(tokens: &[Token<'_>]) -> bool {
    tokens
        .windows(3)
        .any(|part| part[0].text.eq_ignore_ascii_case("LAST_INSERT_ID") && part[1].text == "(" && part[2].text != ")")
}

fn tokens(sql: &str, lexis: Lexis) -> Option<Vec<Token<'_>>> {
    let mut scanner = Scanner::new(sql, lexis);
    let mut tokens = Vec::new();
    while let Some(token) = scanner.next_token().ok()? {
        tokens.push(token);
    }
    while tokens.last().is_some_and(|token| token.text == ";") {
        tokens.pop();
    }
    Some(tokens)
}

/// Reads SET and USE.
fn settings_of(tokens: &[Token<'_>]) -> StateChange {
    let not_understood = StateChange::Bind("it has changed settings in a way that is not understood");
    if tokens.iter().any(|token| token.text == ";") {
        return not_understood;
    }
    let words: Vec<String> = tokens.iter().take(3).map(|token| token.text.to_ascii_uppercase()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let one = |key: &str| StateChange::Carry { keys: vec![key.to_owned()], is_for_primary: false };
    match words.as_slice() {
        ["USE", _] => return one(SCHEMA),
        ["SET", "NAMES" | "CHARACTER" | "CHARSET", ..] if is_constant(&tokens[2..]) => return one("names"),
        ["SET", "ROLE", _] if tokens.len() == 3 => return one("role"),
        // For later sessions.
        ["SET", "DEFAULT", "ROLE"] => return StateChange::None,
        ["SET", "SESSION" | "LOCAL", "TRANSACTION"] if is_constant(&tokens[3..]) => return one("transaction"),
        ["SET", "GLOBAL", "TRANSACTION"] => return StateChange::None,
        ["SET", ..] => {}
        _ => return not_understood,
    }
    let mut assignments = Assignments::default();
    let mut scope = Scope::Session;
    for assignment in split_at_commas(&tokens[1..]) {
        if !assignments.read(assignment, &mut scope) {
            return not_understood;
        }
    }
    assignments.change()
}

/// The scope of an assignment, which holds for the next ones as well.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Session,
    Global,
}

#[derive(Default)]
struct Assignments {
    keys: Vec<String>,
    is_momentary: bool,
    has_global: bool,
    has_user_variables: bool,
}

impl Assignments {
    /// Reads `[scope] name = value`. Returns false if it is not understood, or the value is no
    /// constant.
    fn read(&mut self, tokens: &[Token<'_>], scope: &mut Scope) -> bool {
        let Some(sign) = tokens.iter().position(|token| token.text == "=" || token.text == ":=") else { return false };
        let mut of_this = *scope;
        let mut name = "";
        for token in &tokens[..sign] {
            match token.text.trim_start_matches("@@").to_ascii_uppercase().as_str() {
                "GLOBAL" => of_this = Scope::Global,
                "SESSION" | "LOCAL" => of_this = Scope::Session,
                "." => {}
                _ if name.is_empty() => name = token.text,
                _ => return false,
            }
            // A scope as a word holds on, one with @@ is for this variable alone.
            if token.kind == TokenKind::Word && name.is_empty() {
                *scope = of_this;
            }
        }
        if name.starts_with('@') && !name.starts_with("@@") {
            self.has_user_variables = true;
            return is_constant(&tokens[sign + 1..]);
        }
        if of_this == Scope::Global {
            self.has_global = true;
            return true;
        }
        let name = name.trim_start_matches("@@").trim_matches('`').to_ascii_lowercase();
        self.is_momentary |= MOMENTARY.contains(&name.as_str());
        self.keys.push(name);
        is_constant(&tokens[sign + 1..])
    }

    fn change(self) -> StateChange {
        match (self.keys.is_empty(), self.has_global) {
            (true, _) if self.has_user_variables => StateChange::Pin("it has user variables"),
            (true, _) => StateChange::None,
            _ if self.is_momentary => StateChange::Pin("it has set variables for its next statement"),
            (false, true) => StateChange::Bind("it has changed settings of the server together with its own"),
            (false, false) if self.has_user_variables => {
                StateChange::Bind("it has changed settings and user variables in one statement")
            }
            (false, false) => {
                let is_for_primary = self.keys.iter().all(|key| FOR_PRIMARY.contains(&key.as_str()));
                StateChange::Carry { keys: self.keys, is_for_primary }
            }
        }
    }
}

/// Returns whether an expression is a constant: literals and words, without variables and calls.
fn is_constant(tokens: &[Token<'_>]) -> bool {
    !tokens.is_empty()
        && tokens.iter().all(|token| match token.kind {
            TokenKind::Variable | TokenKind::Parameter => false,
            TokenKind::Symbol => matches!(token.text, "-" | "+" | ","),
            _ => true,
        })
}

fn split_at_commas<'t, 'a>(tokens: &'t [Token<'a>]) -> Vec<&'t [Token<'a>]> {
    let mut depth = 0_usize;
    tokens
        .split(|token| {
            match token.text {
                "(" => depth += 1,
                ")" => depth = depth.saturating_sub(1),
                _ => {}
            }
            token.text == "," && depth == 0
        })
        .collect()
}

/// The last insert id of a session, for a connection that replaces another.
pub fn last_insert_id_statement(id: u64) -> String {
    format!("SET last_insert_id = {id}")
}

/// Prepared statements of a connection: the server's id of each, by the id that the client has.
pub type PreparedIds = AHashMap<u32, u32>;

#[cfg(test)]
mod tests {
    use super::*;
    use sql_classify::{ClassCache, ParseContext};

    fn change(sql: &str) -> StateChange {
        let lexis = Lexis { server_version: 101_119, ..Lexis::default() };
        let class = ClassCache::default().class(sql.as_bytes(), lexis, ParseContext::default());
        StateChange::of(sql, lexis, class.facts())
    }

    #[test]
    fn settings_are_carried_by_their_names() {
        for (sql, keys) in [
            ("USE d", &["schema"][..]),
            ("set names utf8mb4 collate utf8mb4_bin;", &["names"]),
            ("SET CHARACTER SET latin1", &["names"]),
            ("SET ROLE r", &["role"]),
            ("SET sql_mode = 'ANSI', @@session.time_zone='+00:00'", &["sql_mode", "time_zone"]),
            ("SET SESSION wait_timeout=5, net_read_timeout = -1", &["wait_timeout", "net_read_timeout"]),
            ("SET LOCAL lock_wait_timeout = DEFAULT", &["lock_wait_timeout"]),
            ("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", &["transaction"]),
            ("/* app */ SET `sql_mode`=''", &["sql_mode"]),
        ] {
            let keys = keys.iter().map(|key| (*key).to_owned()).collect();
            assert_eq!(change(sql), StateChange::Carry { keys, is_for_primary: false }, "{sql}");
        }
        let autocommit = StateChange::Carry { keys: vec!["autocommit".into()], is_for_primary: true };
        assert_eq!(change("SET autocommit=0"), autocommit);
    }

    #[test]
    fn other_state_pins_or_binds() {
        let is = |sql: &str, expected: fn(&StateChange) -> bool| {
            let change = change(sql);
            assert!(expected(&change), "{sql}: {change:?}");
        };
        for sql in [
            "SELECT a FROM t",
            "INSERT INTO t VALUES (1)",
            "SET GLOBAL max_connections = 5",
            "BEGIN",
            "SET DEFAULT ROLE r",
            "SELECT LAST_INSERT_ID()",
        ] {
            is(sql, |change| *change == StateChange::None);
        }
        for sql in [
            "SET @a = 1",
            "SELECT @a := 1",
            "PREPARE s FROM 'SELECT 1'",
            "SELECT GET_LOCK('a', 1)",
            "SET insert_id = 5",
            "SELECT LAST_INSERT_ID(5)",
        ] {
            is(sql, |change| matches!(change, StateChange::Pin(_)));
        }
        for sql in [
            "CREATE TEMPORARY TABLE t (a INT)",
            "CALL p()",
            "SELECT f(1)",
            "nonsense",
            "SET sql_mode = CONCAT(@@sql_mode, ',ANSI')",
            "SET sql_mode = @old",
            "SET sql_mode = (SELECT a FROM t)",
            "SET @a = 1, sql_mode = ''",
            "SET GLOBAL a = 1, SESSION b = 2",
            "SET sql_mode = ''; SET names utf8",
            "XA START 'x'",
        ] {
            is(sql, |change| matches!(change, StateChange::Bind(_)));
        }
        is("LOCK TABLES t READ", |change| *change == StateChange::LocksTables);
        is("UNLOCK TABLES", |change| *change == StateChange::UnlocksTables);
        is("FLUSH TABLES WITH READ LOCK", |change| *change == StateChange::LocksTables);
        is("UNLOCK TABLES; LOCK TABLES t READ", |change| *change != StateChange::UnlocksTables);
    }

    #[test]
    fn a_later_setting_replaces_an_earlier_one() {
        let mut carried = Carried::default();
        let keys = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        carried.add(keys(&["a"]), b"1", false);
        carried.add(keys(&["a", "b"]), b"2", false);
        carried.add(keys(&["c"]), b"3", true);
        let packets = |carried: &Carried, version, is_primary| -> Vec<u8> {
            carried.since(version, is_primary).iter().flat_map(|packet| packet.to_vec()).collect()
        };
        assert_eq!(packets(&carried, 0, true), b"23");
        assert_eq!(packets(&carried, 0, false), b"2");
        let version = carried.version();
        carried.add(keys(&["b"]), b"4", false);
        assert_eq!(packets(&carried, version, true), b"4");
        assert_eq!(packets(&carried, 0, false), b"24", "a is still set by the second");
    }
}
