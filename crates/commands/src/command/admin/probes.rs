//! Commands by which graphical clients and test harnesses identify the server.

use crate::arguments::wrong_types;
use crate::call::{Call, Disposition};
use crate::pipeline::config_lists;
use crate::replica_set::{self, write_time};
use crate::table::fields;
use document::{DocWriter, Value};
use error::{Code, Error, Result};
use server::Topology;

/// Reports that MongoDB's cloud monitoring is off.
pub fn free_monitoring(_call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    reply.append("state", "disabled");
    Ok(())
}

/// Reports the one member of the set that a replica-set topology presents.
pub fn replica_set_status(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let (name, advertised) = replica_set(call)?;
    let uptime = call.worker.server.started.elapsed().as_secs() as i64;
    reply.append("set", name);
    reply.append("date", Value::DateTime(call.now_ms));
    reply.append("myState", 1);
    reply.append("term", 1_i64);
    reply.append("syncSourceHost", "");
    reply.append("syncSourceId", -1);
    reply.append("heartbeatIntervalMillis", 2000_i64);
    for count in ["majorityVoteCount", "writeMajorityCount", "votingMembersCount", "writableVotingMembersCount"] {
        reply.append(count, 1);
    }
    // One server has written and acknowledged everything so far.
    let time = call.worker.server.cluster_clock.committed();
    let date = Value::DateTime(i64::from(time.seconds()) * 1000);
    {
        let mut times = reply.document("optimes");
        write_time("lastCommittedOpTime", time, &mut times);
        times.append("lastCommittedWallTime", date);
        for name in ["readConcernMajorityOpTime", "appliedOpTime", "durableOpTime"] {
            write_time(name, time, &mut times);
        }
        times.append("lastAppliedWallTime", date);
        times.append("lastDurableWallTime", date);
    }
    let mut members = reply.array("members");
    let mut member = members.document();
    member.append("_id", 0);
    member.append("name", advertised);
    member.append("health", 1.0);
    member.append("state", 1);
    member.append("stateStr", "PRIMARY");
    member.append("uptime", i32::try_from(uptime).unwrap_or(i32::MAX));
    write_time("optime", time, &mut member);
    for name in ["optimeDate", "lastAppliedWallTime", "lastDurableWallTime"] {
        member.append(name, date);
    }
    member.append("syncSourceHost", "");
    member.append("syncSourceId", -1);
    member.append("infoMessage", "");
    let elected_ms = call.worker.server.started_ms;
    member.append("electionTime", Value::Timestamp { time: (elected_ms / 1000) as u32, increment: 1 });
    // In seconds, like the position of the election in the oplog.
    member.append("electionDate", Value::DateTime(elected_ms / 1000 * 1000));
    member.append("configVersion", 1);
    member.append("configTerm", 1);
    member.append("self", true);
    member.append("lastHeartbeatMessage", "");
    Ok(())
}

pub fn replica_set_config(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let (name, advertised) = replica_set(call)?;
    replica_set::write_config(name, advertised, &mut reply.document("config"));
    Ok(())
}

fn replica_set<'a>(call: &Call<'a>) -> Result<(&'a str, &'a str)> {
    match &call.worker.server.settings.topology {
        Topology::ReplicaSet { name, advertised } => Ok((name, advertised)),
        _ => Err(Error::new(Code::NO_REPLICATION_ENABLED, "not running with --replSet")),
    }
}

/// Lists no locks: none is held between two commands.
pub fn locks(_call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    drop(reply.array("lockInfo"));
    Ok(())
}

/// Begins a new file of the audit log. The server's own log goes to standard error, and is not
/// rotated. Fails with 4 for another log, and if the audit log cannot be rotated.
pub async fn rotate_log(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<Disposition> {
    parse_log_rotate(call)?;
    let failed = || Error::new(Code(4), "Log rotation failed due to one or more errors");
    let audit = call.worker.server.audit.log();
    let rotated = match (call.first().value(), audit) {
        (Value::String("server"), _) => return Ok(Disposition::Reply),
        (Value::String("audit"), Some(audit)) => audit.rotate(),
        (Value::String(_), _) => return Err(failed()),
        (_, Some(audit)) => audit.rotate(),
        (_, None) => return Ok(Disposition::Reply),
    };
    match rotated.await {
        Ok(Ok(())) => Ok(Disposition::Reply),
        Ok(Err(reason)) => {
            tracing::warn!(reason, "the audit log was not rotated");
            Err(failed())
        }
        Err(_) => Err(failed()),
    }
}

/// Parses the fields of a `logRotate`.
pub fn parse_log_rotate(call: &Call<'_>) -> Result<()> {
    fields::parse_own(call)?;
    match call.first().value() {
        Value::String(_) | Value::Boolean(_) => Ok(()),
        value if value.kind().is_number() => Ok(()),
        _ => Err(wrong_types("logRotate", call.first(), "'[bool, string']")),
    }
}

pub fn features(_call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    reply.append("oidMachine", 0_i64);
    Ok(())
}

/// Reports that this is a router; other servers do not know the command.
pub fn is_router(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    require_router(call)?;
    reply.append("isdbgrid", 1);
    reply.append("hostname", server::host::cached_name());
    Ok(())
}

/// Lists the shards behind this router.
pub async fn shards(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    require_router(call)?;
    let shards = config_lists::shards(call).await?;
    let mut array = reply.array("shards");
    shards.iter().for_each(|shard| array.push(Value::Document(shard.as_doc())));
    Ok(Disposition::Reply)
}

fn require_router(call: &Call<'_>) -> Result<()> {
    match call.worker.server.settings.topology {
        Topology::Router => Ok(()),
        _ => Err(Error::new(Code::COMMAND_NOT_FOUND, format!("no such command: '{}'", call.first().key()))),
    }
}

/// Lists the addresses of the shards. Fails with 203 if there are none.
pub async fn shard_map(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let Some(sharding) = call.worker.store.sharding() else {
        return Err(Error::new(Code::SHARDING_STATE_NOT_INITIALIZED, "Sharding is not enabled"));
    };
    let shards = sharding.shards().await?;
    {
        let mut map = reply.document("map");
        shards.iter().for_each(|shard| map.append(&shard.name, shard.address.as_str()));
    }
    let mut hosts = reply.document("hosts");
    shards.iter().for_each(|shard| hosts.append(&shard.address, shard.name.as_str()));
    Ok(Disposition::Reply)
}

/// Reports that there are no connections to other servers.
pub fn connection_pools(_call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    for key in [
        "numClientConnections",
        "numAScopedConnections",
        "totalInUse",
        "totalAvailable",
        "totalCreated",
        "totalRefreshing",
        "totalRefreshed",
    ] {
        reply.append(key, 0);
    }
    drop(reply.document("pools"));
    drop(reply.document("hosts"));
    reply.append("numReplicaSetMonitorsCreated", 0);
    drop(reply.document("replicaSets"));
    Ok(())
}

/// Reports the flags of OP_QUERY: all but that for reading an oplog.
pub fn query_options(_call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    reply.append("options", 246);
    Ok(())
}

/// Succeeds without effect: there are no connections to other servers.
pub fn sync_pools(_call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    Ok(())
}

pub fn object_id(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let Value::ObjectId(id) = call.first().value() else {
        return Err(Error::new(crate::reply::NO_CODE, "not oid"));
    };
    reply.append("oid", Value::ObjectId(id));
    reply.append("str", &id.to_string());
    Ok(())
}

pub fn get_last_error(_call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    Err(Error::new(Code(5739000), "getLastError command is not supported"))
}
