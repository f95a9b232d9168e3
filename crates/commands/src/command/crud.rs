//! Commands that read and write documents.

pub mod count;
pub mod delete;
pub mod distinct;
pub mod find;
pub mod find_and_modify;
pub mod find_by_id;
pub mod get_more;
pub mod insert;
pub mod update;

use crate::authorization::requirement::{computed, on_collection};
use crate::authorization::{cursors, writes};
use crate::table::spec::{
    CATALOG_READ, CountedCollection, FastPath, Handler, InternalField, READ, ReadConcernLevels, Spec, StableApi,
    TimeLimitField, WRITE, parsed_first, parsed_when_running,
};
use auth::Action;
use server::operation::OperationKind;

/// The facts about these commands, sorted by name.
pub const COMMANDS: &[Spec] = &[
    Spec {
        name: "count",
        handler: waiting!(count::count),
        authorization: on_collection(Action::Find),
        stable_api: StableApi::INCLUDED,
        takes_uuid: true,
        read_concern: ReadConcernLevels::AllButSnapshot,
        internal_fields: &[
            ("encryptionInformation", InternalField::Encryption(None)),
            ("$tenant", InternalField::Tenant),
        ],
        help: "Counts the documents that match a filter.",
        in_transaction: false,
        ..READ
    },
    Spec {
        name: "delete",
        handler: waiting!(delete::delete),
        authorization: on_collection(Action::Remove),
        parsing: parsed_first(delete::parse, &["stmtId", "collectionUUID"]),
        kind: OperationKind::Remove,
        counted_statements: Some("deletes"),
        internal_fields: &[
            ("stmtIds", InternalField::StatementIds("deletes")),
            ("encryptionInformation", InternalField::Encryption(Some(6371701))),
            ("isTimeseriesNamespace", InternalField::BucketsNamespace),
            ("runtimeConstants", InternalField::RuntimeConstants),
        ],
        help: "Deletes documents.",
        ..WRITE
    },
    Spec {
        name: "distinct",
        handler: waiting!(distinct::distinct),
        authorization: on_collection(Action::Find),
        takes_uuid: true,
        internal_fields: &[("$tenant", InternalField::Tenant)],
        help: "The distinct values of a field.",
        ..READ
    },
    Spec {
        name: "find",
        handler: Handler::WithFastPath(
            FastPath { is_likely: find_by_id::is_likely, handler: find_by_id::find_by_id },
            |call, reply| Box::pin(find::find(call, reply)),
        ),
        authorization: computed(&[Action::Find], cursors::find),
        parsing: parsed_when_running(find::parse, &["collectionUUID"]),
        stable_api: StableApi::IncludedWithout(&[
            "min",
            "max",
            "tailable",
            "awaitData",
            "oplogReplay",
            "noCursorTimeout",
            "readOnce",
            "returnKey",
            "showRecordId",
        ]),
        kind: OperationKind::Query,
        fields_name: Some("FindCommandRequest"),
        takes_uuid: true,
        internal_fields: &[
            ("encryptionInformation", InternalField::Encryption(None)),
            ("runtimeConstants", InternalField::RuntimeConstants),
            ("term", InternalField::Term),
            ("allowSpeculativeMajorityRead", InternalField::PlainBoolean),
            ("$tenant", InternalField::Tenant),
        ],
        help: "Finds documents.",
        ..READ
    },
    Spec {
        name: "findAndModify",
        aliases: &["findandmodify"],
        handler: waiting!(find_and_modify::find_and_modify),
        authorization: computed(writes::ACTIONS_OF_ONE, writes::find_and_modify),
        parsing: parsed_first(find_and_modify::parse, &["stmtId", "writeConcern"]),
        internal_fields: &[
            ("encryptionInformation", InternalField::Encryption(Some(6371800))),
            ("runtimeConstants", InternalField::RuntimeConstants),
        ],
        help: "Updates or deletes one document and returns it.",
        ..WRITE
    },
    Spec {
        name: "getMore",
        handler: waiting!(get_more::get_more),
        authorization: computed(&[Action::Find], cursors::get_more),
        cacheable: false,
        parsing: parsed_first(get_more::parse_get_more, &["maxTimeMS"]),
        stable_api: StableApi::INCLUDED,
        memory_intensive: false,
        kind: OperationKind::GetMore,
        refuses_after_cluster_time: true,
        time_limit: TimeLimitField::Number,
        counted_collection: CountedCollection::Field("collection"),
        help: "The next batch of a cursor.",
        ..READ
    },
    Spec {
        name: "insert",
        handler: waiting!(insert::insert),
        authorization: computed(&[Action::Insert, Action::BypassDocumentValidation], writes::insert),
        parsing: parsed_first(insert::parse, &["stmtId", "collectionUUID"]),
        kind: OperationKind::Insert,
        internal_fields: &[
            ("stmtIds", InternalField::StatementIds("documents")),
            ("encryptionInformation", InternalField::Encryption(Some(6371602))),
            ("isTimeseriesNamespace", InternalField::BucketsNamespace),
        ],
        help: "Inserts documents.",
        ..WRITE
    },
    Spec {
        name: "killCursors",
        handler: immediate!(get_more::kill_cursors),
        authorization: computed(&[Action::KillAnyCursor], cursors::kill),
        in_transaction: true,
        parsing: parsed_first(get_more::parse_kill_cursors, &[]),
        stable_api: StableApi::INCLUDED,
        help: "Closes cursors.",
        ..CATALOG_READ
    },
    Spec {
        name: "update",
        handler: waiting!(update::update),
        authorization: computed(writes::ACTIONS, writes::update),
        parsing: parsed_first(update::parse, &["stmtId", "collectionUUID"]),
        kind: OperationKind::Update,
        counted_statements: Some("updates"),
        internal_fields: &[
            ("stmtIds", InternalField::StatementIds("updates")),
            ("encryptionInformation", InternalField::Encryption(Some(6371905))),
            ("isTimeseriesNamespace", InternalField::BucketsNamespace),
            ("runtimeConstants", InternalField::RuntimeConstants),
        ],
        help: "Updates documents.",
        ..WRITE
    },
];
