//! A scenario: the initial data, the operations of users and their rate, and the checks at the end.
//!
//! Parses TOML into a scenario that can be run. Errors name the line and the key.

mod fields;
#[cfg(test)]
mod tests;

use super::generator::{self, Scope};
use super::template::{self, Template};
use document::ValueBuf;
use fields::Fields;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use strict_toml::{Source, TomlError};

pub struct Scenario {
    pub about: String,
    /// Whether servers must support transactions.
    pub needs_transactions: bool,
    pub run: Run,
    pub setup: Vec<Setup>,
    pub operations: Vec<Operation>,
    pub checks: Vec<Check>,
    /// Names of the sequences.
    pub sequences: Vec<String>,
}

/// The number of users, their schedule, and the number of connections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub processes: u32,
    /// Connections of each process.
    pub pool: u32,
    /// Seconds of the run.
    pub iterations: u32,
    pub users_per_second: u32,
    /// The length of the slices in which the users of a second start.
    pub slice_ms: u32,
    /// The time after the last second after which unfinished users are abandoned.
    pub overtime_seconds: u32,
}

pub enum Setup {
    /// A command that is run `repeat` times.
    Command { command: Template, repeat: u64 },
    /// `count` documents from one template.
    Insert { collection: String, count: u64, document: Template },
}

/// The operation of a user.
pub struct Operation {
    pub name: String,
    /// The share of users, relative to the other operations.
    pub weight: u64,
    /// Whether the steps are one transaction.
    pub transaction: bool,
    /// Values drawn once per user; they are the first variables.
    pub values: Vec<Template>,
    pub steps: Vec<Step>,
}

pub struct Step {
    pub name: String,
    pub command: Template,
    /// The user stops unless the reply has a value here that is not null, false, zero or empty.
    pub stop_unless: Option<String>,
    /// The user stops if the server returns one of these errors.
    pub stop_on: Vec<i64>,
    /// Paths of values in the reply, which become the next variables.
    pub take: Vec<String>,
}

/// A condition that must hold at the end.
pub struct Check {
    pub name: String,
    pub command: Template,
    /// A path in the reply.
    pub result: String,
    pub equals: Template,
}

const DEFAULT_RUN: Run =
    Run { processes: 4, pool: 50, iterations: 25, users_per_second: 1000, slice_ms: 10, overtime_seconds: 30 };

type Constants = Vec<(String, ValueBuf)>;

impl Scenario {
    /// Parses a scenario. `set` are pairs of a name and a value that replace the scenario's own
    /// values.
    pub fn read(text: &str, set: &[(String, String)]) -> Result<Scenario, TomlError> {
        let source = Source::new(text);
        let table = source.parse()?;
        let keys = ["about", "needs-transactions", "values", "run", "setup", "operation", "check"];
        let fields = Fields::open(source, "the top of the file", &table, &keys)?;
        let run = read_run(source, fields.table("run")?)?;
        let about = fields.text("about")?.unwrap_or_default();
        let needs_transactions = fields.boolean("needs-transactions")?.unwrap_or(false);
        let constants = read_values(source, fields.table("values")?, set)?;
        let mut sequences = Vec::new();
        let setup = fields.tables("setup")?;
        let setup = setup.iter().map(|table| read_setup(source, table, &constants, &mut sequences));
        let setup = setup.collect::<Result<_, _>>()?;
        let operations = fields.tables("operation")?;
        let operations = operations.iter().map(|table| read_operation(source, table, &constants, &mut sequences));
        let operations = operations.collect::<Result<Vec<_>, _>>()?;
        if operations.iter().all(|operation| operation.weight == 0) {
            return Err(source.refuse(0, "there is no [[operation]] with a weight"));
        }
        let names: Vec<String> = operations.iter().map(|operation| operation.name.clone()).collect();
        if let Some(twice) = (1..names.len()).find(|at| names[..*at].contains(&names[*at])) {
            return Err(source.refuse(0, format!("two operations have the name {:?}", names[twice])));
        }
        let checks = fields.tables("check")?;
        let checks = checks.iter().map(|table| read_check(source, table, &constants, &names, &mut sequences));
        let checks = checks.collect::<Result<_, _>>()?;
        Ok(Scenario { about, needs_transactions, run, setup, operations, checks, sequences })
    }
}

