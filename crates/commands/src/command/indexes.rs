//! Commands about indexes.

pub mod index_commands;
pub mod plan_cache;

use crate::table::spec::{CATALOG_READ, CATALOG_WRITE, Handler, InternalField, SERVER, Spec, StableApi, parsed_first};

/// The facts about these commands, sorted by name.
pub const COMMANDS: &[Spec] = &[
    Spec {
        name: "createIndexes",
        handler: waiting!(index_commands::create_indexes),
        parsing: parsed_first(index_commands::parse_create, &["collectionUUID"]),
        actions: &["createIndex"],
        stable_api: StableApi::INCLUDED,
        memory_intensive: true,
        stops_at_safe_points: true,
        check_operands: Some(index_commands::check_operands),
        help: "Creates indexes, and the collection if need be.",
        ..CATALOG_WRITE
    },
    Spec {
        name: "dropIndexes",
        aliases: &["deleteIndexes"],
        handler: waiting!(index_commands::drop_indexes),
        parsing: parsed_first(index_commands::parse_drop, &["collectionUUID"]),
        actions: &["dropIndex"],
        stable_api: StableApi::INCLUDED,
        internal_fields: &[("isTimeseriesNamespace", InternalField::OptionalBoolean)],
        help: "Drops indexes.",
        ..CATALOG_WRITE
    },
    Spec {
        name: "listIndexes",
        handler: waiting!(index_commands::list_indexes),
        parsing: parsed_first(index_commands::parse_list, &[]),
        actions: &["listIndexes"],
        stable_api: StableApi::INCLUDED,
        takes_uuid: true,
        help: "The indexes of a collection.",
        ..CATALOG_READ
    },
    Spec {
        name: "planCacheClear",
        handler: waiting!(plan_cache::clear),
        actions: &["planCacheWrite"],
        help: "Succeeds without effect: there is no MongoDB plan cache.",
        ..SERVER
    },
    Spec {
        name: "planCacheClearFilters",
        handler: waiting!(plan_cache::clear_filters),
        actions: &["planCacheIndexFilter"],
        help: "Removes index filters of a collection: all, or that for a query shape.",
        ..SERVER
    },
    Spec {
        name: "planCacheListFilters",
        handler: waiting!(plan_cache::list_filters),
        actions: &["planCacheIndexFilter"],
        help: "The index filters of a collection.",
        ..SERVER
    },
    Spec {
        name: "planCacheSetFilter",
        handler: waiting!(plan_cache::set_filter),
        actions: &["planCacheIndexFilter"],
        help: "Sets which indexes queries of a shape may use, until the server stops.",
        ..SERVER
    },
    Spec {
        name: "reIndex",
        handler: waiting!(index_commands::re_index),
        actions: &["reIndex"],
        help: "Lists the indexes of a collection, which never need rebuilding.",
        ..SERVER
    },
];
