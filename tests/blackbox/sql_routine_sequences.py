"""Sequences for test_sql_cache_truth.py: routines, prepared texts, comments, modes."""

ROUTINES_AND_TEXTS = """
warm: SELECT a FROM b | CALL nop() | SELECT a FROM b | CALL calls_p(201) | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | CALL writes_by_text(202) | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | CALL writes_through_view(203) | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | CALL {d}.P(204) | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | BEGIN | CALL p(205) | SELECT a FROM b | b: SELECT a FROM b | COMMIT | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | BEGIN | CALL p(206) | b: SELECT a FROM b | ROLLBACK | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | SELECT calls_writes(207) | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | SELECT reads_only(1) | UPDATE b SET a = 208 | SELECT reads_only(1) | SELECT reads_only(1) FROM u | SELECT a FROM b
warm: SELECT a FROM b | SET @x = (SELECT calls_writes(209)) | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM u | CALL defines() | SELECT a FROM u | b: SELECT a FROM u
warm: SELECT a FROM b | CREATE OR REPLACE PROCEDURE changing() BEGIN END | CALL changing() | SELECT a FROM b | CREATE OR REPLACE PROCEDURE changing() UPDATE b SET a = 210 | CALL changing() | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | CALL nop() | root: CREATE OR REPLACE PROCEDURE {d}.other() UPDATE {d}.b SET a = 211 | CALL other() | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | PREPARE s FROM 'SELECT 1' | EXECUTE s | SELECT a FROM b | PREPARE s FROM 'UPDATE b SET a = 212' | SELECT a FROM b | EXECUTE s | SELECT a FROM b | b: SELECT a FROM b | DEALLOCATE PREPARE s
warm: SELECT a FROM b | PREPARE s FROM 'SELECT 1' | CALL prepares() | EXECUTE s | SELECT a FROM b | b: SELECT a FROM b | DEALLOCATE PREPARE s
warm: SELECT a FROM b | PREPARE s FROM 'SELECT 1' | BEGIN NOT ATOMIC PREPARE s FROM 'UPDATE b SET a = 213'; END | EXECUTE s | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | SET @t = 'UPDATE b SET a = 214' | PREPARE s FROM @t | EXECUTE s | SELECT a FROM b | b: SELECT a FROM b | DEALLOCATE PREPARE s
warm: SELECT a FROM b | PREPARE s FROM 'UPDATE b SET a = 215' | USE mysql | EXECUTE s | USE {d} | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | PREPARE s FROM 'UPDATE b SET a = ? WHERE id = ?' | SET @v = 216, @i = 1 | EXECUTE s USING @v, @i | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | PREPARE S FROM 'UPDATE v SET a = 217' | EXECUTE `s` | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | EXECUTE IMMEDIATE 'UPDATE b SET a = ?' USING 218 | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | EXECUTE IMMEDIATE 'SET sql_select_limit = 1' | SELECT a FROM b | SET sql_select_limit = DEFAULT | SELECT a FROM b
warm: SELECT a FROM b | /*!50000 UPDATE b SET a = 219 */ | SELECT a FROM b | /*M!100000 UPDATE b SET a = 220 */ | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | /*!50700 UPDATE b SET a = 221 */ | SELECT a FROM b | SELECT /*!40000 a + */ a FROM b | SELECT /*!50700 a + */ a FROM b
warm: SELECT a FROM b | SELECT 1; UPDATE b SET a = 222; SELECT 2 | SELECT a FROM b | b: SELECT a FROM b
warm: SELECT a FROM b | SELECT 1; SET sql_select_limit = 1 | SELECT a FROM b | SET sql_select_limit = DEFAULT | SELECT a FROM b
warm: SELECT a FROM b | SELECT 1; CREATE TEMPORARY TABLE b SELECT 1 AS id, 223 AS a | SELECT a FROM b | DROP TEMPORARY TABLE b | SELECT a FROM b
warm: SELECT a FROM b | SELECT 1; USE mysql | SELECT a FROM b | USE {d} | SELECT a FROM b
warm: SELECT a FROM b | CREATE OR REPLACE TABLE later (a INT) | SELECT a FROM b | UPDATE b SET a = 224 | SELECT a FROM b | DROP TABLE later | SELECT a FROM b
warm: SELECT a FROM b | SET sql_mode = 'ANSI_QUOTES' | UPDATE "b" SET "a" = 225 | b: SELECT a FROM b | SET sql_mode = DEFAULT | SELECT a FROM b
warm: SELECT a FROM b | SET sql_mode = 'NO_BACKSLASH_ESCAPES' | UPDATE b SET a = 226 WHERE '\\' <> 'x' | b: SELECT a FROM b | SET sql_mode = DEFAULT | SELECT a FROM b
warm: SELECT a FROM b | UPDATE b SET a = 227 WHERE "it\"s" = 'it"s' | b: SELECT a FROM b | SELECT a FROM b
warm: SELECT a FROM b | LOAD DATA INFILE '/nowhere' INTO TABLE b | SELECT a FROM b
warm: SELECT a FROM b | ANALYZE TABLE b | OPTIMIZE TABLE b | CHECK TABLE b | SELECT a FROM b | HANDLER b OPEN | HANDLER b CLOSE | SELECT a FROM b
warm: SELECT a FROM b | LOCK TABLES b READ | SELECT a FROM b | SELECT a FROM u | UNLOCK TABLES | SELECT a FROM b
warm: SELECT a FROM b | DROP DATABASE IF EXISTS nowhere_{d} | SELECT a FROM b | CREATE DATABASE nowhere_{d} | USE nowhere_{d} | DROP DATABASE nowhere_{d} | SELECT a FROM b | USE {d} | SELECT a FROM b
"""