impl Run {
    pub fn window(&self) -> Duration {
        Duration::from_secs(self.iterations.into())
    }
}

fn read_run(source: Source<'_>, table: Option<&toml::de::DeTable<'_>>) -> Result<Run, TomlError> {
    let Some(table) = table else { return Ok(DEFAULT_RUN) };
    let keys = ["processes", "pool", "iterations", "users-per-second", "slice-ms", "overtime-seconds"];
    let fields = Fields::open(source, "[run]", table, &keys)?;
    let number = |key, low, high, default: u32| {
        fields.integer(key, low, high).map(|given| given.map_or(default, |number| number as u32))
    };
    Ok(Run {
        processes: number("processes", 1, 64, DEFAULT_RUN.processes)?,
        pool: number("pool", 1, 10_000, DEFAULT_RUN.pool)?,
        iterations: number("iterations", 1, 86_400, DEFAULT_RUN.iterations)?,
        users_per_second: number("users-per-second", 1, 1_000_000, DEFAULT_RUN.users_per_second)?,
        slice_ms: number("slice-ms", 1, 1000, DEFAULT_RUN.slice_ms)?,
        overtime_seconds: number("overtime-seconds", 1, 3600, DEFAULT_RUN.overtime_seconds)?,
    })
}

/// Reads `[values]`, each of which may use those above it.
fn read_values(
    source: Source<'_>,
    table: Option<&toml::de::DeTable<'_>>,
    set: &[(String, String)],
) -> Result<Constants, TomlError> {
    let mut constants = Constants::new();
    for (key, value) in table.into_iter().flatten() {
        let name = key.get_ref().as_ref();
        check_name(source, key)?;
        let mut sequences = Vec::new();
        let mut scope = outer_scope(&constants, &mut sequences);
        let given = set.iter().find(|(set, _)| set == name);
        let template = match given {
            Some((_, given)) => {
                let given = format!("{name} = {given}");
                let own = Source::new(&given);
                let read = own.parse().and_then(|table| template::read_document(own, &table, &mut scope));
                let Template::Document(fields) = read.map_err(|refusal| in_set(source, key, &given, &refusal))? else {
                    continue;
                };
                fields.into_iter().next().map(|(_, template)| template)
            }
            None => Some(template::read(source, name, value, &mut scope)?),
        };
        let Some(template) = template else { continue };
        let drawn = template.value(&mut generator::Draw::from(&mut generator::Source::new(0, &[], 0, 1)));
        let drawn = drawn.map_err(|message| source.refuse(value.span().start, format!("{name}: {message}")))?;
        constants.push((name.to_owned(), drawn));
    }
    match set.iter().find(|(name, _)| !constants.iter().any(|(known, _)| known == name)) {
        Some((name, _)) => Err(source.refuse(0, unknown_value(name, &constants))),
        None => Ok(constants),
    }
}

fn in_set(source: Source<'_>, key: &strict_toml::Key<'_>, given: &str, refusal: &TomlError) -> TomlError {
    source.refuse(key.span().start, format!("set to {given:?}: {}", refusal.message))
}

fn unknown_value(name: &str, constants: &Constants) -> String {
    let known: Vec<&str> = constants.iter().map(|(name, _)| name.as_str()).collect();
    match known.as_slice() {
        [] => format!("there is no value {name:?} to set; the scenario has no [values]"),
        known => format!("there is no value {name:?} to set in [values]; there are {}", known.join(", ")),
    }
}

/// Fails unless expressions can use the name.
fn check_name(source: Source<'_>, key: &strict_toml::Key<'_>) -> Result<(), TomlError> {
    let name = key.get_ref();
    let begins = name.chars().next().is_some_and(|first| first.is_ascii_alphabetic());
    if begins && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Ok(());
    }
    let message = format!("{name}: a name is made of letters, digits and _, so that expressions can use it");
    Err(source.refuse(key.span().start, message))
}

fn outer_scope<'s>(constants: &'s Constants, sequences: &'s mut Vec<String>) -> Scope<'s> {
    Scope { constants, sequences, variables: Vec::new(), operations: &[], in_array: false }
}

