use super::*;
use sql_classify::Lexis;

fn danger_of(sql: &str) -> Option<String> {
    let rules = [MaskRule::parse("column d.people.ssn").unwrap()];
    let trusted = [TablePattern::parse("d.safe").unwrap()];
    let views = AHashSet::from_iter(["v".to_owned(), "safe".to_owned()]);
    let known = CheckContext { rules: &rules, trusted: &trusted, views: Some(&views), schema: "d" };
    danger(&Tokens::of(sql, Lexis::default()).unwrap(), &known)
}

#[test]
fn statements_that_show_masked_columns_as_they_are() {
    for sql in [
        "SELECT ssn FROM people",
        "SELECT id, p.ssn AS s, d.people.name FROM d.people p WHERE p.id = 1 ORDER BY p.name, id LIMIT 1, 2",
        "SELECT * FROM people WHERE id IN (1, 2)",
        "SELECT SQL_NO_CACHE people.*, UPPER(name) FROM people JOIN t USING (id) GROUP BY id HAVING COUNT(*) > 1",
        "SELECT COUNT(*) FROM people",
        "SELECT id FROM people ORDER BY 1",
        "SELECT ssn FROM other WHERE ssn = 1",
        "SELECT ssn FROM people FOR UPDATE",
        "INSERT INTO people (id, ssn) VALUES (1, 'x'), (?, ?)",
        "INSERT INTO people VALUES (1, 'x') ON DUPLICATE KEY UPDATE name = 'y', ssn = VALUES(ssn)",
        "REPLACE d.people SET id = 1, ssn = 'x'",
        "UPDATE people SET ssn = 'x', name = UPPER(name) WHERE id = 1 ORDER BY id LIMIT 1",
        "UPDATE people p JOIN t ON p.id = t.id SET p.ssn = t.x",
        "DELETE FROM people WHERE id = 1",
        "TRUNCATE people",
        "LOCK TABLES people READ",
        "SHOW COLUMNS FROM people",
        "DESCRIBE d.people",
        "CREATE TABLE x (id INT, ssn INT)",
        "SELECT * FROM safe",
        "CALL safe(1)",
        "SET people = 1",
        "SELECT 1; SET NAMES utf8mb4; SELECT ssn FROM people",
    ] {
        assert_eq!(danger_of(sql), None, "{sql}");
    }
}

