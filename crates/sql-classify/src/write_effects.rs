//! What a write changes beside the tables that its statement names: the tables behind views and
//! MERGE tables, and those that triggers write.
//!
//! All of it follows from definitions. The caller looks them up, one table at a time
//! ([`WriteEffectsBuilder`]).

use crate::tokens::{Tokens, is_word};
use crate::words::{BEFORE_PARENTHESES, PURE, SIDE_EFFECT, VOLATILE, WordList};
use sqlparser::tokenizer::Token;
use std::collections::BTreeSet;
use store::Namespace;

/// The part of a table's definition that determines which other tables change with it.
#[derive(Clone, Debug)]
pub struct TableDefinition {
    pub kind: TableKind,
    /// The bodies of its triggers, except for the gateway's own.
    pub triggers: Vec<String>,
}

#[derive(Clone, Debug)]
pub enum TableKind {
    /// No such table; the session may have a temporary one of that name.
    Absent,
    Base {
        engine: String,
    },
    /// A MERGE table, with its CREATE TABLE.
    Merge(String),
    /// A view, with its SELECT.
    View(String),
    Sequence,
}

/// What a statement does to its session besides, from harmless to worst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SessionEffect {
    #[default]
    None,
    /// Settings may have changed.
    Settings,
    /// Visible tables may have changed: the session may have new temporary ones, for example.
    Anything,
}

/// What writing to a table changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteEffects {
    /// Tables that change; `None`: any may.
    pub tables: Option<Vec<Namespace>>,
    pub session: SessionEffect,
    /// Reading the table may do the same, because it is a view that calls a function.
    pub by_reading: bool,
}

impl WriteEffects {
    pub fn unknown() -> WriteEffects {
        WriteEffects { tables: None, session: SessionEffect::Anything, by_reading: true }
    }
}

/// More tables than these are not followed.
const TABLES_MAX: usize = 200;

/// Functions that change neither tables nor the session.
static HARMLESS: [&WordList; 3] = [&PURE, &VOLATILE, &SIDE_EFFECT];

/// Engines whose tables change only by statements that name them.
const ENGINES_WITH_OWN_ROWS: &[&str] =
    &["InnoDB", "Aria", "MyISAM", "MEMORY", "CSV", "ARCHIVE", "BLACKHOLE", "ROCKSDB"];

/// Follows the definitions of a table and of the tables that they mention.
///
/// The caller takes each table from [`next_table`](Self::next_table), looks its definition up and
/// passes that to [`add`](Self::add).
#[derive(Debug)]
pub struct WriteEffectsBuilder {
    effects: WriteEffects,
    open: Vec<Namespace>,
    seen: BTreeSet<(Box<str>, Box<str>)>,
    /// Names of tables are lower case.
    ignores_case: bool,
}

impl WriteEffectsBuilder {
    pub fn new(table: &Namespace, ignores_case: bool) -> WriteEffectsBuilder {
        let tables = Some(vec![table.clone()]);
        WriteEffectsBuilder {
            effects: WriteEffects { tables, session: SessionEffect::None, by_reading: false },
            open: vec![table.clone()],
            seen: BTreeSet::new(),
            ignores_case,
        }
    }

    /// Returns a table whose definition is needed; `None` when all have been added.
    pub fn next_table(&mut self) -> Option<Namespace> {
        while let Some(next) = self.open.pop() {
            if self.seen.insert((next.database.clone(), next.collection.clone())) {
                return Some(next);
            }
        }
        None
    }

    /// Adds a table's definition. Returns `false` when there are too many tables to follow.
    pub fn add(&mut self, table: Namespace, definition: &TableDefinition) -> bool {
        let is_first = self.seen.len() == 1;
        if !is_first && matches!(definition.kind, TableKind::Absent | TableKind::Sequence) {
            return true;
        }
        let mentioned = add_definition(&table, definition, &mut self.effects);
        if let Some(tables) = &mut self.effects.tables
            && !tables.contains(&table)
        {
            tables.push(table);
        }
        let lower = |name: Namespace| Namespace::new(&name.database.to_lowercase(), &name.collection.to_lowercase());
        let ignores_case = self.ignores_case;
        self.open.extend(mentioned.into_iter().map(|name| if ignores_case { lower(name) } else { name }));
        self.seen.len() + self.open.len() <= TABLES_MAX
    }

    pub fn finish(self) -> WriteEffects {
        self.effects
    }
}

