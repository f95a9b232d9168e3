//! The settings of what MongoDB clients see.

use super::Parameter;
use crate::config::defaults::DAY_SECONDS;
use crate::config::setting::Setting;
use crate::config::value::{boolean, compressors, host_and_port, integer, text, topology};

pub const PARAMETERS: &[Parameter] = &[
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
    Parameter {
        section: "mongodb",
        name: "test-commands",
        flag: Some("--test-commands"),
        kind: "true or false",
        default: "false",
        example: "true",
        about: "Whether `configureFailPoint` exists, by which any client can make commands fail. For tests of drivers \
                and applications; never for production.",
        read: read!(test_commands, boolean),
    },
];
