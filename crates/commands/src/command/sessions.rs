//! Commands about logical sessions and transactions.

pub mod logical_sessions;
pub mod transactions;

use crate::authorization::requirement::{Authorization, on_cluster};
use crate::table::fields;
use crate::table::spec::{
    FOR_ALL, Handler, ReadConcernLevels, SERVER, SERVER_WITHOUT_FIELDS, Spec, StableApi, parsed_first,
};
use auth::Action;

/// The facts about these commands, sorted by name.
pub const COMMANDS: &[Spec] = &[
    Spec {
        name: "abortTransaction",
        handler: immediate!(transactions::end_without_transaction),
        authorization: Authorization::Nothing,
        admin_database_only: true,
        takes_write_concern: true,
        in_transaction: true,
        own_fields: Some(fields::END_TRANSACTION),
        stable_api: StableApi::INCLUDED,
        read_concern: ReadConcernLevels::SnapshotOnly,
        help: "Discards the writes of a transaction.",
        ..SERVER_WITHOUT_FIELDS
    },
    Spec {
        name: "commitTransaction",
        handler: immediate!(transactions::end_without_transaction),
        authorization: Authorization::Nothing,
        admin_database_only: true,
        takes_write_concern: true,
        in_transaction: true,
        own_fields: Some(fields::END_TRANSACTION),
        stable_api: StableApi::INCLUDED,
        help: "Makes the writes of a transaction visible together.",
        ..SERVER_WITHOUT_FIELDS
    },
    Spec {
        name: "endSessions",
        handler: immediate!(logical_sessions::end_sessions),
        own_fields: Some(fields::NONE),
        parsing: parsed_first(logical_sessions::parse, &[]),
        stable_api: StableApi::INCLUDED,
        help: "Ends logical sessions.",
        ..FOR_ALL
    },
    Spec {
        name: "killAllSessions",
        handler: waiting!(logical_sessions::kill_all_sessions),
        authorization: on_cluster(Action::KillAnySession),
        help: "Ends all logical sessions.",
        ..SERVER
    },
    Spec {
        name: "killAllSessionsByPattern",
        handler: immediate!(logical_sessions::kill_all_sessions_by_pattern),
        authorization: on_cluster(Action::KillAnySession),
        help: "Ends the logical sessions that match patterns.",
        ..SERVER
    },
    Spec {
        name: "killSessions",
        handler: immediate!(logical_sessions::kill_sessions),
        authorization: Authorization::Nothing,
        help: "Ends logical sessions.",
        ..SERVER
    },
    Spec {
        name: "refreshSessions",
        handler: immediate!(logical_sessions::refresh_sessions),
        own_fields: Some(fields::NONE),
        parsing: parsed_first(logical_sessions::parse, &[]),
        stable_api: StableApi::INCLUDED,
        help: "Keeps logical sessions alive.",
        ..FOR_ALL
    },
    Spec {
        name: "startSession",
        handler: immediate!(logical_sessions::start_session),
        help: "Begins a logical session.",
        ..FOR_ALL
    },
];