/// Adds the effects of a table's definition. Returns the tables that it mentions.
fn add_definition(table: &Namespace, definition: &TableDefinition, effects: &mut WriteEffects) -> Vec<Namespace> {
    let mut mentioned = match &definition.kind {
        TableKind::Absent | TableKind::Sequence => Vec::new(),
        TableKind::Base { engine } => {
            if !has_own_rows(engine) {
                effects.tables = None;
            }
            Vec::new()
        }
        TableKind::Merge(text) => match text.rsplit_once("UNION=").and_then(|(_, list)| Tokens::of_body(list)) {
            Some(tokens) => possible_tables(&tokens, &table.database),
            None => add_anything(effects),
        },
        TableKind::View(text) => match Tokens::of_body(text).filter(|tokens| tokens.calls_only(&HARMLESS)) {
            Some(tokens) => possible_tables(&tokens, &table.database),
            None => {
                effects.by_reading = true;
                add_anything(effects)
            }
        },
    };
    for body in &definition.triggers {
        let tokens = Tokens::of_body(body).filter(|tokens| !tokens.has_word("CALL") && !calls_unknown(tokens));
        match tokens {
            Some(tokens) => {
                effects.session = effects.session.max(session_effect(&tokens));
                mentioned.append(&mut possible_tables(&tokens, &table.database));
            }
            None => mentioned.append(&mut add_anything(effects)),
        }
    }
    mentioned
}

fn add_anything(effects: &mut WriteEffects) -> Vec<Namespace> {
    (effects.tables, effects.session) = (None, SessionEffect::Anything);
    Vec::new()
}

/// Words that call nothing where a parenthesis follows them in a trigger.
static TRIGGER_KEYWORDS: WordList = WordList::new(
    "\
    VALUES VALUE INTO SET RETURN IF WHILE UNTIL ELSEIF DO INT BIGINT SMALLINT TINYINT MEDIUMINT NUMERIC FLOAT DOUBLE TEXT \
    VARBINARY TIMESTAMP TIME",
);

/// Returns whether a function may be called that is not built in: a name before a parenthesis that
/// is neither a built-in function nor the table after INTO.
fn calls_unknown(tokens: &Tokens) -> bool {
    let list = tokens.as_slice();
    let is_call = |at: usize| {
        let Token::Word(word) = &list[at - 1] else { return matches!(list[at - 1], Token::DoubleQuotedString(_)) };
        let name = word.value.to_ascii_uppercase();
        let is_qualified = at >= 2 && list[at - 2] == Token::Period;
        let known = [&PURE, &VOLATILE, &SIDE_EFFECT, &TRIGGER_KEYWORDS, &BEFORE_PARENTHESES];
        let is_known = word.quote_style.is_none() && !is_qualified && known.iter().any(|words| words.contains(&name));
        !is_known && !is_insert_target(list, at - 1)
    };
    (1..list.len()).any(|at| list[at] == Token::LParen && is_call(at)) || tokens.may_call_with_space()
}

/// Returns whether the name that ends at a token is the table of an INSERT or REPLACE.
fn is_insert_target(list: &[Token], at: usize) -> bool {
    let start = if at >= 2 && list[at - 1] == Token::Period { at - 2 } else { at };
    let words = ["INTO", "INSERT", "REPLACE", "IGNORE", "DELAYED", "LOW_PRIORITY", "HIGH_PRIORITY"];
    start.checked_sub(1).is_some_and(|before| words.iter().any(|word| is_word(&list[before], word)))
}

fn has_own_rows(engine: &str) -> bool {
    ENGINES_WITH_OWN_ROWS.iter().any(|own| own.eq_ignore_ascii_case(engine))
}

/// Returns what a trigger does to the session that fires it.
fn session_effect(tokens: &Tokens) -> SessionEffect {
    let table_effects = ["TEMPORARY", "TRANSACTION", "ISOLATION", "TX_ISOLATION", "TX_READ_ONLY", "LOCK", "UNLOCK"];
    if table_effects.iter().any(|word| tokens.has_word(word)) {
        SessionEffect::Anything
    } else if sets_more_than_columns(tokens) {
        SessionEffect::Settings
    } else {
        SessionEffect::None
    }
}

/// Returns whether a SET may assign a setting: it begins with a name other than NEW or a user
/// variable, or has several parts.
fn sets_more_than_columns(tokens: &Tokens) -> bool {
    let list = tokens.as_slice();
    list.iter().enumerate().any(|(at, token)| {
        let rest = list.get(at + 1..).unwrap_or_default();
        let end = rest.iter().position(|token| *token == Token::SemiColon).unwrap_or(rest.len());
        is_word(token, "SET")
            && (rest[..end].contains(&Token::Comma)
                || !matches!(rest, [new, Token::Period, ..] if is_word(new, "NEW"))
                    && !matches!(rest.first(), Some(Token::AtSign)))
    })
}

