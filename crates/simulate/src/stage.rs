//! Before and after a run, over one connection: the initial data, and the checks at the end.

use super::generator::{Draw, Source};
use super::scenario::{Check, Scenario, Setup};
use super::template::Template;
use super::user::{DATABASE, find};
use anyhow::{Context, Result, anyhow};
use document::{DocBuf, ValueBuf, doc};
use harness::address::Address;
use harness::connection::Connection;
use harness::message::{Message, check_ok};
use serde::Serialize;

/// Documents per insert command.
const BATCH: u64 = 1000;

/// The result of a check.
#[derive(Clone, Debug, Serialize)]
pub struct CheckResult {
    pub check: String,
    pub holds: bool,
    pub expected: String,
    pub found: String,
}

/// Recreates the database and fills it. Returns the next number of each sequence.
pub fn set_up(scenario: &Scenario, address: &Address, seed: u64) -> Result<Vec<i64>> {
    let mut connection = connect(address)?;
    connection.run_on(DATABASE, doc! { "dropDatabase": 1i32 })?;
    let mut source = Source::new(seed, &vec![0; scenario.sequences.len()], 0, 1);
    for (number, setup) in scenario.setup.iter().enumerate() {
        let done = match setup {
            Setup::Command { command, repeat } => repeat_command(&mut connection, command, *repeat, &mut source),
            Setup::Insert { collection, count, document } => {
                insert(&mut connection, collection, *count, document, &mut source)
            }
        };
        done.with_context(|| format!("set-up, number {}", number + 1))?;
    }
    Ok(source.sequences)
}

fn repeat_command(connection: &mut Connection, command: &Template, repeat: u64, source: &mut Source) -> Result<()> {
    for index in 0..repeat {
        let command = draw(command, index, source)?;
        connection.run_on(DATABASE, command)?;
    }
    Ok(())
}

fn insert(
    connection: &mut Connection,
    collection: &str,
    count: u64,
    document: &Template,
    source: &mut Source,
) -> Result<()> {
    let mut index = 0;
    while index < count {
        let end = count.min(index + BATCH);
        let documents = (index..end).map(|index| draw(document, index, source)).collect::<Result<Vec<_>>>()?;
        let documents = documents.iter().map(DocBuf::as_doc);
        let message = Message::with_sequence_on(DATABASE, doc! { "insert": collection }, "documents", documents);
        check_ok(connection.round_trip(&message)?)?;
        index = end;
    }
    Ok(())
}

fn draw(template: &Template, index: u64, source: &mut Source) -> Result<DocBuf> {
    let mut draw = Draw { index: index as i64, ..Draw::from(source) };
    template.document(&mut draw).map_err(|message| anyhow!(message))
}

/// Runs all checks. `done` is the number of users that have completed each operation.
pub fn check(scenario: &Scenario, address: &Address, done: &[u64]) -> Result<Vec<CheckResult>> {
    let mut connection = connect(address)?;
    let mut source = Source::new(0, &vec![0; scenario.sequences.len()], 0, 1);
    let each = scenario.checks.iter().map(|check| {
        run_check(check, &mut connection, &mut source, done).with_context(|| format!("checking {:?}", check.name))
    });
    each.collect()
}

fn run_check(check: &Check, connection: &mut Connection, source: &mut Source, done: &[u64]) -> Result<CheckResult> {
    let mut draw = Draw { done, ..Draw::from(source) };
    let expected = check.equals.value(&mut draw).map_err(|message| anyhow!(message))?;
    let command = check.command.document(&mut draw).map_err(|message| anyhow!(message))?;
    let body = connection.run_on(DATABASE, command)?;
    let found = find(body, &check.result).map(ValueBuf::from);
    let holds = found.as_ref().is_some_and(|found| document::equal(found.as_value(), expected.as_value()));
    let found = found.map_or_else(|| format!("no {}", check.result), |found| to_json(&found));
    Ok(CheckResult { check: check.name.clone(), holds, expected: to_json(&expected), found })
}

/// Formats a value as JSON.
fn to_json(value: &ValueBuf) -> String {
    let mut text = Vec::new();
    document::json::value_to_json(value.as_value(), &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Drops the database.
pub fn clear(address: &Address) -> Result<()> {
    connect(address)?.run_on(DATABASE, doc! { "dropDatabase": 1i32 })?;
    Ok(())
}

/// Fails with the server's error if it has no transactions.
pub fn try_transaction(address: &Address) -> Result<()> {
    let mut connection = connect(address)?;
    connection.run_on(DATABASE, doc! { "create": "transactions" })?;
    let session = super::user::Session::new(&mut Source::new(0, &[], 0, 1));
    let mut find = doc! { "find": "transactions" };
    session.append_to(&mut find, true);
    let mut commit = doc! { "commitTransaction": 1i32 };
    session.append_to(&mut commit, false);
    connection.run_on(DATABASE, find)?;
    connection.run_on("admin", commit)?;
    Ok(())
}

pub fn connect(address: &Address) -> Result<Connection> {
    let mut connection = Connection::open(address)?;
    connection.handshake()?;
    Ok(connection)
}
