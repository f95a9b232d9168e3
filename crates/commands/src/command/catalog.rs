//! Commands about databases and collections.

pub mod capped;
pub mod coll_mod;
pub mod collections;
pub mod compact;
pub mod create;
pub mod data_size;
pub mod databases;
pub mod digests;
pub mod split_vector;
pub mod statistics;

use crate::table::spec::{
    Access, CATALOG_READ, CATALOG_WRITE, CountedCollection, Handler, InternalField, SERVER, Spec, StableApi,
    parsed_first, parsed_for_authorization, parsed_when_running,
};

/// The facts about these commands, sorted by name.
pub const COMMANDS: &[Spec] = &[
    Spec {
        name: "cloneCollectionAsCapped",
        handler: waiting!(capped::clone),
        actions: &["find", "insert", "createIndex", "convertToCapped"],
        help: "Copies a collection's newest documents into a capped collection.",
        ..CATALOG_WRITE
    },
    Spec {
        name: "collMod",
        handler: waiting!(coll_mod::coll_mod),
        parsing: parsed_when_running(coll_mod::parse, &["collectionUUID"]),
        actions: &["collMod"],
        stable_api: StableApi::INCLUDED,
        internal_fields: &[("$tenant", InternalField::Tenant)],
        help: "Changes options of a collection, a view or an index.",
        ..CATALOG_WRITE
    },
    Spec {
        name: "collStats",
        aliases: &["collstats"],
        handler: waiting!(statistics::coll_stats),
        actions: &["collStats"],
        internal_fields: &[("$tenant", InternalField::Tenant)],
        help: "Statistics of a collection.",
        ..CATALOG_READ
    },
    Spec {
        name: "compact",
        handler: waiting!(compact::compact),
        actions: &["compact"],
        internal_fields: &[("$tenant", InternalField::Tenant)],
        help: "Succeeds without effect: freed space is reused without it.",
        ..SERVER
    },
    Spec {
        name: "convertToCapped",
        handler: waiting!(capped::convert),
        actions: &["convertToCapped"],
        help: "Makes a collection capped.",
        ..CATALOG_WRITE
    },
    Spec {
        name: "create",
        handler: waiting!(create::create),
        parsing: parsed_first(create::parse, &[]),
        actions: &["createCollection"],
        stable_api: StableApi::IncludedWithout(&[
            "autoIndexId",
            "size",
            "max",
            "flags",
            "temp",
            "recordPreImages",
            "storageEngine",
            "indexOptionDefaults",
            "changeStreamPreAndPostImages",
        ]),
        help: "Creates a collection.",
        ..CATALOG_WRITE
    },
    Spec {
        name: "dataSize",
        aliases: &["datasize"],
        handler: waiting!(data_size::data_size),
        parsing: parsed_for_authorization(data_size::parse),
        actions: &["find"],
        counted_collection: CountedCollection::None,
        internal_fields: &[("$tenant", InternalField::Tenant)],
        help: "The size of a collection's documents.",
        ..CATALOG_READ
    },
    Spec {
        name: "dbHash",
        aliases: &["dbhash"],
        handler: waiting!(digests::db_hash),
        actions: &["dbHash"],
        help: "MD5 digests of a database's collections.",
        ..CATALOG_READ
    },
    Spec {
        name: "dbStats",
        aliases: &["dbstats"],
        handler: waiting!(statistics::db_stats),
        actions: &["dbStats"],
        internal_fields: &[("$tenant", InternalField::Tenant)],
        help: "Statistics of a database.",
        ..CATALOG_READ
    },
    Spec {
        name: "drop",
        handler: waiting!(collections::drop_collection),
        parsing: parsed_first(collections::parse_drop, &["collectionUUID"]),
        actions: &["dropCollection"],
        stable_api: StableApi::INCLUDED,
        counted_collection: CountedCollection::None,
        help: "Drops a collection.",
        ..CATALOG_WRITE
    },
    Spec {
        name: "dropDatabase",
        handler: waiting!(databases::drop_database),
        parsing: parsed_first(databases::parse_drop, &[]),
        actions: &["dropDatabase"],
        stable_api: StableApi::INCLUDED,
        help: "Drops a database.",
        ..CATALOG_WRITE
    },
    Spec {
        name: "filemd5",
        handler: waiting!(digests::file_md5),
        parsing: parsed_for_authorization(digests::parse_file_md5),
        actions: &["find"],
        help: "MD5 digest of a file in GridFS.",
        ..CATALOG_READ
    },
    Spec {
        name: "listCollections",
        handler: waiting!(collections::list_collections),
        parsing: parsed_first(collections::parse_list, &[]),
        actions: &["listCollections"],
        stable_api: StableApi::INCLUDED,
        help: "The collections of a database.",
        ..CATALOG_READ
    },
    Spec {
        name: "listDatabases",
        handler: waiting!(databases::list_databases),
        admin_database_only: true,
        parsing: parsed_first(databases::parse_list, &[]),
        actions: &["listDatabases"],
        stable_api: StableApi::INCLUDED,
        help: "The databases.",
        ..CATALOG_READ
    },
    Spec {
        name: "renameCollection",
        handler: waiting!(collections::rename_collection),
        admin_database_only: true,
        parsing: parsed_for_authorization(collections::parse_rename),
        actions: &["renameCollectionSameDB"],
        counted_collection: CountedCollection::None,
        help: "Renames a collection.",
        ..CATALOG_WRITE
    },
    Spec {
        name: "splitVector",
        handler: waiting!(split_vector::split_vector),
        access: Access::Read,
        actions: &["splitVector"],
        help: "Keys that split a collection into chunks of about equal size.",
        ..SERVER
    },
    Spec {
        name: "validate",
        handler: waiting!(statistics::validate),
        actions: &["validate"],
        internal_fields: &[("$tenant", InternalField::Tenant)],
        help: "Reads a collection and reports errors in it.",
        ..CATALOG_READ
    },
];
