//! Finds statements that could show the values of masked columns.
//!
//! A statement that names the table of a masked column must have a form that is understood. There
//! the column may be shown as it is, so that the server reports its origin, and it may be written.
//! It must not be compared, sorted by, or part of an expression. All other statements are refused.

use crate::deny_rule::{TablePattern, is_all_columns};
use crate::mask_rule::{MaskRule, fold};
use ahash::AHashSet;
use sql_classify::scanner::TokenKind;
use sql_classify::tokens::{ListedToken, Tokens};
use sql_classify::{RoutineKind, RoutineName, TableName};

/// The settings and facts by which statements are checked.
#[derive(Clone, Copy, Debug)]
pub struct CheckContext<'k> {
    pub rules: &'k [MaskRule],
    /// Views and stored routines that show nothing.
    pub trusted: &'k [TablePattern],
    /// The folded names of the views that the client may use, in any schema; `None`: not context.
    pub views: Option<&'k AHashSet<String>>,
    /// The current schema.
    pub schema: &'k str,
}

/// Words with which a statement may read data other than by tables.
const DANGEROUS_WORDS: [&str; 8] =
    ["LOAD_FILE", "INIT_CONNECT", "INIT_SLAVE", "INIT_FILE", "SPIDER", "FEDERATED", "FEDERATEDX", "SONAME"];

/// Words of definitions by which a table may stand for another.
const OTHER_TABLES: [&str; 5] = ["CONNECTION", "TABLE_TYPE", "WRAPPER", "SERVER", "CONNECT"];

/// Tables with values of columns, or with other clients' statements.
const REVEALING_TABLES: [&str; 18] = [
    "general_log",
    "slow_log",
    "column_stats",
    "proc",
    "event",
    "servers",
    "processlist",
    "innodb_trx",
    "innodb_locks",
    "innodb_ft_index_table",
    "innodb_ft_index_cache",
    "optimizer_trace",
    "query_cache_info",
    "threads",
    "data_locks",
    "user_variables_by_thread",
    "prepared_statements_instances",
    "thread_pool_groups",
];

/// Words after SHOW for the same.
const REVEALING_SHOWS: [&str; 6] = ["PROCESSLIST", "BINLOG", "RELAYLOG", "ENGINE", "EXPLAIN", "ANALYZE"];

/// Words that a statement on the table of a masked column must not have.
const UNSAFE_WORDS: [&str; 8] = ["UNION", "EXCEPT", "INTERSECT", "MINUS", "INTO", "PROCEDURE", "NATURAL", "RETURNING"];

/// Words between SELECT and the first column.
const SELECT_OPTIONS: [&str; 9] = [
    "ALL",
    "HIGH_PRIORITY",
    "STRAIGHT_JOIN",
    "SQL_SMALL_RESULT",
    "SQL_BIG_RESULT",
    "SQL_BUFFER_RESULT",
    "SQL_CACHE",
    "SQL_NO_CACHE",
    "SQL_CALC_FOUND_ROWS",
];

/// Returns why a text is refused; `None`: it can show no masked value.
pub fn danger(tokens: &Tokens<'_>, context: &CheckContext<'_>) -> Option<String> {
    tokens.statements().iter().find_map(|statement| danger_of_one(statement, context))
}

/// Returns whether a text changes settings by which the server reads the rest of it.
pub fn changes_lexer(text: &str, tokens: &Tokens<'_>) -> bool {
    const HARMLESS: [&str; 8] = ["SELECT", "INSERT", "REPLACE", "UPDATE", "DELETE", "COMMIT", "ROLLBACK", "START"];
    let depends = !text.is_ascii() || text.contains(['"', '\\']);
    let is_harmless = |statement: &Tokens<'_>| HARMLESS.iter().any(|word| statement.begins_with(&[word]));
    let statements = tokens.statements();
    depends && statements.split_last().is_some_and(|(_, before)| !before.iter().all(is_harmless))
}

