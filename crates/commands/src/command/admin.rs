//! Commands about the server itself.

pub mod apply_ops;
pub mod build_info;
pub mod catalog_counts;
pub mod configure_fail_point;
pub mod current_op;
pub mod default_rw_concern;
pub mod diagnostics;
pub mod feature_compatibility;
pub mod fsync;
pub mod get_cmd_line_opts;
pub mod get_log;
pub mod hello;
pub mod host_info;
pub mod list_commands;
pub mod parameters;
pub mod ping;
pub mod probes;
pub mod profile;
pub mod rotate_certificates;
pub mod selkie_cache;
pub mod selkie_monitor;
pub mod selkie_server;
pub mod server_status;
pub mod shutdown;

use crate::authorization::requirement::{Authorization, computed, on_cluster};
use crate::authorization::{catalog, operations};
use crate::table::fields;
use crate::table::spec::{
    Existence, FOR_ALL, HANDSHAKE, Handler, InternalField, NOTHING, SERVER, SERVER_WITHOUT_FIELDS, Spec, StableApi,
    parsed_first,
};
use auth::Action;

/// The facts about these commands, sorted by name.
pub const COMMANDS: &[Spec] = &[
    Spec {
        name: "applyOps",
        handler: waiting!(apply_ops::apply_ops),
        authorization: Authorization::OplogEntries,
        takes_write_concern: true,
        help: "Executes entries of an oplog, as mongorestore sends them.",
        ..SERVER
    },
    Spec {
        name: "availableQueryOptions",
        handler: immediate!(probes::query_options),
        authorization: Authorization::Nothing,
        help: "The supported flags of OP_QUERY.",
        ..NOTHING
    },
    Spec {
        name: "buildInfo",
        aliases: &["buildinfo"],
        handler: immediate!(build_info::build_info),
        help: "Version and build of the server.",
        ..HANDSHAKE
    },
    Spec {
        name: "configureFailPoint",
        handler: immediate!(configure_fail_point::configure_fail_point),
        admin_database_only: true,
        existence: Existence::ForTests,
        help: "Lets the next commands fail; only with the setting `test-commands`.",
        ..FOR_ALL
    },
    Spec {
        name: "connPoolStats",
        handler: immediate!(probes::connection_pools),
        authorization: on_cluster(Action::ConnPoolStats),
        help: "Connections this server has opened to others.",
        ..SERVER
    },
    Spec {
        name: "connPoolSync",
        handler: immediate!(probes::sync_pools),
        authorization: on_cluster(Action::ConnPoolSync),
        help: "Succeeds without effect: there are no connections to other servers.",
        ..SERVER
    },
    Spec {
        name: "currentOp",
        handler: immediate!(current_op::current_op),
        authorization: computed(&[Action::Inprog], operations::current_op),
        admin_database_only: true,
        help: "The operations under way.",
        ..SERVER
    },
    Spec {
        name: "driverOIDTest",
        handler: immediate!(probes::object_id),
        authorization: Authorization::Nothing,
        help: "An ObjectId and its text.",
        ..NOTHING
    },
    Spec {
        name: "dropConnections",
        handler: immediate!(diagnostics::drop_connections),
        authorization: on_cluster(Action::DropConnections),
        admin_database_only: true,
        parsing: parsed_first(diagnostics::parse_drop_connections, &[]),
        help: "Drops connections to other servers: there are none.",
        ..SERVER
    },
    Spec {
        name: "features",
        handler: immediate!(probes::features),
        own_fields: Some(fields::FEATURES),
        parsing: parsed_first(fields::parse_own, &[]),
        help: "Build features, for old clients.",
        ..FOR_ALL
    },
    Spec {
        name: "fsync",
        handler: waiting!(fsync::fsync),
        authorization: on_cluster(Action::Fsync),
        admin_database_only: true,
        stops_at_safe_points: true,
        help: "Waits until all writes are on disk; with lock, then blocks the writes of this process.",
        ..SERVER
    },
    Spec {
        name: "fsyncUnlock",
        handler: immediate!(fsync::unlock),
        authorization: on_cluster(Action::Unlock),
        admin_database_only: true,
        help: "Unblocks the writes that fsync with lock blocked.",
        ..SERVER
    },
    Spec {
        name: "getCmdLineOpts",
        handler: immediate!(get_cmd_line_opts::get_cmd_line_opts),
        authorization: on_cluster(Action::GetCmdLineOpts),
        admin_database_only: true,
        help: "The command line and the configuration in effect.",
        ..SERVER_WITHOUT_FIELDS
    },
    Spec {
        name: "getDefaultRWConcern",
        handler: waiting!(default_rw_concern::get),
        authorization: on_cluster(Action::GetDefaultRwConcern),
        admin_database_only: true,
        own_fields: Some(fields::DEFAULT_CONCERN),
        parsing: parsed_first(fields::parse_own, &[]),
        help: "The default concerns of reads and writes, of a replica set.",
        ..SERVER
    },
    Spec {
        name: "getDiagnosticData",
        handler: waiting!(diagnostics::diagnostic_data),
        authorization: computed(
            &[Action::ServerStatus, Action::ReplSetGetStatus, Action::CollStats],
            catalog::diagnostic_data,
        ),
        admin_database_only: true,
        help: "The statistics of serverStatus, as monitoring collects them.",
        ..SERVER
    },
    Spec {
        name: "getFreeMonitoringStatus",
        handler: immediate!(probes::free_monitoring),
        authorization: on_cluster(Action::CheckFreeMonitoringStatus),
        admin_database_only: true,
        own_fields: Some(fields::NONE),
        help: "Cloud monitoring: disabled.",
        ..SERVER
    },
    Spec {
        name: "getLastError",
        aliases: &["getlasterror"],
        handler: immediate!(probes::get_last_error),
        help: "Refused, as by MongoDB 5.1 and later.",
        ..HANDSHAKE
    },
    Spec {
        name: "getLog",
        handler: immediate!(get_log::get_log),
        authorization: on_cluster(Action::GetLog),
        admin_database_only: true,
        own_fields: Some(fields::NONE),
        help: "The most recent log lines.",
        ..SERVER
    },
    Spec {
        name: "getnonce",
        handler: immediate!(diagnostics::nonce),
        help: "A random number, for the login of old clients.",
        ..HANDSHAKE
    },
    Spec {
        name: "getParameter",
        handler: immediate!(parameters::get_parameter),
        authorization: on_cluster(Action::GetParameter),
        admin_database_only: true,
        help: "Values of server parameters.",
        ..SERVER
    },
    Spec {
        name: "getShardMap",
        handler: waiting!(probes::shard_map),
        authorization: on_cluster(Action::GetShardMap),
        admin_database_only: true,
        help: "The addresses of the shards.",
        ..SERVER
    },
    Spec {
        name: "hello",
        handler: waiting!(hello::hello),
        sensitive: &["speculativeAuthenticate"],
        stable_api: StableApi::INCLUDED,
        internal_fields: &[("$tenant", InternalField::Tenant)],
        help: "Handshake: the server's role and limits.",
        ..HANDSHAKE
    },
    Spec {
        name: "hostInfo",
        aliases: &["hostinfo"],
        handler: immediate!(host_info::host_info),
        authorization: on_cluster(Action::HostInfo),
        help: "The machine and operating system.",
        ..SERVER_WITHOUT_FIELDS
    },
    Spec { name: "isdbgrid", handler: immediate!(probes::is_router), help: "Whether this is a router.", ..HANDSHAKE },
    Spec {
        name: "isMaster",
        aliases: &["ismaster"],
        handler: waiting!(hello::hello),
        sensitive: &["speculativeAuthenticate"],
        help: "Handshake, under its old name.",
        ..HANDSHAKE
    },
    Spec {
        name: "killOp",
        handler: immediate!(current_op::kill_op),
        authorization: computed(&[Action::Killop], operations::kill_op),
        admin_database_only: true,
        help: "Ends an operation.",
        ..SERVER
    },
    Spec {
        name: "listCommands",
        handler: immediate!(list_commands::list_commands),
        help: "The commands of this table.",
        ..HANDSHAKE
    },
    Spec {
        name: "listShards",
        handler: waiting!(probes::shards),
        authorization: on_cluster(Action::ListShards),
        admin_database_only: true,
        help: "The shards behind a router: this server, if collections cannot be sharded.",
        ..SERVER
    },
    Spec {
        name: "lockInfo",
        handler: immediate!(probes::locks),
        authorization: on_cluster(Action::ServerStatus),
        admin_database_only: true,
        help: "Locks that are held: none between commands.",
        ..SERVER
    },
    Spec {
        name: "logRotate",
        handler: waiting!(probes::rotate_log),
        authorization: on_cluster(Action::LogRotate),
        admin_database_only: true,
        own_fields: Some(fields::NONE),
        parsing: parsed_first(probes::parse_log_rotate, &[]),
        help: "Begins a new file of the audit log; the server's log goes to standard error.",
        ..SERVER
    },
    Spec {
        name: "ping",
        handler: immediate!(ping::ping),
        own_fields: Some(fields::NONE),
        parsing: parsed_first(fields::parse_own, &[]),
        stable_api: StableApi::INCLUDED,
        refuses_after_cluster_time: true,
        help: "Tests whether the server answers.",
        ..HANDSHAKE
    },
    Spec {
        name: "profile",
        handler: waiting!(profile::profile),
        authorization: computed(&[Action::EnableProfiler, Action::Find], catalog::profile),
        profiled: false,
        help: "Reads and sets the profiler of a database: level, slowms, sampleRate and filter.",
        ..SERVER
    },
    Spec {
        name: "replSetGetConfig",
        handler: immediate!(probes::replica_set_config),
        authorization: on_cluster(Action::ReplSetGetConfig),
        admin_database_only: true,
        help: "The replica set's configuration.",
        ..SERVER
    },
    Spec {
        name: "replSetGetStatus",
        handler: immediate!(probes::replica_set_status),
        authorization: on_cluster(Action::ReplSetGetStatus),
        admin_database_only: true,
        help: "The replica set's state.",
        ..SERVER
    },
    Spec {
        name: "rotateCertificates",
        handler: waiting!(rotate_certificates::rotate_certificates),
        admin_database_only: true,
        parsing: parsed_first(rotate_certificates::parse, &[]),
        authorization: on_cluster(Action::RotateCertificates),
        help: "Loads the TLS certificates and revocation lists again; open connections stay.",
        ..SERVER
    },
    Spec {
        name: "selkieCache",
        handler: immediate!(selkie_cache::selkie_cache),
        authorization: on_cluster(Action::ServerStatus),
        help: "Statistics of the caches, why a command is cached or not, and whether this connection uses the caches.",
        ..NOTHING
    },
    Spec {
        name: "selkieMonitor",
        handler: waiting!(selkie_monitor::selkie_monitor),
        authorization: on_cluster(Action::SetParameter),
        admin_database_only: true,
        parsing: parsed_first(selkie_monitor::parse, &[]),
        help: "The state of a monitor of MariaDB servers; changes their roles with switchover, failover or rejoin.",
        ..SERVER
    },
    Spec {
        name: "selkieServer",
        handler: immediate!(selkie_server::selkie_server),
        authorization: on_cluster(Action::SetParameter),
        admin_database_only: true,
        parsing: parsed_first(selkie_server::parse, &[]),
        help: "The state of a MariaDB server with a name; takes it out of service with mode.",
        ..SERVER
    },
    Spec {
        name: "serverStatus",
        handler: waiting!(server_status::server_status),
        authorization: on_cluster(Action::ServerStatus),
        help: "Statistics of the process.",
        ..SERVER
    },
    Spec {
        name: "setDefaultRWConcern",
        handler: waiting!(default_rw_concern::set),
        authorization: on_cluster(Action::SetDefaultRwConcern),
        admin_database_only: true,
        own_fields: Some(fields::NEW_DEFAULT_CONCERN),
        parsing: parsed_first(fields::parse_own, &[]),
        takes_write_concern: true,
        help: "Sets the default concerns of reads and writes, of a replica set.",
        ..SERVER
    },
    Spec {
        name: "setFeatureCompatibilityVersion",
        handler: immediate!(feature_compatibility::set),
        authorization: on_cluster(Action::SetFeatureCompatibilityVersion),
        admin_database_only: true,
        takes_write_concern: true,
        help: "Accepts 6.0, the version in effect.",
        ..SERVER
    },
    Spec {
        name: "setParameter",
        handler: immediate!(parameters::set_parameter),
        authorization: on_cluster(Action::SetParameter),
        admin_database_only: true,
        help: "Changes a server parameter.",
        ..SERVER
    },
    Spec {
        name: "shutdown",
        handler: immediate!(shutdown::shutdown),
        authorization: on_cluster(Action::Shutdown),
        admin_database_only: true,
        help: "Stops the server, as SIGTERM does.",
        ..SERVER
    },
    Spec {
        name: "top",
        handler: immediate!(server_status::top),
        authorization: on_cluster(Action::Top),
        admin_database_only: true,
        help: "How often and how long each collection was read and written.",
        ..SERVER
    },
    Spec {
        name: "validateDBMetadata",
        handler: waiting!(diagnostics::validate_metadata),
        authorization: computed(&[Action::Validate], catalog::validate_metadata),
        parsing: parsed_first(diagnostics::parse_validate_metadata, &[]),
        help: "Indexes that are not part of the stable API.",
        ..SERVER
    },
];
