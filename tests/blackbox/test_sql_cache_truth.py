"""Results of SQL clients equal MariaDB's: each sequence of statements runs directly, and twice
through Selkie with a cache.

A line is a statement; the prefix `name: ` selects the session, `a` by default. `warm: ` repeats it
until a result is cached. `root: ` bypasses Selkie and is not compared."""

import os
import random
import re
import struct
import time

import pymysql
import pytest
from pymysql.constants import CLIENT

from blackbox.sql_routine_sequences import ROUTINES_AND_TEXTS
from blackbox.test_external_writes import LOGGING
from blackbox.test_sql_clients import Statement
from support.mariadb import MariadbServer
from support.process import free_port
from support.selkie import SelkieServer

pytestmark = [pytest.mark.selkie_only, pytest.mark.mariadb_only]

SEED = int(os.environ.get("SELKIE_SEED", "0")) or random.randrange(1, 1 << 30)
RANDOM_SEQUENCES = 120

RESET = """
DELETE FROM c; DELETE FROM b; INSERT INTO b VALUES (1, 1), (2, 2), (3, 3); DELETE FROM u; INSERT INTO u VALUES (1, 10);
DELETE FROM my1; INSERT INTO my1 VALUES (1, 1); DELETE FROM my2; INSERT INTO my2 VALUES (2, 2);
ALTER SEQUENCE sq RESTART 1; INSERT INTO c VALUES (1, 1), (2, 2); DELETE FROM quiet; INSERT INTO quiet VALUES (1, 1); SET @x = 0
"""

TABLES = """
CREATE TABLE b (id INT PRIMARY KEY, a INT);
CREATE TABLE u (id INT, a INT);
CREATE TABLE quiet (id INT PRIMARY KEY, a INT) ENGINE=Aria;
CREATE TABLE my1 (id INT, a INT) ENGINE=MyISAM;
CREATE TABLE my2 (id INT, a INT) ENGINE=MyISAM;
CREATE TABLE m (id INT, a INT) ENGINE=MERGE UNION=(my1, my2) INSERT_METHOD=LAST;
CREATE TABLE c (id INT PRIMARY KEY, b INT, FOREIGN KEY (b) REFERENCES b (id) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE VIEW v AS SELECT id, a FROM b;
CREATE VIEW vv AS SELECT id, a FROM v WHERE a < 1000 WITH CHECK OPTION;
CREATE VIEW vj AS SELECT b.id AS bid, b.a AS ba, u.id AS uid, u.a AS ua FROM b JOIN u ON b.id = u.id;
CREATE FUNCTION f(x INT) RETURNS INT DETERMINISTIC RETURN x + 1;
CREATE FUNCTION writes(x INT) RETURNS INT BEGIN UPDATE b SET a = x WHERE id = 1; RETURN x; END;
CREATE FUNCTION sets_zone() RETURNS INT BEGIN SET time_zone = '+05:00'; RETURN 1; END;
CREATE FUNCTION `mid`(x INT) RETURNS INT RETURN (SELECT a FROM b WHERE id = 1);
CREATE FUNCTION `left`(x INT) RETURNS INT RETURN (SELECT a FROM b WHERE id = 1);
CREATE FUNCTION `count`(x INT) RETURNS INT RETURN (SELECT a FROM b WHERE id = 1);
CREATE FUNCTION `substring`(x INT) RETURNS INT BEGIN UPDATE b SET a = a + 1 WHERE id = 1; RETURN x; END;
CREATE VIEW vf AS SELECT id, writes(77) AS w FROM u;
CREATE VIEW vz AS SELECT id, sets_zone() AS z FROM u;
CREATE PROCEDURE p(x INT) UPDATE b SET a = x WHERE id = 1;
CREATE PROCEDURE rows_found() SELECT FOUND_ROWS();
CREATE PROCEDURE nop() BEGIN END;
CREATE PROCEDURE calls_p(x INT) CALL p(x);
CREATE PROCEDURE writes_by_text(x INT) EXECUTE IMMEDIATE CONCAT('UPDATE b SET a = ', x, ' WHERE id = 1');
CREATE PROCEDURE writes_through_view(x INT) UPDATE v SET a = x WHERE id = 1;
CREATE PROCEDURE prepares() PREPARE s FROM 'UPDATE b SET a = 81 WHERE id = 1';
CREATE PROCEDURE defines() CREATE OR REPLACE TABLE u (id INT, a INT) SELECT 1 AS id, 82 AS a;
CREATE FUNCTION reads_only(x INT) RETURNS INT RETURN (SELECT MAX(a) FROM b) + x;
CREATE FUNCTION calls_writes(x INT) RETURNS INT RETURN writes(x);
CREATE PROCEDURE makes_temporary() CREATE TEMPORARY TABLE b SELECT 99 AS id, 99 AS a;
CREATE SEQUENCE sq;
CREATE TABLE times (id INT, at TIMESTAMP NULL);
INSERT INTO times VALUES (1, '2024-01-01 12:00:00');
CREATE TABLE part (id INT, a INT) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20));
CREATE TABLE other_part (id INT, a INT);
CREATE TABLE versioned (id INT, a INT) WITH SYSTEM VERSIONING;
"""

