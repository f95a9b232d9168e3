use super::*;
use crate::scanner::DoubleQuotes;
use crate::table_name::TableName;

fn classify(sql: &str, context: ParseContext) -> Statement {
    classify_text(sql, Lexis { server_version: 101_119, ..Lexis::default() }, context)
}

fn names(tables: &[TableName]) -> String {
    let name = |table: &TableName| {
        table.schema.as_ref().map_or(table.name.clone(), |schema| format!("{schema}.{}", table.name))
    };
    tables.iter().map(name).collect::<Vec<_>>().join(" ")
}

fn kind(sql: &str) -> String {
    kind_read(sql, ParseContext::default())
}

fn kind_read(sql: &str, context: ParseContext) -> String {
    let Statement { kind, effects, .. } = classify(sql, context);
    let called: Vec<&str> = effects.calls.routines.iter().map(|it| it.name.as_str()).collect();
    match (&kind, &effects.writes) {
        _ if effects.calls.are_more => "calls unknown".into(),
        _ if !called.is_empty() => format!("calls {}", called.join(" ")),
        (StatementKind::PureSelect, _) => format!("pure {}", names(&effects.reads)),
        (StatementKind::Unknown, _) => "unknown".into(),
        (_, Writes::Everything) => format!("defines {:?}", effects.session),
        (_, Writes::AnyRows) => "any rows".into(),
        (_, Writes::Tables(tables)) => format!("write {}", names(tables)),
        (StatementKind::Read, _) => "read".into(),
        (StatementKind::Show, _) => "show".into(),
        (StatementKind::NextTransaction, _) => "next transaction".into(),
        (StatementKind::Settings, _) => "settings".into(),
        (StatementKind::Transaction, _) => "transaction".into(),
        (kind, _) => format!("{kind:?} {:?}", effects.session),
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
    for (sql, called) in [
        ("SELECT f() FROM t", "f"),
        ("SELECT d.f() FROM t", "f"),
        ("SELECT d.upper(a) FROM t", "upper"),
        ("SELECT `rand`() FROM t", "rand"),
        ("SELECT mid (a) FROM t", "mid"),
        ("INSERT INTO t VALUES (mid (7))", "mid"),
        ("INSERT INTO t VALUES (`left`(7))", "left"),
        ("UPDATE t SET a = d.f()", "f"),
        ("SET @a = f()", "f"),
        ("CALL p(1, g(2))", "g p"),
        ("CALL d.p", "p"),
        ("DO f(1)", "f"),
        ("SELECT /*! f() */ a FROM t", "f"),
        ("SELECT /*M!100000 f() */ a FROM t", "f"),
    ] {
        assert_eq!(kind(sql), format!("calls {called}"), "{sql}");
    }
    let unknown_mode = Lexis { double_quotes: DoubleQuotes::Unknown, ..Lexis::default() };
    let statement = classify_text("SELECT \"f\"(a) FROM t", unknown_mode, ParseContext::default());
    assert!(statement.effects.calls.are_more);
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
}

#[test]
fn effects_of_other_statements() {
    for (sql, expected) in [
        ("SELECT a FROM t; DELETE FROM u", "write u"),
        ("LOCK TABLES t READ", "Other Anything"),
        ("UNLOCK TABLES", "Other None"),
        ("EXECUTE IMMEDIATE 'DELETE FROM t'", "write t"),
        ("EXECUTE IMMEDIATE 'DELETE FROM t WHERE a = ?' USING 7", "write t"),
        ("EXECUTE IMMEDIATE @x", "unknown"),
        ("EXECUTE IMMEDIATE CONCAT('DELETE', ' FROM t')", "unknown"),
        ("PREPARE s FROM 'DELETE FROM t'", "Prepare { name: \"s\", text: Some(\"DELETE FROM t\") } None"),
        (r"PREPARE `S` FROM 'SELECT \'a\' ''b'' '", "Prepare { name: \"s\", text: Some(\"SELECT 'a' 'b' \") } None"),
        ("PREPARE s FROM @x", "Prepare { name: \"s\", text: None } None"),
        ("EXECUTE s USING @a", "Execute { name: \"s\" } None"),
        ("DEALLOCATE PREPARE s", "Deallocate { name: \"s\" } None"),
        ("PREPARE s FROM 'SELECT 1'; EXECUTE s", "unknown"),
        ("CREATE TEMPORARY TABLE t (a int)", "Other Anything"),
        ("CREATE OR REPLACE TEMPORARY TABLE t SELECT f(1)", "calls f"),
        ("DROP TEMPORARY TABLE t", "Other None"),
        ("DROP TABLE t", "defines Settings"),
        ("CREATE TABLE u SELECT * FROM t", "defines Anything"),
        ("CREATE VIEW v AS SELECT * FROM t", "defines Settings"),
        ("CREATE PROCEDURE p() BEGIN SELECT 1; END", "defines Anything"),
        ("SET STATEMENT max_statement_time = 1 FOR DELETE FROM t", "write t"),
        ("SET STATEMENT max_statement_time = (SELECT 1 FOR UPDATE) FOR SELECT a FROM t", "Other None"),
        ("SET STATEMENT sql_mode = 'ANSI_QUOTES' FOR DELETE FROM t", "unknown"),
        ("BEGIN NOT ATOMIC DELETE FROM t; END", "write t END"),
        ("BEGIN NOT ATOMIC EXECUTE IMMEDIATE 'DELETE FROM t'; END", "defines Anything"),
        ("ANALYZE TABLE t", "Other None"),
        ("REPAIR NO_WRITE_TO_BINLOG TABLE t", "write REPAIR t"),
        ("ANALYZE UPDATE t SET a = 1", "unknown"),
        ("DO 1", "Other None"),
        ("HANDLER t READ FIRST", "Other None"),
        ("/*!40101 SET NAMES utf8mb4 */;", "settings"),
        ("/*!50700 DELETE FROM t */", "unknown"),
        ("GRANT ALL ON t TO u", "unknown"),
        ("XA COMMIT 'x'", "unknown"),
        ("nonsense", "unknown"),
        ("", "unknown"),
    ] {
        assert_eq!(kind(sql), expected, "{sql}");
    }
}

#[test]
fn question_marks_are_parameters_of_prepared_statements() {
    let prepared = |sql| kind_read(sql, ParseContext { is_prepared: true, ..ParseContext::default() });
    assert_eq!(prepared("SELECT a FROM t WHERE b = ? AND c IN (?, ?) LIMIT ?"), "pure t");
    assert_eq!(prepared("SELECT a FROM t WHERE b = ? AND c < NOW()"), "read");
    assert_eq!(prepared("UPDATE t SET a = ? WHERE b = ?"), "write t");
}

#[test]
fn assumed_purity_skips_the_checks_for_clock_and_variables() {
    let assumed_pure = |sql| kind_read(sql, ParseContext { assume_pure: true, ..ParseContext::default() });
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
    assert_eq!(assumed_pure("SELECT f(a) FROM t"), "calls f");
}

#[test]
fn a_session_switches_its_use_of_the_cache() {
    for (sql, switch) in [
        ("SET @selkie_cache = 0", Some(CacheSwitch::Off)),
        ("set @Selkie_Cache := 'off' ;", Some(CacheSwitch::Off)),
        ("SET @selkie_cache=ON", Some(CacheSwitch::On)),
        ("SET @selkie_cache = NULL", Some(CacheSwitch::On)),
        ("SET @selkie_cache = 2", Some(CacheSwitch::Invalid)),
        ("SET @selkie_cache = 1, @x = 1", Some(CacheSwitch::Invalid)),
        ("SET @selkie_cached = 0", None),
        ("SELECT @selkie_cache", None),
    ] {
        assert_eq!(classify(sql, ParseContext::default()).cache_switch, switch, "{sql}");
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
    assert_eq!(kind("DELETE x FROM t AS x JOIN u"), "write x t u");
    assert_eq!(kind("DELETE t FROM t JOIN u ON t.a = u.a"), "write t u t.a u.a");
    assert_eq!(kind("INSERT INTO t VALUES (f())"), "calls f");
    assert_eq!(kind("INSERT INTO `t.u` VALUES (1)"), "any rows");
    assert_eq!(kind("LOAD DATA INFILE 'x' INTO TABLE t (a)"), "write DATA t a");
    assert_eq!(kind("DELETE FROM t; DELETE FROM u"), "write t u");
    let plain = Lexis { plain_backslashes: true, ..Lexis::default() };
    let kind_of = |sql, lexis| classify_text(sql, lexis, ParseContext::default()).kind;
    assert_eq!(kind_of(r"INSERT INTO t VALUES ('\'')", plain), StatementKind::Unknown);
    assert_eq!(kind_of(r"INSERT INTO t VALUES ('\')", plain), StatementKind::Write);
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
