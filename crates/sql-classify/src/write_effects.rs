//! The tables that change beside those that a statement names: the tables behind views and MERGE
//! tables, and those that triggers and stored routines write.
//!
//! All of it follows from definitions. The caller looks them up, one object at a time
//! ([`WriteEffectsBuilder`]).

use crate::effects::{Effects, SessionEffect, Writes};
use crate::routine_name::{RoutineKind, RoutineName};
use crate::scanner::{DoubleQuotes, Lexis};
use crate::table_name::TableName;
use crate::tokens::{Calls, Tokens};
use std::collections::BTreeSet;
use store::Namespace;

/// The part of a table's definition that determines which other tables change with it.
#[derive(Clone, Debug)]
pub struct TableDefinition {
    pub kind: TableKind,
    /// The bodies of its triggers, except for the gateway's own.
    pub triggers: Vec<Body>,
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

/// The body of a trigger or a stored routine.
#[derive(Clone, Debug)]
pub struct Body {
    /// `None`: it is not visible.
    pub text: Option<String>,
    /// The `sql_mode` in which it is executed.
    pub sql_mode: String,
}

/// A schema object whose definition determines the effects of a statement.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SchemaObject {
    Table(Box<str>, Box<str>),
    Routine(RoutineKind, Box<str>, Box<str>),
}

/// The definition of an object.
#[derive(Clone, Debug)]
pub enum Definition {
    Table(TableDefinition),
    /// `None`: there is no such routine. A function may be built into the server, or loaded.
    Routine(Option<Body>),
}

/// What an access to a table changes, or calling a routine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteEffects {
    /// Tables that change; `None`: any may.
    pub tables: Option<Vec<Namespace>>,
    pub session: SessionEffect,
}

/// An access to a schema object, whose effects follow from definitions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Reads a table. A view may call functions.
    Read(SchemaObject),
    /// Changes rows of a table.
    Write(SchemaObject),
    Call(SchemaObject),
}

impl Access {
    pub fn object(&self) -> &SchemaObject {
        match self {
            Access::Read(object) | Access::Write(object) | Access::Call(object) => object,
        }
    }
}

impl WriteEffects {
    pub fn unknown() -> WriteEffects {
        WriteEffects { tables: None, session: SessionEffect::Anything }
    }
}

/// More objects than these are not followed.
const OBJECTS_MAX: usize = 200;

/// Engines whose tables change only by statements that name them.
const ENGINES_WITH_OWN_ROWS: &[&str] =
    &["InnoDB", "Aria", "MyISAM", "MEMORY", "CSV", "ARCHIVE", "BLACKHOLE", "ROCKSDB"];

impl SchemaObject {
    /// Names of routines are the same in upper and lower case.
    pub fn routine(kind: RoutineKind, schema: &str, name: &str) -> SchemaObject {
        SchemaObject::Routine(kind, schema.into(), name.to_lowercase().into())
    }

    pub fn table(table: &Namespace) -> SchemaObject {
        SchemaObject::Table(table.database.clone(), table.collection.clone())
    }
}

/// Follows the definitions of an object and of the objects that they mention.
///
/// The caller takes each access from [`next_access`](Self::next_access), looks up the definition of
/// the object, and passes that to [`add`](Self::add).
#[derive(Debug)]
pub struct WriteEffectsBuilder {
    effects: WriteEffects,
    open: Vec<Access>,
    seen: BTreeSet<Access>,
    /// Names of tables are lower case.
    ignores_case: bool,
}

impl WriteEffectsBuilder {
    /// `ignores_case`: names of tables are lower case.
    pub fn new(access: Access, ignores_case: bool) -> WriteEffectsBuilder {
        let effects = WriteEffects { tables: Some(Vec::new()), session: SessionEffect::None };
        WriteEffectsBuilder { effects, open: vec![access], seen: BTreeSet::new(), ignores_case }
    }

    /// Returns an access to an object whose definition is needed; `None` when all have been added.
    pub fn next_access(&mut self) -> Option<Access> {
        while let Some(next) = self.open.pop() {
            if self.seen.insert(next.clone()) {
                return Some(next);
            }
        }
        None
    }

