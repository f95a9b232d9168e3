//! Commands of replica sets and shards, which other servers refuse with an error of their own.

use crate::arguments;
use crate::call::Call;
use crate::command::catalog::collections::full_name;
use document::{DocWriter, Value};
use error::{Code, Error, Result};
use server::Topology;

/// `replSet…`
pub fn of_replica_sets(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let name = call.first().key();
    if matches!(call.worker.server.settings.topology, Topology::ReplicaSet { .. }) {
        if name == "replSetGetRBID" {
            reply.append("rbid", 1);
            return Ok(());
        }
        return Err(by_replica_set(name));
    }
    Err(match name {
        "replSetResizeOplog" => Error::new(Code::NAMESPACE_NOT_FOUND, "oplog does not exist"),
        "appendOplogNote" => without_replication("Must have replication set up to run \"appendOplogNote\""),
        "replSetInitiate" => without_replication("This node was not started with replication enabled."),
        "replSetHeartbeat" => without_replication("not running using replication"),
        _ => without_replication("not running with --replSet"),
    })
}

/// Returns the error of the presented replica set, which cannot be changed: that of a primary which
/// is the only member, where MongoDB has one.
fn by_replica_set(name: &str) -> Error {
    let not_secondary = |message: &str| Error::new(Code::NOT_SECONDARY, message);
    match name {
        "replSetAbortPrimaryCatchUp" => Error::new(Code::ILLEGAL_OPERATION, "The node is not in catch-up mode."),
        "replSetFreeze" => not_secondary("Cannot freeze node when primary or running for election, state: Primary"),
        "replSetInitiate" => Error::new(Code::ALREADY_INITIALIZED, "already initialized"),
        "replSetMaintenance" => not_secondary("primaries can't modify maintenance mode"),
        "replSetStepDown" => Error::new(Code::EXCEEDED_TIME_LIMIT, "No electable secondaries: this is the only member"),
        "replSetSyncFrom" => not_secondary("primaries don't sync"),
        _ => Error::new(Code::COMMAND_NOT_FOUND, format!("no such command: '{name}'")),
    }
}

fn without_replication(message: &str) -> Error {
    Error::new(Code::NO_REPLICATION_ENABLED, message)
}

/// Fails as commands between the servers of a sharded cluster do.
pub fn of_shards(_call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    Err(Error::new(Code::NO_SHARDING_ENABLED, "Cannot accept sharding commands if not started with --shardsvr"))
}

/// Fails as [`of_shards`] does, for commands that name a collection with its database.
pub fn of_sharded_collections(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let wrong_type = || Error::bad_value(format!("collection name has invalid type {}", call.first().kind.alias()));
    let name = call.first().value().as_str().ok_or_else(wrong_type)?;
    if full_name(name).is_none() {
        return Err(Error::new(Code::INVALID_NAMESPACE, format!("Invalid namespace specified '{name}'")));
    }
    of_shards(call, reply)
}

pub fn of_routers(_call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    Err(Error::new(Code::SHARDING_STATE_NOT_INITIALIZED, "Sharding is not enabled"))
}

/// `getClusterParameter` and `setClusterParameter`.
pub fn of_clusters(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    parse_cluster_parameter(call)?;
    let name = call.first().key();
    Err(Error::new(Code::ILLEGAL_OPERATION, format!("{name} cannot be run on standalones")))
}

/// Parses the operand of a command about the parameters of a cluster.
pub fn parse_cluster_parameter(call: &Call<'_>) -> Result<()> {
    let first = call.first();
    let name = first.key();
    match (name, first.value()) {
        ("setClusterParameter", Value::Document(_)) | ("getClusterParameter", Value::String(_)) => Ok(()),
        ("getClusterParameter", Value::Array(names)) if names.values().all(|name| name.as_str().is_some()) => Ok(()),
        ("setClusterParameter", _) => arguments::document(name, first).map(drop),
        _ => Err(arguments::wrong_types(name, first, "'[string']")),
    }
}

/// Fails, or succeeds, as MongoDB does for a feature that is off or has no objects.
pub fn of_nothing(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let without_code = |message: &str| Err(Error::new(crate::reply::NO_CODE, message));
    match call.first().key() {
        "cleanupOrphaned" => {
            without_code("server is not part of a sharded cluster or the sharding metadata is not yet initialized.")
        }
        "startRecordingTraffic" => Err(Error::bad_value("Traffic recording directory not set")),
        "stopRecordingTraffic" => Err(Error::bad_value("Traffic recording not active")),
        "setProfilingFilterGlobally" => {
            let message = "setProfilingFilterGlobally command requires query knob to be enabled";
            Err(Error::new(Code(7283301), message))
        }
        "setUserWriteBlockMode" => {
            Err(Error::new(Code::ILLEGAL_OPERATION, "setUserWriteBlockMode cannot be run on standalones"))
        }
        "autoSplitVector" => {
            let message = "The autoSplitVector command can only be invoked on shards (no CSRS).";
            Err(Error::new(Code::ILLEGAL_OPERATION, message))
        }
        "compactStructuredEncryptionData" => {
            Err(Error::new(Code(6346807), "Target namespace is not an encrypted collection"))
        }
        // There is nothing to switch off.
        _ => Ok(()),
    }
}

/// `setIndexCommitQuorum`: fails, because no index build outlives its command, and no other server
/// takes part.
pub fn commit_quorum(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    const WITHIN: &str = "setIndexCommitQuorum";
    for name in ["indexNames", "commitQuorum"] {
        let field = call.fields().find(|field| field.key() == name && !arguments::is_absent(*field));
        field.ok_or_else(|| arguments::missing_field(WITHIN, name))?;
    }
    let namespace = arguments::namespace(call.database(), call.first())?;
    let message = format!("Cannot find an index build on collection '{namespace}' with the provided index names");
    Err(Error::new(Code::INDEX_NOT_FOUND, message))
}

/// `shardingState`: sharding is off.
pub fn sharding_state(_call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    reply.append("enabled", false);
    Ok(())
}
