//! Parsing in a bounded number of steps.
//!
//! The parser backtracks: it tries several readings of an expression, and each of them tries all
//! readings of the expressions within. A few hundred bytes can take time exponential in their
//! nesting.

use sqlparser::ast::{Expr, Statement};
use sqlparser::dialect::{Dialect, MySqlDialect};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use std::any::TypeId;
use std::cell::Cell;

/// Steps that every statement may take, however short.
const STEPS_MIN: usize = 1000;

/// Without backtracking a statement takes fewer steps than it has tokens.
const STEPS_PER_TOKEN: usize = 8;

/// Parses statements of `tokens` tokens. Returns `None` for invalid SQL, and when the steps run
/// out.
pub fn parse(text: &str, tokens: usize) -> Option<Vec<Statement>> {
    let dialect = Bounded { steps_left: Cell::new(STEPS_MIN + STEPS_PER_TOKEN * tokens) };
    let parsed = Parser::parse_sql(&dialect, text);
    // Text read after the steps ran out may have been parsed as something else.
    parsed.ok().filter(|_| dialect.steps_left.get() > 0)
}

/// MySQL's dialect with a step budget; once it is spent, every expression is a parse error.
#[derive(Debug)]
struct Bounded {
    steps_left: Cell<usize>,
}

const MYSQL: MySqlDialect = MySqlDialect {};

impl Bounded {
    fn step(&self) -> bool {
        self.steps_left.set(self.steps_left.get().saturating_sub(1));
        self.steps_left.get() > 0
    }
}

impl Dialect for Bounded {
    fn dialect(&self) -> TypeId {
        MYSQL.dialect()
    }

    fn parse_prefix(&self, _: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        (!self.step()).then_some(Err(ParserError::RecursionLimitExceeded))
    }

    fn parse_infix(&self, parser: &mut Parser<'_>, left: &Expr, precedence: u8) -> Option<Result<Expr, ParserError>> {
        MYSQL.parse_infix(parser, left, precedence)
    }

    fn parse_statement(&self, parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
        MYSQL.parse_statement(parser)
    }

    fn is_table_factor_alias(&self, explicit: bool, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        MYSQL.is_table_factor_alias(explicit, keyword, parser)
    }

    fn is_identifier_start(&self, letter: char) -> bool {
        MYSQL.is_identifier_start(letter)
    }

    fn is_identifier_part(&self, letter: char) -> bool {
        MYSQL.is_identifier_part(letter)
    }

    fn is_delimited_identifier_start(&self, letter: char) -> bool {
        MYSQL.is_delimited_identifier_start(letter)
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        MYSQL.identifier_quote_style(identifier)
    }

    fn supports_string_literal_backslash_escape(&self) -> bool {
        MYSQL.supports_string_literal_backslash_escape()
    }

    fn supports_string_literal_concatenation(&self) -> bool {
        MYSQL.supports_string_literal_concatenation()
    }

    fn ignores_wildcard_escapes(&self) -> bool {
        MYSQL.ignores_wildcard_escapes()
    }

    fn supports_numeric_prefix(&self) -> bool {
        MYSQL.supports_numeric_prefix()
    }

    fn supports_bitwise_shift_operators(&self) -> bool {
        MYSQL.supports_bitwise_shift_operators()
    }

    fn supports_multiline_comment_hints(&self) -> bool {
        MYSQL.supports_multiline_comment_hints()
    }

    fn require_interval_qualifier(&self) -> bool {
        MYSQL.require_interval_qualifier()
    }

    fn supports_limit_comma(&self) -> bool {
        MYSQL.supports_limit_comma()
    }

    fn supports_create_table_select(&self) -> bool {
        MYSQL.supports_create_table_select()
    }

    fn supports_insert_set(&self) -> bool {
        MYSQL.supports_insert_set()
    }

    fn supports_user_host_grantee(&self) -> bool {
        MYSQL.supports_user_host_grantee()
    }

    fn supports_table_hints(&self) -> bool {
        MYSQL.supports_table_hints()
    }

    fn requires_single_line_comment_whitespace(&self) -> bool {
        MYSQL.requires_single_line_comment_whitespace()
    }

    fn supports_match_against(&self) -> bool {
        MYSQL.supports_match_against()
    }

