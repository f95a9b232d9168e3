//! The table of all settings. A default or a description is changed here.

mod entry;

pub use entry::Parameter;

use super::defaults::{BUSY_POLL_US_MAX, CACHE_BYTES_MIN, DAY_SECONDS, MEMORY_MB_MAX, MEMORY_MB_MIN, THREADS_MAX};
use super::setting::Setting;
use super::value::{
    addresses, audit_events, audit_log, audit_on_failure, audit_users, boolean, cache_mode, commands, compressors,
    external_writes, host_and_port, integer, invalidation, listener_modes, log_filter, mariadb_url, patterns, selects,
    statements, text, topology, users,
};
use std::path::PathBuf;

/// The sections, with their descriptions.
pub const SECTIONS: &[(&str, &str)] = &[
    ("", "The process: addresses, threads, log."),
    ("store", "Where documents are stored: in a directory of this machine (the default), or in MariaDB."),
    ("mongodb", "What MongoDB clients see."),
    ("tls", "Encryption of clients' connections."),
    ("limits", "Limits of memory, cursors and connections."),
    ("security", "Logins of MongoDB clients."),
    ("audit", "The log of logins, refusals, and changes of users, roles and the catalog."),
    ("cache", "Replies that are cached, and returned for as long as they are right."),
];

macro_rules! read {
    ($($field:ident).+, $convert:expr) => {
        |written, raw, origin| {
            written.$($field).+ = Some(Setting { value: $convert(raw)?, origin });
            Ok(())
        }
    };
}

mod tls;

