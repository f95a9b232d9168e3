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

use crate::authorization::catalog as authorization;
use crate::authorization::requirement::{Authorization, computed, on_collection, on_database, on_full_name};
use crate::table::spec::{
    Access, CATALOG_READ, CATALOG_WRITE, CountedCollection, Handler, InternalField, SERVER, Spec, StableApi,
    parsed_first, parsed_for_authorization, parsed_when_running,
};
use auth::Action;

/// The facts about these commands, sorted by name.
pub const COMMANDS: &[Spec] = &[
    Spec {
        name: "cloneCollectionAsCapped",
        handler: waiting!(capped::clone),
        authorization: computed(
            &[Action::Find, Action::Insert, Action::CreateIndex, Action::ConvertToCapped],
            authorization::clone_as_capped,
        ),
        help: "Copies a collection's newest documents into a capped collection.",
        ..CATALOG_WRITE
    },
    Spec {
        name: "collMod",
        handler: waiting!(coll_mod::coll_mod),
        authorization: computed(&[Action::CollMod, Action::Find], authorization::coll_mod),
        parsing: parsed_when_running(coll_mod::parse, &["collectionUUID"]),
        stable_api: StableApi::INCLUDED,
        internal_fields: &[("$tenant", InternalField::Tenant)],
        help: "Changes options of a collection, a view or an index.",
        ..CATALOG_WRITE
    },
    Spec {
        name: "collStats",
        aliases: &["collstats"],
        handler: waiting!(statistics::coll_stats),
        authorization: on_collection(Action::CollStats),
        internal_fields: &[("$tenant", InternalField::Tenant)],
        help: "Statistics of a collection.",
        ..CATALOG_READ
    },
    Spec {
        name: "compact",
        handler: waiting!(compact::compact),
        authorization: on_collection(Action::Compact),
        internal_fields: &[("$tenant", InternalField::Tenant)],
        help: "Succeeds without effect: freed space is reused without it.",
        ..SERVER
    },
    Spec {
        name: "convertToCapped",
        handler: waiting!(capped::convert),
        authorization: on_collection(Action::ConvertToCapped),
        help: "Makes a collection capped.",
        ..CATALOG_WRITE
    },
    Spec {
        name: "create",
        in_transaction: true,
        handler: waiting!(create::create),
        authorization: computed(
            &[Action::CreateCollection, Action::Insert, Action::ConvertToCapped, Action::Find],
            authorization::create,
        ),
        parsing: parsed_first(create::parse, &[]),
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
        authorization: on_full_name(Action::Find),
        parsing: parsed_for_authorization(collections::parse_full_name),
        counted_collection: CountedCollection::None,
        internal_fields: &[("$tenant", InternalField::Tenant)],
        help: "The size of a collection's documents.",
        ..CATALOG_READ
    },
    Spec {
        name: "dbHash",
        aliases: &["dbhash"],
        handler: waiting!(digests::db_hash),
        authorization: on_database(Action::DbHash),
        help: "MD5 digests of a database's collections.",
        ..CATALOG_READ
    },
    Spec {
        name: "dbStats",
        aliases: &["dbstats"],
        handler: waiting!(statistics::db_stats),
        authorization: on_database(Action::DbStats),
        internal_fields: &[("$tenant", InternalField::Tenant)],
        help: "Statistics of a database.",
        ..CATALOG_READ
    },
    Spec {
        name: "drop",
        handler: waiting!(collections::drop_collection),
        authorization: on_collection(Action::DropCollection),
        parsing: parsed_first(collections::parse_drop, &["collectionUUID"]),
        stable_api: StableApi::INCLUDED,
        counted_collection: CountedCollection::None,
        help: "Drops a collection.",
        ..CATALOG_WRITE
    },
    Spec {
        name: "dropDatabase",
        handler: waiting!(databases::drop_database),
        authorization: on_database(Action::DropDatabase),
        parsing: parsed_first(databases::parse_drop, &[]),
        stable_api: StableApi::INCLUDED,
        help: "Drops a database.",
        ..CATALOG_WRITE
    },
    Spec {
        name: "filemd5",
        handler: waiting!(digests::file_md5),
        authorization: computed(&[Action::Find], authorization::file_md5),
        parsing: parsed_for_authorization(digests::parse_file_md5),
        help: "MD5 digest of a file in GridFS.",
        ..CATALOG_READ
    },
    Spec {
        name: "listCollections",
        handler: waiting!(collections::list_collections),
        authorization: computed(&[Action::ListCollections], authorization::list_collections),
        parsing: parsed_first(collections::parse_list, &[]),
        stable_api: StableApi::INCLUDED,
        help: "The collections of a database.",
        ..CATALOG_READ
    },
    Spec {
        name: "listDatabases",
        handler: waiting!(databases::list_databases),
        authorization: Authorization::Nothing,
        admin_database_only: true,
        parsing: parsed_first(databases::parse_list, &[]),
        stable_api: StableApi::INCLUDED,
        help: "The databases.",
        ..CATALOG_READ
    },
    Spec {
        name: "renameCollection",
        handler: waiting!(collections::rename_collection),
        authorization: computed(authorization::ACTIONS_OF_RENAME, authorization::rename_collection),
        admin_database_only: true,
        parsing: parsed_for_authorization(collections::parse_full_name),
        counted_collection: CountedCollection::None,
        help: "Renames a collection.",
        ..CATALOG_WRITE
    },
    Spec {
        name: "splitVector",
        handler: waiting!(split_vector::split_vector),
        authorization: on_full_name(Action::SplitVector),
        parsing: parsed_for_authorization(collections::parse_full_name),
        access: Access::Read,
        help: "Keys that split a collection into chunks of about equal size.",
        ..SERVER
    },
    Spec {
        name: "validate",
        handler: waiting!(statistics::validate),
        authorization: on_collection(Action::Validate),
        internal_fields: &[("$tenant", InternalField::Tenant)],
        help: "Reads a collection and reports errors in it.",
        ..CATALOG_READ
    },
];