BY_OTHER_NAMES = """
warm: SELECT a FROM my2 | INSERT INTO m VALUES (5, 5) | SELECT a FROM my2 ORDER BY a | SELECT a FROM m ORDER BY a
warm: SELECT a FROM m | INSERT INTO my1 VALUES (6, 6) | SELECT a FROM m ORDER BY a
warm: SELECT a FROM my1 | UPDATE m SET a = 9 | SELECT a FROM my1 | b: SELECT a FROM my1
warm: SELECT a FROM my1 | DELETE FROM m | SELECT a FROM my1
warm: SELECT COUNT(*) FROM my1 | TRUNCATE m | SELECT COUNT(*) FROM my1
SELECT SETVAL(sq, 500) | SELECT NEXT VALUE FOR sq > 0 | SELECT next_not_cached_value > 0 FROM sq | SELECT LASTVAL(sq) > 0
SELECT SETVAL(sq, 5000, 0, 0) | SELECT next_not_cached_value FROM sq | SELECT next_not_cached_value FROM sq
SELECT NEXTVAL(sq) - NEXTVAL(sq) | SELECT NEXT VALUE FOR sq - PREVIOUS VALUE FOR sq | b: SELECT NEXTVAL(sq) > LASTVAL(sq)
ALTER SEQUENCE sq RESTART 9000 | warm: SELECT next_not_cached_value FROM sq | SELECT NEXTVAL(sq) | SELECT next_not_cached_value > 9000 FROM sq
DELETE FROM versioned | INSERT INTO versioned VALUES (1, 1) | warm: SELECT COUNT(*) FROM versioned FOR SYSTEM_TIME ALL WHERE a > 99 | UPDATE versioned SET a = 2 | SELECT a FROM versioned
warm: SELECT a FROM part | DELETE FROM other_part | INSERT INTO other_part VALUES (1, 42) | ALTER TABLE part EXCHANGE PARTITION p0 WITH TABLE other_part | SELECT a FROM part | SELECT a FROM other_part | TRUNCATE part
warm: SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() | CREATE TABLE one_more (a INT) | SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() | DROP TABLE one_more
warm: SELECT VARIABLE_VALUE FROM performance_schema.session_variables WHERE VARIABLE_NAME = 'sql_mode' | SET sql_mode = '' | SELECT VARIABLE_VALUE FROM performance_schema.session_variables WHERE VARIABLE_NAME = 'sql_mode'
warm: SELECT a FROM v | UPDATE b SET a = 8 | SELECT a FROM v
warm: SELECT a FROM vv | UPDATE b SET a = 2000 WHERE id = 1 | SELECT a FROM vv
warm: SELECT a FROM b | RENAME TABLE b TO b2, u TO b | SELECT a FROM b | RENAME TABLE b TO u, b2 TO b | SELECT a FROM b
CREATE OR REPLACE TABLE swap (a INT) | INSERT INTO swap VALUES (1) | warm: SELECT a FROM swap | DROP TABLE swap | CREATE VIEW swap AS SELECT a FROM b | SELECT a FROM swap | UPDATE b SET a = 4 | SELECT a FROM swap | DROP VIEW swap
CREATE OR REPLACE TABLE g (a INT, n BIGINT AS (a * 2) VIRTUAL) | INSERT INTO g (a) VALUES (2) | warm: SELECT n FROM g | UPDATE g SET a = 3 | SELECT n FROM g | DROP TABLE g
CREATE OR REPLACE TABLE e (a INT) ENGINE=MEMORY | INSERT INTO e VALUES (1) | warm: SELECT a FROM e | UPDATE e SET a = 3 | SELECT a FROM e | DROP TABLE e
CREATE OR REPLACE TABLE e (a INT NOT NULL) ENGINE=CSV | INSERT INTO e VALUES (1) | warm: SELECT a FROM e | UPDATE e SET a = 3 | SELECT a FROM e | DROP TABLE e
"""

