//! Commands about the server itself, sessions and connections.

use super::fields;
use super::spec::{
    Access, HANDSHAKE, Handler, IN_SESSION, NOTHING, SERVER, SERVER_WITHOUT_FIELDS, Spec, WITHOUT_FIELDS, as_a_whole,
    of_replica_set, on_any_database, refused,
};
use crate::command;

pub const COMMANDS: &[Spec] = &[
    Spec {
        name: "abortTransaction",
        handler: immediate!(command::transactions::refuse),
        admin_database_only: true,
        takes_write_concern: true,
        help: "Refused: there are no transactions yet.",
        ..SERVER_WITHOUT_FIELDS
    },
    Spec { takes_write_concern: true, ..of_replica_set("appendOplogNote") },
    Spec {
        name: "applyOps",
        handler: waiting!(command::apply_ops::apply_ops),
        takes_write_concern: true,
        help: "Carries out entries of an oplog, as mongorestore sends them.",
        ..SERVER
    },
    on_any_database(refused("autoSplitVector", command::refused::of_nothing, "Refused: there are no shards.")),
    Spec {
        name: "availableQueryOptions",
        handler: immediate!(command::probes::query_options),
        help: "Flags of OP_QUERY that are understood.",
        ..NOTHING
    },
    Spec {
        name: "buildInfo",
        aliases: &["buildinfo"],
        handler: immediate!(command::build_info::build_info),
        help: "Version and build of the server.",
        ..HANDSHAKE
    },
    refused("cleanupOrphaned", command::refused::of_nothing, "Refused: there are no shards."),
    Spec {
        name: "commitTransaction",
        handler: immediate!(command::transactions::refuse),
        admin_database_only: true,
        takes_write_concern: true,
        help: "Refused: there are no transactions yet.",
        ..SERVER_WITHOUT_FIELDS
    },
    on_any_database(refused(
        "compactStructuredEncryptionData",
        command::refused::of_nothing,
        "Refused: there are no encrypted collections.",
    )),
    Spec {
        name: "connectionStatus",
        handler: immediate!(command::connection_status::connection_status),
        own_fields: Some(fields::CONNECTION_STATUS),
        reads: as_a_whole(fields::read_first, &[]),
        help: "Who is logged in on this connection.",
        ..HANDSHAKE
    },
    Spec {
        name: "connPoolStats",
        handler: immediate!(command::probes::connection_pools),
        help: "Connections this server has opened to others.",
        ..SERVER
    },
    Spec {
        name: "connPoolSync",
        handler: immediate!(command::probes::sync_pools),
        help: "Answered: there are no connections to other servers.",
        ..SERVER
    },
    Spec {
        name: "currentOp",
        handler: immediate!(command::current_op::current_op),
        admin_database_only: true,
        help: "The operations under way.",
        ..SERVER
    },
    Spec {
        name: "driverOIDTest",
        handler: immediate!(command::probes::object_id),
        help: "An object id, and how it is spelled.",
        ..NOTHING
    },
    Spec {
        name: "dropAllRolesFromDatabase",
        handler: immediate!(command::users::drop_users),
        takes_write_concern: true,
        help: "Drops all roles of a database: there are none yet.",
        ..SERVER_WITHOUT_FIELDS
    },
    Spec {
        name: "dropAllUsersFromDatabase",
        handler: immediate!(command::users::drop_users),
        takes_write_concern: true,
        help: "Drops all users of a database: there are none yet.",
        ..SERVER_WITHOUT_FIELDS
    },
    Spec {
        name: "dropConnections",
        handler: immediate!(command::diagnostics::drop_connections),
        admin_database_only: true,
        reads: as_a_whole(command::diagnostics::read_connections_first, &[]),
        help: "Drops connections to other servers: there are none.",
        ..SERVER
    },
    Spec {
        name: "endSessions",
        handler: immediate!(command::sessions::end_sessions),
        own_fields: Some(fields::NONE),
        reads: as_a_whole(command::sessions::read_first, &[]),
        help: "Ends logical sessions.",
        ..IN_SESSION
    },
    Spec {
        name: "features",
        handler: immediate!(command::probes::features),
        own_fields: Some(fields::FEATURES),
        reads: as_a_whole(fields::read_first, &[]),
        help: "Build features, as old clients ask for them.",
        ..IN_SESSION
    },
    refused("flushRouterConfig", command::refused::of_routers, "Refused: there are no shards."),
    Spec {
        name: "fsync",
        handler: waiting!(command::fsync::fsync),
        admin_database_only: true,
        help: "Waits until everything written is on disk; with lock, holds back the writes of this process after that.",
        ..SERVER
    },
    Spec {
        name: "fsyncUnlock",
        handler: immediate!(command::fsync::unlock),
        admin_database_only: true,
        help: "Lets writes go on that fsync with lock held back.",
        ..SERVER
    },
    Spec {
        reads: as_a_whole(command::refused::read_parameter_first, &[]),
        ..refused("getClusterParameter", command::refused::of_clusters, "Refused: this is no cluster.")
    },
    Spec {
        name: "getCmdLineOpts",
        handler: immediate!(command::get_cmd_line_opts::get_cmd_line_opts),
        admin_database_only: true,
        help: "The command line and the configuration in effect.",
        ..SERVER_WITHOUT_FIELDS
    },
    Spec {
        name: "getDefaultRWConcern",
        handler: immediate!(command::probes::default_concern),
        admin_database_only: true,
        own_fields: Some(fields::DEFAULT_CONCERN),
        reads: as_a_whole(fields::read_first, &[]),
        help: "Default concerns: a standalone server has none.",
        ..SERVER
    },
    Spec {
        name: "getDiagnosticData",
        handler: waiting!(command::diagnostics::diagnostic_data),
        admin_database_only: true,
        help: "The figures of serverStatus, as monitoring collects them.",
        ..SERVER
    },
    Spec {
        name: "getFreeMonitoringStatus",
        handler: immediate!(command::probes::free_monitoring),
        admin_database_only: true,
        own_fields: Some(fields::NONE),
        help: "Cloud monitoring: disabled.",
        ..SERVER
    },
    Spec {
        name: "getLastError",
        aliases: &["getlasterror"],
        handler: immediate!(command::probes::get_last_error),
        help: "Refused, as by MongoDB 5.1 and later.",
        ..HANDSHAKE
    },
    Spec {
        name: "getLog",
        handler: immediate!(command::get_log::get_log),
        admin_database_only: true,
        own_fields: Some(fields::NONE),
        help: "The most recent lines of the log.",
        ..SERVER
    },
    Spec {
        name: "getnonce",
        handler: immediate!(command::diagnostics::nonce),
        help: "A random number, for old clients that ask before they log in.",
        ..HANDSHAKE
    },
    Spec {
        name: "getParameter",
        handler: immediate!(command::parameters::get_parameter),
        admin_database_only: true,
        help: "Values of server parameters.",
        ..SERVER
    },
    Spec {
        name: "getShardMap",
        handler: immediate!(command::probes::shard_map),
        admin_database_only: true,
        help: "Refused: there are no shards.",
        ..SERVER
    },
    refused("getShardVersion", command::refused::of_sharded_collections, "Refused: there are no shards."),
    Spec {
        name: "hello",
        handler: waiting!(command::hello::hello),
        help: "Handshake: what this server is and can do.",
        ..HANDSHAKE
    },
    Spec {
        name: "hostInfo",
        aliases: &["hostinfo"],
        handler: immediate!(command::host_info::host_info),
        help: "The machine and operating system.",
        ..SERVER_WITHOUT_FIELDS
    },
    Spec {
        name: "invalidateUserCache",
        handler: immediate!(command::users::forget_users),
        help: "Answered: nothing is cached of users.",
        ..SERVER_WITHOUT_FIELDS
    },
    Spec {
        name: "isdbgrid",
        handler: immediate!(command::probes::is_router),
        help: "Whether this is a router.",
        ..HANDSHAKE
    },
    Spec {
        name: "isMaster",
        aliases: &["ismaster"],
        handler: waiting!(command::hello::hello),
        help: "Handshake, as old clients spell it.",
        ..HANDSHAKE
    },
    Spec {
        name: "killAllSessions",
        handler: immediate!(command::sessions::kill_all_sessions),
        help: "Ends all logical sessions.",
        ..SERVER
    },
    Spec {
        name: "killAllSessionsByPattern",
        handler: immediate!(command::sessions::kill_all_sessions_by_pattern),
        help: "Ends the logical sessions that patterns name.",
        ..SERVER
    },
    Spec {
        name: "killOp",
        handler: immediate!(command::current_op::kill_op),
        admin_database_only: true,
        help: "Ends an operation.",
        ..SERVER
    },
    Spec {
        name: "killSessions",
        handler: immediate!(command::sessions::kill_sessions),
        help: "Ends logical sessions.",
        ..SERVER
    },
    Spec {
        name: "listCommands",
        handler: immediate!(command::list_commands::list_commands),
        help: "The commands of this table.",
        ..HANDSHAKE
    },
    Spec {
        name: "listShards",
        handler: immediate!(command::probes::shards),
        admin_database_only: true,
        help: "The shards behind a router: one, which is this server.",
        ..SERVER
    },
    Spec {
        name: "lockInfo",
        handler: immediate!(command::probes::locks),
        admin_database_only: true,
        help: "Locks that are held: none, between commands.",
        ..SERVER
    },
    Spec {
        name: "logout",
        handler: immediate!(command::connection_status::logout),
        help: "Ends the login of this connection.",
        ..WITHOUT_FIELDS
    },
    Spec {
        name: "logRotate",
        handler: immediate!(command::probes::rotate_log),
        admin_database_only: true,
        own_fields: Some(fields::NONE),
        reads: as_a_whole(command::probes::read_rotation_first, &[]),
        help: "Rotates the log: it goes to standard error, where there is nothing to rotate.",
        ..SERVER
    },
    refused("mergeChunks", command::refused::of_sharded_collections, "Refused: there are no shards."),
    Spec {
        name: "ping",
        handler: immediate!(command::ping::ping),
        own_fields: Some(fields::NONE),
        reads: as_a_whole(fields::read_first, &[]),
        help: "Whether the server answers.",
        ..HANDSHAKE
    },
    Spec {
        name: "profile",
        handler: waiting!(command::profile::profile),
        help: "How closely operations on a database are watched: level, slowms, sampleRate and filter of the profiler.",
        ..SERVER
    },
    Spec {
        name: "refreshSessions",
        handler: immediate!(command::sessions::refresh_sessions),
        own_fields: Some(fields::NONE),
        reads: as_a_whole(command::sessions::read_first, &[]),
        help: "Keeps logical sessions alive.",
        ..IN_SESSION
    },
    of_replica_set("replSetAbortPrimaryCatchUp"),
    of_replica_set("replSetFreeze"),
    Spec {
        name: "replSetGetConfig",
        handler: immediate!(command::probes::replica_set_config),
        admin_database_only: true,
        help: "The replica set's configuration.",
        ..SERVER
    },
    of_replica_set("replSetGetRBID"),
    Spec {
        name: "replSetGetStatus",
        handler: immediate!(command::probes::replica_set_status),
        admin_database_only: true,
        help: "The replica set's state.",
        ..SERVER
    },
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
        name: "rolesInfo",
        handler: immediate!(command::users::roles),
        own_fields: Some(fields::ROLES_INFO),
        reads: as_a_whole(command::users::read_roles_first, &[]),
        help: "Roles: there are none yet.",
        ..SERVER
    },
    Spec {
        name: "rotateCertificates",
        handler: immediate!(command::refused::of_nothing),
        admin_database_only: true,
        help: "Does nothing: there is no TLS yet.",
        ..SERVER
    },
    Spec {
        name: "selkieCache",
        handler: immediate!(command::selkie_cache::selkie_cache),
        help: "Figures of the document cache, why a command is kept or not, and whether this connection uses the cache.",
        ..NOTHING
    },
    Spec {
        name: "serverStatus",
        handler: waiting!(command::server_status::server_status),
        help: "Figures of the process.",
        ..SERVER
    },
    Spec {
        takes_write_concern: true,
        ..refused("setClusterParameter", command::refused::of_clusters, "Refused: this is no cluster.")
    },
    Spec {
        name: "setDefaultRWConcern",
        handler: immediate!(command::probes::default_concern),
        admin_database_only: true,
        own_fields: Some(fields::NEW_DEFAULT_CONCERN),
        reads: as_a_whole(fields::read_first, &[]),
        takes_write_concern: true,
        help: "Default concerns: a standalone server has none.",
        ..SERVER
    },
    Spec {
        name: "setFeatureCompatibilityVersion",
        handler: immediate!(command::feature_compatibility::set),
        admin_database_only: true,
        takes_write_concern: true,
        help: "Takes 6.0, which is in effect.",
        ..SERVER
    },
    Spec {
        name: "setFreeMonitoring",
        handler: immediate!(command::refused::of_nothing),
        admin_database_only: true,
        help: "Does nothing: there is no cloud monitoring.",
        ..SERVER
    },
    on_any_database(refused(
        "setIndexCommitQuorum",
        command::refused::commit_quorum,
        "Refused: no other server takes part in building an index.",
    )),
    Spec {
        name: "setParameter",
        handler: immediate!(command::parameters::set_parameter),
        admin_database_only: true,
        help: "Changes a server parameter.",
        ..SERVER
    },
    on_any_database(refused(
        "setProfilingFilterGlobally",
        command::refused::of_nothing,
        "Refused, as without the server parameter for it.",
    )),
    refused("setShardVersion", command::refused::of_shards, "Refused: there are no shards."),
    on_any_database(refused(
        "setUserWriteBlockMode",
        command::refused::of_nothing,
        "Refused: there is no replication.",
    )),
    Spec {
        name: "shardingState",
        handler: immediate!(command::refused::sharding_state),
        admin_database_only: true,
        help: "Whether this is a shard: it is not.",
        ..SERVER
    },
    Spec {
        name: "shutdown",
        handler: immediate!(command::shutdown::shutdown),
        admin_database_only: true,
        help: "Ends the server, as SIGTERM does.",
        ..SERVER
    },
    refused("splitChunk", command::refused::of_sharded_collections, "Refused: there are no shards."),
    Spec {
        name: "splitVector",
        handler: waiting!(command::split_vector::split_vector),
        access: Access::Read,
        help: "Keys that cut a collection into pieces of about one size.",
        ..SERVER
    },
    on_any_database(refused(
        "startRecordingTraffic",
        command::refused::of_nothing,
        "Refused: traffic is not recorded.",
    )),
    Spec {
        name: "startSession",
        handler: immediate!(command::sessions::start_session),
        help: "Begins a logical session.",
        ..IN_SESSION
    },
    on_any_database(refused("stopRecordingTraffic", command::refused::of_nothing, "Refused: traffic is not recorded.")),
    Spec {
        name: "top",
        handler: immediate!(command::server_status::top),
        admin_database_only: true,
        help: "How often each collection was read and written, and how long that took.",
        ..SERVER
    },
    Spec {
        name: "usersInfo",
        handler: immediate!(command::users::users),
        own_fields: Some(fields::USERS_INFO),
        reads: as_a_whole(command::users::read_users_first, &[]),
        help: "Users: there are none yet.",
        ..SERVER
    },
    Spec {
        name: "validateDBMetadata",
        handler: waiting!(command::diagnostics::validate_metadata),
        reads: as_a_whole(command::diagnostics::read_validation_first, &[]),
        help: "Indexes that are no part of the versioned API.",
        ..SERVER
    },
    Spec {
        name: "whatsmyuri",
        handler: immediate!(command::connection_status::whats_my_uri),
        help: "The client's address as the server sees it.",
        ..HANDSHAKE
    },
];