    /// Adds the definition of an object. Returns `false` when there are too many objects to follow.
    pub fn add(&mut self, access: Access, definition: &Definition) -> bool {
        let is_first = self.seen.len() == 1;
        match (access, definition) {
            (Access::Read(SchemaObject::Table(database, _)), Definition::Table(definition)) => {
                if let TableKind::View(text) = &definition.kind {
                    self.add_query(&database, text, Access::Read);
                }
            }
            (Access::Write(SchemaObject::Table(database, name)), Definition::Table(definition)) => {
                if is_first || !matches!(definition.kind, TableKind::Absent | TableKind::Sequence) {
                    self.add_table(&database, definition);
                    let table = Namespace::new(&database, &name);
                    if let Some(tables) = &mut self.effects.tables
                        && !tables.contains(&table)
                    {
                        tables.push(table);
                    }
                }
            }
            (Access::Call(SchemaObject::Routine(_, database, _)), Definition::Routine(Some(body))) => {
                self.add_body(&database, body);
            }
            _ => self.add_anything(),
        }
        self.seen.len() + self.open.len() <= OBJECTS_MAX
    }

    pub fn finish(self) -> WriteEffects {
        self.effects
    }

    fn add_table(&mut self, database: &str, definition: &TableDefinition) {
        match &definition.kind {
            TableKind::Absent | TableKind::Sequence => {}
            TableKind::Base { engine } if has_own_rows(engine) => {}
            TableKind::Base { .. } => self.effects.tables = None,
            TableKind::Merge(text) => match text.rsplit_once("UNION=") {
                Some((_, list)) => self.add_query(database, list, Access::Write),
                None => self.add_anything(),
            },
            TableKind::View(text) => self.add_query(database, text, Access::Write),
        }
        definition.triggers.iter().for_each(|body| self.add_body(database, body));
    }

    /// Adds accesses to the tables that a query may name, and calls of its functions.
    fn add_query(&mut self, database: &str, text: &str, access: fn(SchemaObject) -> Access) {
        let Ok(tokens) = Tokens::of(text, Lexis::default()) else { return self.add_anything() };
        let Some(tables) = tokens.possible_tables() else { return self.add_anything() };
        self.open_tables(tables, database, access);
        self.open_calls(tokens.calls(), database);
    }

    fn add_body(&mut self, database: &str, body: &Body) {
        let Some(effects) = body.effects() else { return self.add_anything() };
        match effects.writes {
            Writes::Nothing => {}
            Writes::Tables(tables) => self.open_tables(tables, database, Access::Write),
            Writes::AnyRows | Writes::Everything => return self.add_anything(),
        }
        self.open_tables(effects.reads, database, Access::Read);
        self.open_calls(effects.calls, database);
        self.effects.session = self.effects.session.max(effects.session);
    }

    fn add_anything(&mut self) {
        (self.effects.tables, self.effects.session) = (None, SessionEffect::Anything);
    }

    fn open_tables(&mut self, tables: Vec<TableName>, database: &str, access: fn(SchemaObject) -> Access) {
        let lower = |name: &str| if self.ignores_case { name.to_lowercase() } else { name.to_owned() };
        for TableName { schema, name } in tables {
            let schema = lower(schema.as_deref().unwrap_or(database));
            self.open.push(access(SchemaObject::Table(schema.into(), lower(&name).into())));
        }
    }

    fn open_calls(&mut self, calls: Calls, database: &str) {
        if calls.are_more {
            self.add_anything();
        }
        for RoutineName { kind, schema, name } in calls.routines {
            let schema = schema.as_deref().unwrap_or(database);
            self.open.push(Access::Call(SchemaObject::routine(kind, schema, &name)));
        }
    }
}

impl Body {
    /// Returns what executing the body does. `None`: it is not visible, or cannot be read.
    fn effects(&self) -> Option<Effects> {
        let has = |mode: &str| self.sql_mode.contains(mode);
        // A procedure may be called there by its name alone.
        if has("ORACLE") {
            return None;
        }
        let double_quotes = if has("ANSI_QUOTES") { DoubleQuotes::Names } else { DoubleQuotes::Strings };
        let plain_backslashes = has("NO_BACKSLASH_ESCAPES");
        let lexis = Lexis { double_quotes, plain_backslashes, ..Lexis::default() };
        Some(body_effects(&Tokens::of(self.text.as_deref()?, lexis).ok()?))
    }
}

/// Returns what executing statements with their declarations does: the body of a trigger, of a
/// routine or of a block.
pub fn body_effects(tokens: &Tokens<'_>) -> Effects {
    let is_dynamic = tokens.has_any_word(&["PREPARE", "EXECUTE", "XA"]);
    let tables = tokens.possible_tables().filter(|_| !is_dynamic && !defines(tokens));
    let Some(tables) = tables else { return Effects::unknown() };
    let mut calls = tokens.body_calls();
    for (at, token) in tokens.as_slice().iter().enumerate() {
        if token.is_word("CALL") {
            calls.add(tokens.routine_after(at + 1, RoutineKind::Procedure));
        }
    }
    let changes_rows = tokens.has_any_word(&["INSERT", "UPDATE", "DELETE", "REPLACE", "TRUNCATE", "LOAD"]);
    let session = session_effect(tokens);
    match changes_rows {
        true => Effects { writes: Writes::Tables(tables), calls, session, ..Effects::default() },
        false => Effects { reads: tables, calls, session, ..Effects::default() },
    }
}

