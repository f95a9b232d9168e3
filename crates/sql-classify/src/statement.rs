//! What a statement does, as far as it can be told from its text: whether its answer may be kept, and what it changes.
//!
//! Whatever is not known for sure is [`Kind::Unknown`], which is taken to change everything.

use crate::bounded_parse;
use crate::functions::{ACTING, COMMANDING, Names, PURE, TELLTALE, VOLATILE, has};
use crate::tokens::{Tokens, word};
use sqlparser::ast::{Expr, Statement, TableObject, visit_expressions, visit_relations};
use sqlparser::tokenizer::Token;
use std::ops::ControlFlow;

/// Longer statements are not looked into.
pub const STATEMENT_BYTES_MAX: usize = 256 << 10;

/// More tables than these are not asked about.
const TABLES_MAX: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A SELECT over these tables whose answer depends on nothing but their rows.
    Cacheable(Vec<Table>),
    /// Changes nothing, unless one of these tables is a view that calls a function. Where the
    /// tables are not known, all names are.
    Read(Vec<Table>),
    /// Tells of the server or a statement: SHOW, EXPLAIN.
    Show,
    /// Changes how the session reads statements or tables: SET, USE.
    Settings,
    /// Sets a characteristic of the next transaction alone, which the session's settings do not
    /// show.
    OneShot,
    /// Begins or ends a transaction.
    Transaction,
    /// Changes these tables.
    Write(Vec<Table>),
    /// May change the rows of any table, and the session: it calls functions that are not known.
    Calls,
    /// May change anything, definitions too.
    Unknown,
}

/// A table as a statement names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    pub schema: Option<String>,
    pub name: String,
}

/// How a statement is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading {
    /// A backslash in a text is an escape.
    pub escapes: bool,
    /// It is prepared: question marks stand for values that come later.
    pub is_prepared: bool,
    /// Variables, the clock and chance do not keep an answer from being kept.
    pub assumes_cacheable: bool,
}

/// Tells what a statement does.
pub fn classify(sql: &[u8], reading: Reading) -> Kind {
    understand(sql, reading).unwrap_or_else(|| if is_about_rows(sql, reading) { Kind::Calls } else { Kind::Unknown })
}

/// Whether a statement that is not understood is one that defines nothing, whatever it calls: the
/// server refuses what would in functions and triggers.
fn is_about_rows(sql: &[u8], reading: Reading) -> bool {
    let text = std::str::from_utf8(sql).ok().filter(|text| is_plain(text, reading));
    let Some(tokens) = text.and_then(Tokens::of_statement) else { return false };
    let words: Vec<String> = tokens.list().iter().map_while(word).take(2).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["SELECT" | "WITH" | "INSERT" | "REPLACE" | "UPDATE" | "DELETE" | "DO" | "LOAD", ..] => true,
        ["SET", second, ..] => *second != "STATEMENT",
        ["SET"] => true,
        _ => false,
    }
}

/// Whether a text is read by the server as it is read here.
fn is_plain(text: &str, reading: Reading) -> bool {
    text.len() <= STATEMENT_BYTES_MAX
        && text.chars().all(|c| !c.is_control() || matches!(c, '\t' | '\n' | '\r'))
        && !text.contains("/*!")
        && !text.contains("/*M!")
        && (reading.escapes || !text.contains('\\'))
}