fn danger_of_one(tokens: &Tokens<'_>, context: &CheckContext<'_>) -> Option<String> {
    let list = tokens.as_slice();
    let Some(names) = tokens.possible_tables() else { return Some("it has too many names to be checked".to_owned()) };
    if let Some(what) = indirect(tokens, &names, context) {
        return Some(format!("it may read masked columns by {what}"));
    }
    let reads_nothing = ["SET", "COMMIT", "ROLLBACK", "START", "SAVEPOINT", "RELEASE", "USE"];
    let is_brief = !tokens.has_symbol("(") && !tokens.has_any_word(&["SELECT", "STATEMENT", "FOR"]);
    if is_brief && reads_nothing.iter().any(|word| tokens.begins_with(&[word])) {
        return None;
    }
    let begins_show = ["SHOW", "DESC", "DESCRIBE"].iter().any(|word| tokens.begins_with(&[word]));
    let is_show = begins_show && !tokens.has_any_word(&["SELECT", "WHERE", "UPDATE", "DELETE"]);
    if !is_show {
        if let Some(routine) = untrusted_call(tokens, context) {
            return Some(format!("{routine} is no function that is known to show no masked column"));
        }
        match context.views {
            None if names.iter().any(|name| !name.name.is_empty()) && reads_tables(tokens) => {
                return Some("the views of the server are not known at the moment".to_owned());
            }
            None => {}
            Some(views) => {
                let is_view = |name: &&TableName| views.contains(&fold(&name.name)) && !is_trusted(context, name);
                if let Some(view) = names.iter().find(is_view) {
                    return Some(format!("{} is a view that may show masked columns", view.name));
                }
            }
        }
    }
    if !context.rules.iter().any(|rule| names.iter().any(|name| rule.is_of(name))) {
        return None;
    }
    let masked = |token: &ListedToken<'_>| {
        token.name().is_some_and(|name| {
            let name = fold(&name);
            context.rules.iter().any(|rule| rule.is_column(&name))
        })
    };
    let flags: Vec<bool> = list.iter().map(masked).collect();
    Form { list, is_masked: &flags }.danger(tokens).map(str::to_owned)
}

/// Returns whether a statement may read tables.
fn reads_tables(tokens: &Tokens<'_>) -> bool {
    tokens.has_any_word(&["FROM", "JOIN", "TABLE", "UPDATE", "INTO", "OPEN", "SELECT", "INSERT", "REPLACE"])
}

fn is_trusted(context: &CheckContext<'_>, name: &TableName) -> bool {
    context.trusted.iter().any(|trusted| trusted.matches(name))
}

/// Returns by which means a statement may read columns other than by naming their tables.
fn indirect(tokens: &Tokens<'_>, names: &[TableName], context: &CheckContext<'_>) -> Option<String> {
    let list = tokens.as_slice();
    let plain = |token: &ListedToken<'_>| token.token.text.trim_matches(['\'', '"', '`', '@']).to_ascii_uppercase();
    let is_dangerous = |token: &&ListedToken<'_>| {
        let text = plain(token);
        let text = text.rsplit('.').next().unwrap_or_default();
        DANGEROUS_WORDS.contains(&text)
    };
    let is_apart = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| list.get(before));
        list[at].is_symbol(".") && (list[at].token.is_spaced || before.is_none_or(|before| before.name().is_none()))
    };
    if (0..list.len()).any(is_apart) {
        return Some("a name that begins with a period".to_owned());
    }
    if let Some(token) = list.iter().find(is_dangerous) {
        return Some(token.token.text.to_owned());
    }
    if tokens.begins_with(&["LOAD"]) {
        return Some("a file".to_owned());
    }
    let is_definition = tokens.begins_with(&["CREATE"]) || tokens.begins_with(&["ALTER"]);
    if is_definition && tokens.has_any_word(&OTHER_TABLES) {
        return Some("a table that stands for another".to_owned());
    }
    if tokens.begins_with(&["SHOW"]) && tokens.has_any_word(&REVEALING_SHOWS) {
        return Some("SHOW of what other clients do".to_owned());
    }
    if tokens.has_word("FOR") && tokens.has_word("CONNECTION") {
        return Some("another client's statement".to_owned());
    }
    let is_revealing = |name: &&TableName| {
        let folded = fold(&name.name);
        let in_schema = name.schema.as_deref().unwrap_or(context.schema);
        REVEALING_TABLES.contains(&folded.as_str())
            || folded.starts_with("events_statements")
            || name.schema.is_none() && folded == "performance_schema"
            || fold(in_schema) == "performance_schema" && reads_tables(tokens)
    };
    names.iter().find(is_revealing).map(|name| format!("the table {}", name.name))
}

