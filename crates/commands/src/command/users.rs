//! Commands about users and the login. There are no users yet.

pub mod connection_status;
pub mod user_commands;

use crate::table::fields;
use crate::table::spec::{HANDSHAKE, Handler, SERVER, SERVER_WITHOUT_FIELDS, Spec, WITHOUT_FIELDS, parsed_first};

/// The facts about these commands, sorted by name.
pub const COMMANDS: &[Spec] = &[
    Spec {
        name: "connectionStatus",
        handler: immediate!(connection_status::connection_status),
        own_fields: Some(fields::CONNECTION_STATUS),
        parsing: parsed_first(fields::parse_own, &[]),
        help: "The user that is logged in on this connection.",
        ..HANDSHAKE
    },
    Spec {
        name: "dropAllRolesFromDatabase",
        handler: immediate!(user_commands::drop_users),
        takes_write_concern: true,
        actions: &["dropRole"],
        help: "Drops all roles of a database: there are none yet.",
        ..SERVER_WITHOUT_FIELDS
    },
    Spec {
        name: "dropAllUsersFromDatabase",
        handler: immediate!(user_commands::drop_users),
        takes_write_concern: true,
        actions: &["dropUser"],
        help: "Drops all users of a database: there are none yet.",
        ..SERVER_WITHOUT_FIELDS
    },
    Spec {
        name: "invalidateUserCache",
        handler: immediate!(user_commands::forget_users),
        actions: &["invalidateUserCache"],
        help: "Succeeds without effect: no users are cached.",
        ..SERVER_WITHOUT_FIELDS
    },
    Spec {
        name: "logout",
        handler: immediate!(connection_status::logout),
        help: "Ends the login of this connection.",
        ..WITHOUT_FIELDS
    },
    Spec {
        name: "rolesInfo",
        handler: immediate!(user_commands::roles),
        own_fields: Some(fields::ROLES_INFO),
        parsing: parsed_first(user_commands::parse_roles_info, &[]),
        actions: &["viewRole"],
        help: "Roles: there are none yet.",
        ..SERVER
    },
    Spec {
        name: "usersInfo",
        handler: immediate!(user_commands::users),
        own_fields: Some(fields::USERS_INFO),
        parsing: parsed_first(user_commands::parse_users_info, &[]),
        actions: &["viewUser"],
        help: "Users: there are none yet.",
        ..SERVER
    },
    Spec {
        name: "whatsmyuri",
        handler: immediate!(connection_status::whats_my_uri),
        help: "The client's address as the server sees it.",
        ..HANDSHAKE
    },
];
