//! Rules by which a firewall refuses statements: by table, column, user and time of day.

use crate::filter::Call;
use crate::statement::Statement;
use sql_classify::TableName;
use sql_classify::tokens::{ListedToken, Tokens};
use std::fmt;

/// Minutes of a day.
const DAY: u16 = 24 * 60;

/// Conditions that a statement must all meet to be refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DenyRule {
    /// As written.
    text: String,
    table: Option<TablePattern>,
    /// A column of that table.
    column: Option<String>,
    user: Option<String>,
    /// Minutes since midnight, UTC: from the first until before the second.
    time: Option<(u16, u16)>,
}

/// A table: `schema.table`, `schema.*`, or `table` in any schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablePattern {
    pub schema: Option<String>,
    /// `None`: all tables of the schema.
    pub name: Option<String>,
}

impl TablePattern {
    /// Parses a pattern. Returns `None` if it is malformed.
    pub fn parse(text: &str) -> Option<TablePattern> {
        let name = |text: &str| (!text.is_empty() && text != "*").then(|| text.to_owned());
        match text.split_once('.') {
            None => Some(TablePattern { schema: None, name: Some(name(text)?) }),
            Some((schema, "*")) => Some(TablePattern { schema: Some(name(schema)?), name: None }),
            Some((schema, table)) if !table.contains('.') => {
                Some(TablePattern { schema: Some(name(schema)?), name: Some(name(table)?) })
            }
            Some(_) => None,
        }
    }

    /// Returns whether a name in a statement may mean a table of this pattern. Without a schema it
    /// may be in any.
    pub fn matches(&self, table: &TableName) -> bool {
        let is_name = self.name.as_ref().is_none_or(|name| name.eq_ignore_ascii_case(&table.name));
        let is_schema = match (&self.schema, &table.schema) {
            (Some(wanted), Some(schema)) => wanted.eq_ignore_ascii_case(schema),
            // Any table may be in the schema: only those with a name are recognized.
            (Some(_), None) => self.name.is_some(),
            (None, _) => true,
        };
        is_name && is_schema
    }
}

impl fmt::Display for DenyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl DenyRule {
    /// Parses a rule: pairs of a word and its value, as in `table d.salaries user joe`. Fails with
    /// a sentence about the error.
    pub fn parse(text: &str) -> Result<DenyRule, String> {
        let mut rule = DenyRule { text: text.to_owned(), ..DenyRule::default() };
        let mut words = text.split_ascii_whitespace();
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| format!("{text:?} has no value after {word:?}"))?;
            let is_new = match word {
                "table" => {
                    let pattern = TablePattern::parse(value)
                        .ok_or_else(|| format!("{value:?} is no table; write table, schema.table or schema.*"))?;
                    rule.table.replace(pattern).is_none()
                }
                "column" => {
                    let split = value.rsplit_once('.').filter(|(_, column)| !column.is_empty() && *column != "*");
                    let parsed = split.and_then(|(table, column)| Some((TablePattern::parse(table)?, column)));
                    let (table, column) = parsed
                        .ok_or_else(|| format!("{value:?} is no column; write table.column or schema.table.column"))?;
                    rule.column = Some(column.to_owned());
                    rule.table.replace(table).is_none()
                }
                "user" => rule.user.replace(value.to_owned()).is_none(),
                "time" => {
                    let range = value.split_once('-').and_then(|(from, to)| Some((minutes(from)?, minutes(to)?)));
                    let range = range.filter(|(from, to)| from != to && *from < DAY);
                    let range = range.ok_or_else(|| format!("{value:?} is no time of day; write 22:00-06:00"))?;
                    rule.time.replace(range).is_none()
                }
                _ => {
                    let what = format!("{word:?} is no condition of a rule");
                    return Err(format!("{what}; write table, column, user or time, each with its value"));
                }
            };
            if !is_new {
                return Err(format!("{text:?} has two conditions of a kind; write two rules"));
            }
        }
        match rule == (DenyRule { text: text.to_owned(), ..DenyRule::default() }) {
            true => Err("a rule without conditions would refuse everything".to_owned()),
            false => Ok(rule),
        }
    }

    /// Returns whether it depends on a statement's text.
    pub fn is_about_tables(&self) -> bool {
        self.table.is_some()
    }

    /// Returns whether a statement meets all conditions, at this time of the day in minutes. A
    /// statement that cannot be read meets those about tables and columns.
    pub fn matches(&self, call: &Call<'_>, minute: u16) -> bool {
        let is_user = self.user.as_ref().is_none_or(|user| *user == call.client.user);
        let is_time = self.time.is_none_or(|(from, to)| match from < to {
            true => (from..to).contains(&minute),
            false => minute >= from || minute < to,
        });
        is_user && is_time && self.table.as_ref().is_none_or(|table| self.may_use(table, call.statement))
    }

    fn may_use(&self, table: &TablePattern, statement: &Statement) -> bool {
        let Some(tables) = statement.tables() else { return true };
        let names_table = tables.iter().any(|name| table.matches(name));
        let Some(column) = &self.column else { return names_table };
        names_table && statement.tokens().is_none_or(|tokens| may_use_column(&tokens, column))
    }
}