OWN_WRITES = """
warm: SELECT a FROM b | UPDATE v SET a = 5 | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | INSERT INTO v VALUES (7, 7) | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | DELETE FROM vv WHERE id = 2 | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | REPLACE INTO vv VALUES (1, 50) | SELECT a FROM b
warm: SELECT a FROM b | UPDATE vv SET a = 5 WHERE id = 1 | SELECT a FROM b
warm: SELECT a FROM b | warm: SELECT a FROM u | UPDATE vj SET ba = 70 | SELECT a FROM b | SELECT a FROM u | UPDATE vj SET ua = 71 | SELECT a FROM u
warm: SELECT a FROM b | INSERT INTO vj (bid, ba) VALUES (30, 30) | SELECT a FROM b
warm: SELECT a FROM b | BEGIN | UPDATE v SET a = 6 | SELECT a FROM b | b: SELECT a FROM b | COMMIT | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | BEGIN | UPDATE v SET a = 6 | ROLLBACK | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM u | CREATE TRIGGER t1 AFTER UPDATE ON b FOR EACH ROW INSERT INTO u VALUES (NEW.id, NEW.a) | UPDATE b SET a = 9 WHERE id = 1 | SELECT a FROM u | b: SELECT a FROM u | DROP TRIGGER t1
warm: SELECT a FROM u | CREATE TRIGGER t1 AFTER INSERT ON b FOR EACH ROW UPDATE u SET a = NEW.a | warm: SELECT a FROM u | INSERT INTO v VALUES (9, 90) | SELECT a FROM u | b: SELECT a FROM u | DROP TRIGGER t1
CREATE TRIGGER t1 BEFORE DELETE ON b FOR EACH ROW BEGIN DELETE FROM u WHERE id = OLD.id; REPLACE quiet (id, a) VALUES (1, OLD.a); END | warm: SELECT a FROM u | warm: SELECT a FROM quiet | DELETE FROM b WHERE id = 1 | SELECT a FROM u | SELECT a FROM quiet | b: SELECT a FROM quiet | DROP TRIGGER t1
CREATE TRIGGER t1 AFTER UPDATE ON b FOR EACH ROW UPDATE u SET a = NEW.a | CREATE TRIGGER t2 AFTER UPDATE ON u FOR EACH ROW UPDATE quiet SET a = NEW.a | warm: SELECT a FROM quiet | UPDATE v SET a = 33 WHERE id = 1 | SELECT a FROM quiet | b: SELECT a FROM quiet | DROP TRIGGER t1 | DROP TRIGGER t2
CREATE TRIGGER t1 AFTER UPDATE ON b FOR EACH ROW CALL p2() | DROP TRIGGER t1
CREATE OR REPLACE PROCEDURE p3(x INT) UPDATE quiet SET a = x | CREATE TRIGGER t1 AFTER UPDATE ON b FOR EACH ROW CALL p3(NEW.a) | warm: SELECT a FROM quiet | UPDATE b SET a = 61 WHERE id = 1 | SELECT a FROM quiet | b: SELECT a FROM quiet | DROP TRIGGER t1
CREATE TRIGGER t1 BEFORE INSERT ON u FOR EACH ROW SET NEW.a = writes(44) | warm: SELECT a FROM b | INSERT INTO u VALUES (5, 5) | SELECT a FROM b | b: SELECT a FROM b | DROP TRIGGER t1
CREATE TRIGGER t1 AFTER UPDATE ON b FOR EACH ROW UPDATE m SET a = NEW.a | warm: SELECT a FROM my1 | UPDATE b SET a = 62 WHERE id = 1 | SELECT a FROM my1 | b: SELECT a FROM my1 | DROP TRIGGER t1
warm: SELECT id FROM c | DELETE FROM b WHERE id = 1 | SELECT id FROM c | b: SELECT id FROM c
warm: SELECT b FROM c | UPDATE b SET id = 40 WHERE id = 2 | SELECT b FROM c | b: SELECT b FROM c
warm: SELECT b FROM c | DELETE FROM v WHERE id = 2 | SELECT b FROM c
warm: SELECT a FROM b | CALL p(11) | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | SELECT writes(12) | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | SELECT w FROM vf | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | INSERT INTO quiet SELECT 50, w FROM vf | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | DO writes(13) | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | SET @x = writes(14) | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | UPDATE b, u SET b.a = 15, u.a = 16 WHERE b.id = u.id | SELECT a FROM b | SELECT a FROM u | b: SELECT a FROM u
warm: SELECT a FROM b | DELETE b, u FROM b JOIN u ON b.id = u.id | SELECT a FROM b | SELECT a FROM u | b: SELECT a FROM b
warm: SELECT a FROM b | PREPARE s FROM 'UPDATE b SET a = 17' | EXECUTE s | SELECT a FROM b | b: SELECT a FROM b | DEALLOCATE PREPARE s
warm: SELECT a FROM b | EXECUTE IMMEDIATE 'UPDATE b SET a = 18' | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | BEGIN NOT ATOMIC UPDATE b SET a = 19; END | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | UPDATE b SET a = 20; UPDATE u SET a = 21 | SELECT a FROM b | SELECT a FROM u | b: SELECT a FROM u
warm: SELECT a FROM b | XA START 'x' | UPDATE b SET a = 22 | XA END 'x' | XA PREPARE 'x' | XA COMMIT 'x' | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | b: XA START 'x' | b: UPDATE b SET a = 23 | b: XA END 'x' | b: XA PREPARE 'x' | SELECT a FROM b | b: XA ROLLBACK 'x' | SELECT a FROM b
warm: SELECT a FROM b | INSERT INTO b VALUES (1, 24) ON DUPLICATE KEY UPDATE a = VALUES(a) | SELECT a FROM b
warm: SELECT a FROM b | INSERT INTO b (id, a) SELECT id + 50, a FROM u | SELECT a FROM b | INSERT INTO b VALUES (60, 60) RETURNING a | SELECT a FROM b
warm: SELECT a FROM b | CREATE OR REPLACE TABLE b3 SELECT * FROM b | warm: SELECT a FROM b3 | CREATE OR REPLACE TABLE b3 SELECT 1 AS a | SELECT a FROM b3 | DROP TABLE b3
warm: SELECT a FROM b | SET STATEMENT max_statement_time = 5 FOR UPDATE b SET a = 25 | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | LOCK TABLES b WRITE | UPDATE b SET a = 26 | UNLOCK TABLES | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | ALTER TABLE b ADD COLUMN extra INT DEFAULT 3 FIRST | SELECT * FROM b | ALTER TABLE b DROP COLUMN extra | SELECT * FROM b
CREATE TRIGGER t1 AFTER UPDATE ON u FOR EACH ROW UPDATE b SET a = NEW.a WHERE id = 1 | warm: SELECT a FROM b | DROP TRIGGER t1 | UPDATE u SET a = 99 | SELECT a FROM b
SET sql_mode = 'ANSI_QUOTES' | CREATE TRIGGER t1 AFTER UPDATE ON u FOR EACH ROW UPDATE "b" SET "a" = NEW."a" | b: SELECT a FROM b | b: SELECT a FROM b | UPDATE u SET a = 98 | b: SELECT a FROM b | DROP TRIGGER t1
"""

THE_SESSION = """
warm: SELECT at FROM times | SET time_zone = '+03:00' | SELECT at FROM times | SET time_zone = DEFAULT | SELECT at FROM times
warm: SELECT at FROM times | SELECT sets_zone() | SELECT at FROM times
warm: SELECT at FROM times | SELECT z FROM vz | SELECT at FROM times
CREATE TRIGGER t1 BEFORE UPDATE ON u FOR EACH ROW SET time_zone = '+07:00' | warm: SELECT at FROM times | UPDATE u SET a = 1 | SELECT at FROM times | DROP TRIGGER t1
CREATE TRIGGER t1 BEFORE UPDATE ON u FOR EACH ROW SET NEW.a = 3, time_zone = '+08:00' | warm: SELECT at FROM times | UPDATE u SET a = 1 | SELECT at FROM times | DROP TRIGGER t1
CREATE TRIGGER t1 BEFORE UPDATE ON u FOR EACH ROW CREATE TEMPORARY TABLE b SELECT 55 AS id, 55 AS a | warm: SELECT a FROM b | UPDATE u SET a = 1 | SELECT a FROM b | b: SELECT a FROM b | DROP TRIGGER t1
CREATE TRIGGER t1 BEFORE UPDATE ON u FOR EACH ROW CALL makes_temporary() | warm: SELECT a FROM b | UPDATE u SET a = 1 | SELECT a FROM b | b: SELECT a FROM b | DROP TRIGGER t1
warm: SELECT a FROM b | CALL makes_temporary() | SELECT a FROM b | DROP TEMPORARY TABLE b | SELECT a FROM b
warm: SELECT a FROM b | CREATE TEMPORARY TABLE b (a INT) | INSERT INTO b VALUES (70) | SELECT a FROM b | DROP TEMPORARY TABLE b | SELECT a FROM b
SET sql_auto_is_null = 1 | CREATE TEMPORARY TABLE auto_id (id INT AUTO_INCREMENT PRIMARY KEY) | INSERT INTO auto_id VALUES () | SELECT id FROM auto_id WHERE id IS NULL
CREATE OR REPLACE TABLE auto_id (id INT AUTO_INCREMENT PRIMARY KEY, a INT) | SET sql_auto_is_null = 1 | INSERT INTO auto_id (a) VALUES (1) | SELECT id FROM auto_id WHERE id IS NULL | INSERT INTO auto_id (a) VALUES (1) | SELECT id FROM auto_id WHERE id IS NULL | DROP TABLE auto_id
warm: SELECT a FROM b ORDER BY id | SET sql_select_limit = 1 | SELECT a FROM b ORDER BY id | SET sql_select_limit = DEFAULT | SELECT a FROM b ORDER BY id
warm: SELECT a FROM b ORDER BY id | BEGIN NOT ATOMIC SET sql_select_limit = 1; END | SELECT a FROM b ORDER BY id
SET STATEMENT sql_select_limit = 1 FOR SELECT a FROM b ORDER BY id | SELECT a FROM b ORDER BY id | SET STATEMENT sql_select_limit = 2 FOR SELECT a FROM b ORDER BY id
warm: SELECT a FROM b ORDER BY id | CREATE OR REPLACE ROLE rolling | GRANT rolling TO joe@'%' | SET ROLE rolling | SELECT CURRENT_ROLE() | SELECT a FROM b ORDER BY id | SET ROLE NONE
warm: SELECT a FROM b ORDER BY id | USE mysql | SELECT a FROM b ORDER BY id | USE {d} | SELECT a FROM b ORDER BY id
"""