/// Returns a function or procedure that a statement calls and that is not trusted.
fn untrusted_call(tokens: &Tokens<'_>, context: &CheckContext<'_>) -> Option<String> {
    let begins = |word: &str| tokens.begins_with(&[word]);
    let is_definition = ["CREATE", "ALTER", "DROP", "GRANT", "REVOKE"].into_iter().any(begins);
    let evaluates = !is_definition || tokens.has_any_word(&["SELECT", "VALUES", "CALL", "RETURN", "DO", "SET"]);
    if !evaluates {
        return None;
    }
    let mut calls = tokens.calls();
    for (at, token) in tokens.as_slice().iter().enumerate() {
        if token.is_word("CALL") && !token.token.is_qualified {
            calls.add(tokens.routine_after(at + 1, RoutineKind::Procedure));
        }
    }
    if calls.are_more {
        return Some("a name in it".to_owned());
    }
    let is_trusted = |routine: &RoutineName| {
        is_trusted(context, &TableName { schema: routine.schema.clone(), name: routine.name.clone() })
    };
    calls.routines.iter().find(|routine| !is_trusted(routine)).map(|routine| format!("{}()", routine.name))
}

/// A statement that names the table of a masked column.
struct Form<'f, 'a> {
    list: &'f [ListedToken<'a>],
    /// Whether each token may name a masked column.
    is_masked: &'f [bool],
}

const IN_EXPRESSION: &str = "a masked column may be shown, but not be compared, sorted by or computed with";
const NOT_UNDERSTOOD: &str = "it uses the table of a masked column in a way that is not understood";
const BY_POSITION: &str = "it may sort or group by a masked column: name the columns to sort and group by";

impl Form<'_, '_> {
    fn danger(&self, tokens: &Tokens<'_>) -> Option<&'static str> {
        let begins = |words: &[&str]| tokens.begins_with(words);
        let selects = self.list.iter().filter(|token| is_keyword(token, "SELECT")).count();
        let is_unsafe = UNSAFE_WORDS.iter().any(|word| {
            // INSERT INTO is the exception.
            let places = (0..self.list.len()).filter(|&at| is_keyword(&self.list[at], word));
            places.into_iter().any(|at| *word != "INTO" || at > 3 || begins(&["SELECT"]))
        });
        if begins(&["SHOW"]) || begins(&["TRUNCATE"]) || begins(&["LOCK"]) {
            return (selects > 0).then_some(NOT_UNDERSTOOD);
        }
        if begins(&["DESC"]) || begins(&["DESCRIBE"]) {
            let is_table = self.list.len() <= 5 && !tokens.has_any_word(&["SELECT", "UPDATE", "DELETE", "INSERT"]);
            return (!is_table || tokens.has_word("REPLACE")).then_some(NOT_UNDERSTOOD);
        }
        let maintains = ["ANALYZE", "OPTIMIZE", "CHECK", "REPAIR"].iter().any(|word| begins(&[word]));
        if maintains && (1..=2).any(|at| self.list.get(at).is_some_and(|token| is_keyword(token, "TABLE"))) {
            return (selects > 0).then_some(NOT_UNDERSTOOD);
        }
        if is_unsafe || self.chooses_rows_by_place() || tokens.has_word("TABLE") {
            return Some(NOT_UNDERSTOOD);
        }
        match () {
            () if begins(&["SELECT"]) && selects == 1 => self.select_danger(),
            () if selects > 0 => Some(NOT_UNDERSTOOD),
            () if begins(&["INSERT"]) || begins(&["REPLACE"]) || begins(&["UPDATE"]) || begins(&["DELETE"]) => {
                self.write_danger(begins(&["DELETE"]))
            }
            () => Some(NOT_UNDERSTOOD),
        }
    }

    /// Returns whether a partition or an index determines the rows, or their order.
    fn chooses_rows_by_place(&self) -> bool {
        (0..self.list.len()).any(|at| {
            let follows = |what: &[&str]| {
                let next = self.list.get(at + 1);
                next.is_some_and(|next| what.iter().any(|what| next.is_symbol(what) || next.is_word(what)))
            };
            let token = &self.list[at];
            is_keyword(token, "PARTITION") && follows(&["("])
                || is_keyword(token, "FORCE") && follows(&["INDEX", "KEY"])
                || is_keyword(token, "USE") && follows(&["INDEX", "KEY"])
        })
    }

    /// Checks a SELECT without subqueries.
    fn select_danger(&self) -> Option<&'static str> {
        let list = self.list;
        let mut start = 1;
        let mut is_distinct = false;
        while let Some(token) = list.get(start) {
            let distinct = is_keyword(token, "DISTINCT") || is_keyword(token, "DISTINCTROW");
            if !distinct && !SELECT_OPTIONS.iter().any(|word| is_keyword(token, word)) {
                break;
            }
            is_distinct |= distinct;
            start += 1;
        }
        let from = self.at_top(start, &["FROM"]).unwrap_or(list.len());
        let (mut shows, mut aliases) = (false, Vec::new());
        for (begin, end) in self.items(start, from) {
            match self.item(begin, end) {
                Item::Safe => {}
                Item::Masked { alias } => {
                    shows = true;
                    aliases.extend(alias);
                }
                Item::All => shows = true,
                Item::Unsafe => return Some(IN_EXPRESSION),
            }
        }
        if self.is_masked.get(from..).unwrap_or_default().contains(&true) {
            return Some(IN_EXPRESSION);
        }
        let uses = |alias: &String| {
            list.iter().filter(|token| alias_text(token).is_some_and(|name| name == *alias)).count() > 1
        };
        if shows && (is_distinct || aliases.iter().any(uses)) {
            return Some(IN_EXPRESSION);
        }
        (shows && self.has_positions(from)).then_some(BY_POSITION)
    }

