//! The settings of services and listeners.

use super::Parameter;
use crate::config::services::{WrittenListener, WrittenService};
use crate::config::setting::Setting;
use crate::config::value::{listen_address, names, protocol, role, router, text};

/// `[service.NAME]`.
pub const SERVICE: &[Parameter<WrittenService>] = &[
    Parameter {
        section: "service",
        name: "router",
        flag: None,
        kind: "connections",
        default: "\"connections\"",
        example: "\"connections\"",
        about: "How servers are chosen. `connections` gives each session one server, when it logs in: the one with the \
                fewest sessions relative to its weight.",
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