FUNCTIONS = """
SELECT mid (1) FROM u | UPDATE b SET a = 301 WHERE id = 1 | SELECT mid (1) FROM u | SELECT mid (1) FROM u
SELECT `mid`(1) FROM u | UPDATE b SET a = 302 WHERE id = 1 | SELECT `mid`(1) FROM u | SELECT `mid`(1) FROM u
SELECT `left`(7) FROM u | UPDATE b SET a = 303 WHERE id = 1 | SELECT `left`(7) FROM u | SELECT `left`(7) FROM u
SELECT {d}.left(7) FROM u | UPDATE b SET a = 304 WHERE id = 1 | SELECT {d}.left(7) FROM u | SELECT {d}.left(7) FROM u
SELECT count (1) FROM u | UPDATE b SET a = 305 WHERE id = 1 | SELECT count (1) FROM u | SELECT count/**/(1) FROM u
SELECT f(a) FROM b | UPDATE b SET a = 306 WHERE id = 1 | SELECT f(a) FROM b | SELECT {d}.f(a) FROM b
warm: SELECT a FROM b | SELECT substring (1) FROM u | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | SELECT `substring`(1) FROM u | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | INSERT INTO u VALUES (substring (9), 9) | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | INSERT INTO u VALUES (`substring`(9), 9) | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | UPDATE u SET a = {d}.writes(9) | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | DELETE FROM u WHERE a = writes(10) | SELECT a FROM b | b: SELECT a FROM b
SET sql_mode = 'IGNORE_SPACE' | SELECT count (*) FROM b | SELECT mid ('abc', 2) FROM u | SELECT `mid`(2) FROM u
SELECT concat ('a', a) FROM b | SELECT coalesce (NULL, a) FROM b | SELECT if (a > 1, 2, 3) FROM b
"""

WHAT_WAS_DONE_LAST = """
warm: SELECT a FROM b | SET @q = 1 | SELECT ROW_COUNT() | SELECT ROW_COUNT()
warm: SELECT a FROM b | SELECT ROW_COUNT() | SELECT FOUND_ROWS()
warm: SELECT a FROM b | SELECT FOUND_ROWS() | SELECT FOUND_ROWS()
warm: SELECT a FROM b | SET @q = 1 | SELECT FOUND_ROWS() | SELECT FOUND_ROWS()
warm: SELECT a FROM b WHERE id < 3 | INSERT INTO u VALUES (3, 3) | SELECT FOUND_ROWS() | SELECT ROW_COUNT()
warm: SELECT a FROM b WHERE id < 3 | INSERT INTO u VALUES (3, 3), (4, 4) | SELECT ROW_COUNT() | SELECT FOUND_ROWS()
warm: SELECT a FROM b WHERE id = 99 | DELETE FROM u | SELECT FOUND_ROWS()
warm: SELECT a FROM b WHERE id = 99 | UPDATE vj SET ba = 64 | SELECT FOUND_ROWS()
warm: SELECT a FROM b WHERE id = 99 | TRUNCATE my1 | UPDATE vj SET ba = 64 | SELECT FOUND_ROWS()
warm: SELECT a FROM b ORDER BY id | INSERT INTO u SELECT id, a FROM b WHERE id = 3 | SELECT FOUND_ROWS()
warm: SELECT a FROM b ORDER BY id | REPLACE INTO b VALUES (2, 47) | INSERT INTO u SELECT id, a FROM b WHERE id = 3 | SELECT FOUND_ROWS()
warm: SELECT a FROM b ORDER BY id | REPLACE INTO b VALUES (2, 47) | UPDATE b JOIN u ON b.id = u.id SET b.a = 5 | SELECT FOUND_ROWS()
warm: SELECT a FROM b ORDER BY id | REPLACE INTO b VALUES (2, 83) | SHOW COUNT(*) WARNINGS | SELECT FOUND_ROWS()
warm: SELECT a FROM b ORDER BY id | REPLACE INTO b VALUES (2, 83) | SHOW TABLES LIKE 'b' | SELECT FOUND_ROWS()
warm: SELECT a FROM b WHERE id = 99 | SELECT FOUND_ROWS()
warm: SELECT a FROM b ORDER BY id LIMIT 1 OFFSET 1 | SET @q = 1 | SELECT FOUND_ROWS()
warm: SELECT a FROM b UNION SELECT a FROM u | BEGIN | SELECT FOUND_ROWS() | ROLLBACK
warm: SELECT a FROM b | BEGIN | b: UPDATE b SET a = 51 | SELECT FOUND_ROWS() | b: UPDATE b SET a = 52 | SELECT a FROM b | COMMIT
warm: SELECT a FROM b WHERE a < 50 | BEGIN | UPDATE b SET a = 100 WHERE id = 1 | SELECT FOUND_ROWS() | ROLLBACK
warm: SELECT a FROM b | CALL rows_found()
warm: SELECT a FROM b | USE {d} | SELECT FOUND_ROWS(), ROW_COUNT()
warm: SELECT a FROM b WHERE id < 3 | SELECT 1 | SELECT FOUND_ROWS()
warm: SELECT a FROM b | SHOW TABLES LIKE 'b' | SELECT FOUND_ROWS()
warm: SELECT a FROM b | SELECT CAST('x' AS INT) | SHOW WARNINGS | SELECT @@warning_count | SELECT a FROM b | SHOW WARNINGS | SELECT @@warning_count
warm: SELECT a FROM b | SELECT CAST('x' AS INT) | SELECT a FROM b | SELECT @@warning_count, @@error_count
warm: SELECT a FROM b | SELECT CAST('x' AS INT) | SELECT a FROM b | SET @q = 1 | SHOW WARNINGS
warm: SELECT a FROM b | SELECT CAST('x' AS INT) | SELECT a FROM b | SELECT 1 | SHOW WARNINGS
warm: SELECT a FROM b | INSERT INTO b VALUES (1, 1) | SELECT a FROM b | SHOW WARNINGS | SHOW ERRORS
warm: SELECT a FROM b | INSERT INTO b VALUES (1, 1) | SHOW WARNINGS | SELECT a FROM b | SHOW COUNT(*) ERRORS
warm: SELECT a FROM b | INSERT IGNORE INTO b VALUES (1, 1) | SHOW WARNINGS | SELECT a FROM b | SHOW WARNINGS
INSERT INTO b VALUES (1, 1) | SELECT ROW_COUNT() | INSERT INTO b VALUES (1, 1) | SELECT FOUND_ROWS()
BEGIN | UPDATE b SET a = 5 | INSERT INTO b VALUES (1, 1) | SELECT ROW_COUNT() | SHOW ERRORS | ROLLBACK
warm: SELECT a FROM b | SELECT nonsense FROM b | SHOW ERRORS | SELECT a FROM b | SHOW ERRORS
warm: SELECT a FROM b | SELECT nonsense FROM b | SELECT a FROM b | BEGIN | SHOW ERRORS | COMMIT
warm: SELECT a FROM b | GET DIAGNOSTICS @n = NUMBER | SELECT @n
warm: SELECT a FROM b | INSERT INTO b VALUES (1, 1) | SELECT a FROM b | GET DIAGNOSTICS @n = NUMBER | SELECT @n
CREATE OR REPLACE TABLE auto_id (id INT AUTO_INCREMENT PRIMARY KEY, a INT) | INSERT INTO auto_id (a) VALUES (1) | warm: SELECT a FROM b | SELECT LAST_INSERT_ID() | DROP TABLE auto_id
warm: SELECT a FROM b | SELECT SQL_CALC_FOUND_ROWS a FROM b LIMIT 1 | SELECT FOUND_ROWS() | SELECT a FROM b | SELECT FOUND_ROWS()
warm: SELECT a FROM b | UPDATE b SET a = a | SELECT ROW_COUNT() | SELECT a FROM b | DO 0 | SELECT ROW_COUNT(), FOUND_ROWS()
"""