    /// Returns the kind of a selected item.
    fn item(&self, begin: usize, end: usize) -> Item {
        let list = self.list.get(begin..end).unwrap_or_default();
        let Some(final_token) = list.last() else { return Item::Unsafe };
        if final_token.is_symbol("*") {
            let is_whole = list.len() == 1 || list.len() <= 5 && self.chain(begin, end - 1) == Some(end - 1);
            return if is_whole && is_all_columns(self.list, end - 1) { Item::All } else { Item::Unsafe };
        }
        let masked: Vec<usize> = (begin..end).filter(|&at| self.is_masked[at]).collect();
        if masked.is_empty() {
            return Item::Safe;
        }
        // Names joined by periods, and an alias.
        let mut last = begin;
        while self.list.get(last + 1).is_some_and(|next| next.is_symbol(".")) && last + 2 < end {
            last += 2;
        }
        let is_name = |at: usize| self.list.get(at).is_some_and(|token| token.name().is_some());
        let names_only = (begin..=last).step_by(2).all(is_name);
        let alias = match list.len() - (last - begin) {
            1 => None,
            2 => Some(last + 1),
            3 if is_keyword(&self.list[last + 1], "AS") => Some(last + 2),
            _ => return Item::Unsafe,
        };
        if masked != [last] || !names_only {
            return Item::Unsafe;
        }
        match alias {
            None => Item::Masked { alias: None },
            Some(at) => alias_text(&self.list[at]).map_or(Item::Unsafe, |alias| Item::Masked { alias: Some(alias) }),
        }
    }

    /// Returns the end of names that each have a period behind them.
    fn chain(&self, begin: usize, end: usize) -> Option<usize> {
        let mut at = begin;
        while at < end {
            let is_pair = self.list.get(at)?.name().is_some() && self.list.get(at + 1)?.is_symbol(".");
            at = if is_pair { at + 2 } else { return None };
        }
        Some(at)
    }

    /// Returns whether a number may stand for a column to sort or group by.
    fn has_positions(&self, from: usize) -> bool {
        let Some(by) = (from..self.list.len()).find(|&at| is_keyword(&self.list[at], "BY")) else { return false };
        let end = self.at_top(by, &["LIMIT", "OFFSET", "FETCH"]).unwrap_or(self.list.len());
        (by + 1..end).any(|at| {
            let before = &self.list[at - 1];
            let may_be = is_keyword(before, "BY") || [",", "(", "+"].iter().any(|symbol| before.is_symbol(symbol));
            may_be && matches!(self.list[at].token.kind, TokenKind::Number | TokenKind::Parameter)
        })
    }

