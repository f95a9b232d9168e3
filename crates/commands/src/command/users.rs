//! Commands about users and roles, and about the login.
//!
//! Users and roles are documents of the database `admin` ([`server::user_store`] reads them,
//! [`stored`] changes them). [`fields`] are the parts that several commands share.

pub mod connection_status;
mod credentials;
mod fields;
mod inheritance;
mod merge;
mod role_changes;
mod roles_info;
mod sasl;
mod stored;
mod user_changes;
mod users_info;

use crate::authorization::requirement::{computed, on_cluster, on_database};
use crate::authorization::users as authorization;
use crate::table::fields as table_fields;
use crate::table::spec::{
    Access, HANDSHAKE, Handler, NOTHING, SERVER, SERVER_WITHOUT_FIELDS, Spec, StableApi, WITHOUT_FIELDS, parsed_first,
};
use auth::Action;

/// Commands that change users or roles.
const CHANGE: Spec = Spec { access: Access::Admin, takes_write_concern: true, stops_at_safe_points: true, ..NOTHING };

/// Those without fields of their own.
const CHANGE_WITHOUT_FIELDS: Spec =
    Spec { own_fields: WITHOUT_FIELDS.own_fields, parsing: WITHOUT_FIELDS.parsing, ..CHANGE };

/// The facts about these commands, sorted by name.
pub const COMMANDS: &[Spec] = &[
    Spec {
        name: "_mergeAuthzCollections",
        handler: waiting!(merge::merge),
        admin_database_only: true,
        parsing: parsed_first(merge::parse, &[]),
        authorization: computed(authorization::ACTIONS_OF_MERGE, authorization::merge),
        help: "Moves users and roles out of collections that mongorestore has filled.",
        ..CHANGE
    },
    Spec {
        name: "authenticate",
        sensitive: &["key"],
        handler: waiting!(sasl::authenticate),
        parsing: parsed_first(sasl::parse_authenticate, &[]),
        stable_api: StableApi::INCLUDED,
        profiled: false,
        help: "Logs in by the certificate of the TLS connection.",
        ..HANDSHAKE
    },
    Spec {
        name: "connectionStatus",
        handler: immediate!(connection_status::connection_status),
        own_fields: Some(table_fields::CONNECTION_STATUS),
        parsing: parsed_first(table_fields::parse_own, &[]),
        help: "The user that is logged in on this connection.",
        ..HANDSHAKE
    },
    Spec {
        name: "createRole",
        handler: waiting!(role_changes::create_role),
        parsing: parsed_first(role_changes::parse_create, &[]),
        authorization: computed(authorization::ACTIONS_OF_ROLE, authorization::create_role),
        help: "Creates a role.",
        ..CHANGE
    },
    Spec {
        name: "createUser",
        sensitive: &["pwd"],
        handler: waiting!(user_changes::create_user),
        parsing: parsed_first(user_changes::parse_create, fields::SHARED),
        authorization: computed(authorization::ACTIONS_OF_USER, authorization::create_user),
        help: "Creates a user.",
        ..CHANGE
    },
    Spec {
        name: "dropAllRolesFromDatabase",
        handler: waiting!(role_changes::drop_all_roles),
        authorization: on_database(Action::DropRole),
        help: "Drops all roles of a database.",
        ..CHANGE_WITHOUT_FIELDS
    },
    Spec {
        name: "dropAllUsersFromDatabase",
        handler: waiting!(user_changes::drop_all_users),
        authorization: on_database(Action::DropUser),
        help: "Drops all users of a database.",
        ..CHANGE_WITHOUT_FIELDS
    },
    Spec {
        name: "dropRole",
        handler: waiting!(role_changes::drop_role),
        parsing: parsed_first(fields::parse_name_only, &[]),
        authorization: on_database(Action::DropRole),
        help: "Drops a role, and revokes it from all users and roles.",
        ..CHANGE
    },
    Spec {
        name: "dropUser",
        handler: waiting!(user_changes::drop_user),
        parsing: parsed_first(fields::parse_name_only, &[]),
        authorization: on_database(Action::DropUser),
        help: "Drops a user.",
        ..CHANGE
    },
    Spec {
        name: "grantPrivilegesToRole",
        handler: waiting!(role_changes::grant_privileges),
        parsing: parsed_first(role_changes::parse_privileges, &[]),
        authorization: computed(&[Action::GrantRole], authorization::grant_privileges),
        help: "Adds privileges to a role.",
        ..CHANGE
    },
    Spec {
        name: "grantRolesToRole",
        handler: waiting!(role_changes::grant_roles),
        parsing: parsed_first(user_changes::parse_grant, &[]),
        authorization: computed(&[Action::GrantRole], authorization::grant_roles),
        help: "Makes a role inherit from other roles.",
        ..CHANGE
    },
    Spec {
        name: "grantRolesToUser",
        handler: waiting!(user_changes::grant_roles),
        parsing: parsed_first(user_changes::parse_grant, &[]),
        authorization: computed(&[Action::GrantRole], authorization::grant_roles),
        help: "Gives roles to a user.",
        ..CHANGE
    },
    Spec {
        name: "invalidateUserCache",
        handler: immediate!(connection_status::invalidate_user_cache),
        authorization: on_cluster(Action::InvalidateUserCache),
        help: "Reads users and roles from the store again before they are used.",
        ..SERVER_WITHOUT_FIELDS
    },
    Spec {
        name: "logout",
        handler: immediate!(connection_status::logout),
        needs_authentication: true,
        help: "Ends the login of this connection.",
        ..WITHOUT_FIELDS
    },
    Spec {
        name: "revokePrivilegesFromRole",
        handler: waiting!(role_changes::revoke_privileges),
        parsing: parsed_first(role_changes::parse_privileges, &[]),
        authorization: computed(&[Action::RevokeRole], authorization::revoke_privileges),
        help: "Takes privileges from a role.",
        ..CHANGE
    },
    Spec {
        name: "revokeRolesFromRole",
        handler: waiting!(role_changes::revoke_roles),
        parsing: parsed_first(user_changes::parse_grant, &[]),
        authorization: computed(&[Action::RevokeRole], authorization::revoke_roles),
        help: "Makes a role inherit from other roles no longer.",
        ..CHANGE
    },
    Spec {
        name: "revokeRolesFromUser",
        handler: waiting!(user_changes::revoke_roles),
        parsing: parsed_first(user_changes::parse_grant, &[]),
        authorization: computed(&[Action::RevokeRole], authorization::revoke_roles),
        help: "Takes roles from a user.",
        ..CHANGE
    },
    Spec {
        name: "rolesInfo",
        handler: waiting!(roles_info::roles_info),
        own_fields: Some(table_fields::ROLES_INFO),
        parsing: parsed_first(roles_info::parse, &[]),
        authorization: computed(&[Action::ViewRole], authorization::roles_info),
        help: "Roles: what they may do, and what they inherit.",
        ..SERVER
    },
    Spec {
        name: "saslContinue",
        sensitive: &["payload"],
        handler: waiting!(sasl::sasl_continue),
        parsing: parsed_first(sasl::parse_continue, &[]),
        stable_api: StableApi::INCLUDED,
        profiled: false,
        help: "Continues a login.",
        ..HANDSHAKE
    },
    Spec {
        name: "saslStart",
        sensitive: &["payload"],
        handler: waiting!(sasl::sasl_start),
        parsing: parsed_first(sasl::parse_start, &[]),
        stable_api: StableApi::INCLUDED,
        profiled: false,
        help: "Begins a login.",
        ..HANDSHAKE
    },
    Spec {
        name: "updateRole",
        handler: waiting!(role_changes::update_role),
        parsing: parsed_first(role_changes::parse_update, &[]),
        authorization: computed(authorization::ACTIONS_OF_ROLE, authorization::update_role),
        help: "Replaces privileges, roles or restrictions of a role.",
        ..CHANGE
    },
    Spec {
        name: "updateUser",
        sensitive: &["pwd"],
        handler: waiting!(user_changes::update_user),
        parsing: parsed_first(user_changes::parse_update, fields::SHARED),
        authorization: computed(authorization::ACTIONS_OF_USER, authorization::update_user),
        help: "Replaces password, roles or other facts of a user.",
        ..CHANGE
    },
    Spec {
        name: "usersInfo",
        handler: waiting!(users_info::users_info),
        own_fields: Some(table_fields::USERS_INFO),
        parsing: parsed_first(users_info::parse, &[]),
        authorization: computed(&[Action::ViewUser], authorization::users_info),
        help: "Users, with their roles and what they inherit.",
        ..SERVER
    },
    Spec {
        name: "whatsmyuri",
        handler: immediate!(connection_status::whats_my_uri),
        help: "The client's address as the server sees it.",
        ..HANDSHAKE
    },
];