TRANSACTIONS = """
warm: SELECT a FROM b | SET TRANSACTION READ ONLY | SELECT a FROM b | INSERT INTO u VALUES (8, 8) | SELECT a FROM u
warm: SELECT a FROM b | SET TRANSACTION READ ONLY | INSERT INTO u VALUES (8, 8) | SELECT a FROM b | INSERT INTO u VALUES (8, 8)
warm: SELECT a FROM my1 | SET TRANSACTION READ ONLY | SELECT a FROM my1 | INSERT INTO u VALUES (8, 8) | COMMIT | INSERT INTO u VALUES (8, 8)
warm: SELECT a FROM b | SET @@tx_read_only = 1 | SELECT a FROM b | INSERT INTO u VALUES (8, 8) | COMMIT | INSERT INTO u VALUES (8, 8)
warm: SELECT a FROM b | SET TRANSACTION READ ONLY | BEGIN | INSERT INTO u VALUES (8, 8) | COMMIT | INSERT INTO u VALUES (8, 8) | SELECT a FROM b
warm: SELECT a FROM b | SET SESSION TRANSACTION READ ONLY | SELECT a FROM b | INSERT INTO u VALUES (8, 8) | SET SESSION TRANSACTION READ WRITE | INSERT INTO u VALUES (8, 8)
warm: SELECT a FROM b | SET TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY | SELECT a FROM b | INSERT INTO u VALUES (8, 8)
warm: SELECT a FROM b | b: BEGIN | b: UPDATE b SET a = 400 | SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED | SELECT a FROM b | SELECT a FROM b | b: ROLLBACK | SELECT a FROM b
warm: SELECT a FROM b | SET autocommit = 0 | SELECT a FROM b | b: UPDATE b SET a = 401 | SELECT a FROM b | COMMIT | SELECT a FROM b | SET autocommit = 1 | SELECT a FROM b
warm: SELECT a FROM b | START TRANSACTION WITH CONSISTENT SNAPSHOT | b: UPDATE b SET a = 402 | SELECT a FROM b | COMMIT | SELECT a FROM b
warm: SELECT a FROM b | START TRANSACTION READ ONLY | INSERT INTO u VALUES (8, 8) | COMMIT AND CHAIN | SELECT a FROM b | ROLLBACK
"""


def sequences() -> list[str]:
    groups = (BY_OTHER_NAMES, OWN_WRITES, ROUTINES_AND_TEXTS, THE_SESSION, FUNCTIONS, WHAT_WAS_DONE_LAST, TRANSACTIONS)
    return [line for group in groups for line in group.strip().splitlines()]