/// Returns whether a body may change definitions of other tables than temporary ones.
fn defines(tokens: &Tokens<'_>) -> bool {
    let list = tokens.as_slice();
    let is_definition = |at: usize| {
        let words = ["CREATE", "ALTER", "DROP", "RENAME", "GRANT", "REVOKE", "INSTALL", "UNINSTALL"];
        let next = list.get(at + 1).filter(|_| words.iter().any(|word| list[at].is_word(word)));
        next.is_some_and(|next| !next.is_word("TEMPORARY"))
    };
    (0..list.len()).any(is_definition)
}

fn has_own_rows(engine: &str) -> bool {
    ENGINES_WITH_OWN_ROWS.iter().any(|own| own.eq_ignore_ascii_case(engine))
}

/// Returns what a trigger does to the session that fires it.
fn session_effect(tokens: &Tokens<'_>) -> SessionEffect {
    let table_effects = ["TEMPORARY", "ISOLATION", "TX_ISOLATION", "TX_READ_ONLY", "LOCK", "UNLOCK", "ROLE"];
    let list = tokens.as_slice();
    let begins = |at: usize| at > 0 && list[at - 1].is_word("START");
    let sets_transaction = (0..list.len()).any(|at| list[at].is_word("TRANSACTION") && !begins(at));
    if sets_transaction || tokens.has_any_word(&table_effects) {
        SessionEffect::Anything
    } else if sets_more_than_columns(tokens) {
        SessionEffect::Settings
    } else {
        SessionEffect::None
    }
}

/// Returns whether a SET may assign a setting: it begins with a name other than NEW or a user
/// variable, or has several parts.
fn sets_more_than_columns(tokens: &Tokens<'_>) -> bool {
    let list = tokens.as_slice();
    list.iter().enumerate().any(|(at, token)| {
        let rest = list.get(at + 1..).unwrap_or_default();
        let end = rest.iter().position(|token| token.is_symbol(";")).unwrap_or(rest.len());
        token.is_word("SET")
            && (rest[..end].iter().any(|token| token.is_symbol(","))
                || !matches!(rest, [new, period, ..] if new.is_word("NEW") && period.is_symbol("."))
                    && !rest.first().is_some_and(|first| is_user_variable(first.token.text)))
    })
}

