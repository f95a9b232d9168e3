//! The settings of logins.

use super::Parameter;
use crate::config::setting::Setting;
use crate::config::value::{backend_identity, boolean, login_mechanisms};

pub const PARAMETERS: &[Parameter] = &[
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
        section: "security",
        name: "backend-identity",
        flag: None,
        kind: "\"gateway\" or \"user\"",
        default: "\"gateway\"",
        example: "\"user\"",
        about: "The account of MariaDB that executes statements on documents. `gateway`: that of the URL, and Selkie's \
                own privileges decide. `user`: each user has an account and a role in MariaDB, whose grants are a \
                second barrier. Requires `auth`, `mariadb`, at least 4 \
                `mariadb-connections`, and no cache for MongoDB clients.",
        read: read!(security.backend_identity, backend_identity),
    },
    Parameter {
        section: "security",
        name: "mechanisms",
        flag: None,
        kind: "list of mechanisms",
        default: "[\"SCRAM-SHA-1\", \"SCRAM-SHA-256\"] # and MONGODB-X509 with `ca` in [tls]",
        example: "[\"SCRAM-SHA-256\", \"PLAIN\"]",
        about: "The ways to log in: `SCRAM-SHA-256`, `SCRAM-SHA-1`, `MONGODB-X509` and `PLAIN`. `PLAIN` sends the \
                password, and works over TLS only. New passwords are stored for the SCRAM mechanisms of this list.",
        read: read!(security.mechanisms, login_mechanisms),
    },
];
