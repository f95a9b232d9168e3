//! Commands about documents.

use super::spec::{AtOnce, CATALOG_READ, Handler, READ, Spec, WRITE, as_a_whole, when_authorized, when_running};
use crate::command;

pub const COMMANDS: &[Spec] = &[
    Spec {
        name: "aggregate",
        handler: waiting!(command::aggregate::aggregate),
        takes_write_concern: true,
        reads: as_a_whole(
            command::aggregate::read_first,
            &["maxTimeMS", "readConcern", "writeConcern", "collectionUUID"],
        ),
        help: "Runs an aggregation pipeline.",
        ..READ
    },
    Spec {
        name: "count",
        handler: waiting!(command::count::count),
        help: "Counts the documents that match a filter.",
        ..READ
    },
    Spec {
        name: "delete",
        handler: waiting!(command::delete::delete),
        reads: as_a_whole(command::delete::read_first, &["stmtId", "collectionUUID"]),
        help: "Deletes documents.",
        ..WRITE
    },
    Spec {
        name: "distinct",
        handler: waiting!(command::distinct::distinct),
        help: "The different values of a field.",
        ..READ
    },
    Spec {
        name: "explain",
        handler: waiting!(command::explain::explain),
        reads: as_a_whole(command::explain::read_first, &[]),
        help: "How a command would be carried out.",
        ..CATALOG_READ
    },
    Spec {
        name: "filemd5",
        handler: waiting!(command::digests::file_md5),
        reads: when_authorized(command::digests::read_first),
        help: "MD5 digest of a file in GridFS.",
        ..CATALOG_READ
    },
    Spec {
        name: "find",
        handler: Handler::Mostly(
            AtOnce { is_likely: command::find_by_id::is_likely, handler: command::find_by_id::find_by_id },
            |call, reply| Box::pin(command::find::find(call, reply)),
        ),
        reads: when_running(command::find::read_first, &["collectionUUID"]),
        help: "Finds documents.",
        ..READ
    },
    Spec {
        name: "findAndModify",
        aliases: &["findandmodify"],
        handler: waiting!(command::find_and_modify::find_and_modify),
        reads: as_a_whole(command::find_and_modify::read_first, &["stmtId", "writeConcern"]),
        help: "Changes or deletes one document and returns it.",
        ..WRITE
    },
    Spec {
        name: "getMore",
        handler: waiting!(command::get_more::get_more),
        cacheable: false,
        reads: as_a_whole(command::get_more::read_get_more_first, &["maxTimeMS"]),
        help: "The next batch of a cursor.",
        ..READ
    },
    Spec {
        name: "insert",
        handler: waiting!(command::insert::insert),
        reads: as_a_whole(command::insert::read_first, &["stmtId", "collectionUUID"]),
        help: "Inserts documents.",
        ..WRITE
    },
    Spec {
        name: "killCursors",
        handler: immediate!(command::get_more::kill_cursors),
        in_transaction: true,
        reads: as_a_whole(command::get_more::read_kill_cursors_first, &[]),
        help: "Closes cursors.",
        ..CATALOG_READ
    },
    Spec {
        name: "mapReduce",
        cacheable: false,
        aliases: &["mapreduce"],
        handler: waiting!(command::map_reduce::map_reduce),
        help: "Checked, and refused: JavaScript does not run here.",
        ..READ
    },
    Spec {
        name: "update",
        handler: waiting!(command::update::update),
        reads: as_a_whole(command::update::read_first, &["stmtId", "collectionUUID"]),
        help: "Changes documents.",
        ..WRITE
    },
];
