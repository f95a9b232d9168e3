//! The settings of limits.

use super::Parameter;
use crate::config::defaults::{DAY_SECONDS, MEMORY_MB_MAX, MEMORY_MB_MIN};
use crate::config::setting::Setting;
use crate::config::value::integer;

pub const PARAMETERS: &[Parameter] = &[
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
        about: "A client is disconnected if it pauses this long within a message, or leaves its reply unread this long; a \
                MongoDB client after two seconds while memory is short.",
        read: read!(limits.stalled_seconds, |raw| integer(raw, 1, DAY_SECONDS).map(|n| n as u64)),
    },
    Parameter {
        section: "limits",
        name: "idle-seconds",
        flag: None,
        kind: "seconds, from 0 to 86400",
        default: "0",
        example: "3600",
        about: "A client is disconnected if it sends no request for this long; 0: never, as in MongoDB.",
        read: read!(limits.idle_seconds, |raw| integer(raw, 0, DAY_SECONDS).map(|n| n as u64)),
    },
];
