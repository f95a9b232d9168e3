//! The table of everything that can be set. Where a default or a description changes, it changes here.

mod defaults;
mod entry;

pub use defaults::*;
pub use entry::Parameter;

use super::Setting;
use super::value::{
    addresses, boolean, cache_mode, commands, compressors, foreign_writes, host_and_port, integer, invalidation,
    listener_modes, log_filter, mariadb_url, patterns, selects, statements, text, topology, users,
};
use std::path::PathBuf;

/// The sections, with what stands under them.
pub const SECTIONS: &[(&str, &str)] = &[
    ("", "The process: addresses, threads, log."),
    ("store", "Where documents lie: in a directory of this machine (the default), or in MariaDB."),
    ("mongodb", "What MongoDB clients see."),
    (
        "limits",
        "How much memory the process and its clients may take, and how many cursors and connections there may be.",
    ),
    ("cache", "Answers that are kept and given again for as long as they are right."),
];

macro_rules! read {
    ($($field:ident).+, $convert:expr) => {
        |written, raw, origin| {
            written.$($field).+ = Some(Setting { value: $convert(raw)?, origin });
            Ok(())
        }
    };
}

pub const PARAMETERS: &[Parameter] = &[
    Parameter {
        section: "",
        name: "listen",
        flag: Some("--listen"),
        kind: "list of addresses",
        default: "[\"127.0.0.1:27017\"]",
        example: "[\"127.0.0.1:27017\", \"/run/selkie/mongodb-27017.sock\"]",
        about: "Where MongoDB clients connect: `host:port`, or the path of a Unix socket. The flag may be given several times.",
        read: read!(listen, addresses),
    },
    Parameter {
        section: "",
        name: "allow-remote",
        flag: Some("--allow-remote"),
        kind: "true or false",
        default: "false",
        example: "true",
        about: "Allows addresses in `listen` and `sql-listen` that other machines can reach. There is no authentication yet, so whoever reaches such \
                an address may read and write everything.",
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
        about: "What is logged to standard error: `error`, `warn`, `info`, `debug` or `trace`, also per part of the program. The \
                environment variable SELKIE_LOG is used where neither flag nor file says anything.",
        read: read!(log, log_filter),
    },
    Parameter {
        section: "",
        name: "busy-poll-us",
        flag: None,
        kind: "microseconds, from 0 to 1000",
        default: "100",
        example: "0",
        about: "For how long a thread that has nothing to do looks again before it sleeps, where a connection's next request usually comes \
                that soon, or MariaDB's answer, or the outcome of a write, within three times as long: being woken takes longer than \
                many a request. MariaDB and writes are waited for so while a client asks again within ten times as long. It takes the time \
                of an otherwise idle core; 0 never does it.",
        read: read!(busy_poll_us, |raw| integer(raw, 0, BUSY_POLL_US_MAX).map(|n| n as u64)),
    },
    Parameter {
        section: "",
        name: "drain-seconds",
        flag: None,
        kind: "seconds, from 0 to 86400",
        default: "10",
        example: "30",
        about: "How long running requests may go on after SIGTERM or SIGINT. Idle connections are closed at once.",
        read: read!(drain_seconds, |raw| integer(raw, 0, DAY_SECONDS).map(|n| n as u64)),
    },
    Parameter {
        section: "",
        name: "slow-ms",
        flag: Some("--slow-ms"),
        kind: "number from 0 to 86400000",
        default: "100",
        example: "20",
        about: "Operations that take longer than so many milliseconds are slow: they are logged, and profiled at level 1. The command \
                `profile` changes it while the server runs.",
        read: read!(slow_ms, |raw| integer(raw, 0, DAY_SECONDS * 1000)),
    },
    Parameter {
        section: "",
        name: "slow-log",
        flag: None,
        kind: "true or false",
        default: "true",
        example: "false",
        about: "Logs slow operations, a line each: namespace, command, plan summary, keys and documents examined, time.",
        read: read!(slow_log, boolean),
    },
    Parameter {
        section: "store",
        name: "data",
        flag: Some("--data"),
        kind: "path",
        default: "\"selkie-data\"",
        example: "\"/var/lib/selkie\"",
        about: "The directory of the embedded store, made if it is not there. A relative path starts at the working directory.",
        read: read!(data, |raw| text(raw, "a path").map(PathBuf::from)),
    },
    Parameter {
        section: "store",
        name: "accept-lost-writes",
        flag: Some("--accept-lost-writes"),
        kind: "true or false",
        default: "false",
        example: "true",
        about: "Starts although the embedded store's write-ahead log is damaged and acknowledged writes are lost. The damaged log is copied first, \
                and the log says how much is lost. For one start, not for good.",
        read: read!(accept_lost_writes, boolean),
    },
    Parameter {
        section: "store",
        name: "mariadb",
        flag: Some("--mariadb"),
        kind: "URL",
        default: "# none: the embedded store",
        example: "\"mysql://selkie:secret@127.0.0.1:3306\"",
        about: "The MariaDB server that keeps the documents, instead of `data`: `mysql://user:password@host:port`, or \
                `mysql://user:password@localhost/?socket=/run/mysqld/mysqld.sock`. Other users of the machine can see a flag's \
                value, so a password is better kept in this file.",
        read: read!(mariadb, mariadb_url),
    },
    Parameter {
        section: "store",
        name: "mariadb-connections",
        flag: None,
        kind: "number from 2 to 10000",
        default: "32",
        example: "16",
        about: "Connections to the MariaDB server that each worker opens at the most. Operations on one collection take at most half of \
                those that are free, so that a table that somebody has locked leaves some for the others. All workers of all gateways \
                and SQL clients together should stay below the server's `max_connections`.",
        read: read!(mariadb_connections, |raw| integer(raw, 2, 10_000).map(|n| n as usize)),
    },
    Parameter {
        section: "store",
        name: "mariadb-wait-seconds",
        flag: None,
        kind: "seconds, from 1 to 86400",
        default: "30",
        example: "5",
        about: "How long an operation waits for a connection to the MariaDB server while all that it may use are busy. Then it fails with \
                error 202 (NetworkInterfaceExceededTimeLimit); one with maxTimeMS fails with error 50 when that is over.",
        read: read!(mariadb_wait_seconds, |raw| integer(raw, 1, DAY_SECONDS).map(|n| n as u64)),
    },
    Parameter {
        section: "store",
        name: "gateway-name",
        flag: Some("--gateway-name"),
        kind: "text",
        default: "# the host's name and the addresses of `listen`",
        example: "\"selkie-1\"",
        about: "What this gateway is called on the MariaDB server. A gateway that starts ends the sessions that an earlier process of the same \
                name has left there, so that nothing which it had begun takes effect later. Each gateway needs a name of its own, and \
                the same one when it is started again; in containers whose host names change it has to be set.",
        read: read!(gateway_name, |raw| text(raw, "a name")),
    },
    Parameter {
        section: "store",
        name: "embedded-mariadb",
        flag: Some("--embedded-mariadb"),
        kind: "path",
        default: "# none: the embedded store",
        example: "\"/var/lib/selkie-mariadb\"",
        about: "The data directory of a MariaDB that runs within this process and keeps the documents, instead of `data`; made if it is not there. \
                A Selkie has it that was built with `--features embedded-mariadb`.",
        read: read!(embedded_mariadb, |raw| text(raw, "a path").map(PathBuf::from)),
    },
    Parameter {
        section: "store",
        name: "sql-listen",
        flag: Some("--sql-listen"),
        kind: "list of addresses",
        default: "# none",
        example: "[\"127.0.0.1:3307\", \"/run/selkie/mariadb.sock\"]",
        about: "Where SQL clients connect: `host:port`, or the path of a Unix socket. They are passed on to the server of `mariadb`, which \
                checks user and password; it has to be named by host and port. The flag may be given several times.",
        read: read!(sql_listen, addresses),
    },
    Parameter {
        section: "mongodb",
        name: "topology",
        flag: Some("--topology"),
        kind: "\"router\", \"standalone\" or \"replica-set\"",
        default: "\"router\"",
        example: "\"replica-set\"",
        about: "How the server presents itself in the handshake. `router` looks like a mongos and works behind any address \
                translation; `replica-set` has one member at the advertised address; `standalone` is a single mongod, to which \
                drivers send no retryable writes.",
        read: read!(topology, topology),
    },
    Parameter {
        section: "mongodb",
        name: "replica-set",
        flag: Some("--replica-set"),
        kind: "text",
        default: "\"selkie\"",
        example: "\"rs0\"",
        about: "The set's name, with `topology = \"replica-set\"`.",
        read: read!(replica_set, |raw| text(raw, "a replica set's name")),
    },
    Parameter {
        section: "mongodb",
        name: "advertise",
        flag: Some("--advertise"),
        kind: "host:port",
        default: "# the first address in `listen`",
        example: "\"db.example.org:27017\"",
        about: "The address that drivers are told to connect to, with `topology = \"replica-set\"`.",
        read: read!(advertise, host_and_port),
    },
    Parameter {
        section: "mongodb",
        name: "compressors",
        flag: None,
        kind: "list of \"snappy\", \"zstd\", \"zlib\"",
        default: "[\"snappy\", \"zstd\", \"zlib\"]",
        example: "[\"zstd\"]",
        about: "The compressors offered to clients, by preference. A client gets compressed replies only if it asks for them.",
        read: read!(compressors, compressors),
    },
    Parameter {
        section: "mongodb",
        name: "cursor-timeout-seconds",
        flag: None,
        kind: "seconds, from 1 to 86400",
        default: "600",
        example: "60",
        about: "A cursor that nobody asks for so long is closed, unless it was opened with noCursorTimeout.",
        read: read!(cursor_timeout_seconds, |raw| integer(raw, 1, DAY_SECONDS).map(|n| n as u64)),
    },
    Parameter {
        section: "limits",
        name: "memory-mb",
        flag: Some("--memory-mb"),
        kind: "megabytes, from 128",
        default: "# half of the machine's memory",
        example: "4096",
        about: "What the process may hold in memory, besides SQLite's own caches (MB: 1,048,576 bytes). When it gets short, the requests that hold most \
                end with error 146; while it is spent, new requests wait a moment and then get error 462. The default is no more than three \
                quarters of the control group's memory and half of the address space (`ulimit -v`) beyond 512 MB.",
        read: read!(limits.memory_mb, |raw| integer(raw, MEMORY_MB_MIN, MEMORY_MB_MAX)),
    },
    Parameter {
        section: "limits",
        name: "request-memory-mb",
        flag: None,
        kind: "megabytes, from 1",
        default: "# a quarter of memory-mb",
        example: "512",
        about: "What one request may hold in memory. One that needs more ends with error 146. Sorts and groups go to disk before.",
        read: read!(limits.request_memory_mb, |raw| integer(raw, 1, MEMORY_MB_MAX)),
    },
    Parameter {
        section: "limits",
        name: "cursor-memory-mb",
        flag: None,
        kind: "megabytes, from 1",
        default: "# half of memory-mb",
        example: "1024",
        about: "What all open cursors may hold in memory between two batches: sorted documents, filters. A cursor beyond it is refused with error 146.",
        read: read!(limits.cursor_memory_mb, |raw| integer(raw, 1, MEMORY_MB_MAX)),
    },
    Parameter {
        section: "limits",
        name: "session-memory-mb",
        flag: None,
        kind: "megabytes, from 1",
        default: "# half of cursor-memory-mb",
        example: "256",
        about: "What the cursors of one logical session may hold. Cursors without a session count for their connection.",
        read: read!(limits.session_memory_mb, |raw| integer(raw, 1, MEMORY_MB_MAX)),
    },
    Parameter {
        section: "limits",
        name: "cursors",
        flag: None,
        kind: "number from 1",
        default: "100000",
        example: "5000",
        about: "How many cursors may be open. One more is refused with error 146.",
        read: read!(limits.cursors, |raw| integer(raw, 1, i64::MAX)),
    },
    Parameter {
        section: "limits",
        name: "session-cursors",
        flag: None,
        kind: "number from 1",
        default: "10000",
        example: "500",
        about: "How many cursors of one logical session may be open. Cursors without a session count for their connection.",
        read: read!(limits.session_cursors, |raw| integer(raw, 1, i64::MAX)),
    },
    Parameter {
        section: "limits",
        name: "connections",
        flag: None,
        kind: "number from 1 to 1000000",
        default: "65536",
        example: "1000",
        about: "How many clients may be connected, MongoDB's and SQL clients together. Further ones are closed at once, with a line in the log. \
                Each is an open file, so the limit of open files holds, too.",
        read: read!(limits.connections, |raw| integer(raw, 1, 1_000_000).map(|n| n as usize)),
    },
    Parameter {
        section: "limits",
        name: "stalled-seconds",
        flag: None,
        kind: "seconds, from 1 to 86400",
        default: "300",
        example: "30",
        about: "A MongoDB client is disconnected that sends a part of a message and then nothing for so long, or does not read its reply. While memory \
                is short, two seconds are enough.",
        read: read!(limits.stalled_seconds, |raw| integer(raw, 1, DAY_SECONDS).map(|n| n as u64)),
    },
    Parameter {
        section: "limits",
        name: "idle-seconds",
        flag: None,
        kind: "seconds, from 0 to 86400",
        default: "0",
        example: "3600",
        about: "A MongoDB client is disconnected that sends no request for so long; 0: never, as in MongoDB.",
        read: read!(limits.idle_seconds, |raw| integer(raw, 0, DAY_SECONDS).map(|n| n as u64)),
    },
    Parameter {
        section: "cache",
        name: "mode",
        flag: Some("--cache"),
        kind: "\"off\", \"results\", \"documents\" or \"both\"",
        default: "\"off\"",
        example: "\"documents\"",
        about: "What is kept: result sets of MariaDB by their SQL (`results`), replies to MongoDB clients by their command (`documents`), \
                both, or nothing.",
        read: read!(cache, cache_mode),
    },
    Parameter {
        section: "cache",
        name: "bytes",
        flag: Some("--cache-bytes"),
        kind: "bytes, from 1048576",
        default: "268435456",
        example: "1073741824",
        about: "The memory that answers take, all in all. What is asked for least goes first.",
        read: read!(cache_bytes, |raw| integer(raw, CACHE_BYTES_MIN, i64::MAX).map(|n| n as usize)),
    },
    Parameter {
        section: "cache",
        name: "foreign-writes",
        flag: Some("--foreign-writes"),
        kind: "\"follow\", \"strict\" or \"none\"",
        default: "\"follow\"",
        example: "\"none\"",
        about: "How writes are noticed that others make in MariaDB. `follow` reads its binary log, and nothing is kept while that is not \
                to be had; `strict` has MariaDB wait, too, until the change has been noticed (semi-synchronous replication); `none`: you \
                know that this process alone writes.",
        read: read!(foreign_writes, foreign_writes),
    },
    Parameter {
        section: "cache",
        name: "soft-ttl-ms",
        flag: None,
        kind: "milliseconds, from 1",
        default: "# none",
        example: "30000",
        about: "An answer older than this is made anew by one of those who ask for it; the others get the old one meanwhile. Changes \
                remove answers at once in any case.",
        read: read!(cache_soft_ttl_ms, |raw| integer(raw, 1, DAY_SECONDS * 1000 * 365)),
    },
    Parameter {
        section: "cache",
        name: "hard-ttl-ms",
        flag: None,
        kind: "milliseconds, from 1",
        default: "# none",
        example: "60000",
        about: "An answer older than this is not given any more.",
        read: read!(cache_hard_ttl_ms, |raw| integer(raw, 1, DAY_SECONDS * 1000 * 365)),
    },
    Parameter {
        section: "cache",
        name: "listeners",
        flag: None,
        kind: "list of `ADDRESS = MODE`",
        default: "# the mode, for all",
        example: "[\"127.0.0.1:27018 = off\", \"/run/selkie.sock = results\"]",
        about: "Another mode for the clients that come to an address of `listen` or `sql-listen`: as much of the cache's mode as they use.",
        read: read!(cache_listeners, listener_modes),
    },
    Parameter {
        section: "cache",
        name: "only",
        flag: None,
        kind: "list of collections",
        default: "# all",
        example: "[\"shop.articles\", \"blog.*\"]",
        about: "The collections whose answers are kept: `database.collection`, or `database.*`.",
        read: read!(cache_only, patterns),
    },
    Parameter {
        section: "cache",
        name: "except",
        flag: None,
        kind: "list of collections",
        default: "# none",
        example: "[\"shop.sessions\"]",
        about: "Collections whose answers are not kept, whatever `only` says.",
        read: read!(cache_except, patterns),
    },
    Parameter {
        section: "cache",
        name: "commands",
        flag: None,
        kind: "list of \"find\", \"count\", \"distinct\", \"aggregate\"",
        default: "# all of them",
        example: "[\"find\", \"count\"]",
        about: "The commands whose answers are kept.",
        read: read!(cache_commands, commands),
    },
    Parameter {
        section: "cache",
        name: "selects",
        flag: Some("--selects"),
        kind: "\"verify\" or \"assume-cacheable\"",
        default: "\"verify\"",
        example: "\"assume-cacheable\"",
        about: "Whether SELECTs of SQL clients are looked into for variables and for functions of the clock, of chance and of the session, which keep \
                their answers from being kept. `assume-cacheable` leaves that out: what such a SELECT gave is given again until its tables change.",
        read: read!(cache_selects, selects),
    },
    Parameter {
        section: "cache",
        name: "rights-age-ms",
        flag: None,
        kind: "milliseconds, from 0",
        default: "1000",
        example: "200",
        about: "Answers from memory are given to an SQL client by what SHOW GRANTS says of its account, which is asked for again when it is older than this: \
                so long, at most, answers are given that a withdrawn right allowed.",
        read: read!(cache_rights_age_ms, |raw| integer(raw, 0, DAY_SECONDS * 1000)),
    },
    Parameter {
        section: "cache",
        name: "only-users",
        flag: None,
        kind: "list of users",
        default: "# all",
        example: "[\"shop\"]",
        about: "The SQL clients' users whose answers are kept, by the name they log in with.",
        read: read!(cache_only_users, users),
    },
    Parameter {
        section: "cache",
        name: "except-users",
        flag: None,
        kind: "list of users",
        default: "# none",
        example: "[\"reports\"]",
        about: "Users whose answers are not kept, whatever `only-users` says.",
        read: read!(cache_except_users, users),
    },
    Parameter {
        section: "cache",
        name: "only-statements",
        flag: None,
        kind: "list of regular expressions",
        default: "# all",
        example: "[\"^SELECT .* FROM articles\"]",
        about: "The statements of SQL clients whose answers are kept: one of the patterns fits, in upper or lower case. A dot stands for the end of a \
                line, too.",
        read: read!(cache_only_statements, statements),
    },
    Parameter {
        section: "cache",
        name: "except-statements",
        flag: None,
        kind: "list of regular expressions",
        default: "# none",
        example: "[\"/\\\\* no cache \\\\*/\"]",
        about: "Statements whose answers are not kept, whatever `only-statements` says.",
        read: read!(cache_except_statements, statements),
    },
    Parameter {
        section: "cache",
        name: "stale-ms",
        flag: Some("--stale-ms"),
        kind: "milliseconds, from 1",
        default: "# none",
        example: "5000",
        about: "For so long after MariaDB's log was found to be cut or behind, answers are given that were kept before; what this process writes removes them \
                as ever, what others write does not. Without it, every question goes to the store meanwhile.",
        read: read!(cache_stale_ms, |raw| integer(raw, 1, DAY_SECONDS * 1000)),
    },
    Parameter {
        section: "cache",
        name: "invalidation",
        flag: Some("--invalidation"),
        kind: "\"precise\" or \"collection\"",
        default: "\"precise\"",
        example: "\"collection\"",
        about: "Which answers a change takes away: those that it matters to, or, for comparison, all of its collection.",
        read: read!(cache_invalidation, invalidation),
    },
    Parameter {
        section: "cache",
        name: "per-worker",
        flag: Some("--cache-per-worker"),
        kind: "true or false",
        default: "false",
        example: "true",
        about: "Whether each worker keeps answers of its own, in its share of the memory, rather than all of them together: no worker waits for another's \
                lock, and each makes and keeps an answer by itself.",
        read: read!(cache_per_worker, boolean),
    },
    Parameter {
        section: "cache",
        name: "storage",
        flag: Some("--cache-storage"),
        kind: "URL",
        default: "# none",
        example: "\"redis://selkie:secret@127.0.0.1:6379/0\"",
        about: "A Redis server by which gateways to the same MariaDB server share replies: `redis://user:password@host:port/database`, or `rediss://` \
                with TLS. It has to be there at the start; later on, questions go to the store while it is not.",
        read: read!(cache_storage, |raw| text(raw, "a URL such as \"redis://host:6379/0\"")),
    },
    Parameter {
        section: "cache",
        name: "storage-ca",
        flag: None,
        kind: "path",
        default: "# none",
        example: "\"/etc/selkie/redis-ca.pem\"",
        about: "A file with the certificate (PEM) that the certificate of Redis is signed with, for `rediss://`.",
        read: read!(cache_storage_ca, |raw| text(raw, "a path").map(PathBuf::from)),
    },
    Parameter {
        section: "cache",
        name: "storage-timeout-ms",
        flag: None,
        kind: "milliseconds from 1 to 10000",
        default: "50",
        example: "10",
        about: "How long Redis may take for an answer. After that the question goes to the store, and Redis is left alone for a second.",
        read: read!(cache_storage_timeout_ms, |raw| integer(raw, 1, 10_000)),
    },
];

/// The parameter with this name in this section.
pub fn find(section: &str, name: &str) -> Option<&'static Parameter> {
    PARAMETERS.iter().find(|parameter| parameter.section == section && parameter.name == name)
}

/// The parameter that a flag sets.
pub fn by_flag(flag: &str) -> Option<&'static Parameter> {
    PARAMETERS.iter().find(|parameter| parameter.flag == Some(flag))
}
