//! What a statement changes beside the tables that it names: tables behind views and MERGE tables,
//! and what triggers write.
//!
//! All of it is read off definitions, once, and forgotten when any definition may have changed.

use crate::functions::{ACTING, Names, PURE, VOLATILE, has};
use crate::tokens::{Tokens, is_word};
use ahash::AHashMap;
use sqlparser::tokenizer::Token;
use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::{ChangeObserver, Changes, InFlightWrite, Namespace};

/// A table's definition, as far as it tells what else changes with the table.
#[derive(Clone, Debug)]
pub struct Definition {
    pub kind: TableKind,
    /// The bodies of its triggers, but for the gateway's own.
    pub triggers: Vec<String>,
}

#[derive(Clone, Debug)]
pub enum TableKind {
    /// No such table; the session may have a temporary one of that name.
    Absent,
    Base {
        engine: String,
    },
    /// A MERGE table: its CREATE TABLE.
    Merge(String),
    /// A view: the SELECT that it stands for.
    View(String),
    Sequence,
}

/// Looks definitions up with the gateway's own rights.
pub trait Definitions: Send + Sync {
    /// `None`: it cannot be told, for want of rights or of a connection.
    fn look_up(&self, table: Namespace) -> Pin<Box<dyn Future<Output = Option<Definition>> + Send>>;
}

/// What a statement does to its session besides, the worst last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SessionEffect {
    #[default]
    None,
    /// Settings may be others.
    Settings,
    /// Tables may be others: the session may have got temporary ones, for example.
    Anything,
}

/// What writing to a table changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Tables that change; `None`: any may.
    pub tables: Option<Vec<Namespace>>,
    pub session: SessionEffect,
    /// Reading the table may do the same, for it is a view that calls a function.
    pub by_reading: bool,
}

impl Reach {
    pub fn unknown() -> Reach {
        Reach { tables: None, session: SessionEffect::Anything, by_reading: true }
    }
}

/// More tables than these are not followed.
const TABLES_MAX: usize = 200;

/// More definitions than these are not remembered.
const KNOWN_MAX: usize = 10_000;

/// Functions that change neither tables nor the session.
static HARMLESS: [&Names; 3] = [&PURE, &VOLATILE, &ACTING];

/// Engines whose tables change by statements that name them.
const OWN_ROWS: &[&str] = &["InnoDB", "Aria", "MyISAM", "MEMORY", "CSV", "ARCHIVE", "BLACKHOLE", "ROCKSDB"];

/// Definitions that are known.
pub struct Known {
    definitions: Box<dyn Definitions>,
    /// Goes up whenever any definition may have changed.
    version: AtomicU64,
    /// The same, or that of one table.
    generation: AtomicU64,
    known: Mutex<AHashMap<Namespace, Arc<Definition>>>,
}

impl Known {
    pub fn new(definitions: Box<dyn Definitions>) -> Arc<Known> {
        Arc::new(Known {
            definitions,
            version: AtomicU64::new(0),
            generation: AtomicU64::new(0),
            known: Mutex::default(),
        })
    }

    pub fn version(&self) -> u64 {
        self.version.load(Ordering::SeqCst)
    }

    /// Definitions may have changed.
    pub fn forget(&self) {
        self.version.fetch_add(1, Ordering::SeqCst);
        self.generation.fetch_add(1, Ordering::SeqCst);
        self.lock().clear();
    }

    /// One table's definition may have changed, but for its triggers: those count as any
    /// definition.
    fn forget_one(&self, table: &Namespace) {
        self.generation.fetch_add(1, Ordering::SeqCst);
        self.lock().remove(table);
    }

    /// Returns what writing to a table changes. `ignores_case`: names of tables are lower case.
    pub async fn reach(&self, table: &Namespace, ignores_case: bool) -> Reach {
        let mut reach = Reach { tables: Some(vec![table.clone()]), session: SessionEffect::None, by_reading: false };
        let mut open = vec![table.clone()];
        let mut seen: BTreeSet<(Box<str>, Box<str>)> = BTreeSet::new();
        while let Some(next) = open.pop() {
            if !seen.insert((next.database.clone(), next.collection.clone())) {
                continue;
            }
            let Some(definition) = self.definition(&next).await else { return Reach::unknown() };
            let is_first = seen.len() == 1;
            if !is_first && matches!(definition.kind, TableKind::Absent | TableKind::Sequence) {
                continue;
            }
            let mentioned = follow(&next, &definition, &mut reach);
            if let Some(tables) = &mut reach.tables
                && !tables.contains(&next)
            {
                tables.push(next);
            }
            let lower =
                |name: Namespace| Namespace::new(&name.database.to_lowercase(), &name.collection.to_lowercase());
            open.extend(mentioned.into_iter().map(|name| if ignores_case { lower(name) } else { name }));
            if seen.len() + open.len() > TABLES_MAX {
                return Reach::unknown();
            }
        }
        reach
    }

