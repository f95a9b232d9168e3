//! The settings of services and listeners.

use super::Parameter;
use crate::config::defaults::CACHE_BYTES_MIN;
use crate::config::services::{WrittenListener, WrittenService};
use crate::config::setting::Setting;
use crate::config::value::{boolean, causal_reads, integer, listen_address, names, protocol, role, router, text};

/// `[service.NAME]`.
pub const SERVICE: &[Parameter<WrittenService>] = &[
    Parameter {
        section: "service",
        name: "router",
        flag: None,
        kind: "connections or read-write-split",
        default: "\"connections\"",
        example: "\"read-write-split\"",
        about: "How servers are chosen. `connections` gives each session one server, when it logs in: the one with the \
                fewest sessions relative to its weight. `read-write-split` sends reads to replicas, and everything else \
                to the primary.",
        read: read!(router, router),
    },
    Parameter {
        section: "service",
        name: "role",
        flag: None,
        kind: "primary, replica or any",
        default: "\"any\"",
        example: "\"primary\"",
        about: "The servers that sessions may be on: the primary, replicas (or the primary while there is no replica), \
                or both alike. Without a monitor, servers have no roles.",
        read: read!(role, role),
    },
    Parameter {
        section: "service",
        name: "monitor",
        flag: None,
        kind: "name",
        default: "# none: servers must be set",
        example: "\"main\"",
        about: "The monitor whose servers the service uses.",
        read: read!(monitor, |raw| text(raw, "the name of a monitor")),
    },
    Parameter {
        section: "service",
        name: "servers",
        flag: None,
        kind: "list of servers",
        default: "# those of the monitor",
        example: "[\"db1\", \"db2\"]",
        about: "The servers that the service uses: some of the monitor's, or, without a monitor, any. Servers that no \
                monitor observes are used as long as connections to them succeed.",
        read: read!(servers, |raw| names(raw, "servers")),
    },
    Parameter {
        section: "service",
        name: "filters",
        flag: None,
        kind: "list of filters",
        default: "# none",
        example: "[\"log\", \"guard\"]",
        about: "The filters that statements pass, in this order.",
        read: read!(filters, |raw| names(raw, "filters")),
    },
    Parameter {
        section: "service",
        name: "connections-per-user",
        flag: None,
        kind: "number from 1 to 1000000",
        default: "# no limit",
        example: "200",
        about: "The most sessions of each user. Further ones are refused with error 1203, as by `max_user_connections` \
                in MariaDB.",
        read: read!(connections_per_user, |raw| integer(raw, 1, 1_000_000).map(|max| max as usize)),
    },
    Parameter {
        section: "service",
        name: "causal-reads",
        flag: None,
        kind: "true, false or all",
        default: "false",
        example: "true",
        about: "With `read-write-split`, which writes a read on a replica sees. `true`: those of its own session, for \
                which it waits on the replica. `all`: every write that was acknowledged before it, of any session and \
                through any gateway, which takes a question to the primary before each read. `false`: those that have \
                arrived.",
        read: read!(causal_reads, causal_reads),
    },
    Parameter {
        section: "service",
        name: "max-lag-seconds",
        flag: None,
        kind: "seconds, from 0",
        default: "# none: no limit",
        example: "10",
        about: "With `read-write-split`, replicas that are further behind the primary get no reads.",
        read: read!(max_lag_seconds, |raw| integer(raw, 0, 1_000_000)),
    },
    Parameter {
        section: "service",
        name: "primary-wait-ms",
        flag: None,
        kind: "milliseconds, from 0",
        default: "10000",
        example: "30000",
        about: "With `read-write-split`, how long a statement waits for a primary while there is none.",
        read: read!(primary_wait_ms, |raw| integer(raw, 0, 3_600_000)),
    },
    Parameter {
        section: "service",
        name: "transaction-replay",
        flag: None,
        kind: "true or false",
        default: "false",
        example: "true",
        about: "With `read-write-split`, executes a transaction again if its server is lost, or if it meets another \
                transaction (errors 1020, 1205 and 1213). All replies must be the same as before; otherwise the client \
                gets the error. Transactions over 1 MiB with their replies are not executed again.",
        read: read!(transaction_replay, boolean),
    },
    Parameter {
        section: "service",
        name: "commit-outcomes",
        flag: None,
        kind: "true or false",
        default: "false",
        example: "true",
        about: "With `read-write-split`, marks transactions that have written by a row of the table `selkie.commits`, \
                which must exist. If the server is lost during a COMMIT, Selkie finds out on the next primary whether \
                it has taken effect.",
        read: read!(commit_outcomes, boolean),
    },
    Parameter {
        section: "service",
        name: "multiplex",
        flag: None,
        kind: "true or false",
        default: "false",
        example: "true",
        about: "With `read-write-split`, lets sessions share connections: between its statements and transactions, a \
                session without other state gives its connections to those that wait. `max-connections` of the servers \
                may then be far below the number of clients.",
        read: read!(multiplex, boolean),
    },
    Parameter {
        section: "service",
        name: "cache-bytes",
        flag: None,
        kind: "bytes, from 1048576",
        default: "# none: nothing is cached",
        example: "67108864",
        about: "Caches results of SELECTs in this much memory, with the router `read-write-split` or \
                `role = \"primary\"`. The cache follows the primary's log with the monitor's user. It is created when Selkie starts.",
        read: read!(cache_bytes, |raw| integer(raw, CACHE_BYTES_MIN, i64::MAX).map(|bytes| bytes as usize)),
    },
];

/// `[listener.NAME]`.
pub const LISTENER: &[Parameter<WrittenListener>] = &[
    Parameter {
        section: "listener",
        name: "protocol",
        flag: None,
        kind: "mariadb or mongodb",
        default: "# none: it must be set",
        example: "\"mariadb\"",
        about: "The protocol of its clients.",
        read: read!(protocol, protocol),
    },
    Parameter {
        section: "listener",
        name: "address",
        flag: None,
        kind: "address",
        default: "# none: it must be set",
        example: "\"127.0.0.1:4006\"",
        about: "The address: `host:port`, or the path of a Unix socket.",
        read: read!(address, listen_address),
    },
    Parameter {
        section: "listener",
        name: "service",
        flag: None,
        kind: "name",
        default: "# none: it must be set for SQL clients",
        example: "\"app\"",
        about: "The service of its SQL clients.",
        read: read!(service, |raw| text(raw, "the name of a service")),
    },
];