/// Returns whether a statement may use a column of one of its tables.
fn may_use_column(tokens: &Tokens<'_>, column: &str) -> bool {
    let list = tokens.as_slice();
    let names = |token: &ListedToken<'_>| {
        token.name().is_some_and(|name| name.eq_ignore_ascii_case(column) || !name.is_ascii())
    };
    list.iter().any(names) || (0..list.len()).any(|at| is_all_columns(list, at))
}

/// Returns whether a token is the asterisk that stands for all columns: none that multiplies, and
/// not that of COUNT(*).
pub fn is_all_columns(list: &[ListedToken<'_>], at: usize) -> bool {
    let is_symbol =
        |at: Option<usize>, symbol: &str| at.and_then(|at| list.get(at)).is_some_and(|token| token.is_symbol(symbol));
    let before = at.checked_sub(1);
    is_symbol(Some(at), "*")
        && (is_symbol(before, ".")
            || is_symbol(before, ",")
            || before.is_none_or(|before| list[before].word().is_some())
                && !(is_symbol(Some(at + 1), "(") || multiplies(list.get(at + 1))))
}

/// Returns whether an asterisk before this token multiplies.
fn multiplies(next: Option<&ListedToken<'_>>) -> bool {
    use sql_classify::words::WordLists;
    next.is_some_and(|next| match next.word() {
        Some(_) => !next.lists.has(WordLists::RESERVED) || next.lists.has(WordLists::FUNCTIONS),
        None => !next.is_symbol(",") && !next.is_symbol(")") && !next.is_symbol(";"),
    })
}

/// Parses a time of day in minutes since midnight. `24:00` is the end of the day.
fn minutes(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    let (hours, minutes): (u16, u16) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours <= 24 && minutes < 60 && hours * 60 + minutes <= DAY).then_some(hours * 60 + minutes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Counters;
    use crate::filter::{Action, Client};
    use sql_classify::Lexis;
    use std::sync::Arc;

    fn matches_at(rule: &str, sql: &str, user: &str, minute: u16) -> bool {
        let statement = Statement::classify(sql, Lexis::default(), false);
        let client = Client { user: user.into(), ..Client::default() };
        let counters = Arc::new(Counters::default());
        let call =
            Call { statement: &statement, action: Action::Query, client: &client, service: "", counters: &counters };
        DenyRule::parse(rule).unwrap().matches(&call, minute)
    }

    #[test]
    fn tables_and_columns() {
        let matches = |rule: &str, sql: &str| matches_at(rule, sql, "joe", 0);
        for sql in
            ["SELECT a FROM d.t", "SELECT a FROM t", "DELETE FROM `d`.`t`", "SELECT a FROM u JOIN T", "SELECT 'a"]
        {
            assert!(matches("table d.t", sql), "{sql}");
        }
        for sql in ["SELECT a FROM e.t", "SELECT t FROM u", "SELECT 1", "SELECT 't' FROM u"] {
            assert!(!matches("table d.t", sql), "{sql}");
        }
        assert!(matches("table d.*", "SELECT a FROM d.x") && !matches("table d.*", "SELECT a FROM x"));
        for sql in [
            "SELECT ssn FROM t",
            "SELECT * FROM t",
            "SELECT t.* FROM t",
            "SELECT a, t.* FROM t",
            "SELECT DISTINCT * FROM t",
            "SELECT concat(SSN) FROM t",
            "SELECT 1 FROM t WHERE `ssn` = 1",
            "SELECT śsn FROM t",
        ] {
            assert!(matches("column d.t.ssn", sql), "{sql}");
        }
        for sql in ["SELECT a FROM t", "SELECT COUNT(*) FROM t", "SELECT a * 2, a * b FROM t", "SELECT ssn FROM u"] {
            assert!(!matches("column d.t.ssn", sql), "{sql}");
        }
    }

    #[test]
    fn users_and_times() {
        assert!(matches_at("user joe", "SELECT 1", "joe", 0) && !matches_at("user joe", "SELECT 1", "ann", 0));
        for (minute, expected) in [(0, true), (359, true), (360, false), (1319, false), (1320, true)] {
            assert_eq!(matches_at("time 22:00-06:00", "SELECT 1", "joe", minute), expected, "{minute}");
        }
        let both = "table t user joe time 12:00-24:00";
        assert!(matches_at(both, "SELECT a FROM t", "joe", 720) && !matches_at(both, "SELECT a FROM t", "joe", 1));
    }

    #[test]
    fn malformed_rules() {
        for (text, part) in [
            ("", "everything"),
            ("table", "no value"),
            ("tabel t", "no condition"),
            ("table *", "no table"),
            ("column ssn", "no column"),
            ("time 25:00-26:00", "no time"),
            ("time 1:00-1:00", "no time"),
            ("user a user b", "two conditions"),
        ] {
            let error = DenyRule::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
