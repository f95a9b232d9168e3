//! Classifies a statement by its text: what it reads and writes, and what it does to its session.
//!
//! Everything that is not certain is [`StatementKind::Unknown`], which may change anything.

use crate::bounded_parse;
use crate::table_name::{TableName, is_plain_name};
use crate::tokens::{Tokens, word};
use crate::words::{NONDETERMINISTIC_KEYWORDS, PURE, SIDE_EFFECT, UNCACHEABLE_KEYWORDS, VOLATILE, WordList};
use sqlparser::ast::{Expr, Statement, TableObject, visit_expressions, visit_relations};
use sqlparser::tokenizer::Token;
use std::ops::ControlFlow;

/// Longer statements are not classified.
pub const STATEMENT_BYTES_MAX: usize = 256 << 10;

/// A SELECT from more tables than this is not classified as pure.
const TABLES_MAX: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatementKind {
    /// A SELECT from these tables whose result depends on nothing but their rows.
    PureSelect(Vec<TableName>),
    /// Changes nothing, unless one of these tables is a view that calls a function. If the
    /// statement does not parse, the list has all names that may be tables.
    Read(Vec<TableName>),
    /// Describes the server or a statement: SHOW, EXPLAIN.
    Show,
    /// Changes a setting of the session: SET, USE.
    Settings,
    /// Sets a characteristic of the next transaction alone, which the session's settings do not
    /// show.
    NextTransaction,
    /// Begins or ends a transaction.
    Transaction,
    /// Changes these tables.
    Write(Vec<TableName>),
    /// May change the rows of any table, and the session: it calls functions that are not built in.
    CallsUnknown,
    /// May change anything, including definitions.
    Unknown,
}

/// The context in which a statement is parsed.
#[derive(Clone, Copy, Debug, Default)]
pub struct ParseContext {
    /// A backslash in a string literal is an escape.
    pub backslash_escapes: bool,
    /// The statement is prepared: question marks are parameters.
    pub is_prepared: bool,
    /// Variables and functions of the clock, of chance and of the session count as pure.
    pub assume_pure: bool,
}

/// Returns what a statement does.
pub fn classify(sql: &[u8], context: ParseContext) -> StatementKind {
    parse(sql, context).unwrap_or_else(|| {
        if changes_no_definitions(sql, context) { StatementKind::CallsUnknown } else { StatementKind::Unknown }
    })
}

/// Returns whether a statement that was not understood changes no definitions, whatever it calls:
/// the server refuses statements that would in functions and triggers.
fn changes_no_definitions(sql: &[u8], context: ParseContext) -> bool {
    let text = std::str::from_utf8(sql).ok().filter(|text| is_parsed_alike(text, context));
    let Some(tokens) = text.and_then(Tokens::of_statement) else { return false };
    let words: Vec<String> = tokens.as_slice().iter().map_while(word).take(2).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["SELECT" | "WITH" | "INSERT" | "REPLACE" | "UPDATE" | "DELETE" | "DO" | "LOAD", ..] => true,
        ["SET", second, ..] => *second != "STATEMENT",
        ["SET"] => true,
        _ => false,
    }
}

/// Returns whether the server parses a text as it is parsed here.
fn is_parsed_alike(text: &str, context: ParseContext) -> bool {
    text.len() <= STATEMENT_BYTES_MAX
        && text.chars().all(|c| !c.is_control() || matches!(c, '\t' | '\n' | '\r'))
        && !text.contains("/*!")
        && !text.contains("/*M!")
        && (context.backslash_escapes || !text.contains('\\'))
}

/// Reads `SET @selkie_cache = …`, by which a session switches its use of the cache on or off.
/// Returns `None` for other statements, and an error for other values.
pub fn cache_switch(sql: &[u8]) -> Option<Result<bool, ()>> {
    let upper = sql.to_ascii_uppercase();
    let set = upper.trim_ascii_start().strip_prefix(b"SET")?;
    let rest = set.trim_ascii_start().strip_prefix(b"@SELKIE_CACHE")?.trim_ascii();
    let value = rest.strip_prefix(b":=").or(rest.strip_prefix(b"="))?.trim_ascii();
    Some(match value.strip_suffix(b";").unwrap_or(value).trim_ascii_end() {
        b"0" | b"OFF" | b"'OFF'" | b"FALSE" => Ok(false),
        b"1" | b"ON" | b"'ON'" | b"TRUE" | b"NULL" => Ok(true),
        _ => Err(()),
    })
}