    async fn definition(&self, table: &Namespace) -> Option<Arc<Definition>> {
        if let Some(known) = self.lock().get(table) {
            return Some(known.clone());
        }
        let generation = self.generation.load(Ordering::SeqCst);
        let definition = Arc::new(self.definitions.look_up(table.clone()).await?);
        let mut known = self.lock();
        if self.generation.load(Ordering::SeqCst) == generation {
            if known.len() >= KNOWN_MAX {
                known.clear();
            }
            // What is absent may become a collection by a MongoDB client, which reaches as far.
            known.insert(table.clone(), definition.clone());
        }
        Some(definition)
    }

    fn lock(&self) -> MutexGuard<'_, AHashMap<Namespace, Arc<Definition>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets definitions when the store tells that they changed.
pub struct Forgetting(pub Arc<Known>);

struct Nothing;

impl InFlightWrite for Nothing {
    fn outcome_unknown(self: Box<Self>) {}
}

impl ChangeObserver for Forgetting {
    fn wants_images(&self, _: &Namespace) -> bool {
        false
    }

    fn begin_write(&self, _: Changes) -> Box<dyn InFlightWrite> {
        Box::new(Nothing)
    }

    fn definition_changed(&self, namespace: &Namespace) {
        match namespace.database.is_empty() || namespace.collection.is_empty() {
            true => self.0.forget(),
            false => self.0.forget_one(namespace),
        }
    }
}

/// Notes what a table's definition says, and returns the tables that it mentions.
fn follow(table: &Namespace, definition: &Definition, reach: &mut Reach) -> Vec<Namespace> {
    let mut mentioned = match &definition.kind {
        TableKind::Absent | TableKind::Sequence => Vec::new(),
        TableKind::Base { engine } => {
            if !has_own_rows(engine) {
                reach.tables = None;
            }
            Vec::new()
        }
        TableKind::Merge(text) => match text.rsplit_once("UNION=").and_then(|(_, list)| Tokens::of_body(list)) {
            Some(tokens) => names(&tokens, &table.database),
            None => anything(reach),
        },
        TableKind::View(text) => match Tokens::of_body(text).filter(|tokens| tokens.call_only(&HARMLESS)) {
            Some(tokens) => names(&tokens, &table.database),
            None => {
                reach.by_reading = true;
                anything(reach)
            }
        },
    };
    for body in &definition.triggers {
        let tokens = Tokens::of_body(body).filter(|tokens| !tokens.has_word("CALL") && !calls_unknown(tokens));
        match tokens {
            Some(tokens) => {
                reach.session = reach.session.max(session_effect(&tokens));
                mentioned.append(&mut names(&tokens, &table.database));
            }
            None => mentioned.append(&mut anything(reach)),
        }
    }
    mentioned
}

fn anything(reach: &mut Reach) -> Vec<Namespace> {
    (reach.tables, reach.session) = (None, SessionEffect::Anything);
    Vec::new()
}

/// Words that are not called where a parenthesis follows them in a trigger.
static NO_CALLS: Names = Names::new(
    "\
    VALUES VALUE INTO SET RETURN IF WHILE UNTIL ELSEIF DO INT BIGINT SMALLINT TINYINT MEDIUMINT NUMERIC FLOAT DOUBLE TEXT \
    VARBINARY TIMESTAMP TIME",
);

/// Whether something may be called that is not known: a name in front of a parenthesis that is no
/// built-in function, and no table's behind INTO.
fn calls_unknown(tokens: &Tokens) -> bool {
    let list = tokens.list();
    let is_call = |at: usize| {
        let Token::Word(word) = &list[at - 1] else { return matches!(list[at - 1], Token::DoubleQuotedString(_)) };
        let name = word.value.to_ascii_uppercase();
        let is_qualified = at >= 2 && list[at - 2] == Token::Period;
        let known = [&PURE, &VOLATILE, &ACTING, &NO_CALLS, &crate::functions::BEFORE_PARENTHESES];
        let is_known = word.quote_style.is_none() && !is_qualified && known.iter().any(|words| has(words, &name));
        !is_known && !is_behind_into(list, at - 1)
    };
    (1..list.len()).any(|at| list[at] == Token::LParen && is_call(at)) || tokens.may_call_spaced()
}

/// Whether the name that ends at a token is the table of an INSERT or REPLACE.
fn is_behind_into(list: &[Token], at: usize) -> bool {
    let start = if at >= 2 && list[at - 1] == Token::Period { at - 2 } else { at };
    let words = ["INTO", "INSERT", "REPLACE", "IGNORE", "DELAYED", "LOW_PRIORITY", "HIGH_PRIORITY"];
    start.checked_sub(1).is_some_and(|before| words.iter().any(|word| is_word(&list[before], word)))
}

fn has_own_rows(engine: &str) -> bool {
    OWN_ROWS.iter().any(|own| own.eq_ignore_ascii_case(engine))
}

/// What a trigger does to the session that fires it.
fn session_effect(tokens: &Tokens) -> SessionEffect {
    let odd = ["TEMPORARY", "TRANSACTION", "ISOLATION", "TX_ISOLATION", "TX_READ_ONLY", "LOCK", "UNLOCK"];
    if odd.iter().any(|word| tokens.has_word(word)) {
        SessionEffect::Anything
    } else if sets_more_than_columns(tokens) {
        SessionEffect::Settings
    } else {
        SessionEffect::None
    }
}

/// Whether a SET may be of a setting: it begins with another name than NEW's or a user's variable,
/// or has several parts.
fn sets_more_than_columns(tokens: &Tokens) -> bool {
    let list = tokens.list();
    list.iter().enumerate().any(|(at, token)| {
        let rest = list.get(at + 1..).unwrap_or_default();
        let end = rest.iter().position(|token| *token == Token::SemiColon).unwrap_or(rest.len());
        is_word(token, "SET")
            && (rest[..end].contains(&Token::Comma)
                || !matches!(rest, [new, Token::Period, ..] if is_word(new, "NEW"))
                    && !matches!(rest.first(), Some(Token::AtSign)))
    })
}

/// The tables that tokens may mean, in a schema.
fn names(tokens: &Tokens, database: &str) -> Vec<Namespace> {
    let names = tokens.names().into_iter();
    names.map(|table| Namespace::new(table.schema.as_deref().unwrap_or(database), &table.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Made(Vec<(&'static str, Definition)>);

    impl Definitions for Made {
        fn look_up(&self, table: Namespace) -> Pin<Box<dyn Future<Output = Option<Definition>> + Send>> {
            let found = self.0.iter().find(|(name, _)| *name == &*table.collection && &*table.database == "d");
            let absent = Definition { kind: TableKind::Absent, triggers: vec![] };
            let definition = found.map_or(absent, |(_, definition)| definition.clone());
            Box::pin(std::future::ready(Some(definition)))
        }
    }

    fn base(triggers: &[&str]) -> Definition {
        let kind = TableKind::Base { engine: "InnoDB".into() };
        Definition { kind, triggers: triggers.iter().map(|&body| body.to_owned()).collect() }
    }

    fn reach_in(tables: Vec<(&'static str, Definition)>) -> Reach {
        let known = Known::new(Box::new(Made(tables)));
        let table = Namespace::new("d", "t");
        let reach = known.reach(&table, false);
        // Nothing is waited for.
        let mut reach = std::pin::pin!(reach);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match reach.as_mut().poll(&mut context) {
            std::task::Poll::Ready(reach) => reach,
            std::task::Poll::Pending => unreachable!(),
        }
    }

    fn tables(reach: &Reach) -> Vec<&str> {
        let mut names: Vec<&str> = reach.tables.iter().flatten().map(|table| &*table.collection).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn triggers_write_to_other_tables() {
        let reach = reach_in(vec![
            ("t", base(&["BEGIN IF NEW.a > 1 THEN INSERT INTO u (x, y) VALUES (NEW.a, now()); END IF; END"])),
            ("u", base(&["UPDATE v JOIN `w` USING (a) SET v.a = 1"])),
            ("v", base(&[])),
            ("w", base(&[])),
            ("x", base(&[])),
        ]);
        assert_eq!(tables(&reach), ["t", "u", "v", "w", "x"], "x may be a table's name or a column's");
        assert_eq!((reach.session, reach.by_reading), (SessionEffect::Settings, false));
        assert_eq!(reach_in(vec![("t", base(&["SET NEW.a = 1"]))]).session, SessionEffect::None);
        assert_eq!(reach_in(vec![("t", base(&["SET time_zone = '+01:00'"]))]).session, SessionEffect::Settings);
        let odd = reach_in(vec![("t", base(&["CREATE TEMPORARY TABLE u (a INT)"]))]);
        assert_eq!(odd.session, SessionEffect::Anything);
        for body in
            ["CALL p()", "SET NEW.a = f(1)", "SET NEW.a = mid (1)", "SET NEW.a = `left`(1)", "SET NEW.a = d.f(1)"]
        {
            assert_eq!(reach_in(vec![("t", base(&[body]))]), Reach { by_reading: false, ..Reach::unknown() }, "{body}");
        }
    }

    #[test]
    fn views_and_merge_tables_stand_for_others() {
        let view = |text: &str| Definition { kind: TableKind::View(text.into()), triggers: vec![] };
        let reach = reach_in(vec![
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
        assert_eq!((tables(&reach), reach.by_reading), (vec!["t", "u", "v", "w"], false));
        assert_eq!(reach_in(vec![("t", view("select `d`.`f`(1) AS `a` from `d`.`u`"))]), Reach::unknown());
        let text = "CREATE TABLE `t` (\n  `a` int(11)\n) ENGINE=MRG_MyISAM INSERT_METHOD=LAST UNION=(`u`,`d`.`w`)";
        let merge = Definition { kind: TableKind::Merge(text.into()), triggers: vec![] };
        let reach = reach_in(vec![("t", merge), ("u", base(&[])), ("w", base(&[]))]);
        assert_eq!(tables(&reach), ["t", "u", "w"]);
        let federated = Definition { kind: TableKind::Base { engine: "FEDERATED".into() }, triggers: vec![] };
        assert_eq!(reach_in(vec![("t", federated)]).tables, None);
    }
}