pub const PARAMETERS: &[Parameter] = &[
    Parameter {
        section: "",
        name: "listen",
        flag: Some("--listen"),
        kind: "list of addresses",
        default: "[\"127.0.0.1:27017\"]",
        example: "[\"127.0.0.1:27017\", \"/run/selkie/mongodb-27017.sock\"]",
        about: "Addresses for MongoDB clients: `host:port`, or the path of a Unix socket. The flag may be repeated.",
        read: read!(listen, addresses),
    },
    Parameter {
        section: "",
        name: "allow-remote",
        flag: Some("--allow-remote"),
        kind: "true or false",
        default: "false",
        example: "true",
        about: "Allows addresses in `sql-listen` that other machines can reach. MariaDB takes the clients for clients \
                of this machine. For `listen`, see `auth` in `[security]`.",
        read: read!(allow_remote, boolean),
    },
    Parameter {
        section: "",
        name: "threads",
        flag: Some("--threads"),
        kind: "number from 1 to 1024",
        default: "# as many as the machine has cores",
        example: "4",
        about: "Worker threads. A connection stays with one of them for its whole life.",
        read: read!(threads, |raw| integer(raw, 1, THREADS_MAX).map(|n| n as usize)),
    },
    Parameter {
        section: "",
        name: "log",
        flag: Some("--log"),
        kind: "text",
        default: "\"info\"",
        example: "\"warn,store_sqlite=debug\"",
        about: "The log level on standard error: `error`, `warn`, `info`, `debug` or `trace`, also per crate. \
                SELKIE_LOG in the environment is used if neither flag nor file sets it.",
        read: read!(log, log_filter),
    },
    Parameter {
        section: "",
        name: "busy-poll-us",
        flag: None,
        kind: "microseconds, from 0 to 1000",
        default: "100",
        example: "0",
        about: "How long an idle thread polls before it sleeps, if the client's next request usually arrives within \
                this time; for replies of MariaDB and for completed writes, three times as long. Waking a thread \
                takes longer than many requests. MariaDB and writes are polled for only while the client sends its \
                requests within ten times this time. Polling uses an otherwise idle core; 0 disables it.",
        read: read!(busy_poll_us, |raw| integer(raw, 0, BUSY_POLL_US_MAX).map(|n| n as u64)),
    },
    Parameter {
        section: "",
        name: "drain-seconds",
        flag: None,
        kind: "seconds, from 0 to 86400",
        default: "10",
        example: "30",
        about: "How long running requests may continue after SIGTERM or SIGINT. Idle connections are closed at once.",
        read: read!(drain_seconds, |raw| integer(raw, 0, DAY_SECONDS).map(|n| n as u64)),
    },
    Parameter {
        section: "",
        name: "slow-ms",
        flag: Some("--slow-ms"),
        kind: "milliseconds, from 0 to 86400000",
        default: "100",
        example: "20",
        about: "Operations that take longer are slow: they are logged, and profiled at level 1. The command \
                `profile` changes the threshold at run time.",
        read: read!(slow_ms, |raw| integer(raw, 0, DAY_SECONDS * 1000)),
    },
    Parameter {
        section: "",
        name: "slow-log",
        flag: None,
        kind: "true or false",
        default: "true",
        example: "false",
        about: "Logs each slow operation in one line: namespace, command, plan summary, keys and documents examined, \
                duration.",
        read: read!(slow_log, boolean),
    },
    Parameter {
        section: "security",
        name: "auth",
        flag: Some("--auth"),
        kind: "true or false",
        default: "false",
        example: "true",
        about: "MongoDB clients must log in. Required for addresses in `listen` that other machines can reach. As \
                long as there is no user, a client of this machine can create the first one in `admin`.",
        read: read!(security.auth, boolean),
    },
    Parameter {
        section: "security",
        name: "insecure-without-auth",
        flag: Some("--insecure-without-auth"),
        kind: "true or false",
        default: "false",
        example: "true",
        about: "Allows addresses in `listen` that other machines can reach without `auth`: every client that reaches \
                such an address may read and write everything.",
        read: read!(security.insecure_without_auth, boolean),
    },
    Parameter {
        section: "store",
        name: "data",
        flag: Some("--data"),
        kind: "path",
        default: "\"selkie-data\"",
        example: "\"/var/lib/selkie\"",
        about: "The directory of the embedded store, created if it does not exist. A relative path is relative to \
                the working directory.",
        read: read!(data, |raw| text(raw, "a path").map(PathBuf::from)),
    },
    Parameter {
        section: "store",
        name: "accept-lost-writes",
        flag: Some("--accept-lost-writes"),
        kind: "true or false",
        default: "false",
        example: "true",
        about: "Starts although the embedded store's write-ahead log is damaged and acknowledged writes are lost. \
                The damaged log is copied first, and the server logs how much is lost. Use it for one start only.",
        read: read!(accept_lost_writes, boolean),
    },
    Parameter {
        section: "store",
        name: "mariadb",
        flag: Some("--mariadb"),
        kind: "URL",
        default: "# none: the embedded store",
        example: "\"mysql://selkie:secret@127.0.0.1:3306\"",
        about: "The MariaDB server that stores the documents, instead of `data`: `mysql://user:password@host:port`, \
                or `mysql://user:password@localhost/?socket=/run/mysqld/mysqld.sock`. Parameters such as \
                `?tls=verify-identity&tls-ca=/etc/selkie/ca.pem` set up \
                TLS. Other users of the machine can see the value of a \
                flag, so keep a password in this file.",
        read: read!(mariadb, mariadb_url),
    },
    Parameter {
        section: "store",
        name: "mariadb-connections",
        flag: None,
        kind: "number from 2 to 10000",
        default: "32",
        example: "16",
        about: "The most connections to the MariaDB server that each worker opens. Operations on one collection use \
                at most half of those that are free, so that a locked table leaves some for others. The sum over all \
                workers of all gateways, and SQL clients, must stay below the server's `max_connections`.",
        read: read!(mariadb_connections, |raw| integer(raw, 2, 10_000).map(|n| n as usize)),
    },
    Parameter {
        section: "store",
        name: "mariadb-wait-seconds",
        flag: None,
        kind: "seconds, from 1 to 86400",
        default: "30",
        example: "5",
        about: "How long an operation waits for a connection to the MariaDB server while all that it may use are \
                busy. Then it fails with error 202 (NetworkInterfaceExceededTimeLimit), or with error 50 if its \
                maxTimeMS expires first.",
        read: read!(mariadb_wait_seconds, |raw| integer(raw, 1, DAY_SECONDS).map(|n| n as u64)),
    },
    Parameter {
        section: "store",
        name: "gateway-name",
        flag: Some("--gateway-name"),
        kind: "text",
        default: "# the host's name and the addresses of `listen`",
        example: "\"selkie-1\"",
        about: "The name of this gateway on the MariaDB server. A gateway that starts kills the sessions that an \
                earlier process of the same name left there, so that none of their statements takes effect later. \
                Each gateway must have a name of its own, and keep it when it is restarted; set it in containers \
                whose host names change.",
        read: read!(gateway_name, |raw| text(raw, "a name")),
    },
    Parameter {
        section: "store",
        name: "embedded-mariadb",
        flag: Some("--embedded-mariadb"),
        kind: "path",
        default: "# none: the embedded store",
        example: "\"/var/lib/selkie-mariadb\"",
        about: "The data directory of a MariaDB within this process that stores the documents, instead of `data`; \
                created if it does not exist. Requires a build with `--features embedded-mariadb`.",
        read: read!(embedded_mariadb, |raw| text(raw, "a path").map(PathBuf::from)),
    },
    Parameter {
        section: "store",
        name: "sql-listen",
        flag: Some("--sql-listen"),
        kind: "list of addresses",
        default: "# none",
        example: "[\"127.0.0.1:3307\", \"/run/selkie/mariadb.sock\"]",
        about: "Addresses for SQL clients: `host:port`, or the path of a Unix socket. They are forwarded to the \
                server of `mariadb`, which authenticates them and must be named by host and port. The flag may be \
                repeated.",
        read: read!(sql_listen, addresses),
    },
    Parameter {
        section: "mongodb",
        name: "topology",
        flag: Some("--topology"),
        kind: "\"router\", \"standalone\" or \"replica-set\"",
        default: "\"router\"",
        example: "\"replica-set\"",
        about: "How the server presents itself in the handshake. `router` looks like a mongos and works behind any \
                address translation; `replica-set` has one member at the advertised address; `standalone` is a \
                single mongod, to which drivers send no retryable writes.",
        read: read!(topology, topology),
    },
    Parameter {
        section: "mongodb",
        name: "replica-set",
        flag: Some("--replica-set"),
        kind: "text",
        default: "\"selkie\"",
        example: "\"rs0\"",
        about: "The replica set's name, with `topology = \"replica-set\"`.",
        read: read!(replica_set, |raw| text(raw, "a replica set's name")),
    },
    Parameter {
        section: "mongodb",
        name: "advertise",
        flag: Some("--advertise"),
        kind: "host:port",
        default: "# the first address in `listen`",
        example: "\"db.example.org:27017\"",
        about: "The address that drivers connect to, with `topology = \"replica-set\"`.",
        read: read!(advertise, host_and_port),
    },
    Parameter {
        section: "mongodb",
        name: "compressors",
        flag: None,
        kind: "list of \"snappy\", \"zstd\", \"zlib\"",
        default: "[\"snappy\", \"zstd\", \"zlib\"]",
        example: "[\"zstd\"]",
        about: "The compressors offered to clients, by preference. A client gets compressed replies only if it asks \
                for them.",
        read: read!(compressors, compressors),
    },
    Parameter {
        section: "mongodb",
        name: "cursor-timeout-seconds",
        flag: None,
        kind: "seconds, from 1 to 86400",
        default: "600",
        example: "60",
        about: "Idle cursors are closed after this long, unless they were opened with noCursorTimeout.",
        read: read!(cursor_timeout_seconds, |raw| integer(raw, 1, DAY_SECONDS).map(|n| n as u64)),
    },
    tls::MODE,
    tls::CERTIFICATE,
    tls::KEY,
    tls::CA,
    tls::CRL,
    tls::MIN_VERSION,
    tls::CLIENT_CERTIFICATES,
    Parameter {
        section: "limits",
        name: "memory-mb",
        flag: Some("--memory-mb"),
        kind: "megabytes, from 128",
        default: "# half of the machine's memory",
        example: "4096",
        about: "The memory of the process, besides SQLite's own caches (1 MB is 1,048,576 bytes). When it runs \
                short, the requests that hold the most fail with error 146; when it is exhausted, new requests wait \
                a moment and then fail with error 462. The default is at most three quarters of the control group's \
                memory, and half of the address space (`ulimit -v`) beyond 512 MB.",
        read: read!(limits.memory_mb, |raw| integer(raw, MEMORY_MB_MIN, MEMORY_MB_MAX)),
    },
    Parameter {
        section: "limits",
        name: "request-memory-mb",
        flag: None,
        kind: "megabytes, from 1",
        default: "# a quarter of memory-mb",
        example: "512",
        about: "The memory of one request. A request that needs more fails with error 146. Sorts and groups spill to \
                disk before.",
        read: read!(limits.request_memory_mb, |raw| integer(raw, 1, MEMORY_MB_MAX)),
    },
    Parameter {
        section: "limits",
        name: "cursor-memory-mb",
        flag: None,
        kind: "megabytes, from 1",
        default: "# half of memory-mb",
        example: "1024",
        about: "The memory of all open cursors between two batches: sorted documents, filters. A cursor beyond it is \
                refused with error 146.",
        read: read!(limits.cursor_memory_mb, |raw| integer(raw, 1, MEMORY_MB_MAX)),
    },
    Parameter {
        section: "limits",
        name: "session-memory-mb",
        flag: None,
        kind: "megabytes, from 1",
        default: "# half of cursor-memory-mb",
        example: "256",
        about: "The memory of the cursors of one logical session. Cursors without a session count for their \
                connection.",
        read: read!(limits.session_memory_mb, |raw| integer(raw, 1, MEMORY_MB_MAX)),
    },
    Parameter {
        section: "limits",
        name: "cursors",
        flag: None,
        kind: "number from 1",
        default: "100000",
        example: "5000",
        about: "The most open cursors. Further ones are refused with error 146.",
        read: read!(limits.cursors, |raw| integer(raw, 1, i64::MAX)),
    },
    Parameter {
        section: "limits",
        name: "session-cursors",
        flag: None,
        kind: "number from 1",
        default: "10000",
        example: "500",
        about: "The most open cursors of one logical session. Cursors without a session count for their connection.",
        read: read!(limits.session_cursors, |raw| integer(raw, 1, i64::MAX)),
    },
    Parameter {
        section: "limits",
        name: "user-cursors",
        flag: None,
        kind: "number, at least 1",
        default: "50000",
        example: "5000",
        about: "The most open cursors of one user, over all of its sessions.",
        read: read!(limits.user_cursors, |raw| integer(raw, 1, i64::MAX)),
    },
    Parameter {
        section: "limits",
        name: "login-failures",
        flag: None,
        kind: "number from 0 to 1000",
        default: "5",
        example: "3",
        about: "So many failed logins of a user from one address have no consequence. After each further one, the next \
                attempt must wait, at first for 100 ms, then twice as long each time.",
        read: read!(limits.login_failures, |raw| integer(raw, 0, 1000).map(|n| n as u32)),
    },
    Parameter {
        section: "limits",
        name: "login-delay-seconds",
        flag: None,
        kind: "seconds, from 0 to 3600",
        default: "10",
        example: "60",
        about: "The longest time that an attempt to log in must wait after failed ones; 0: none waits.",
        read: read!(limits.login_delay_seconds, |raw| integer(raw, 0, 3600).map(|n| n as u64)),
    },
    Parameter {
        section: "limits",
        name: "connections",
        flag: None,
        kind: "number from 1 to 1000000",
        default: "65536",
        example: "1000",
        about: "The most connections, of MongoDB and SQL clients together. Further MongoDB clients are disconnected \
                at once, SQL clients with the error 1040. No more than four fifths of the limit of open files.",
        read: read!(limits.connections, |raw| integer(raw, 1, 1_000_000).map(|n| n as usize)),
    },
    Parameter {
        section: "limits",
        name: "address-connections",
        flag: None,
        kind: "number from 0 to 1000000",
        default: "0",
        example: "500",
        about: "The most connections of one client address; 0: no limit. The addresses of an IPv6 network of 64 bits \
                count as one.",
        read: read!(limits.address_connections, |raw| integer(raw, 0, 1_000_000).map(|n| n as usize)),
    },
    Parameter {
        section: "limits",
        name: "connection-rate",
        flag: None,
        kind: "number from 0 to 1000000",
        default: "0",
        example: "200",
        about: "The most new connections per second; 0: no limit. Further ones wait for their turn \
                (`connection-queue`). This is MongoDB 8.2's `ingressConnectionEstablishmentRatePerSec`.",
        read: read!(limits.connection_rate, |raw| integer(raw, 0, 1_000_000).map(|n| n as u32)),
    },
    Parameter {
        section: "limits",
        name: "connection-queue",
        flag: None,
        kind: "number from 0 to 1000000",
        default: "1000",
        example: "2000",
        about: "The most connections that wait because of `connection-rate`; more are refused. Those at the end of the \
                queue should not wait for longer than a driver's `connectTimeoutMS`.",
        read: read!(limits.connection_queue, |raw| integer(raw, 0, 1_000_000).map(|n| n as u32)),
    },
    Parameter {
        section: "limits",
        name: "request-rate",
        flag: None,
        kind: "number from 0 to 10000000",
        default: "0",
        example: "20000",
        about: "The most reads and writes of MongoDB clients per second; 0: no limit. Further ones fail with 462, which \
                recent drivers retry later. This is MongoDB 8.2's `ingressRequestAdmissionRatePerSec`.",
        read: read!(limits.request_rate, |raw| integer(raw, 0, 10_000_000).map(|n| n as u32)),
    },
    Parameter {
        section: "limits",
        name: "burst-seconds",
        flag: None,
        kind: "seconds, from 1 to 3600",
        default: "1",
        example: "5",
        about: "After a quiet time, the connections and requests of this many seconds may come at once \
                (`connection-rate`, `request-rate`).",
        read: read!(limits.burst_seconds, |raw| integer(raw, 1, 3600).map(|n| n as u64)),
    },
    Parameter {
        section: "limits",
        name: "handshake-seconds",
        flag: None,
        kind: "seconds, from 0 to 86400",
        default: "30",
        example: "10",
        about: "A MongoDB client is disconnected if its first message, with the TLS handshake before it, is not complete \
                this long after it connected; 0: never. SQL clients have ten seconds to log in.",
        read: read!(limits.handshake_seconds, |raw| integer(raw, 0, DAY_SECONDS).map(|n| n as u64)),
    },
    Parameter {
        section: "limits",
        name: "stalled-seconds",
        flag: None,
        kind: "seconds, from 1 to 86400",
        default: "300",
        example: "30",
        about: "A MongoDB client is disconnected if it pauses this long within a message, or leaves its reply unread \
                this long; after two seconds while memory is short.",
        read: read!(limits.stalled_seconds, |raw| integer(raw, 1, DAY_SECONDS).map(|n| n as u64)),
    },
    Parameter {
        section: "limits",
        name: "idle-seconds",
        flag: None,
        kind: "seconds, from 0 to 86400",
        default: "0",
        example: "3600",
        about: "A MongoDB client is disconnected if it sends no request for this long; 0: never, as in MongoDB.",
        read: read!(limits.idle_seconds, |raw| integer(raw, 0, DAY_SECONDS).map(|n| n as u64)),
    },
    Parameter {
        section: "audit",
        name: "log",
        flag: Some("--audit-log"),
        kind: "path or \"syslog\"",
        default: "# none",
        example: "\"/var/log/selkie/audit.log\"",
        about: "The file of the audit log, or `syslog`. Without it there is no audit log. An existing file is \
                continued. The command `logRotate` and the signal USR1 begin a new file.",
        read: read!(audit.log, audit_log),
    },
    Parameter {
        section: "audit",
        name: "key",
        flag: None,
        kind: "path",
        default: "# none",
        example: "\"/etc/selkie/audit.key\"",
        about: "A file with the key of the log's hashes, at least 16 bytes, which others must not be able to read. \
                Without a key, write access to the log is enough to compute the hashes anew.",
        read: read!(audit.key, |raw| text(raw, "a path").map(PathBuf::from)),
    },
    Parameter {
        section: "audit",
        name: "only",
        flag: None,
        kind: "list of kinds of events",
        default: "# all",
        example: "[\"authenticate\", \"authCheck\", \"createUser\"]",
        about: "The kinds of events that are logged.",
        read: read!(audit.only, audit_events),
    },
    Parameter {
        section: "audit",
        name: "except",
        flag: None,
        kind: "list of kinds of events",
        default: "# none",
        example: "[\"clientMetadata\"]",
        about: "Kinds of events that are not logged, even if `only` names them.",
        read: read!(audit.except, audit_events),
    },
    Parameter {
        section: "audit",
        name: "only-users",
        flag: None,
        kind: "list of users",
        default: "# all",
        example: "[\"admin.joe\"]",
        about: "The users whose events are logged, as `database.user`. A login counts for the user that it names. \
                Other events of connections without a login are not logged then.",
        read: read!(audit.only_users, audit_users),
    },
    Parameter {
        section: "audit",
        name: "except-users",
        flag: None,
        kind: "list of users",
        default: "# none",
        example: "[\"admin.monitoring\"]",
        about: "Users whose events are not logged.",
        read: read!(audit.except_users, audit_users),
    },
    Parameter {
        section: "audit",
        name: "authorization-success",
        flag: None,
        kind: "true or false",
        default: "false",
        example: "true",
        about: "Logs each command that was allowed as `authCheck`, reads and writes included. This is slow. Refused \
                commands are always logged.",
        read: read!(audit.authorization_success, boolean),
    },
    Parameter {
        section: "audit",
        name: "on-failure",
        flag: None,
        kind: "\"refuse\" or \"continue\"",
        default: "\"refuse\"",
        example: "\"continue\"",
        about: "The reaction while the log cannot be written, for instance because the disk is full: logins and \
                commands that would be logged are refused, or they go on. Events wait in memory; the number of those \
                beyond 16384 is logged later.",
        read: read!(audit.on_failure, audit_on_failure),
    },
    Parameter {
        section: "audit",
        name: "sync",
        flag: None,
        kind: "true or false",
        default: "false",
        example: "true",
        about: "Flushes events to the disk before the command's reply is sent, so that they survive a crash of the \
                machine. Without it they survive a crash of the process.",
        read: read!(audit.sync, boolean),
    },
    Parameter {
        section: "cache",
        name: "mode",
        flag: Some("--cache"),
        kind: "\"off\", \"results\", \"documents\" or \"both\"",
        default: "\"off\"",
        example: "\"documents\"",
        about: "What is cached: result sets of MariaDB by their SQL (`results`), replies to MongoDB clients by their \
                command (`documents`), both, or nothing.",
        read: read!(cache, cache_mode),
    },
    Parameter {
        section: "cache",
        name: "bytes",
        flag: Some("--cache-bytes"),
        kind: "bytes, from 1048576",
        default: "268435456",
        example: "1073741824",
        about: "The memory of all caches together. The entries that are hit least are evicted first.",
        read: read!(cache_bytes, |raw| integer(raw, CACHE_BYTES_MIN, i64::MAX).map(|n| n as usize)),
    },
    Parameter {
        section: "cache",
        name: "external-writes",
        flag: Some("--external-writes"),
        kind: "\"follow\", \"strict\" or \"none\"",
        default: "\"follow\"",
        example: "\"none\"",
        about: "How writes that other programs make in MariaDB are noticed. `follow` reads its binary log, and \
                nothing is cached while that fails. `strict` also has MariaDB wait until the gateway has noticed a \
                change (semi-synchronous replication). `none` promises that only this process writes.",
        read: read!(external_writes, external_writes),
    },
    Parameter {
        section: "cache",
        name: "soft-ttl-ms",
        flag: None,
        kind: "milliseconds, from 1",
        default: "# none",
        example: "30000",
        about: "A reply older than this is recomputed by one client; the others get the old one meanwhile. Writes \
                invalidate it at once in any case.",
        read: read!(cache_soft_ttl_ms, |raw| integer(raw, 1, DAY_SECONDS * 1000 * 365)),
    },
    Parameter {
        section: "cache",
        name: "hard-ttl-ms",
        flag: None,
        kind: "milliseconds, from 1",
        default: "# none",
        example: "60000",
        about: "A reply older than this has expired and is not returned.",
        read: read!(cache_hard_ttl_ms, |raw| integer(raw, 1, DAY_SECONDS * 1000 * 365)),
    },
    Parameter {
        section: "cache",
        name: "listeners",
        flag: None,
        kind: "list of `ADDRESS = MODE`",
        default: "# the mode, for all",
        example: "[\"127.0.0.1:27018 = off\", \"/run/selkie.sock = results\"]",
        about: "The part of the cache that clients of an address in `listen` or `sql-listen` use, instead of all of \
                the mode.",
        read: read!(cache_listeners, listener_modes),
    },
    Parameter {
        section: "cache",
        name: "only",
        flag: None,
        kind: "list of collections",
        default: "# all",
        example: "[\"shop.articles\", \"blog.*\"]",
        about: "The collections whose replies are cached: `database.collection`, or `database.*`.",
        read: read!(cache_only, patterns),
    },
    Parameter {
        section: "cache",
        name: "except",
        flag: None,
        kind: "list of collections",
        default: "# none",
        example: "[\"shop.sessions\"]",
        about: "Collections whose replies are not cached, even if `only` has them.",
        read: read!(cache_except, patterns),
    },
    Parameter {
        section: "cache",
        name: "commands",
        flag: None,
        kind: "list of \"find\", \"count\", \"distinct\", \"aggregate\"",
        default: "# all of them",
        example: "[\"find\", \"count\"]",
        about: "The commands whose replies are cached.",
        read: read!(cache_commands, commands),
    },
    Parameter {
        section: "cache",
        name: "selects",
        flag: Some("--selects"),
        kind: "\"verify\" or \"assume-cacheable\"",
        default: "\"verify\"",
        example: "\"assume-cacheable\"",
        about: "Whether SELECTs of SQL clients are checked for variables and for functions of the clock, of chance \
                and of the session, which prevent caching. With `assume-cacheable` they are not: the result of such \
                a SELECT is returned until its tables change.",
        read: read!(cache_selects, selects),
    },
    Parameter {
        section: "cache",
        name: "privileges-age-ms",
        flag: None,
        kind: "milliseconds, from 0",
        default: "1000",
        example: "200",
        about: "How long the privileges of an SQL account, by SHOW GRANTS, are used before they are queried again. A \
                client may get cached results for this long after a privilege is revoked.",
        read: read!(cache_privileges_age_ms, |raw| integer(raw, 0, DAY_SECONDS * 1000)),
    },
    Parameter {
        section: "cache",
        name: "only-users",
        flag: None,
        kind: "list of users",
        default: "# all",
        example: "[\"shop\"]",
        about: "The users of SQL clients whose results are cached, by login name.",
        read: read!(cache_only_users, users),
    },
    Parameter {
        section: "cache",
        name: "except-users",
        flag: None,
        kind: "list of users",
        default: "# none",
        example: "[\"reports\"]",
        about: "Users whose results are not cached, even if `only-users` has them.",
        read: read!(cache_except_users, users),
    },
    Parameter {
        section: "cache",
        name: "only-statements",
        flag: None,
        kind: "list of regular expressions",
        default: "# all",
        example: "[\"^SELECT .* FROM articles\"]",
        about: "Patterns of the SQL statements whose results are cached. Case is ignored, and a dot also matches a \
                line break.",
        read: read!(cache_only_statements, statements),
    },
    Parameter {
        section: "cache",
        name: "except-statements",
        flag: None,
        kind: "list of regular expressions",
        default: "# none",
        example: "[\"/\\\\* no cache \\\\*/\"]",
        about: "Patterns of statements whose results are not cached, even if `only-statements` matches.",
        read: read!(cache_except_statements, statements),
    },
    Parameter {
        section: "cache",
        name: "stale-ms",
        flag: Some("--stale-ms"),
        kind: "milliseconds, from 1",
        default: "# none",
        example: "5000",
        about: "How long cached replies are still returned after MariaDB's log can no longer be followed, or is \
                behind. Writes of this process invalidate them, external writes do not. Without it, every request \
                goes to the store meanwhile.",
        read: read!(cache_stale_ms, |raw| integer(raw, 1, DAY_SECONDS * 1000)),
    },
    Parameter {
        section: "cache",
        name: "invalidation",
        flag: Some("--invalidation"),
        kind: "\"precise\" or \"collection\"",
        default: "\"precise\"",
        example: "\"collection\"",
        about: "What a write invalidates: the entries that it affects (`precise`) or, for comparison, all of its \
                collection.",
        read: read!(cache_invalidation, invalidation),
    },
    Parameter {
        section: "cache",
        name: "per-worker",
        flag: Some("--cache-per-worker"),
        kind: "true or false",
        default: "false",
        example: "true",
        about: "Gives each worker a cache of its own, in its share of the memory. No worker waits for another's \
                lock, but each computes and stores a reply by itself.",
        read: read!(cache_per_worker, boolean),
    },
    Parameter {
        section: "cache",
        name: "storage",
        flag: Some("--cache-storage"),
        kind: "URL",
        default: "# none",
        example: "\"redis://selkie:secret@127.0.0.1:6379/0\"",
        about: "A Redis server by which gateways to the same MariaDB server share replies: \
                `redis://user:password@host:port/database`, or `rediss://` for TLS. It must be available at the \
                start; later, requests go to the store while it is not.",
        read: read!(cache_storage, |raw| text(raw, "a URL such as \"redis://host:6379/0\"")),
    },
    Parameter {
        section: "cache",
        name: "storage-ca",
        flag: None,
        kind: "path",
        default: "# none",
        example: "\"/etc/selkie/redis-ca.pem\"",
        about: "A file with the certificate (PEM) that signed Redis's certificate, for `rediss://`.",
        read: read!(cache_storage_ca, |raw| text(raw, "a path").map(PathBuf::from)),
    },
    Parameter {
        section: "cache",
        name: "storage-timeout-ms",
        flag: None,
        kind: "milliseconds, from 1 to 10000",
        default: "50",
        example: "10",
        about: "How long a request to Redis may take. Then the store is queried, and Redis is not used for a second.",
        read: read!(cache_storage_timeout_ms, |raw| integer(raw, 1, 10_000)),
    },
];

/// Returns the parameter with a name in a section.
pub fn find(section: &str, name: &str) -> Option<&'static Parameter> {
    PARAMETERS.iter().find(|parameter| parameter.section == section && parameter.name == name)
}

/// Returns the parameter that a flag sets.
pub fn by_flag(flag: &str) -> Option<&'static Parameter> {
    PARAMETERS.iter().find(|parameter| parameter.flag == Some(flag))
}
