//! `readConcern`. Reads see committed and durable documents, which satisfies the weaker levels.

use crate::arguments;
use crate::arguments::is_absent;
use crate::table::spec::Spec;
use document::{Doc, Element, Value};
use error::{Code, Error, Result};
use server::Topology;
use server::cluster_clock::{ClusterClock, ClusterTime};

/// Checks a `readConcern`.
///
/// A replica set of one member and a router in front of one support linearizable reads; a
/// standalone server refuses them.
pub fn check_read_concern(element: Element<'_>, spec: &Spec, topology: &Topology) -> Result<()> {
    let command = spec.name;
    let Some(concern) = element.value().as_document() else {
        if spec.parses_shared("readConcern") {
            return Err(arguments::wrong_type(command, element, "object"));
        }
        return Err(Error::failed_to_parse("readConcern field should be an object"));
    };
    let after = AfterTime::read(concern)?;
    check_snapshot_time(concern)?;
    for field in concern.elements() {
        match (field.key(), field.value()) {
            ("level", Value::String("local")) => {}
            ("level", Value::String(level @ ("available" | "majority" | "linearizable" | "snapshot")))
                if !spec.read_concern.supports(level) =>
            {
                return Err(Error::new(
                    Code::INVALID_OPTIONS,
                    format!(
                        "Command {command} does not support {{ readConcern: {{ level: \"{level}\", {}provenance: \
                         \"clientSupplied\" }} }} :: caused by :: read concern not supported",
                        after.as_ref().map_or_else(String::new, AfterTime::displayed)
                    ),
                ));
            }
            ("level", Value::String("available" | "majority")) => {}
            ("level", Value::String("linearizable" | "snapshot")) if *topology != Topology::Standalone => {}
            ("level", Value::String("linearizable")) => {
                return Err(Error::new(
                    Code::NOT_A_REPLICA_SET,
                    "node needs to be a replica set member to use read concern",
                ));
            }
            ("level", Value::String("snapshot")) => {
                return Err(Error::new(
                    Code::NOT_A_REPLICA_SET,
                    "node needs to be a replica set member to use readConcern: snapshot",
                ));
            }
            ("level", _) => return Err(refuse_level(field)),
            ("provenance", _) => check_provenance(field)?,
            ("afterClusterTime" | "afterOpTime" | "atClusterTime", _) => {}
            (other, _) => {
                return Err(Error::new(Code::INVALID_OPTIONS, format!("Unrecognized option in readConcern: {other}")));
            }
        }
    }
    after.map_or(Ok(()), |after| after.check(spec, topology))
}

/// The error for a level that does not exist.
pub fn refuse_level(level: Element<'_>) -> Error {
    match level.value() {
        Value::String(_) => Error::failed_to_parse(
            "readConcern.level must be either 'local', 'majority', 'linearizable', 'available', or 'snapshot'",
        ),
        _ => {
            Error::type_mismatch(format!("\"level\" had the wrong type. Expected string, found {}", level.kind.alias()))
        }
    }
}

/// Returns a time in a document.
fn time_in(document: Doc<'_>, name: &str) -> Option<ClusterTime> {
    match document.get(name) {
        Some(Value::Timestamp { time, increment }) => Some(ClusterTime::new(time, increment)),
        _ => None,
    }
}

/// Waits for the time that a read concern names. That takes no time: each acknowledged write is
/// committed. Fails with 72 for a time that the clock has not reached.
pub fn wait_for_time(element: Element<'_>, clock: &ClusterClock) -> Result<()> {
    let concern = element.value().as_document().unwrap_or(Doc::EMPTY);
    if let Some(after) = time_in(concern, "afterClusterTime") {
        clock.wait_for(after, server::clock::now_seconds())?;
    }
    let operation = concern.get("afterOpTime").and_then(Value::as_document);
    if let Some(after) = operation.and_then(|operation| time_in(operation, "ts")) {
        clock.check_reached("afterOpTime", after)?;
    }
    Ok(())
}

/// Waits for the time that a read concern names ([`wait_for_time`]). Fails with 72 if the clock has
/// not reached the time of a snapshot.
pub fn wait_for_read_concern(element: Element<'_>, clock: &ClusterClock) -> Result<()> {
    wait_for_time(element, clock)?;
    match SnapshotTime::of(element) {
        Some(SnapshotTime::At(time)) if time == ClusterTime::default() => {
            Err(Error::new(Code::INVALID_OPTIONS, "atClusterTime cannot be a null timestamp"))
        }
        Some(SnapshotTime::At(time)) => clock.check_reached("atClusterTime", time),
        _ => Ok(()),
    }
}

/// The snapshot that a read concern demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotTime {
    Now,
    /// `atClusterTime`
    At(ClusterTime),
}