fn read_setup(
    source: Source<'_>,
    table: &toml::de::DeTable<'_>,
    constants: &Constants,
    sequences: &mut Vec<String>,
) -> Result<Setup, TomlError> {
    let mut scope = outer_scope(constants, sequences);
    if table.contains_key("insert") {
        let fields = Fields::open(source, "[[setup]] with insert", table, &["insert", "count", "document"])?;
        let count = fields.count("count", &mut scope)?.unwrap_or(1);
        let document = fields.document("document", &mut scope)?;
        return Ok(Setup::Insert { collection: fields.text("insert")?.unwrap_or_default(), count, document });
    }
    let fields = Fields::open(source, "[[setup]]", table, &["insert", "command", "repeat"])?;
    let repeat = fields.count("repeat", &mut scope)?.unwrap_or(1);
    Ok(Setup::Command { command: fields.document("command", &mut scope)?, repeat })
}

fn read_operation(
    source: Source<'_>,
    table: &toml::de::DeTable<'_>,
    constants: &Constants,
    sequences: &mut Vec<String>,
) -> Result<Operation, TomlError> {
    let fields = Fields::open(source, "[[operation]]", table, &["name", "weight", "transaction", "values", "step"])?;
    let mut scope = outer_scope(constants, sequences);
    let mut values = Vec::new();
    for (key, value) in fields.table("values")?.into_iter().flatten() {
        check_name(source, key)?;
        values.push(template::read(source, key.get_ref(), value, &mut scope)?);
        scope.variables.push(key.get_ref().clone().into_owned());
    }
    let steps = fields.tables("step")?;
    let steps = steps.iter().map(|table| read_step(source, table, &mut scope));
    let steps = steps.collect::<Result<Vec<_>, _>>()?;
    if steps.is_empty() {
        return Err(fields.refuse("an operation needs at least one [[operation.step]]"));
    }
    Ok(Operation {
        name: fields.required_text("name")?,
        weight: fields.integer("weight", 0, 1_000_000)?.unwrap_or(1) as u64,
        transaction: fields.boolean("transaction")?.unwrap_or(false),
        values,
        steps,
    })
}

fn read_step(source: Source<'_>, table: &toml::de::DeTable<'_>, scope: &mut Scope<'_>) -> Result<Step, TomlError> {
    let keys = ["name", "command", "stop-unless", "stop-on", "take"];
    let fields = Fields::open(source, "[[operation.step]]", table, &keys)?;
    let command = fields.document("command", scope)?;
    let mut take = Vec::new();
    for (key, value) in fields.table("take")?.into_iter().flatten() {
        check_name(source, key)?;
        let Some(path) = value.get_ref().as_str() else {
            let message = format!("{}: a path in the reply is expected here, such as \"value._id\"", key.get_ref());
            return Err(source.refuse(value.span().start, message));
        };
        take.push(path.to_owned());
        scope.variables.push(key.get_ref().clone().into_owned());
    }
    let name = match (fields.text("name")?, &command) {
        (Some(name), _) => name,
        // The name of the command describes the step.
        (None, Template::Document(parts)) => {
            let first = parts.first().and_then(|(key, _)| key.constant());
            first.and_then(|key| key.as_value().as_str()).unwrap_or("step").to_owned()
        }
        (None, _) => "step".to_owned(),
    };
    Ok(Step { name, command, stop_unless: fields.text("stop-unless")?, stop_on: fields.integers("stop-on")?, take })
}

fn read_check(
    source: Source<'_>,
    table: &toml::de::DeTable<'_>,
    constants: &Constants,
    operations: &[String],
    sequences: &mut Vec<String>,
) -> Result<Check, TomlError> {
    let fields = Fields::open(source, "[[check]]", table, &["name", "command", "result", "equals"])?;
    let mut scope = Scope { operations, ..outer_scope(constants, sequences) };
    Ok(Check {
        name: fields.required_text("name")?,
        command: fields.document("command", &mut scope)?,
        result: fields.required_text("result")?,
        equals: fields.template("equals", &mut scope)?,
    })
}