/// Returns whether a statement may be acknowledged before its rows are visible.
pub fn is_delayed(sql: &[u8]) -> bool {
    memchr::memmem::find(&sql.to_ascii_uppercase(), b"DELAYED").is_some()
}

/// Returns whether the server reloads the session's privileges: USE chooses a schema, SET ROLE a
/// role.
pub fn reloads_privileges(sql: &[u8]) -> bool {
    let upper = sql.to_ascii_uppercase();
    [&b"USE"[..], b"ROLE"].iter().any(|word| memchr::memmem::find(&upper, word).is_some())
}

/// Returns whether a [`StatementKind::Transaction`] ends the transaction.
pub fn ends_transaction(sql: &[u8]) -> bool {
    let upper = sql.to_ascii_uppercase();
    let has = |word: &[u8]| memchr::memmem::find(&upper, word).is_some();
    upper.trim_ascii_start().starts_with(b"COMMIT") || upper.trim_ascii_start().starts_with(b"ROLLBACK") && !has(b"TO")
}

fn parse(sql: &[u8], context: ParseContext) -> Option<StatementKind> {
    let text = std::str::from_utf8(sql).ok().filter(|text| is_parsed_alike(text, context))?;
    let tokens = Tokens::of_statement(text)?;
    let words: Vec<String> = tokens.as_slice().iter().map_while(word).take(3).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["SELECT", ..] => Some(select(text, &tokens, context)),
        [] if tokens.as_slice().iter().find(|token| **token != Token::LParen).and_then(word).as_deref()
            == Some("SELECT") =>
        {
            Some(select(text, &tokens, context))
        }
        ["WITH", ..] => {
            let writes = ["INSERT", "UPDATE", "DELETE", "REPLACE"].iter().any(|word| tokens.has_word(word));
            (!writes && tokens.calls_only(&WITHOUT_WRITES)).then(|| StatementKind::Read(tokens.possible_tables()))
        }
        ["SHOW" | "DESC" | "DESCRIBE" | "EXPLAIN", ..] => {
            tokens.calls_only(&WITHOUT_WRITES).then_some(StatementKind::Show)
        }
        ["USE", ..] if tokens.len() <= 2 => Some(StatementKind::Settings),
        ["SET", ..] if tokens.contains(&Token::LParen) || words.get(1) == Some(&"STATEMENT") => None,
        ["SET", ..] if is_for_next_transaction(text, &words, &tokens) => Some(StatementKind::NextTransaction),
        ["SET", ..] => Some(StatementKind::Settings),
        ["BEGIN"] | ["BEGIN", "WORK"] | ["START", "TRANSACTION", ..] | ["COMMIT" | "ROLLBACK" | "SAVEPOINT", ..] => {
            Some(StatementKind::Transaction)
        }
        ["RELEASE", "SAVEPOINT", ..] => Some(StatementKind::Transaction),
        ["INSERT" | "REPLACE" | "UPDATE" | "DELETE" | "TRUNCATE", ..] => write(text, &tokens),
        _ => None,
    }
}

/// Functions that change no table.
static WITHOUT_WRITES: [&WordList; 3] = [&PURE, &VOLATILE, &SIDE_EFFECT];

/// Returns whether SET is for the next transaction alone.
fn is_for_next_transaction(text: &str, words: &[&str], tokens: &Tokens) -> bool {
    let upper = text.to_ascii_uppercase();
    let names = ["ISOLATION", "READ_ONLY", "TRANSACTION"].iter().any(|word| upper.contains(word));
    let is_for_longer = words.get(1).is_some_and(|second| ["SESSION", "LOCAL", "GLOBAL"].contains(second));
    names && (!is_for_longer || tokens.contains(&Token::Comma))
}

