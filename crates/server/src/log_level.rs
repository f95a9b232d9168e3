//! How much is logged: `logLevel`, and `logComponentVerbosity` by component.
//!
//! The log has no components: the highest level set for any of them applies to all.

use document::{Doc, DocWriter, Element, Value};
use error::{Error, Result};
use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

/// The highest level.
const LEVEL_MAX: i64 = 5;

/// The level of a component that inherits that of its parent.
const INHERITED: i32 = -1;

/// The full names of the components, in MongoDB's order.
const COMPONENTS: &[&str] = &[
    "accessControl",
    "assert",
    "command",
    "control",
    "executor",
    "geo",
    "index",
    "network",
    "network.asio",
    "network.bridge",
    "network.connectionPool",
    "processHealth",
    "query",
    "replication",
    "replication.election",
    "replication.heartbeats",
    "replication.initialSync",
    "replication.rollback",
    "sharding",
    "sharding.rangeDeleter",
    "sharding.shardingCatalogRefresh",
    "sharding.migration",
    "sharding.reshard",
    "sharding.migrationPerf",
    "storage",
    "storage.recovery",
    "storage.journal",
    "storage.wt",
    "storage.wt.wtBackup",
    "storage.wt.wtCheckpoint",
    "storage.wt.wtCompact",
    "storage.wt.wtEviction",
    "storage.wt.wtHS",
    "storage.wt.wtRecovery",
    "storage.wt.wtRTS",
    "storage.wt.wtSalvage",
    "storage.wt.wtTiered",
    "storage.wt.wtTimestamp",
    "storage.wt.wtTransaction",
    "storage.wt.wtVerify",
    "storage.wt.wtWriteLog",
    "write",
    "ftdc",
    "tracking",
    "transaction",
    "tenantMigration",
    "test",
];

/// The levels set so far, by the component's full name; `""` stands for the whole log.
static LEVELS: LazyLock<Mutex<BTreeMap<String, i32>>> = LazyLock::new(Mutex::default);

type Apply = Box<dyn Fn(i32) + Send + Sync>;

/// Applies a level to the log.
static APPLY: OnceLock<Apply> = OnceLock::new();

/// Registers the function that applies a level. Only the first call counts.
pub fn on_change(apply: impl Fn(i32) + Send + Sync + 'static) {
    let _ = APPLY.set(Box::new(apply));
}

/// Returns the level of the whole log.
pub fn level() -> i32 {
    lock().get("").copied().unwrap_or_default()
}

pub fn set_level(level: i64) {
    apply([(String::new(), level.clamp(0, LEVEL_MAX) as i32)]);
}

/// Sets the levels that a `logComponentVerbosity` names. Fails with 2 or 14 if it is malformed.
pub fn set(field: Element<'_>) -> Result<()> {
    let Some(levels) = field.value().as_document() else {
        let shown = values::text::element(field.key(), field.value());
        return Err(Error::type_mismatch(format!("log component verbosity is not a BSON object: {shown}")));
    };
    let mut found = Vec::new();
    read(levels, "", &mut found)?;
    apply(found);
    Ok(())
}

fn read(levels: Doc<'_>, within: &str, found: &mut Vec<(String, i32)>) -> Result<()> {
    let shown = if within.is_empty() { "default" } else { within };
    for field in levels.elements() {
        let name = field.key();
        let level = || Some(field.value()).filter(|value| value.kind().is_number()).and_then(level_of);
        if name == "verbosity" {
            let level = level().ok_or_else(|| {
                let kind = field.kind.alias();
                Error::bad_value(format!("Expected {shown}.verbosity to be a number, but found {kind}"))
            })?;
            // The whole log inherits from nothing.
            found.push((within.to_owned(), if within.is_empty() { level.max(0) } else { level }));
            continue;
        }
        let full = if within.is_empty() { name.to_owned() } else { format!("{within}.{name}") };
        if !COMPONENTS.contains(&&*full) {
            return Err(Error::bad_value(format!("Invalid component name {shown}.{name}")));
        }
        match (field.value(), level()) {
            (Value::Document(inner), _) => read(inner, &full, found)?,
            (_, Some(level)) => found.push((full, level)),
            (_, None) => {
                let message = format!("Invalid type {}for component {shown}.{name}", field.kind.alias());
                return Err(Error::bad_value(message));
            }
        }
    }
    Ok(())
}

fn level_of(value: Value<'_>) -> Option<i32> {
    Some(value.to_i64()?.clamp(INHERITED.into(), LEVEL_MAX) as i32)
}

/// Appends the levels of all components.
pub fn write(writer: &mut DocWriter<'_>) {
    let levels = lock();
    writer.append("verbosity", levels.get("").copied().unwrap_or_default());
    write_within("", &levels, writer);
}

/// Appends the components of a parent.
fn write_within(parent: &str, levels: &BTreeMap<String, i32>, writer: &mut DocWriter<'_>) {
    for full in COMPONENTS {
        let (within, name) = full.rsplit_once('.').unwrap_or(("", full));
        if within == parent {
            let mut component = writer.document(name);
            component.append("verbosity", levels.get(*full).copied().unwrap_or(INHERITED));
            write_within(full, levels, &mut component);
        }
    }
}

fn apply(levels: impl IntoIterator<Item = (String, i32)>) {
    let mut all = lock();
    all.extend(levels);
    if let Some(apply_level) = APPLY.get() {
        apply_level(all.values().copied().max().unwrap_or_default().max(0));
    }
}

fn lock() -> MutexGuard<'static, BTreeMap<String, i32>> {
    LEVELS.lock().unwrap_or_else(PoisonError::into_inner)
}