    /// Checks a write without subqueries: it may name a masked column as that which it writes.
    fn write_danger(&self, deletes: bool) -> Option<&'static str> {
        let listed = self.column_list();
        let first = self.at_top(1, &["SET"]).or_else(|| self.at_top(1, &["DUPLICATE"])).unwrap_or(self.list.len());
        let last = self.at_top(first, &["WHERE", "ORDER", "LIMIT"]).unwrap_or(self.list.len());
        let is_safe = |at: usize| {
            let is_listed = listed.is_some_and(|(begin, end)| (begin..end).contains(&at));
            is_listed || (first..last).contains(&at) && (self.is_assigned(at) || self.is_inserted_value(at))
        };
        let places = (0..self.list.len()).filter(|&at| self.is_masked[at]);
        places.into_iter().any(|at| deletes || !is_safe(at)).then_some(IN_EXPRESSION)
    }

    /// Returns where the columns of an INSERT are listed.
    fn column_list(&self) -> Option<(usize, usize)> {
        let begin = self.list.iter().position(|token| token.is_symbol("("))?;
        let end = begin + self.list.get(begin..)?.iter().position(|token| token.is_symbol(")"))?;
        let is_values = |token: &ListedToken<'_>| ["VALUES", "VALUE", "SET"].iter().any(|word| is_keyword(token, word));
        let precedes = self.list.get(..begin)?.iter().any(is_values);
        let follows = self.list.get(end + 1).is_some_and(|token| is_keyword(token, "VALUES") || token.is_word("VALUE"));
        let inner = self.list.get(begin + 1..end)?;
        let is_list = inner.iter().all(|token| token.name().is_some() || token.is_symbol(",") || token.is_symbol("."));
        (!precedes && follows && is_list).then_some((begin, end))
    }

    /// Returns whether a name is the left side of an assignment.
    fn is_assigned(&self, at: usize) -> bool {
        let is_dot = |at: usize| self.list.get(at).is_some_and(|token| token.is_symbol("."));
        let mut begin = at;
        while begin >= 2 && is_dot(begin - 1) {
            begin -= 2;
        }
        let before = begin.checked_sub(1).and_then(|before| self.list.get(before));
        let may_begin =
            before.is_some_and(|token| token.is_symbol(",") || is_keyword(token, "SET") || is_keyword(token, "UPDATE"));
        let is_followed = self.list.get(at + 1).is_some_and(|token| token.is_symbol("="));
        may_begin && is_followed && self.depth(at) == 0
    }

    /// Returns whether a name is the column of VALUES(column): the value of an INSERT.
    fn is_inserted_value(&self, at: usize) -> bool {
        let before = |back: usize| at.checked_sub(back).and_then(|at| self.list.get(at));
        before(1).is_some_and(|token| token.is_symbol("("))
            && before(2).is_some_and(|token| token.is_word("VALUES") || token.is_word("VALUE"))
            && self.list.get(at + 1).is_some_and(|token| token.is_symbol(")"))
    }

    /// Returns the parts of a list that commas outside of parentheses separate.
    fn items(&self, start: usize, end: usize) -> Vec<(usize, usize)> {
        let (mut items, mut begin, mut depth) = (Vec::new(), start, 0_usize);
        for at in start..end {
            let token = &self.list[at];
            if token.is_symbol("(") {
                depth += 1;
            } else if token.is_symbol(")") {
                depth = depth.saturating_sub(1);
            } else if depth == 0 && token.is_symbol(",") {
                items.push((begin, at));
                begin = at + 1;
            }
        }
        items.push((begin, end));
        items
    }

    /// Returns the first of these words from a position on that is outside of parentheses.
    fn at_top(&self, start: usize, words: &[&str]) -> Option<usize> {
        let mut depth = 0_usize;
        for at in start..self.list.len() {
            let token = &self.list[at];
            if token.is_symbol("(") {
                depth += 1;
            } else if token.is_symbol(")") {
                depth = depth.saturating_sub(1);
            } else if depth == 0 && words.iter().any(|word| is_keyword(token, word)) {
                return Some(at);
            }
        }
        None
    }

    fn depth(&self, at: usize) -> usize {
        let before = self.list.get(..at).unwrap_or_default();
        let count = |symbol: &str| before.iter().filter(|token| token.is_symbol(symbol)).count();
        count("(").saturating_sub(count(")"))
    }
}

/// An item of a SELECT.
enum Item {
    /// It names no masked column.
    Safe,
    /// A masked column as it is.
    Masked {
        alias: Option<String>,
    },
    /// All columns of tables.
    All,
    Unsafe,
}

/// Returns whether a token is this keyword.
fn is_keyword(token: &ListedToken<'_>, word: &str) -> bool {
    token.is_word(word) && !token.token.is_qualified
}

/// Returns the folded name that a token may be, or the text of a string.
fn alias_text(token: &ListedToken<'_>) -> Option<String> {
    if let Some(name) = token.name() {
        return Some(fold(&name));
    }
    let text = token.token.text;
    let is_string = token.token.kind == TokenKind::String && text.len() >= 2 && text.starts_with(['\'', '"']);
    is_string.then(|| fold(text.get(1..text.len() - 1).unwrap_or_default()))
}

#[cfg(test)]
mod tests;