fn select(text: &str, tokens: &Tokens, context: ParseContext) -> StatementKind {
    if !tokens.calls_only(&WITHOUT_WRITES) {
        return StatementKind::CallsUnknown;
    }
    let assume_pure = context.assume_pure;
    let is_impure = |token: &Token| match token {
        Token::Word(word) => {
            let name = word.value.to_ascii_uppercase();
            // A quoted word is a name, also a function's where a parenthesis follows.
            let is_in = |words: &WordList| word.quote_style.is_none() && words.contains(&name);
            is_in(&UNCACHEABLE_KEYWORDS) || !assume_pure && (name.starts_with('@') || is_in(&NONDETERMINISTIC_KEYWORDS))
        }
        Token::Placeholder(mark) => !(context.is_prepared && mark == "?"),
        Token::Assignment => true,
        Token::AtSign | Token::AtAt => !assume_pure,
        _ => false,
    };
    let functions: &[&WordList] = if assume_pure { &[&PURE, &VOLATILE] } else { &[&PURE] };
    let depends_on_more =
        tokens.as_slice().iter().any(is_impure) || text.contains('@') && !assume_pure || !tokens.calls_only(functions);
    if depends_on_more && !tokens.has_word("FROM") {
        return StatementKind::Read(Vec::new());
    }
    let parsed = bounded_parse::parse(text, tokens.len());
    let Some([Statement::Query(query)]) = parsed.as_deref() else {
        return StatementKind::Read(tokens.possible_tables());
    };
    match (&query.with, tables(query)) {
        (None, Some(tables)) if !depends_on_more && (1..=TABLES_MAX).contains(&tables.len()) => {
            StatementKind::PureSelect(tables)
        }
        (_, tables) => StatementKind::Read(tables.unwrap_or_else(|| tokens.possible_tables())),
    }
}

