//! `aggregate` and `explain`.

pub mod aggregate_command;
pub mod explain;

use crate::authorization::pipelines;
use crate::authorization::requirement::{Authorization, computed};
use crate::table::spec::{CATALOG_READ, Handler, InternalField, READ, Spec, StableApi, TimeLimitField, parsed_first};

/// The facts about these commands, sorted by name.
pub const COMMANDS: &[Spec] = &[
    Spec {
        name: "aggregate",
        handler: waiting!(aggregate_command::aggregate),
        authorization: computed(pipelines::ACTIONS, pipelines::aggregate),
        takes_write_concern: true,
        parsing: parsed_first(
            aggregate_command::parse,
            &["maxTimeMS", "readConcern", "writeConcern", "collectionUUID"],
        ),
        stable_api: StableApi::IncludedWithout(&["explain"]),
        time_limit: TimeLimitField::NonNegative,
        internal_fields: &[
            ("encryptionInformation", InternalField::Encryption(None)),
            ("runtimeConstants", InternalField::RuntimeConstants),
            ("needsMerge", InternalField::PlainBoolean),
            ("fromMongos", InternalField::PlainBoolean),
            ("isMapReduceCommand", InternalField::PlainBoolean),
            ("exchange", InternalField::Exchange),
        ],
        help: "Runs an aggregation pipeline.",
        ..READ
    },
    Spec {
        name: "explain",
        handler: waiting!(explain::explain),
        authorization: Authorization::Explained,
        parsing: parsed_first(explain::parse, &[]),
        stable_api: StableApi::INCLUDED,
        memory_intensive: true,
        help: "Shows the plan of a command, and how its execution went.",
        ..CATALOG_READ
    },
];
