//! The settings of MariaDB servers and their monitors.

use super::Parameter;
use crate::config::servers::{WrittenMonitor, WrittenServer};
use crate::config::setting::Setting;
use crate::config::value::{boolean, cluster_kind, integer, majority_of, names, path, server_address, tags, text};
use std::time::Duration;

/// The most connections that a limit can name.
const CONNECTIONS_MAX: i64 = 1_000_000;
const WEIGHT_MAX: i64 = 1000;
const INTERVAL_MS_MIN: i64 = 50;
const MINUTE_MS: i64 = 60_000;

fn milliseconds(raw: crate::config::value::Raw) -> Result<Duration, String> {
    integer(raw, INTERVAL_MS_MIN, MINUTE_MS).map(|ms| Duration::from_millis(ms as u64))
}

/// `[server.NAME]`.
pub const SERVER: &[Parameter<WrittenServer>] = &[
    Parameter {
        section: "server",
        name: "address",
        flag: None,
        kind: "address",
        default: "# none: it must be set",
        example: "\"db1.example.org:3306\"",
        about: "The server's address: `host:port`, or `host` for port 3306. It cannot be a Unix socket: MariaDB would \
                take each client for the user that Selkie runs as.",
        read: read!(address, server_address),
    },
    Parameter {
        section: "server",
        name: "weight",
        flag: None,
        kind: "number from 1 to 1000",
        default: "1",
        example: "2",
        about: "The server's share of the sessions, relative to other servers.",
        read: read!(weight, |raw| integer(raw, 1, WEIGHT_MAX).map(|weight| weight as u32)),
    },
    Parameter {
        section: "server",
        name: "max-connections",
        flag: None,
        kind: "number from 1 to 1000000",
        default: "# no limit",
        example: "500",
        about: "The most sessions on the server. Up to 1,000 more wait for one to end, as long as a login may take; \
                others are refused with error 1040. The server's own `max_connections` must be higher, as monitors \
                connect too.",
        read: read!(connections_max, |raw| integer(raw, 1, CONNECTIONS_MAX).map(|max| max as usize)),
    },
    Parameter {
        section: "server",
        name: "tags",
        flag: None,
        kind: "list of tags",
        default: "# none",
        example: "[\"dc:east\", \"use:reports\"]",
        about: "Tags of the server, by which the read preferences of MongoDB clients choose it.",
        read: read!(tags, tags),
    },
    Parameter {
        section: "server",
        name: "tls",
        flag: None,
        kind: "mode",
        default: "# \"verify-identity\" with tls-ca, otherwise \"disabled\"",
        example: "\"required\"",
        about: "How connections to the server are protected: `disabled`, `preferred`, `required`, `verify-ca` or \
                `verify-identity`.",
        read: read!(tls, |raw| text(raw, "a mode of TLS")),
    },
    Parameter {
        section: "server",
        name: "tls-ca",
        flag: None,
        kind: "path",
        default: "# none",
        example: "\"/etc/selkie/mariadb-ca.pem\"",
        about: "The authorities (PEM) that sign the server's certificate.",
        read: read!(tls_ca, path),
    },
    Parameter {
        section: "server",
        name: "tls-crl",
        flag: None,
        kind: "path",
        default: "# none",
        example: "\"/etc/selkie/mariadb-crl.pem\"",
        about: "The revoked certificates of servers (PEM).",
        read: read!(tls_crl, path),
    },
    Parameter {
        section: "server",
        name: "tls-certificate",
        flag: None,
        kind: "path",
        default: "# none",
        example: "\"/etc/selkie/client.pem\"",
        about: "Selkie's own certificate (PEM), for servers that ask for one.",
        read: read!(tls_certificate, path),
    },
    Parameter {
        section: "server",
        name: "tls-key",
        flag: None,
        kind: "path",
        default: "# none: it is in the certificate's file",
        example: "\"/etc/selkie/client.key\"",
        about: "The key (PEM) of Selkie's certificate.",
        read: read!(tls_key, path),
    },
];