/// Returns the tables that tokens may name, in a schema.
fn possible_tables(tokens: &Tokens, database: &str) -> Vec<Namespace> {
    let names = tokens.possible_tables().into_iter();
    names.map(|table| Namespace::new(table.schema.as_deref().unwrap_or(database), &table.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(triggers: &[&str]) -> TableDefinition {
        let kind = TableKind::Base { engine: "InnoDB".into() };
        TableDefinition { kind, triggers: triggers.iter().map(|&body| body.to_owned()).collect() }
    }

    fn effects_in(definitions: Vec<(&'static str, TableDefinition)>) -> WriteEffects {
        let mut builder = WriteEffectsBuilder::new(&Namespace::new("d", "t"), false);
        while let Some(table) = builder.next_table() {
            let found = definitions.iter().find(|(name, _)| *name == &*table.collection && &*table.database == "d");
            let absent = TableDefinition { kind: TableKind::Absent, triggers: vec![] };
            assert!(builder.add(table, &found.map_or(absent, |(_, definition)| definition.clone())));
        }
        builder.finish()
    }

    fn tables(effects: &WriteEffects) -> Vec<&str> {
        let mut names: Vec<&str> = effects.tables.iter().flatten().map(|table| &*table.collection).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn triggers_write_to_other_tables() {
        let effects = effects_in(vec![
            ("t", base(&["BEGIN IF NEW.a > 1 THEN INSERT INTO u (x, y) VALUES (NEW.a, now()); END IF; END"])),
            ("u", base(&["UPDATE v JOIN `w` USING (a) SET v.a = 1"])),
            ("v", base(&[])),
            ("w", base(&[])),
            ("x", base(&[])),
        ]);
        assert_eq!(tables(&effects), ["t", "u", "v", "w", "x"], "x may be a table's name or a column's");
        assert_eq!((effects.session, effects.by_reading), (SessionEffect::Settings, false));
        assert_eq!(effects_in(vec![("t", base(&["SET NEW.a = 1"]))]).session, SessionEffect::None);
        assert_eq!(effects_in(vec![("t", base(&["SET time_zone = '+01:00'"]))]).session, SessionEffect::Settings);
        let temporary = effects_in(vec![("t", base(&["CREATE TEMPORARY TABLE u (a INT)"]))]);
        assert_eq!(temporary.session, SessionEffect::Anything);
        for body in
            ["CALL p()", "SET NEW.a = f(1)", "SET NEW.a = mid (1)", "SET NEW.a = `left`(1)", "SET NEW.a = d.f(1)"]
        {
            assert_eq!(
                effects_in(vec![("t", base(&[body]))]),
                WriteEffects { by_reading: false, ..WriteEffects::unknown() },
                "{body}"
            );
        }
    }

    #[test]
    fn views_and_merge_tables_change_the_tables_behind_them() {
        let view = |text: &str| TableDefinition { kind: TableKind::View(text.into()), triggers: vec![] };
        let effects = effects_in(vec![
            (
                "t",
                view(
                    "select `d`.`u`.`a` AS `a`,count(0) AS `n` from (`d`.`u` join `d`.`v` on(1)) where (`d`.`u`.`b` in (1,2))",
                ),
            ),
            ("u", base(&[])),
            ("v", view("select `d`.`w`.`a` AS `a` from `d`.`w`")),
            ("w", base(&[])),
        ]);
        assert_eq!((tables(&effects), effects.by_reading), (vec!["t", "u", "v", "w"], false));
        assert_eq!(effects_in(vec![("t", view("select `d`.`f`(1) AS `a` from `d`.`u`"))]), WriteEffects::unknown());
        let text = "CREATE TABLE `t` (\n  `a` int(11)\n) ENGINE=MRG_MyISAM INSERT_METHOD=LAST UNION=(`u`,`d`.`w`)";
        let merge = TableDefinition { kind: TableKind::Merge(text.into()), triggers: vec![] };
        let effects = effects_in(vec![("t", merge), ("u", base(&[])), ("w", base(&[]))]);
        assert_eq!(tables(&effects), ["t", "u", "w"]);
        let federated = TableDefinition { kind: TableKind::Base { engine: "FEDERATED".into() }, triggers: vec![] };
        assert_eq!(effects_in(vec![("t", federated)]).tables, None);
    }
}
