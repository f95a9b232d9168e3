//! Commands that are always refused: of replica sets, shards and JavaScript.

pub mod map_reduce;
pub mod replication_and_sharding;

use crate::authorization::pipelines;
use crate::authorization::requirement::{Authorization, On, computed, on_cluster, on_collection, on_full_name};
use crate::table::spec::{Handler, ImmediateHandler, READ, ReadConcernLevels, SERVER, Spec, parsed_first};
use auth::Action;
use server::usage::LatencyKind;

/// The facts about these commands, sorted by name.
pub const COMMANDS: &[Spec] = &[
    Spec {
        takes_write_concern: true,
        authorization: on_cluster(Action::AppendOplogNote),
        ..of_replica_set("appendOplogNote")
    },
    Spec {
        authorization: on_cluster(Action::SplitVector),
        ..on_any_database(refused(
            "autoSplitVector",
            replication_and_sharding::of_nothing,
            "Refused: there are no shards.",
        ))
    },
    Spec {
        authorization: on_cluster(Action::CleanupOrphaned),
        ..refused("cleanupOrphaned", replication_and_sharding::of_nothing, "Refused: there are no shards.")
    },
    Spec {
        authorization: on_collection(Action::CompactStructuredEncryptionData),
        ..on_any_database(refused(
            "compactStructuredEncryptionData",
            replication_and_sharding::of_nothing,
            "Refused: there are no encrypted collections.",
        ))
    },
    Spec {
        authorization: on_cluster(Action::FlushRouterConfig),
        ..refused("flushRouterConfig", replication_and_sharding::of_routers, "Refused: there are no shards.")
    },
    Spec {
        parsing: parsed_first(replication_and_sharding::parse_cluster_parameter, &[]),
        authorization: on_cluster(Action::GetClusterParameter),
        ..refused("getClusterParameter", replication_and_sharding::of_clusters, "Refused: this is no cluster.")
    },
    Spec {
        authorization: on_full_name(Action::GetShardVersion),
        ..refused("getShardVersion", replication_and_sharding::of_sharded_collections, "Refused: there are no shards.")
    },
    Spec {
        name: "mapReduce",
        cacheable: false,
        aliases: &["mapreduce"],
        handler: waiting!(map_reduce::map_reduce),
        authorization: computed(
            &[Action::Find, Action::Insert, Action::Remove, Action::Update, Action::BypassDocumentValidation],
            pipelines::map_reduce,
        ),
        read_concern: ReadConcernLevels::AllButSnapshot,
        latency: LatencyKind::Commands,
        help: "Checked, and refused: JavaScript does not run here.",
        in_transaction: false,
        ..READ
    },
    refused("mergeChunks", replication_and_sharding::of_sharded_collections, "Refused: there are no shards."),
    Spec { authorization: on_cluster(Action::ReplSetStateChange), ..of_replica_set("replSetAbortPrimaryCatchUp") },
    Spec { authorization: on_cluster(Action::ReplSetStateChange), ..of_replica_set("replSetFreeze") },
    of_replica_set("replSetGetRBID"),
    of_replica_set("replSetHeartbeat"),
    Spec { authorization: on_cluster(Action::ReplSetConfigure), ..of_replica_set("replSetInitiate") },
    Spec { authorization: on_cluster(Action::ReplSetStateChange), ..of_replica_set("replSetMaintenance") },
    Spec { authorization: on_cluster(Action::ReplSetConfigure), ..of_replica_set("replSetReconfig") },
    of_replica_set("replSetRequestVotes"),
    Spec { authorization: on_cluster(Action::ReplSetResizeOplog), ..of_replica_set("replSetResizeOplog") },
    Spec { authorization: on_cluster(Action::ReplSetStateChange), ..of_replica_set("replSetStepDown") },
    Spec { authorization: on_cluster(Action::ReplSetStateChange), ..of_replica_set("replSetStepUp") },
    Spec { authorization: on_cluster(Action::ReplSetStateChange), ..of_replica_set("replSetSyncFrom") },
    of_replica_set("replSetUpdatePosition"),
    Spec {
        takes_write_concern: true,
        authorization: on_cluster(Action::SetClusterParameter),
        ..refused("setClusterParameter", replication_and_sharding::of_clusters, "Refused: this is no cluster.")
    },
    Spec {
        name: "setFreeMonitoring",
        handler: immediate!(replication_and_sharding::of_nothing),
        authorization: on_cluster(Action::SetFreeMonitoring),
        admin_database_only: true,
        help: "Succeeds without effect: there is no cloud monitoring.",
        ..SERVER
    },
    Spec {
        authorization: on_collection(Action::CreateIndex),
        ..on_any_database(refused(
            "setIndexCommitQuorum",
            replication_and_sharding::commit_quorum,
            "Refused: no other server takes part in building an index.",
        ))
    },
    Spec {
        authorization: Authorization::Required(On::AnyOrdinary, Action::EnableProfiler),
        ..on_any_database(refused(
            "setProfilingFilterGlobally",
            replication_and_sharding::of_nothing,
            "Refused, as without the server parameter for it.",
        ))
    },
    refused("setShardVersion", replication_and_sharding::of_shards, "Refused: there are no shards."),
    Spec {
        authorization: on_cluster(Action::SetUserWriteBlockMode),
        ..on_any_database(refused(
            "setUserWriteBlockMode",
            replication_and_sharding::of_nothing,
            "Refused: there is no replication.",
        ))
    },
    Spec {
        name: "shardingState",
        handler: immediate!(replication_and_sharding::sharding_state),
        authorization: on_cluster(Action::ShardingState),
        admin_database_only: true,
        help: "Whether this is a shard: it is not.",
        ..SERVER
    },
    refused("splitChunk", replication_and_sharding::of_sharded_collections, "Refused: there are no shards."),
    Spec {
        authorization: on_cluster(Action::TrafficRecord),
        ..on_any_database(refused(
            "startRecordingTraffic",
            replication_and_sharding::of_nothing,
            "Refused: traffic is not recorded.",
        ))
    },
    Spec {
        authorization: on_cluster(Action::TrafficRecord),
        ..on_any_database(refused(
            "stopRecordingTraffic",
            replication_and_sharding::of_nothing,
            "Refused: traffic is not recorded.",
        ))
    },
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
