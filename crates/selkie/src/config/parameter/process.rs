//! The settings at the top of the file: the process.

use super::Parameter;
use crate::config::defaults::{BUSY_POLL_US_MAX, DAY_SECONDS, THREADS_MAX};
use crate::config::setting::Setting;
use crate::config::value::{addresses, boolean, integer, log_filter};

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
];