#[test]
fn statements_that_may_show_values() {
    for sql in [
        "SELECT UPPER(ssn) FROM people",
        "SELECT ssn + 0 FROM people",
        "SELECT BINARY ssn FROM people",
        "SELECT (ssn) FROM people",
        "SELECT ssn COLLATE utf8mb4_bin FROM people",
        "SELECT ssn x FROM people ORDER BY x",
        "SELECT ssn 'x' FROM people HAVING `x` > 1",
        "SELECT id FROM people WHERE ssn = '1'",
        "SELECT id FROM people WHERE `SSN` LIKE '1%'",
        "SELECT id FROM people ORDER BY ssn",
        "SELECT id, ssn FROM people ORDER BY 2",
        "SELECT * FROM people ORDER BY id, +3",
        "SELECT * FROM people GROUP BY (3)",
        "SELECT * FROM people ORDER BY ?",
        "SELECT DISTINCT ssn FROM people",
        "SELECT DISTINCTROW * FROM people",
        "SELECT MAX(ssn) FROM people",
        "SELECT id, ROW_NUMBER() OVER (ORDER BY ssn) FROM people",
        "SELECT @x := ssn FROM people",
        "SELECT ssn INTO @x FROM people",
        "SELECT * FROM people INTO OUTFILE '/tmp/x'",
        "SELECT ssn FROM people UNION SELECT 1",
        "SELECT s FROM (SELECT ssn s FROM people) p",
        "SELECT (SELECT ssn FROM people LIMIT 1)",
        "WITH p AS (SELECT ssn s FROM people) SELECT s FROM p",
        "(SELECT ssn FROM people)",
        "SELECT id FROM people NATURAL JOIN guesses",
        "SELECT * FROM people JOIN guesses USING (ssn)",
        "SELECT id FROM people PARTITION (p0)",
        "SELECT id FROM people FORCE INDEX (by_number)",
        "SELECT * FROM people PROCEDURE ANALYSE()",
        "SELECT UPPER(ssn) FROM .people",
        "SELECT UPPER(ssn) FROM `#mysql50#people`",
        "SELECT UPPER(`s\u{17F}n`) FROM people",
        "INSERT INTO x SELECT ssn FROM people",
        "INSERT INTO people (id, name) VALUES (1, ssn)",
        "INSERT INTO people (id) VALUES (1) ON DUPLICATE KEY UPDATE name = ssn",
        "INSERT INTO people (id) VALUES (1) RETURNING ssn",
        "UPDATE people SET name = ssn",
        "UPDATE people SET id = 1 WHERE ssn = 'x'",
        "UPDATE people SET id = 1 ORDER BY id, ssn = 'x' LIMIT 1",
        "UPDATE people SET name = IF(1, 2, ssn = 'x')",
        "DELETE FROM people WHERE id = 1 RETURNING ssn",
        "DELETE FROM people ORDER BY ssn LIMIT 1",
        "CREATE TABLE x AS SELECT * FROM people",
        "CREATE TABLE x LIKE people",
        "CREATE VIEW w AS SELECT ssn FROM people",
        "CREATE TRIGGER t BEFORE INSERT ON people FOR EACH ROW SET @x = NEW.ssn",
        "CREATE PROCEDURE p() SELECT UPPER(ssn) FROM people",
        "ALTER TABLE people CHANGE ssn s TEXT",
        "RENAME TABLE people TO p",
        "HANDLER people OPEN",
        "TABLE people",
        "VALUES ((SELECT ssn FROM people LIMIT 1))",
        "DO (SELECT ssn FROM people)",
        "SET @x = (SELECT ssn FROM people)",
        "SET STATEMENT max_statement_time = 1 FOR DELETE FROM people RETURNING ssn",
        "SET NAMES utf8mb4, init_connect = 'x'",
        "EXPLAIN SELECT * FROM people WHERE id = 1",
        "ANALYZE SELECT * FROM people",
        "DESC SELECT * FROM people",
        "SHOW TABLES WHERE (SELECT ssn FROM people)",
        "CHECKSUM TABLE people",
        "LOAD DATA INFILE 'x' INTO TABLE x",
        "SELECT LOAD_FILE('x')",
        "SELECT * FROM v",
        "SELECT d.v.x FROM d.v",
        "SELECT f(1)",
        "CALL p()",
        "BEGIN NOT ATOMIC CALL p(); END",
        "SHOW FULL PROCESSLIST",
        "SHOW BINLOG EVENTS",
        "SHOW ENGINE INNODB STATUS",
        "SELECT info FROM information_schema.PROCESSLIST",
        "SELECT * FROM mysql.column_stats",
        "SELECT sql_text FROM performance_schema.events_statements_history",
        "CREATE TABLE x (a INT) ENGINE=CONNECT TABLE_TYPE=MYSQL TABNAME='people'",
        "CREATE TABLE x (a INT) ENGINE=\"SPIDER\"",
        "SET GLOBAL init_connect = 'x'",
        "SELECT 1; SELECT UPPER(ssn) FROM people",
    ] {
        assert!(danger_of(sql).is_some(), "{sql}");
    }
}

#[test]
fn without_the_list_of_views_no_table_is_read() {
    let rules = [MaskRule::parse("column d.people.ssn").unwrap()];
    let known = CheckContext { rules: &rules, trusted: &[], views: None, schema: "" };
    let danger = |sql| danger(&Tokens::of(sql, Lexis::default()).unwrap(), &known);
    assert!(danger("SELECT * FROM t").is_some());
    assert!(danger("SELECT 1").is_none() && danger("COMMIT").is_none());
}
