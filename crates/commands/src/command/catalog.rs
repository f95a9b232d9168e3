//! Commands about databases, collections and indexes.

use super::spec::{CATALOG_READ, CATALOG_WRITE, Handler, SERVER, Spec, as_a_whole, when_authorized, when_running};
use crate::command;

pub const COMMANDS: &[Spec] = &[
    Spec {
        name: "cloneCollectionAsCapped",
        handler: waiting!(command::capped::clone),
        help: "Copies a collection's newest documents into a capped collection.",
        ..CATALOG_WRITE
    },
    Spec {
        name: "collMod",
        handler: waiting!(command::coll_mod::coll_mod),
        reads: when_running(command::coll_mod::read_first, &["collectionUUID"]),
        help: "Changes options of a collection, a view or an index.",
        ..CATALOG_WRITE
    },
    Spec {
        name: "collStats",
        aliases: &["collstats"],
        handler: waiting!(command::statistics::coll_stats),
        help: "Figures of a collection.",
        ..CATALOG_READ
    },
    Spec {
        name: "compact",
        handler: waiting!(command::compact::compact),
        help: "Answered: the space of what is deleted is used again without it.",
        ..SERVER
    },
    Spec {
        name: "convertToCapped",
        handler: waiting!(command::capped::convert),
        help: "Makes a collection a capped one.",
        ..CATALOG_WRITE
    },
    Spec {
        name: "create",
        handler: waiting!(command::create::create),
        reads: as_a_whole(command::create::read_first, &[]),
        help: "Creates a collection.",
        ..CATALOG_WRITE
    },
    Spec {
        name: "createIndexes",
        handler: waiting!(command::indexes::create_indexes),
        reads: as_a_whole(command::indexes::read_create_first, &["collectionUUID"]),
        help: "Creates indexes, and the collection if need be.",
        ..CATALOG_WRITE
    },
    Spec {
        name: "dataSize",
        aliases: &["datasize"],
        handler: waiting!(command::data_size::data_size),
        reads: when_authorized(command::data_size::read_first),
        help: "The size of a collection's documents.",
        ..CATALOG_READ
    },
    Spec {
        name: "dbHash",
        aliases: &["dbhash"],
        handler: waiting!(command::digests::db_hash),
        help: "MD5 digests of a database's collections.",
        ..CATALOG_READ
    },
    Spec {
        name: "dbStats",
        aliases: &["dbstats"],
        handler: waiting!(command::statistics::db_stats),
        help: "Figures of a database.",
        ..CATALOG_READ
    },
    Spec {
        name: "drop",
        handler: waiting!(command::collections::drop_collection),
        reads: as_a_whole(command::collections::read_drop_first, &["collectionUUID"]),
        help: "Drops a collection.",
        ..CATALOG_WRITE
    },
    Spec {
        name: "dropDatabase",
        handler: waiting!(command::databases::drop_database),
        reads: as_a_whole(command::databases::read_drop_first, &[]),
        help: "Drops a database.",
        ..CATALOG_WRITE
    },
    Spec {
        name: "dropIndexes",
        aliases: &["deleteIndexes"],
        handler: waiting!(command::indexes::drop_indexes),
        reads: as_a_whole(command::indexes::read_drop_first, &["collectionUUID"]),
        help: "Drops indexes.",
        ..CATALOG_WRITE
    },
    Spec {
        name: "listCollections",
        handler: waiting!(command::collections::list_collections),
        reads: as_a_whole(command::collections::read_listing_first, &[]),
        help: "The collections of a database.",
        ..CATALOG_READ
    },
    Spec {
        name: "listDatabases",
        handler: waiting!(command::databases::list_databases),
        admin_database_only: true,
        reads: as_a_whole(command::databases::read_listing_first, &[]),
        help: "The databases.",
        ..CATALOG_READ
    },
    Spec {
        name: "listIndexes",
        handler: waiting!(command::indexes::list_indexes),
        reads: as_a_whole(command::indexes::read_listing_first, &[]),
        help: "The indexes of a collection.",
        ..CATALOG_READ
    },
    Spec {
        name: "planCacheClear",
        handler: waiting!(command::plan_cache::clear),
        help: "Drops cached plans: there are none.",
        ..SERVER
    },
    Spec {
        name: "planCacheClearFilters",
        handler: waiting!(command::plan_cache::clear_filters),
        help: "Drops index filters of a collection: all, or that for a query shape.",
        ..SERVER
    },
    Spec {
        name: "planCacheListFilters",
        handler: waiting!(command::plan_cache::list_filters),
        help: "The index filters of a collection.",
        ..SERVER
    },
    Spec {
        name: "planCacheSetFilter",
        handler: waiting!(command::plan_cache::set_filter),
        help: "Says which indexes may be used for queries of a shape, until the server is stopped.",
        ..SERVER
    },
    Spec {
        name: "reIndex",
        handler: waiting!(command::indexes::re_index),
        help: "The indexes of a collection, which need no rebuilding.",
        ..SERVER
    },
    Spec {
        name: "renameCollection",
        handler: waiting!(command::collections::rename_collection),
        admin_database_only: true,
        reads: when_authorized(command::collections::read_renamed_first),
        help: "Renames a collection.",
        ..CATALOG_WRITE
    },
    Spec {
        name: "validate",
        handler: waiting!(command::statistics::validate),
        help: "Reads a collection and says what is wrong with it.",
        ..CATALOG_READ
    },
];