fn write(text: &str, tokens: &Tokens) -> Option<StatementKind> {
    if tokens.may_call_with_space() {
        return None;
    }
    let statements = bounded_parse::parse(text, tokens.len())?;
    let [statement] = statements.as_slice() else { return None };
    let mut targets = Vec::new();
    match statement {
        Statement::Insert(insert) => match &insert.table {
            TableObject::TableName(name) => targets.push(table(name)?),
            _ => return None,
        },
        Statement::Truncate(truncate) => {
            for target in &truncate.table_names {
                targets.push(table(&target.name)?);
            }
        }
        // With several tables, some may be named by their aliases.
        Statement::Delete(delete) if delete.tables.is_empty() => {}
        Statement::Update(_) => {}
        _ => return None,
    }
    let calls_unknown = visit_expressions(statement, |expression| match expression {
        Expr::Function(function) => {
            let [part] = function.name.0.as_slice() else { return ControlFlow::Break(()) };
            let name = match part.as_ident() {
                Some(name) if name.quote_style.is_none() => name.value.to_ascii_uppercase(),
                _ => return ControlFlow::Break(()),
            };
            match WITHOUT_WRITES.iter().any(|functions| functions.contains(&name)) || name == "VALUES" {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        }
        _ => ControlFlow::Continue(()),
    });
    if calls_unknown.is_break() {
        return None;
    }
    let mut named = tables(statement)?;
    targets.retain(|table| !named.contains(table));
    named.append(&mut targets);
    (!named.is_empty()).then_some(StatementKind::Write(named))
}

fn tables(node: &impl sqlparser::ast::Visit) -> Option<Vec<TableName>> {
    let mut tables = Vec::new();
    let unclear = visit_relations(node, |name| match table(name) {
        Some(table) => {
            if !tables.contains(&table) {
                tables.push(table);
            }
            ControlFlow::Continue(())
        }
        None => ControlFlow::Break(()),
    });
    unclear.is_continue().then_some(tables)
}

fn table(name: &sqlparser::ast::ObjectName) -> Option<TableName> {
    let parts: Option<Vec<&str>> =
        name.0.iter().map(|part| part.as_ident().map(|identifier| identifier.value.as_str())).collect();
    let (schema, name) = match parts?.as_slice() {
        [name] => (None, (*name).to_owned()),
        [schema, name] => (Some((*schema).to_owned()), (*name).to_owned()),
        _ => return None,
    };
    (is_plain_name(&name) && schema.as_deref().is_none_or(is_plain_name)).then_some(TableName { schema, name })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(sql: &str) -> String {
        kind_read(sql, ParseContext { backslash_escapes: true, ..ParseContext::default() })
    }

    fn kind_read(sql: &str, context: ParseContext) -> String {
        let names = |tables: Vec<TableName>| {
            let name =
                |table: TableName| table.schema.map_or(table.name.clone(), |schema| format!("{schema}.{}", table.name));
            tables.into_iter().map(name).collect::<Vec<_>>().join(" ")
        };
        match classify(sql.as_bytes(), context) {
            StatementKind::PureSelect(tables) => format!("pure {}", names(tables)),
            StatementKind::Write(tables) => format!("write {}", names(tables)),
            StatementKind::Read(_) => "read".into(),
            StatementKind::Show => "show".into(),
            StatementKind::NextTransaction => "next transaction".into(),
            StatementKind::Settings => "settings".into(),
            StatementKind::Transaction => "transaction".into(),
            StatementKind::CallsUnknown => "calls unknown".into(),
            StatementKind::Unknown => "unknown".into(),
        }
    }

    #[test]
    fn selects_from_tables_are_pure() {
        for (sql, tables) in [
            ("SELECT * FROM t", "t"),
            (
                "select a, count(*) from `d`.`t x` where b in (1, 2) group by a having count(*) > 1 order by 1 limit 3;",
                "d.t x",
            ),
            ("SELECT t.a FROM t JOIN d.u ON t.id = u.id WHERE u.s = 'it''s'", "t d.u"),
            ("SELECT a FROM t UNION ALL SELECT b FROM u", "t u"),
            ("(SELECT a FROM t) UNION (SELECT b FROM u)", "t u"),
            ("SELECT a FROM t WHERE b = (SELECT max(b) FROM u) AND EXISTS (SELECT 1 FROM v)", "t u v"),
            ("SELECT a FROM (SELECT * FROM t) AS x", "t"),
            ("SELECT upper(a), json_value(doc, '$.Make') FROM t -- why", "t"),
            ("SELECT `now` FROM t", "t"),
        ] {
            assert_eq!(kind(sql), format!("pure {tables}"), "{sql}");
        }
    }

    #[test]
    fn results_that_depend_on_more_are_not_pure() {
        for sql in [
            "SELECT 1",
            "SELECT now() FROM t",
            "SELECT rand () FROM t",
            "SELECT current_timestamp FROM t",
            "SELECT @a FROM t",
            "SELECT @@sql_mode FROM t",
            "SELECT a FROM t FOR UPDATE",
            "SELECT a FROM t LOCK IN SHARE MODE",
            "SELECT a INTO @x FROM t",
            "SELECT a FROM t INTO OUTFILE 'x'",
            "SELECT SQL_CALC_FOUND_ROWS a FROM t",
            "SELECT found_rows()",
            "SELECT a FROM t WHERE b = ?",
            "SELECT nextval(s) FROM t",
            "SELECT NEXT VALUE FOR s",
            "WITH x AS (SELECT 1) SELECT * FROM x",
        ] {
            assert_eq!(kind(sql), "read", "{sql}");
        }
        for sql in [
            "SELECT f() FROM t",
            "SELECT d.f() FROM t",
            "SELECT d.upper(a) FROM t",
            "SELECT \"f\"(a) FROM t",
            "SELECT `rand`() FROM t",
            "SELECT mid (a) FROM t",
            "INSERT INTO t VALUES (mid (7))",
            "INSERT INTO t VALUES (`left`(7))",
            "UPDATE t SET a = d.f()",
            "SET @a = f()",
            "DELETE t FROM t JOIN u ON t.a = u.a",
        ] {
            assert_eq!(kind(sql), "calls unknown", "{sql}");
        }
        for sql in ["SHOW TABLES", "EXPLAIN SELECT * FROM t"] {
            assert_eq!(kind(sql), "show", "{sql}");
        }
        for sql in [
            "SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
            "SET TRANSACTION READ ONLY",
            "SET @@tx_read_only = 1",
            "SET @@tx_isolation = 'READ-UNCOMMITTED'",
            "SET tx_isolation = 'READ-UNCOMMITTED'",
            "SET SESSION sql_mode = '', tx_isolation = 'READ-UNCOMMITTED'",
        ] {
            assert_eq!(kind(sql), "next transaction", "{sql}");
        }
        for sql in [
            "SELECT /*! f() */ a FROM t",
            "SELECT /*M!100000 f() */ a FROM t",
            "SELECT a FROM t; DELETE FROM t",
            "CALL p()",
            "LOCK TABLES t READ",
            "EXECUTE IMMEDIATE 'DELETE FROM t'",
            "CREATE TEMPORARY TABLE t (a int)",
            "DROP TABLE t",
            "SET STATEMENT max_statement_time = 1 FOR DELETE FROM t",
            "BEGIN NOT ATOMIC DELETE FROM t; END",
            "ANALYZE UPDATE t SET a = 1",
            "",
        ] {
            assert_eq!(kind(sql), "unknown", "{sql}");
        }
    }

    #[test]
    fn question_marks_are_parameters_of_prepared_statements() {
        let prepared = |sql| {
            kind_read(sql, ParseContext { backslash_escapes: true, is_prepared: true, ..ParseContext::default() })
        };
        assert_eq!(prepared("SELECT a FROM t WHERE b = ? AND c IN (?, ?) LIMIT ?"), "pure t");
        assert_eq!(prepared("SELECT a FROM t WHERE b = ? AND c < NOW()"), "read");
        assert_eq!(prepared("UPDATE t SET a = ? WHERE b = ?"), "write t");
    }

    #[test]
    fn assumed_purity_skips_the_checks_for_clock_and_variables() {
        let assumed_pure = |sql| {
            kind_read(sql, ParseContext { backslash_escapes: true, assume_pure: true, ..ParseContext::default() })
        };
        for sql in ["SELECT a FROM t WHERE d < CURRENT_DATE()", "SELECT @x, a FROM t", "SELECT rand(), now(6) FROM t"] {
            assert_eq!(assumed_pure(sql), "pure t", "{sql}");
        }
        for sql in [
            "SELECT a FROM t FOR UPDATE",
            "SELECT @x := a FROM t",
            "SELECT get_lock('a', 1) FROM t",
            "SELECT last_insert_id() FROM t",
            "SELECT a INTO @x FROM t",
        ] {
            assert_eq!(assumed_pure(sql), "read", "{sql}");
        }
        assert_eq!(assumed_pure("SELECT f(a) FROM t"), "calls unknown");
    }

    #[test]
    fn a_session_switches_its_use_of_the_cache() {
        for (sql, switched) in [
            ("SET @selkie_cache = 0", Some(Ok(false))),
            ("set @Selkie_Cache := 'off' ;", Some(Ok(false))),
            ("SET @selkie_cache=ON", Some(Ok(true))),
            ("SET @selkie_cache = 2", Some(Err(()))),
            ("SET @selkie_cached = 0", None),
            ("SELECT @selkie_cache", None),
        ] {
            assert_eq!(cache_switch(sql.as_bytes()), switched, "{sql}");
        }
    }

    #[test]
    fn writes_report_their_tables() {
        for (sql, tables) in [
            ("INSERT INTO t (a, b) VALUES (1, 'x'), (2, now())", "t"),
            ("INSERT INTO t SELECT * FROM d.u", "t d.u"),
            ("INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = VALUES(a) + 1", "t"),
            ("REPLACE INTO d.t (a) VALUES (1)", "d.t"),
            ("UPDATE t SET a = a + 1 WHERE id = 5", "t"),
            ("DELETE FROM t WHERE a IN (SELECT a FROM u)", "t u"),
            ("TRUNCATE TABLE t", "t"),
        ] {
            let mut found: Vec<_> = kind(sql).split(' ').map(str::to_owned).collect();
            let mut expected: Vec<_> = format!("write {tables}").split(' ').map(str::to_owned).collect();
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{sql}");
        }
        for sql in ["DELETE x FROM t AS x JOIN u", "INSERT INTO t VALUES (f())"] {
            assert_eq!(kind(sql), "calls unknown", "{sql}");
        }
        assert_eq!(kind("DELETE FROM t; DELETE FROM u"), "unknown");
        assert_eq!(classify(br"INSERT INTO t VALUES ('\'')", ParseContext::default()), StatementKind::Unknown);
    }

    #[test]
    fn session_settings_and_transactions() {
        for sql in [
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
            "SET NAMES utf8mb4",
            "set autocommit=1",
            "USE d",
            "SET @x = 1",
        ] {
            assert_eq!(kind(sql), "settings", "{sql}");
        }
        for sql in ["BEGIN", "START TRANSACTION READ ONLY", "COMMIT", "ROLLBACK TO a", "RELEASE SAVEPOINT a"] {
            assert_eq!(kind(sql), "transaction", "{sql}");
        }
    }
}
