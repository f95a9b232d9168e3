//! The settings of the cache.

use super::Parameter;
use crate::config::defaults::{CACHE_BYTES_MIN, DAY_SECONDS};
use crate::config::setting::Setting;
use crate::config::value::{
    boolean, cache_mode, commands, external_writes, integer, invalidation, listener_modes, patterns, selects,
    statements, text, users,
};
use std::path::PathBuf;

pub const PARAMETERS: &[Parameter] = &[
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