READS = [
    "SELECT a FROM b ORDER BY id", "SELECT a FROM b WHERE id < 3 ORDER BY id", "SELECT COUNT(*) FROM u", "SELECT a FROM my1 ORDER BY a",
    "SELECT a FROM quiet", "SELECT a FROM b WHERE id = 99", "SELECT at FROM times", "SELECT a FROM v ORDER BY id", "SELECT id FROM c ORDER BY id",
    "SELECT MAX(a) FROM b UNION SELECT MIN(a) FROM b", "SELECT a FROM b ORDER BY id LIMIT 1", "SELECT next_not_cached_value > 0 FROM sq",
    "SELECT b.a, u.a FROM b JOIN u ON b.id = u.id", "SELECT a FROM m ORDER BY a", "WITH x AS (SELECT a FROM b) SELECT COUNT(*) FROM x",
    "SELECT ba FROM vj", "SELECT concat (a, '!') FROM b ORDER BY id", "SELECT SQL_CALC_FOUND_ROWS a FROM b ORDER BY id LIMIT 1",
]
WRITES = [
    "UPDATE v SET a = {n} WHERE id = 1", "UPDATE b SET a = {n} WHERE id = 2", "INSERT INTO m VALUES ({n}, {n})", "UPDATE m SET a = {n}",
    "DELETE FROM u WHERE a = {n}", "INSERT INTO u VALUES ({n}, {n})", "INSERT INTO b VALUES (1, {n})", "INSERT IGNORE INTO b VALUES (1, {n})",
    "UPDATE quiet SET a = {n}", "DELETE FROM v WHERE id = 3", "CALL p({n})", "UPDATE vj SET ba = {n}", "REPLACE INTO vv VALUES (2, {n})",
    "SELECT writes({n})", "SELECT NEXTVAL(sq) > 0", "SELECT w FROM vf WHERE id = 1", "DELETE FROM b WHERE id = 3", "TRUNCATE my1",
    "PREPARE s FROM 'UPDATE b SET a = {n} WHERE id = 2'; EXECUTE s", "DELETE b FROM b JOIN u ON b.id = u.id WHERE b.a = {n}",
    "INSERT INTO u SELECT id, a FROM b WHERE a < {n}", "SELECT substring ({n})", "UPDATE b SET a = {n}, id = 1 WHERE id = 2", "UPDATE b SET a = {n} WHERE id = 1; SELECT a FROM b WHERE id = 1", "EXECUTE IMMEDIATE 'UPDATE b SET a = {n} WHERE id = 3'",
    "CALL calls_p({n})", "CALL writes_by_text({n})", "CALL writes_through_view({n})", "SELECT calls_writes({n})", "DO writes({n})",
    "PREPARE s FROM 'UPDATE b SET a = {n} WHERE id = 1'", "EXECUTE s", "/*!50000 UPDATE b SET a = {n} WHERE id = 1 */",
    "SET STATEMENT max_statement_time = 9 FOR UPDATE b SET a = {n} WHERE id = 1", "BEGIN NOT ATOMIC UPDATE u SET a = {n}; END",
    "UPDATE u SET a = {n}; UPDATE v SET a = {n} WHERE id = 1", "CREATE OR REPLACE PROCEDURE p(x INT) UPDATE b SET a = x WHERE id = 1",
]
ABOUT_THE_LAST = [
    "SELECT ROW_COUNT()", "SELECT FOUND_ROWS()", "SHOW WARNINGS", "SELECT @@warning_count", "SHOW ERRORS", "SELECT 1", "SET @q = {n}",
    "SELECT CAST('x' AS INT)", "SELECT nonsense", "DO 0", "SELECT 1 / 0 FROM u", "SHOW TABLES LIKE 'b'", "SHOW COUNT(*) WARNINGS",
    "GET DIAGNOSTICS @n = NUMBER", "SELECT @n", "SELECT FOUND_ROWS(), 1", "CALL rows_found()", "EXPLAIN SELECT 1", "SELECT @x",
    "CALL nop()", "DO 1", "PREPARE q FROM 'SELECT FOUND_ROWS()'", "EXECUTE q", "SELECT reads_only({n})", "ANALYZE TABLE u",
]
STATES = [
    "BEGIN", "COMMIT", "ROLLBACK", "SET time_zone = '+0{d}:00'", "SET sql_select_limit = {d}", "SET TRANSACTION READ ONLY",
    "SET SESSION sql_mode = ''", "USE {{d}}", "SET autocommit = 1", "SET @x = {n}", "SET autocommit = 0", "SELECT sets_zone()", "SELECT z FROM vz",
    "SET SESSION TRANSACTION READ ONLY", "SET SESSION TRANSACTION READ WRITE", "CALL makes_temporary()", "DROP TEMPORARY TABLE IF EXISTS b",
    "SAVEPOINT s", "START TRANSACTION READ ONLY", "SET NAMES latin1", "SELECT 1; SET sql_select_limit = {d}", "SET @y = (SELECT MAX(a) FROM b)",
    "EXECUTE IMMEDIATE 'SET sql_select_limit = {d}'", "/*!40101 SET NAMES utf8mb4 */", "CREATE OR REPLACE TABLE later (a INT)",
    "CREATE TEMPORARY TABLE IF NOT EXISTS other (a INT)", "DEALLOCATE PREPARE s",
]


def random_sequence(number: int) -> str:
    chance = random.Random(SEED * 1000 + number)
    # FOUND_ROWS() in a new session depends on the client's login.
    lines = ["SELECT 1"]
    for _ in range(chance.randrange(8, 16)):
        pool = chance.choices((READS, WRITES, ABOUT_THE_LAST, STATES), (45, 25, 22, 8))[0]
        line = chance.choice(pool).format(n=chance.randrange(100), d=chance.randrange(1, 9))
        reads = pool is READS and chance.random() < 0.4
        session = "b: " if pool is READS and chance.random() < 0.2 else ""
        lines.append(("warm: " if reads and not session else session) + line)
    return " | ".join(lines)