impl SnapshotTime {
    /// Returns the snapshot that a read concern demands, if its level is `snapshot`.
    pub fn of(concern: Element<'_>) -> Option<SnapshotTime> {
        let concern = concern.value().as_document()?;
        (concern.get("level")? == Value::String("snapshot"))
            .then(|| time_in(concern, "atClusterTime").map_or(SnapshotTime::Now, SnapshotTime::At))
    }
}

/// Fails with 14 if `atClusterTime` is no timestamp, and with 72 if the level is not `snapshot`.
pub fn check_snapshot_time(concern: Doc<'_>) -> Result<()> {
    match concern.get("atClusterTime") {
        None => Ok(()),
        Some(Value::Timestamp { .. }) if concern.get("afterClusterTime").is_some() => Err(Error::new(
            Code::INVALID_OPTIONS,
            "Specifying a timestamp for readConcern snapshot in a causally consistent session is not allowed. See \
             https://docs.mongodb.com/manual/core/read-isolation-consistency-recency/#causal-consistency",
        )),
        Some(Value::Timestamp { .. }) if concern.get("level") == Some(Value::String("snapshot")) => Ok(()),
        Some(Value::Timestamp { .. }) => {
            let message = "atClusterTime field can be set only if level is equal to snapshot";
            Err(Error::new(Code::INVALID_OPTIONS, message))
        }
        Some(value) => {
            let found = value.kind().alias();
            let message = format!("\"atClusterTime\" had the wrong type. Expected timestamp, found {found}");
            Err(Error::type_mismatch(message))
        }
    }
}

/// The time that a read must come after, by the clocks of replication.
enum AfterTime {
    Cluster { time: u32, increment: u32 },
    Operation,
}

impl AfterTime {
    fn read(concern: Doc<'_>) -> Result<Option<AfterTime>> {
        let invalid = |message: &str| Err(Error::new(Code::INVALID_OPTIONS, message));
        let mismatch = |name: &str, expected: &str, value: Value<'_>| {
            let found = value.kind().alias();
            Error::type_mismatch(format!("\"{name}\" had the wrong type. Expected {expected}, found {found}"))
        };
        let mut after = None;
        if let Some(value) = concern.get("afterOpTime") {
            let operation = value.as_document().ok_or_else(|| mismatch("afterOpTime", "object", value))?;
            if let Some(part) = ["ts", "t"].into_iter().find(|part| operation.get(part).is_none()) {
                return Err(Error::new(Code::NO_SUCH_KEY, format!("Missing expected field \"{part}\"")));
            }
            after = Some(AfterTime::Operation);
        }
        if let Some(value) = concern.get("afterClusterTime") {
            let Value::Timestamp { time, increment } = value else {
                return Err(mismatch("afterClusterTime", "timestamp", value));
            };
            if after.is_some() {
                return invalid("Can not specify both afterClusterTime and afterOpTime");
            }
            if concern.get("atClusterTime").is_some() {
                return invalid(
                    "Specifying a timestamp for readConcern snapshot in a causally consistent session is not allowed. See \
                     https://docs.mongodb.com/manual/core/read-isolation-consistency-recency/#causal-consistency",
                );
            }
            if matches!(concern.get("level"), Some(Value::String("available" | "linearizable"))) {
                return invalid(
                    "afterClusterTime field can be set only if level is equal to majority, local, or snapshot",
                );
            }
            if (time, increment) == (0, 0) {
                return invalid("afterClusterTime cannot be a null timestamp");
            }
            after = Some(AfterTime::Cluster { time, increment });
        }
        Ok(after)
    }

    fn displayed(&self) -> String {
        match self {
            AfterTime::Cluster { time, increment } => format!("afterClusterTime: Timestamp({time}, {increment}), "),
            AfterTime::Operation => String::new(),
        }
    }

    /// Fails for commands that may not name such a time, and without replication, which has none.
    fn check(&self, spec: &Spec, topology: &Topology) -> Result<()> {
        match self {
            AfterTime::Cluster { .. } if spec.refuses_after_cluster_time => {
                Err(Error::new(Code::INVALID_OPTIONS, "afterClusterTime is not allowed for this command"))
            }
            _ if *topology != Topology::Standalone => Ok(()),
            AfterTime::Operation => {
                Err(Error::new(Code::NOT_A_REPLICA_SET, "node needs to be a replica set member to use read concern"))
            }
            AfterTime::Cluster { .. } => Err(Error::new(
                Code::ILLEGAL_OPERATION,
                "Cannot specify afterClusterTime readConcern without replication enabled",
            )),
        }
    }
}

fn check_provenance(field: Element<'_>) -> Result<()> {
    const WITHIN: &str = "ReadConcernArgs::parse";
    if is_absent(field) {
        return Ok(());
    }
    match arguments::string(WITHIN, field)? {
        "clientSupplied" | "implicitDefault" | "customDefault" | "getLastErrorDefaults" => Ok(()),
        other => {
            let message = format!("Enumeration value '{other}' for field '{WITHIN}.provenance' is not a valid value.");
            Err(Error::bad_value(message))
        }
    }
}