/// `[monitor.NAME]`.
pub const MONITOR: &[Parameter<WrittenMonitor>] = &[
    Parameter {
        section: "monitor",
        name: "kind",
        flag: None,
        kind: "replication or galera",
        default: "# none: it must be set",
        example: "\"replication\"",
        about: "How the servers replicate: `replication` is a primary with replicas, `galera` a Galera cluster, of \
                which one node gets the writes.",
        read: read!(kind, cluster_kind),
    },
    Parameter {
        section: "monitor",
        name: "servers",
        flag: None,
        kind: "list of servers",
        default: "# none: it must be set",
        example: "[\"db1\", \"db2\", \"db3\"]",
        about: "The names of the servers. If several could have a role, the first gets it. Each server has \
                at most one monitor.",
        read: read!(servers, |raw| names(raw, "servers")),
    },
    Parameter {
        section: "monitor",
        name: "user",
        flag: None,
        kind: "text",
        default: "# none: it must be set",
        example: "\"selkie\"",
        about: "The user with which Selkie observes the servers. For `replication` it needs the privilege REPLICA \
                MONITOR; CONNECTION ADMIN lets Selkie end statements of clients that have disconnected.",
        read: read!(user, |raw| text(raw, "a user's name")),
    },
    Parameter {
        section: "monitor",
        name: "password",
        flag: None,
        kind: "text",
        default: "# none",
        example: "\"secret\"",
        about: "The user's password.",
        read: read!(password, |raw| text(raw, "a password")),
    },
    Parameter {
        section: "monitor",
        name: "password-file",
        flag: None,
        kind: "path",
        default: "# none",
        example: "\"/run/secrets/selkie\"",
        about: "A file whose first line is the user's password, instead of `password`.",
        read: read!(password_file, path),
    },
    Parameter {
        section: "monitor",
        name: "interval-ms",
        flag: None,
        kind: "milliseconds, from 50 to 60000",
        default: "1000",
        example: "500",
        about: "The pause between two polls of a server. A server that stays down is polled less often, up to eight \
                times the pause.",
        read: read!(interval, milliseconds),
    },
    Parameter {
        section: "monitor",
        name: "timeout-ms",
        flag: None,
        kind: "milliseconds, from 50 to 60000",
        default: "3000",
        example: "1000",
        about: "How long connecting to a server, and each of its answers, may take.",
        read: read!(timeout, milliseconds),
    },
    Parameter {
        section: "monitor",
        name: "failures",
        flag: None,
        kind: "number from 1 to 100",
        default: "3",
        example: "5",
        about: "A server counts as down after so many failed polls in a row.",
        read: read!(failures, |raw| integer(raw, 1, 100).map(|failures| failures as u32)),
    },
    Parameter {
        section: "monitor",
        name: "failover",
        flag: None,
        kind: "true or false",
        default: "false",
        example: "true",
        about: "Whether a replica is promoted when the primary is lost.",
        read: read!(failover, boolean),
    },
    Parameter {
        section: "monitor",
        name: "rejoin",
        flag: None,
        kind: "true or false",
        default: "false",
        example: "true",
        about: "Whether servers that follow none, such as an old primary that returns, or that follow a lost one, are \
                made replicas of the primary. A server with transactions that the primary does not have stays out.",
        read: read!(rejoin, boolean),
    },
    Parameter {
        section: "monitor",
        name: "enforce-read-only",
        flag: None,
        kind: "true or false",
        default: "false",
        example: "true",
        about: "Whether replicas that are writable get `read_only = ON`.",
        read: read!(enforce_read_only, boolean),
    },
    Parameter {
        section: "monitor",
        name: "replication-user",
        flag: None,
        kind: "text",
        default: "# user",
        example: "\"replication\"",
        about: "The user with which servers follow a new primary. It needs the privilege REPLICATION SLAVE.",
        read: read!(replication_user, |raw| text(raw, "a user's name")),
    },
    Parameter {
        section: "monitor",
        name: "replication-password",
        flag: None,
        kind: "text",
        default: "# none; without replication-user that of user",
        example: "\"secret\"",
        about: "The password of `replication-user`.",
        read: read!(replication_password, |raw| text(raw, "a password")),
    },
    Parameter {
        section: "monitor",
        name: "replication-password-file",
        flag: None,
        kind: "path",
        default: "# none",
        example: "\"/run/secrets/replication\"",
        about: "A file whose first line is the password of `replication-user`, instead of `replication-password`.",
        read: read!(replication_password_file, path),
    },
    Parameter {
        section: "monitor",
        name: "majority-of",
        flag: None,
        kind: "all or running",
        default: "\"all\"",
        example: "\"running\"",
        about: "A gateway changes servers by itself while it holds a lock on a majority: of `all` servers, or of those \
                that are `running`. With `running`, gateways that reach different servers may both promote one, and \
                writes are lost.",
        read: read!(majority_of, majority_of),
    },
    Parameter {
        section: "monitor",
        name: "change-timeout-ms",
        flag: None,
        kind: "milliseconds, from 50 to 60000",
        default: "30000",
        example: "10000",
        about: "How long a failover or switchover waits until the new primary has applied all transactions. Half of \
                it is what a switchover waits for statements on the old primary, before it ends them.",
        read: read!(change_timeout, milliseconds),
    },
];