class Run:
    """One way to run sequences: a database of its own, and a port."""

    def __init__(self, mariadb, port: int, name: str, gateway=None):
        self.mariadb, self.port, self.name, self.gateway = mariadb, port, name, gateway
        self.idle: dict[str, pymysql.Connection] = {}
        mariadb.sql(f"CREATE DATABASE {name}")
        with mariadb.connect(database=name) as connection, connection.cursor() as cursor:
            # A body has semicolons of its own, and its end on the line.
            for statement in re.split(r";\n", TABLES.strip()):
                cursor.execute(statement.rstrip(";") + (";" if statement.rstrip(";").endswith("END") else ""))

    def connect(self, **options) -> pymysql.Connection:
        defaults = {"user": "joe", "password": "secret", "database": self.name, "autocommit": True}
        return pymysql.connect(host="127.0.0.1", port=self.port, client_flag=CLIENT.MULTI_STATEMENTS, **(defaults | options))

    def hits(self) -> int:
        return self.gateway.hits() if self.gateway else 0

    def run(self, sequence: str) -> list:
        sessions, answers = {}, []

        def ask(session: str, statement: str):
            if session not in sessions:
                sessions[session] = self.idle.pop(session, None) or self.connect()
            found = answer(sessions[session], statement.replace("{d}", self.name))
            # Errors name the schema.
            return renamed(found, self.name)

        try:
            ask("reset", RESET)
            for line in sequence.split(" | "):
                name, colon, statement = line.partition(": ")
                if not colon or not name.isidentifier():
                    name, statement = "a", line
                if name == "warm":
                    for _ in range(3):
                        found = ask("a", statement)
                    answers.append(found)
                elif name == "root":
                    self.mariadb.sql(statement.replace("{d}", self.name))
                else:
                    answers.append(ask(name, statement))
        finally:
            # A session as new is one for the next sequence.
            for name, session in sessions.items():
                session._execute_command(0x1F, b"")
                session._read_packet()
                answer(session, f"USE {self.name}")
                answer(session, "SET NAMES utf8mb4")
                self.idle[name] = session
        return answers


def renamed(found, name: str):
    """The same answer with another name for the schema."""
    if isinstance(found, (list, tuple)):
        return type(found)(renamed(part, name) for part in found)
    return found.replace(f"{name}.", "d.") if isinstance(found, str) else found


def answer(connection, statement: str):
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement)
            answers = [cursor.fetchall()]
            while cursor.nextset():
                answers.append(cursor.fetchall())
            return answers
    except pymysql.err.MySQLError as error:
        return error.args[0]


class Servers:
    def __init__(self, folder):
        self.mariadb = MariadbServer(folder / "m", (*LOGGING, "--log-bin-trust-function-creators=1", "--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0")).start()
        self.mariadb.url = self.mariadb.tcp_url
        self.mariadb.sql("CREATE USER joe@'%' IDENTIFIED BY 'secret'")
        self.mariadb.sql("GRANT ALL PRIVILEGES ON *.* TO joe@'%' WITH GRANT OPTION")
        self.direct = Run(self.mariadb, self.mariadb.port, "d1")
        self.selkies, self.through = [], []
        for number, foreign_writes in enumerate(("none", "follow")):
            port = free_port()
            options = ("--sql-listen", f"127.0.0.1:{port}", "--threads", "2", "--cache", "both", "--external-writes", foreign_writes)
            selkie = SelkieServer(folder / f"s{number}", self.mariadb, options).start()
            self.selkies.append(selkie)
            self.through.append(Run(self.mariadb, port, f"d{number + 2}", Figures(selkie)))

    def remove(self):
        for selkie in self.selkies:
            assert selkie.is_running()
            selkie.kill()
        self.mariadb.remove()


class Figures:
    def __init__(self, selkie):
        self.client = selkie.client()

    def hits(self) -> int:
        return self.client.admin.command("serverStatus")["cache"]["sql"]["hits"]


@pytest.fixture(scope="module")
def servers(store, tmp_path_factory):
    servers = Servers(tmp_path_factory.mktemp("truth"))
    yield servers
    servers.remove()


def check(servers, sequence: str):
    expected = servers.direct.run(sequence)
    for through in servers.through:
        for time_of in ("first", "second"):
            found = through.run(sequence)
            assert found == expected, f"seed {SEED}, {through.name}, {time_of} time\n{difference(sequence, found, expected)}"


def difference(sequence: str, found: list, expected: list) -> str:
    lines = [line for line in sequence.split(" | ") if not line.startswith("root: ")]
    shown = zip(lines, found, expected, strict=False)
    return "\n".join(f"{line}\n    {ours}" + (f"\n    {theirs} by MariaDB" if ours != theirs else "") for line, ours, theirs in shown)


@pytest.mark.parametrize("sequence", sequences())
def test_answers_are_the_servers(servers, sequence):
    check(servers, sequence)


@pytest.mark.parametrize("part", range(10))
def test_random_sequences(servers, part):
    print(f"seed {SEED}")
    for number in range(part, RANDOM_SEQUENCES, 10):
        check(servers, random_sequence(number))


def test_answers_came_from_memory(servers):
    own, following = [through.hits() for through in servers.through]
    assert own > 100 and following > 10, (own, following)  # it keeps a reply once it has read so far in the log


@pytest.fixture(params=["none", "follow"])
def through(servers, request) -> Run:
    return servers.through[("none", "follow").index(request.param)]


def rows(connection, statement: str):
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


def denied(connection, statement: str) -> bool:
    return answer(connection, statement) in (1142, 1143, 1044, 1141)


def until_denied(connection, statement: str):
    """Withdrawn rights count within a second; some more for a machine that is busy."""
    deadline = time.monotonic() + 3
    while not denied(connection, statement):
        assert time.monotonic() < deadline, "answered for ever"
        time.sleep(0.02)


def is_kept(through: Run, connection, statement: str) -> bool:
    for _ in range(50):
        rows(connection, statement)
        before = through.hits()
        rows(connection, statement)
        if through.hits() > before:
            return True
        time.sleep(0.02)
    return False


# The grant of a privilege, a query that needs it, and its revocation without an event in the log.
RIGHTS = [
    ("GRANT SELECT ON {d}.b TO {u}", "SELECT id, a FROM b", ["SET sql_log_bin = 0", "REVOKE SELECT ON {d}.b FROM {u}"]),
    ("GRANT SELECT (id, a), UPDATE ON {d}.b TO {u}", "SELECT id, a FROM b", ["SET sql_log_bin = 0", "REVOKE SELECT (a) ON {d}.b FROM {u}"]),
    ("GRANT SELECT ON {d}.b TO {u}", "SELECT id, a FROM b",
     ["SET sql_log_bin = 0", "DELETE FROM mysql.tables_priv WHERE User = '{n}'", "FLUSH LOCAL PRIVILEGES"]),
    ("GRANT SELECT ON {d}.b TO rolling_{d}", "SELECT id, a FROM b", ["SET sql_log_bin = 0", "REVOKE SELECT ON {d}.b FROM rolling_{d}"]),
    ("GRANT SELECT ON {d}.b TO PUBLIC", "SELECT id, a FROM b", ["SET sql_log_bin = 0", "REVOKE SELECT ON {d}.b FROM PUBLIC"]),
    ("GRANT SELECT ON {d}.b TO {u}", "SELECT id, a FROM b", ["SET sql_log_bin = 0", "DROP USER {u}"]),
]


