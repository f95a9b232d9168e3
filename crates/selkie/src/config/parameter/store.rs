//! The settings of the store.

use super::Parameter;
use crate::config::defaults::DAY_SECONDS;
use crate::config::setting::Setting;
use crate::config::value::{addresses, boolean, integer, mariadb_url, names, path, text};
use std::path::PathBuf;

pub const PARAMETERS: &[Parameter] = &[
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
        name: "oplog",
        flag: None,
        kind: "true or false",
        default: "# true with `topology = \"replica-set\"`",
        example: "true",
        about: "Whether changes are logged, for change streams and `local.oplog.rs`. A start of the embedded store \
                without the log deletes it, so that it never has gaps. With MariaDB, changes are read from its binary \
                log: at once if set, else when the first change stream is opened.",
        read: read!(oplog, boolean),
    },
    Parameter {
        section: "store",
        name: "oplog-mb",
        flag: None,
        kind: "MiB, from 1 to 1048576",
        default: "256",
        example: "1024",
        about: "The size of the embedded store's log of changes. The oldest entries are deleted when it is larger, and a change \
                stream that has not read them yet ends with error 286 (ChangeStreamHistoryLost).",
        read: read!(oplog_mb, |raw| integer(raw, 1, 1 << 20).map(|n| n as u64)),
    },
    Parameter {
        section: "store",
        name: "oplog-hours",
        flag: None,
        kind: "hours, from 1 to 87600",
        default: "# no limit",
        example: "72",
        about: "The age at which entries of the embedded store's log of changes are deleted, whatever its size.",
        read: read!(oplog_hours, |raw| integer(raw, 1, 87_600).map(|n| n as u64)),
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
        name: "service",
        flag: None,
        kind: "name",
        default: "# none: the embedded store",
        example: "\"app\"",
        about: "The service whose servers store the documents, instead of one server in `mariadb`. Connections go to \
                the primary as its monitor sees it, and follow it. While there is none, operations wait as long as \
                the service's `primary-wait-ms`.",
        read: read!(store_service.service, |raw| text(raw, "the name of a service")),
    },
    Parameter {
        section: "store",
        name: "user",
        flag: None,
        kind: "text",
        default: "# none: with service, it must be set",
        example: "\"documents\"",
        about: "With `service`, the account of MariaDB that stores the documents. It must exist on all servers.",
        read: read!(store_service.user, |raw| text(raw, "a user")),
    },
    Parameter {
        section: "store",
        name: "password",
        flag: None,
        kind: "text",
        default: "# none",
        example: "\"secret\"",
        about: "The password of `user`.",
        read: read!(store_service.password, |raw| text(raw, "a password")),
    },
    Parameter {
        section: "store",
        name: "password-file",
        flag: None,
        kind: "path",
        default: "# none",
        example: "\"/run/secrets/documents\"",
        about: "A file with the password of `user` in its first line.",
        read: read!(store_service.password_file, path),
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
        name: "mariadb-transactions",
        flag: None,
        kind: "number from 1 to 10000",
        default: "64",
        example: "16",
        about: "The most transactions of MongoDB clients that may be open at the same time. Each has a connection to \
                the MariaDB server until its end, beside those of `mariadb-connections`. A further one fails with \
                error 24 (LockTimeout), after which drivers repeat it.",
        read: read!(mariadb_transactions, |raw| integer(raw, 1, 10_000).map(|n| n as usize)),
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
        name: "shards",
        flag: None,
        kind: "list of servers",
        default: "# none: collections are not sharded",
        example: "[\"data1\", \"data2\"]",
        about: "The servers over which `shardCollection` distributes collections: names that `CREATE SERVER` has \
                defined in the server of `mariadb`, which must have the storage engine Spider.",
        read: read!(shards, |raw| names(raw, "servers")),
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
        section: "store",
        name: "sql-filters",
        flag: None,
        kind: "list of filters",
        default: "# none",
        example: "[\"log\", \"guard\"]",
        about: "The filters that statements of the clients of `sql-listen` pass, in this order.",
        read: read!(filters.of_sql_listen, |raw| names(raw, "filters")),
    },
];