fn is_user_variable(text: &str) -> bool {
    text.starts_with('@') && !text.starts_with("@@")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(text: &str) -> Body {
        Body { text: Some(text.to_owned()), sql_mode: String::new() }
    }

    fn base(triggers: &[&str]) -> TableDefinition {
        let kind = TableKind::Base { engine: "InnoDB".into() };
        TableDefinition { kind, triggers: triggers.iter().map(|text| body(text)).collect() }
    }

    /// Effects of an access in the schema `d`, where these tables and routines exist.
    fn effects_of(access: Access, tables: &[(&str, TableDefinition)], routines: &[(&str, Body)]) -> WriteEffects {
        let mut builder = WriteEffectsBuilder::new(access, false);
        while let Some(access) = builder.next_access() {
            let definition = match access.object() {
                SchemaObject::Table(database, name) => {
                    let found = tables.iter().find(|(other, _)| *other == &**name && &**database == "d");
                    let absent = TableDefinition { kind: TableKind::Absent, triggers: vec![] };
                    Definition::Table(found.map_or(absent, |(_, definition)| definition.clone()))
                }
                SchemaObject::Routine(_, _, name) => {
                    Definition::Routine(routines.iter().find(|(other, _)| *other == &**name).map(|it| it.1.clone()))
                }
            };
            assert!(builder.add(access, &definition));
        }
        builder.finish()
    }

    fn effects_in(definitions: Vec<(&'static str, TableDefinition)>) -> WriteEffects {
        effects_of(Access::Write(SchemaObject::table(&Namespace::new("d", "t"))), &definitions, &[])
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
        assert_eq!(effects.session, SessionEffect::Settings);
        assert_eq!(effects_in(vec![("t", base(&["SET NEW.a = 1"]))]).session, SessionEffect::None);
        assert_eq!(effects_in(vec![("t", base(&["SET time_zone = '+01:00'"]))]).session, SessionEffect::Settings);
        let temporary = effects_in(vec![("t", base(&["CREATE TEMPORARY TABLE u (a INT)"]))]);
        assert_eq!(temporary.session, SessionEffect::Anything);
        for body in
            ["CALL p()", "SET NEW.a = f(1)", "SET NEW.a = mid (1)", "SET NEW.a = `left`(1)", "SET NEW.a = d.f(1)"]
        {
            assert_eq!(effects_in(vec![("t", base(&[body]))]), WriteEffects::unknown(), "{body}");
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
        assert_eq!(tables(&effects), ["t", "u", "v", "w"]);
        assert_eq!(effects_in(vec![("t", view("select `d`.`f`(1) AS `a` from `d`.`u`"))]), WriteEffects::unknown());
        let text = "CREATE TABLE `t` (\n  `a` int(11)\n) ENGINE=MRG_MyISAM INSERT_METHOD=LAST UNION=(`u`,`d`.`w`)";
        let merge = TableDefinition { kind: TableKind::Merge(text.into()), triggers: vec![] };
        let effects = effects_in(vec![("t", merge), ("u", base(&[])), ("w", base(&[]))]);
        assert_eq!(tables(&effects), ["t", "u", "w"]);
        let federated = TableDefinition { kind: TableKind::Base { engine: "FEDERATED".into() }, triggers: vec![] };
        assert_eq!(effects_in(vec![("t", federated)]).tables, None);
    }

    #[test]
    fn routines_write_to_the_tables_that_their_bodies_mention() {
        let call = |name: &str, routines: &[(&str, Body)]| {
            let procedure = SchemaObject::Routine(RoutineKind::Procedure, "d".into(), name.into());
            effects_of(
                Access::Call(procedure),
                &[("t", base(&["UPDATE u SET a = 1"])), ("u", base(&[])), ("v", base(&[]))],
                routines,
            )
        };
        let nothing = WriteEffects { tables: Some(vec![]), session: SessionEffect::None };
        assert_eq!(call("nop", &[("nop", body("SELECT 1"))]), nothing);
        assert_eq!(call("nop", &[("nop", body("BEGIN END"))]), nothing);
        assert_eq!(tables(&call("p", &[("p", body("UPDATE t SET a = x"))])), ["t", "u"]);
        let nested = [
            ("p", body("BEGIN DECLARE x INT DEFAULT f(1); CALL Q(x); END")),
            ("q", body("CALL p()")),
            ("f", body("RETURN (SELECT a FROM v)")),
        ];
        assert_eq!(call("p", &nested), nothing, "they only read");
        assert_eq!(call("p", &[("p", body("SELECT f(1)"))]).tables, None, "no such function");
        for text in [
            "EXECUTE IMMEDIATE x",
            "BEGIN PREPARE s FROM @x; EXECUTE s; END",
            "CREATE TABLE x (a INT)",
            "BEGIN DROP TABLE t; END",
            "XA COMMIT 'x'",
        ] {
            assert_eq!(call("p", &[("p", body(text))]).tables, None, "{text}");
        }
        let temporary = call("p", &[("p", body("CREATE TEMPORARY TABLE v SELECT 1"))]);
        assert_eq!((tables(&temporary), temporary.session), (vec![], SessionEffect::Anything));
        let view = TableDefinition { kind: TableKind::View("select `d`.`f`(1) AS `a`".into()), triggers: vec![] };
        let reading = Access::Read(SchemaObject::table(&Namespace::new("d", "w")));
        let effects = effects_of(
            reading,
            &[("w", view), ("v", base(&[]))],
            &[("f", body("BEGIN UPDATE v SET a = 1; RETURN 1; END"))],
        );
        assert_eq!(tables(&effects), ["v"], "a view that calls a function");
        let hidden = Body { text: None, sql_mode: String::new() };
        assert_eq!(call("p", &[("p", hidden)]).tables, None);
        let modes = |text: &str, sql_mode: &str| {
            let body = Body { text: Some(text.to_owned()), sql_mode: sql_mode.to_owned() };
            call("p", &[("p", body)])
        };
        assert_eq!(tables(&modes(r#"UPDATE "v" SET a = 1"#, "ANSI_QUOTES")), ["v"]);
        assert_eq!(tables(&modes(r"BEGIN SET @x = '\'; UPDATE v SET a = '\'; END", "NO_BACKSLASH_ESCAPES")), ["v"]);
        assert_eq!(modes("BEGIN q; END", "ORACLE").tables, None);
    }
}
