//! Commands that are always refused: of replica sets, shards and JavaScript.

pub mod map_reduce;
pub mod replication_and_sharding;

use crate::table::spec::{Handler, ImmediateHandler, READ, ReadConcernLevels, SERVER, Spec, parsed_first};
use server::usage::LatencyKind;

/// The facts about these commands, sorted by name.
pub const COMMANDS: &[Spec] = &[
    Spec { takes_write_concern: true, ..of_replica_set("appendOplogNote") },
    on_any_database(refused("autoSplitVector", replication_and_sharding::of_nothing, "Refused: there are no shards.")),
    refused("cleanupOrphaned", replication_and_sharding::of_nothing, "Refused: there are no shards."),
    on_any_database(refused(
        "compactStructuredEncryptionData",
        replication_and_sharding::of_nothing,
        "Refused: there are no encrypted collections.",
    )),
    refused("flushRouterConfig", replication_and_sharding::of_routers, "Refused: there are no shards."),
    Spec {
        parsing: parsed_first(replication_and_sharding::parse_cluster_parameter, &[]),
        ..refused("getClusterParameter", replication_and_sharding::of_clusters, "Refused: this is no cluster.")
    },
    refused("getShardVersion", replication_and_sharding::of_sharded_collections, "Refused: there are no shards."),
    Spec {
        name: "mapReduce",
        cacheable: false,
        aliases: &["mapreduce"],
        handler: waiting!(map_reduce::map_reduce),
        read_concern: ReadConcernLevels::AllButSnapshot,
        latency: LatencyKind::Commands,
        help: "Checked, and refused: JavaScript does not run here.",
        ..READ
    },
    refused("mergeChunks", replication_and_sharding::of_sharded_collections, "Refused: there are no shards."),
    of_replica_set("replSetAbortPrimaryCatchUp"),
    of_replica_set("replSetFreeze"),
    of_replica_set("replSetGetRBID"),
    of_replica_set("replSetHeartbeat"),
    of_replica_set("replSetInitiate"),
    of_replica_set("replSetMaintenance"),
    of_replica_set("replSetReconfig"),
    of_replica_set("replSetRequestVotes"),
    of_replica_set("replSetResizeOplog"),
    of_replica_set("replSetStepDown"),
    of_replica_set("replSetStepUp"),
    of_replica_set("replSetSyncFrom"),
    of_replica_set("replSetUpdatePosition"),
    Spec {
        name: "rotateCertificates",
        handler: immediate!(replication_and_sharding::of_nothing),
        admin_database_only: true,
        actions: &["rotateCertificates"],
        help: "Succeeds without effect: there is no TLS yet.",
        ..SERVER
    },
    Spec {
        takes_write_concern: true,
        ..refused("setClusterParameter", replication_and_sharding::of_clusters, "Refused: this is no cluster.")
    },
    Spec {
        name: "setFreeMonitoring",
        handler: immediate!(replication_and_sharding::of_nothing),
        admin_database_only: true,
        actions: &["setFreeMonitoring"],
        help: "Succeeds without effect: there is no cloud monitoring.",
        ..SERVER
    },
    on_any_database(refused(
        "setIndexCommitQuorum",
        replication_and_sharding::commit_quorum,
        "Refused: no other server takes part in building an index.",
    )),
    on_any_database(refused(
        "setProfilingFilterGlobally",
        replication_and_sharding::of_nothing,
        "Refused, as without the server parameter for it.",
    )),
    refused("setShardVersion", replication_and_sharding::of_shards, "Refused: there are no shards."),
    on_any_database(refused(
        "setUserWriteBlockMode",
        replication_and_sharding::of_nothing,
        "Refused: there is no replication.",
    )),
    Spec {
        name: "shardingState",
        handler: immediate!(replication_and_sharding::sharding_state),
        admin_database_only: true,
        help: "Whether this is a shard: it is not.",
        ..SERVER
    },
    refused("splitChunk", replication_and_sharding::of_sharded_collections, "Refused: there are no shards."),
    on_any_database(refused(
        "startRecordingTraffic",
        replication_and_sharding::of_nothing,
        "Refused: traffic is not recorded.",
    )),
    on_any_database(refused(
        "stopRecordingTraffic",
        replication_and_sharding::of_nothing,
        "Refused: traffic is not recorded.",
    )),
];

/// A command on the database `admin` that is always refused: `handler` returns the error.
const fn refused(name: &'static str, handler: ImmediateHandler, help: &'static str) -> Spec {
    Spec { name, handler: Handler::Immediate(handler), admin_database_only: true, help, ..SERVER }
}

/// The same command, on any database.
const fn on_any_database(spec: Spec) -> Spec {
    Spec { admin_database_only: false, ..spec }
}

/// A command of replica sets.
const fn of_replica_set(name: &'static str) -> Spec {
    refused(name, replication_and_sharding::of_replica_sets, "Refused: there is no replication.")
}