/// What a statement says of the session's answers, if it does: that they may come from memory or not. An error where it does not say which.
pub fn switch(sql: &[u8]) -> Option<Result<bool, ()>> {
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

/// Whether a statement may be acknowledged before its rows are there.
pub fn is_delayed(sql: &[u8]) -> bool {
    memchr::memmem::find(&sql.to_ascii_uppercase(), b"DELAYED").is_some()
}

/// Whether a statement has the server read rights anew: USE chooses a schema, SET ROLE a role.
pub fn chooses_rights(sql: &[u8]) -> bool {
    let upper = sql.to_ascii_uppercase();
    [&b"USE"[..], b"ROLE"].iter().any(|word| memchr::memmem::find(&upper, word).is_some())
}

/// Whether a statement that begins or ends a transaction ends it.
pub fn ends_transaction(sql: &[u8]) -> bool {
    let upper = sql.to_ascii_uppercase();
    let has = |word: &[u8]| memchr::memmem::find(&upper, word).is_some();
    upper.trim_ascii_start().starts_with(b"COMMIT") || upper.trim_ascii_start().starts_with(b"ROLLBACK") && !has(b"TO")
}

/// Returns whether a write may change what FOUND_ROWS() gives: one that selects rows, as INSERT …
/// SELECT does, or that joins tables.
pub fn may_find_rows(sql: &[u8], tables: &[Table]) -> bool {
    let upper = sql.to_ascii_uppercase();
    let has = |word: &[u8]| memchr::memmem::find(&upper, word).is_some();
    tables.len() > 1 || [&b"SELECT"[..], b"JOIN", b"USING", b"TABLE", b"WITH"].into_iter().any(has)
}

fn understand(sql: &[u8], reading: Reading) -> Option<Kind> {
    let text = std::str::from_utf8(sql).ok().filter(|text| is_plain(text, reading))?;
    let tokens = Tokens::of_statement(text)?;
    let words: Vec<String> = tokens.list().iter().map_while(word).take(3).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["SELECT", ..] => Some(select(text, &tokens, reading)),
        [] if tokens.list().iter().find(|token| **token != Token::LParen).and_then(word).as_deref()
            == Some("SELECT") =>
        {
            Some(select(text, &tokens, reading))
        }
        ["WITH", ..] => {
            let writes = ["INSERT", "UPDATE", "DELETE", "REPLACE"].iter().any(|word| tokens.has_word(word));
            (!writes && tokens.call_only(&ALL)).then(|| Kind::Read(tokens.names()))
        }
        ["SHOW" | "DESC" | "DESCRIBE" | "EXPLAIN", ..] => tokens.call_only(&ALL).then_some(Kind::Show),
        ["USE", ..] if tokens.len() <= 2 => Some(Kind::Settings),
        ["SET", ..] if tokens.contains(&Token::LParen) || words.get(1) == Some(&"STATEMENT") => None,
        ["SET", ..] if is_one_shot(text, &words, &tokens) => Some(Kind::OneShot),
        ["SET", ..] => Some(Kind::Settings),
        ["BEGIN"] | ["BEGIN", "WORK"] | ["START", "TRANSACTION", ..] | ["COMMIT" | "ROLLBACK" | "SAVEPOINT", ..] => {
            Some(Kind::Transaction)
        }
        ["RELEASE", "SAVEPOINT", ..] => Some(Kind::Transaction),
        ["INSERT" | "REPLACE" | "UPDATE" | "DELETE" | "TRUNCATE", ..] => write(text, &tokens),
        _ => None,
    }
}

/// Functions that are known to write nothing.
static ALL: [&Names; 3] = [&PURE, &VOLATILE, &ACTING];

/// Whether SET says something of the next transaction alone.
fn is_one_shot(text: &str, words: &[&str], tokens: &Tokens) -> bool {
    let upper = text.to_ascii_uppercase();
    let names = ["ISOLATION", "READ_ONLY", "TRANSACTION"].iter().any(|word| upper.contains(word));
    let is_for_longer = words.get(1).is_some_and(|second| ["SESSION", "LOCAL", "GLOBAL"].contains(second));
    names && (!is_for_longer || tokens.contains(&Token::Comma))
}

fn select(text: &str, tokens: &Tokens, reading: Reading) -> Kind {
    if !tokens.call_only(&ALL) {
        return Kind::Calls;
    }
    let assumes = reading.assumes_cacheable;
    let is_telltale = |token: &Token| match token {
        Token::Word(word) => {
            let name = word.value.to_ascii_uppercase();
            // Quoted, a word is a name; a function's name all the same where parentheses follow.
            let says = |words: &Names| word.quote_style.is_none() && has(words, &name);
            says(&COMMANDING) || !assumes && (name.starts_with('@') || says(&TELLTALE))
        }
        Token::Placeholder(mark) => !(reading.is_prepared && mark == "?"),
        Token::Assignment => true,
        Token::AtSign | Token::AtAt => !assumes,
        _ => false,
    };
    let functions: &[&Names] = if assumes { &[&PURE, &VOLATILE] } else { &[&PURE] };
    let depends_on_more =
        tokens.list().iter().any(is_telltale) || text.contains('@') && !assumes || !tokens.call_only(functions);
    if depends_on_more && !tokens.has_word("FROM") {
        return Kind::Read(Vec::new());
    }
    let parsed = bounded_parse::parse(text, tokens.len());
    let Some([Statement::Query(query)]) = parsed.as_deref() else {
        return Kind::Read(tokens.names());
    };
    match (&query.with, tables(query)) {
        (None, Some(tables)) if !depends_on_more && (1..=TABLES_MAX).contains(&tables.len()) => Kind::Cacheable(tables),
        (_, tables) => Kind::Read(tables.unwrap_or_else(|| tokens.names())),
    }
}

