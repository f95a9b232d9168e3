//! The settings of logins.

use super::Parameter;
use crate::config::setting::Setting;
use crate::config::value::boolean;

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
];