@pytest.mark.parametrize("number", range(len(RIGHTS)))
def test_withdrawn_rights_count_within_a_bounded_time(servers, number):
    through = servers.through[0]
    given, question, withdrawn = RIGHTS[number]
    name = f"u{number}_{through.name}"

    def root(statements: list[str]):
        with servers.mariadb.connect() as connection:
            for statement in statements:
                answer(connection, statement.replace("{d}", through.name).replace("{u}", f"{name}@'%'").replace("{n}", name))

    role = "rolling" in given
    root(["DROP USER IF EXISTS {u}", "CREATE USER {u} IDENTIFIED BY 'secret'", "CREATE ROLE IF NOT EXISTS rolling_{d}",
          # To let the session read the definition of the table, which caching requires.
          "GRANT INSERT ON {d}.b TO {u}", "GRANT SELECT ON {d}.u TO {u}", given, *(["GRANT rolling_{d} TO {u}"] * role)])
    with through.connect(user=name) as old:
        if role:
            rows(old, f"SET ROLE rolling_{through.name}")
        shows = answer(old, "SHOW CREATE TABLE b")
        assert is_kept(through, old, question) or isinstance(shows, int)
        with through.connect(user=name) as beside:
            if role:
                rows(beside, f"SET ROLE rolling_{through.name}")
            rows(beside, question)
            root(withdrawn)
            until_denied(old, question)
            until_denied(beside, question)
        # Those that come later are let in or not by MariaDB itself.
        for _ in range(3):
            try:
                with through.connect(user=name) as new:
                    if role:
                        rows(new, f"SET ROLE rolling_{through.name}")
                    assert denied(new, question)
            except pymysql.err.OperationalError as error:
                assert error.args[0] in (1044, 1045)
        root([given])
        if "DROP USER" not in withdrawn[-1]:
            deadline = time.monotonic() + 3
            while denied(old, question):
                assert time.monotonic() < deadline
            root(withdrawn)
            until_denied(old, question)


def test_global_rights_are_as_old_as_the_login(servers, through):
    """A session keeps global privileges until its end; its cached results are not for sessions
    without them."""
    name = f"global_{through.name}"
    servers.mariadb.sql(f"CREATE OR REPLACE USER {name}@'%' IDENTIFIED BY 'secret'")
    servers.mariadb.sql(f"GRANT SELECT ON *.* TO {name}@'%'")
    question = "SELECT id, a FROM b"
    with through.connect(user=name) as old:
        assert is_kept(through, old, question)
        with servers.mariadb.connect() as root:
            rows(root, "SET sql_log_bin = 0")
            rows(root, f"REVOKE SELECT ON *.* FROM {name}@'%'")
            rows(root, f"GRANT INSERT ON {through.name}.* TO {name}@'%'")
        end = time.monotonic() + 2
        while time.monotonic() < end:
            rows(old, question)
            with through.connect(user=name) as new:
                assert denied(new, question)


def test_statements_that_are_counted_go_to_the_server(servers, through):
    name = f"counted_{through.name}"
    servers.mariadb.sql(f"CREATE OR REPLACE USER {name}@'%' IDENTIFIED BY 'secret' WITH MAX_QUERIES_PER_HOUR 60")
    servers.mariadb.sql(f"GRANT SELECT ON {through.name}.* TO {name}@'%'")
    with through.connect(user=name) as session:
        answers = [answer(session, "SELECT a FROM b WHERE id = 1") for _ in range(70)]
    assert answers[-1] == 1226


def test_a_client_that_is_answered_is_not_idle(servers, through):
    for wait in (1,):
        with through.connect() as session:
            rows(session, f"SET wait_timeout = {wait}")
            end = time.monotonic() + 2.5 * wait
            while time.monotonic() < end:
                rows(session, "SELECT a FROM b WHERE id = 2")
                time.sleep(0.1)
            assert is_kept(through, session, "SELECT a FROM b WHERE id = 2")
            time.sleep(wait + 1)
            with pytest.raises(pymysql.err.MySQLError):
                rows(session, "SELECT a FROM b WHERE id = 2")


def test_a_killed_session_gets_no_cached_result(servers, through):
    with through.connect() as session:
        number = rows(session, "SELECT CONNECTION_ID()")[0][0]
        assert is_kept(through, session, "SELECT a FROM b WHERE id = 2")
        servers.mariadb.sql(f"KILL {number}")
        time.sleep(0.3)
        with pytest.raises(pymysql.err.MySQLError):
            rows(session, "SELECT a FROM b WHERE id = 2")


def execute(connection, number: bytes):
    """Executes a prepared statement that has no rows."""
    connection._execute_command(0x17, number + struct.pack("<BI", 0, 1))
    assert connection._read_packet().is_ok_packet()


def test_prepared_statements(servers, through):
    """Views and triggers count when a statement is executed, not when it was prepared."""
    through.run("SELECT 1")
    with through.connect() as writer, through.connect() as reader:
        for table in ("b", "u"):
            rows(writer, f"UPDATE {table} SET a = 0")
        writer._execute_command(0x16, "UPDATE v SET a = a + 1 WHERE id = 1")
        update = writer._read_packet().get_all_data()[1:5]
        select = Statement(reader, "SELECT a FROM b WHERE id = 1", params=0)
        assert [select.ask(), select.ask()] == [[0], [0]]
        execute(writer, update)
        assert select.ask() == [1] and answer(reader, "SELECT a FROM b WHERE id = 1") == [((1,),)]
        rows(writer, "CREATE TRIGGER late AFTER UPDATE ON b FOR EACH ROW UPDATE u SET a = NEW.a")
        for value in (2, 3, 4):
            rows(reader, "SELECT a FROM u")
            execute(writer, update)
            assert answer(reader, "SELECT a FROM u") == [((value,),)]
        rows(writer, "DROP TRIGGER late")
        # The last result, in the binary protocol.
        select.ask(), select.ask()
        rows(reader, "SET @q = 1")
        assert rows(reader, "SELECT ROW_COUNT()") == ((0,),)