fn write(text: &str, tokens: &Tokens) -> Option<Kind> {
    if tokens.may_call_spaced() {
        return None;
    }
    let statements = bounded_parse::parse(text, tokens.len())?;
    let [statement] = statements.as_slice() else { return None };
    let mut more = Vec::new();
    match statement {
        Statement::Insert(insert) => match &insert.table {
            TableObject::TableName(name) => more.push(table(name)?),
            _ => return None,
        },
        Statement::Truncate(truncate) => {
            for target in &truncate.table_names {
                more.push(table(&target.name)?);
            }
        }
        // Of several tables, some may go by their aliases.
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
            match ALL.iter().any(|functions| has(functions, &name)) || name == "VALUES" {
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
    more.retain(|table| !named.contains(table));
    named.append(&mut more);
    (!named.is_empty()).then_some(Kind::Write(named))
}

fn tables(node: &impl sqlparser::ast::Visit) -> Option<Vec<Table>> {
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

fn table(name: &sqlparser::ast::ObjectName) -> Option<Table> {
    let parts: Option<Vec<&str>> =
        name.0.iter().map(|part| part.as_ident().map(|identifier| identifier.value.as_str())).collect();
    let (schema, name) = match parts?.as_slice() {
        [name] => (None, (*name).to_owned()),
        [schema, name] => (Some((*schema).to_owned()), (*name).to_owned()),
        _ => return None,
    };
    (is_plain_name(&name) && schema.as_deref().is_none_or(is_plain_name)).then_some(Table { schema, name })
}

/// Whether a name needs no escapes.
pub fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['`', '\\', '.', '@', '#'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(sql: &str) -> String {
        kind_read(sql, Reading { escapes: true, ..Reading::default() })
    }

    fn kind_read(sql: &str, reading: Reading) -> String {
        let names = |tables: Vec<Table>| {
            let name =
                |table: Table| table.schema.map_or(table.name.clone(), |schema| format!("{schema}.{}", table.name));
            tables.into_iter().map(name).collect::<Vec<_>>().join(" ")
        };
        match classify(sql.as_bytes(), reading) {
            Kind::Cacheable(tables) => format!("cacheable {}", names(tables)),
            Kind::Write(tables) => format!("write {}", names(tables)),
            Kind::Read(_) => "read".into(),
            Kind::Show => "show".into(),
            Kind::OneShot => "one shot".into(),
            Kind::Settings => "settings".into(),
            Kind::Transaction => "transaction".into(),
            Kind::Calls => "calls".into(),
            Kind::Unknown => "unknown".into(),
        }
    }

    #[test]
    fn selects_over_tables_may_be_kept() {
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
            assert_eq!(kind(sql), format!("cacheable {tables}"), "{sql}");
        }
    }

    #[test]
    fn what_depends_on_more_is_not() {
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
            assert_eq!(kind(sql), "calls", "{sql}");
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
            assert_eq!(kind(sql), "one shot", "{sql}");
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
    fn question_marks_stand_for_values_where_a_statement_is_prepared() {
        let prepared = |sql| kind_read(sql, Reading { escapes: true, is_prepared: true, ..Reading::default() });
        assert_eq!(prepared("SELECT a FROM t WHERE b = ? AND c IN (?, ?) LIMIT ?"), "cacheable t");
        assert_eq!(prepared("SELECT a FROM t WHERE b = ? AND c < NOW()"), "read");
        assert_eq!(prepared("UPDATE t SET a = ? WHERE b = ?"), "write t");
    }

    #[test]
    fn what_is_assumed_is_not_looked_for() {
        let assumed = |sql| kind_read(sql, Reading { escapes: true, assumes_cacheable: true, ..Reading::default() });
        for sql in ["SELECT a FROM t WHERE d < CURRENT_DATE()", "SELECT @x, a FROM t", "SELECT rand(), now(6) FROM t"] {
            assert_eq!(assumed(sql), "cacheable t", "{sql}");
        }
        for sql in [
            "SELECT a FROM t FOR UPDATE",
            "SELECT @x := a FROM t",
            "SELECT get_lock('a', 1) FROM t",
            "SELECT last_insert_id() FROM t",
            "SELECT a INTO @x FROM t",
        ] {
            assert_eq!(assumed(sql), "read", "{sql}");
        }
        assert_eq!(assumed("SELECT f(a) FROM t"), "calls");
    }

    #[test]
    fn sessions_switch_the_cache() {
        for (sql, switched) in [
            ("SET @selkie_cache = 0", Some(Ok(false))),
            ("set @Selkie_Cache := 'off' ;", Some(Ok(false))),
            ("SET @selkie_cache=ON", Some(Ok(true))),
            ("SET @selkie_cache = 2", Some(Err(()))),
            ("SET @selkie_cached = 0", None),
            ("SELECT @selkie_cache", None),
        ] {
            assert_eq!(switch(sql.as_bytes()), switched, "{sql}");
        }
    }

    #[test]
    fn writes_name_their_tables() {
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
            assert_eq!(kind(sql), "calls", "{sql}");
        }
        assert_eq!(kind("DELETE FROM t; DELETE FROM u"), "unknown");
        assert_eq!(classify(br"INSERT INTO t VALUES ('\'')", Reading::default()), Kind::Unknown);
    }

    #[test]
    fn sessions_and_transactions() {
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