    fn supports_select_modifiers(&self) -> bool {
        MYSQL.supports_select_modifiers()
    }

    fn supports_set_names(&self) -> bool {
        MYSQL.supports_set_names()
    }

    fn supports_comma_separated_set_assignments(&self) -> bool {
        MYSQL.supports_comma_separated_set_assignments()
    }

    fn supports_update_order_by(&self) -> bool {
        MYSQL.supports_update_order_by()
    }

    fn supports_data_type_signed_suffix(&self) -> bool {
        MYSQL.supports_data_type_signed_suffix()
    }

    fn supports_cross_join_constraint(&self) -> bool {
        MYSQL.supports_cross_join_constraint()
    }

    fn supports_double_ampersand_operator(&self) -> bool {
        MYSQL.supports_double_ampersand_operator()
    }

    fn supports_binary_kw_as_cast(&self) -> bool {
        MYSQL.supports_binary_kw_as_cast()
    }

    fn supports_comment_optimizer_hint(&self) -> bool {
        MYSQL.supports_comment_optimizer_hint()
    }

    fn supports_constraint_keyword_without_name(&self) -> bool {
        MYSQL.supports_constraint_keyword_without_name()
    }

    fn supports_key_column_option(&self) -> bool {
        MYSQL.supports_key_column_option()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_parse_as_in_the_dialect_itself() {
        for sql in [
            "SELECT `a`, 'it\\'s' 'two', 5 DIV 2, a && b, BINARY a, 1 << 2 FROM t AS x USE INDEX (i) LIMIT 2, 3",
            "SELECT DISTINCT SQL_NO_CACHE a FROM t CROSS JOIN u ON t.a = u.a FOR UPDATE",
            "SELECT INTERVAL(1, 2), d + INTERVAL 1 DAY FROM d.t USE",
            "SELECT /*+ hint */ 1a, match(a) against('b' in boolean mode), cast(a as signed integer) FROM t --b",
            "INSERT INTO t SET a = 1, b = 2 ON DUPLICATE KEY UPDATE a = values(a)",
            "UPDATE t SET a = a+1 ORDER BY b LIMIT 1",
            "DELETE FROM t WHERE a IN (SELECT b FROM u)",
            "LOCK TABLES t READ",
            "SELECT CASE a WHEN 1 THEN 'x' ELSE 'y' END FROM t WHERE (a, b) IN ((1, 2), (3, 4)) AND é = 2",
        ] {
            assert_eq!(parse(sql, 60), Parser::parse_sql(&MYSQL, sql).ok(), "{sql}");
        }
    }

    /// Without bounds, one of these statements would take longer than a test may run.
    #[test]
    fn steps_are_bounded() {
        let nest = |open: &str, inner: &str, close: &str, depth: usize| {
            format!("SELECT {}{inner}{} FROM t", open.repeat(depth), close.repeat(depth))
        };
        let table = |open: &str, inner: &str, close: &str, depth: usize| {
            format!("SELECT * FROM {}{inner}{}", open.repeat(depth), close.repeat(depth))
        };
        for depth in [3, 12, 24, 49, 60] {
            for sql in [
                nest("cast(", "a", " as int)", depth),
                nest("cast(", "a ?", " as int)", depth),
                nest("case when ", "a", " then 1 end", depth),
                nest("case ", "a", " when 1 then 1 end", depth),
                nest("(", "a", ")", depth),
                nest("(", "a b c", ")", depth),
                nest("not ", "a", "", depth),
                nest("binary ", "a", "", depth),
                nest("interval ", "a", "", depth),
                nest("substring(", "a", " from 1)", depth),
                nest("position(", "a", " in a)", depth),
                nest("exists(select ", "a", ")", depth),
                nest("a in (select ", "a", ")", depth),
                nest("a in ((", "a", "))", depth),
                table("(", "t", ")", depth),
                table("((select * from ", "t", "))", depth),
                table("((select * from ", "?", "))", depth),
                table("(select * from ", "?", ") x", depth),
                table("((select * from t) x join ", "?", ")", depth),
                table("((", "t x) join t)", " join t", depth),
            ] {
                parse(&sql, sql.len());
            }
        }
    }
}
