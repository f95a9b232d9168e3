//! Commands about indexes.

pub mod index_commands;
pub mod plan_cache;

use crate::authorization::requirement::on_collection;
use crate::table::spec::{CATALOG_READ, CATALOG_WRITE, Handler, InternalField, SERVER, Spec, StableApi, parsed_first};
use auth::Action;

/// The facts about these commands, sorted by name.
pub const COMMANDS: &[Spec] = &[
    Spec {
        name: "createIndexes",
        in_transaction: true,
        handler: waiting!(index_commands::create_indexes),
        authorization: on_collection(Action::CreateIndex),
        parsing: parsed_first(index_commands::parse_create, &["collectionUUID"]),
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
        authorization: on_collection(Action::DropIndex),
        parsing: parsed_first(index_commands::parse_drop, &["collectionUUID"]),
        stable_api: StableApi::INCLUDED,
        internal_fields: &[("isTimeseriesNamespace", InternalField::OptionalBoolean)],
        help: "Drops indexes.",
        ..CATALOG_WRITE
    },
    Spec {
        name: "listIndexes",
        handler: waiting!(index_commands::list_indexes),
        authorization: on_collection(Action::ListIndexes),
        parsing: parsed_first(index_commands::parse_list, &[]),
        stable_api: StableApi::INCLUDED,
        takes_uuid: true,
        help: "The indexes of a collection.",
        ..CATALOG_READ
    },
    Spec {
        name: "planCacheClear",
        handler: waiting!(plan_cache::clear),
        authorization: on_collection(Action::PlanCacheWrite),
        help: "Succeeds without effect: there is no MongoDB plan cache.",
        ..SERVER
    },
    Spec {
        name: "planCacheClearFilters",
        handler: waiting!(plan_cache::clear_filters),
        authorization: on_collection(Action::PlanCacheIndexFilter),
        help: "Removes index filters of a collection: all, or that for a query shape.",
        ..SERVER
    },
    Spec {
        name: "planCacheListFilters",
        handler: waiting!(plan_cache::list_filters),
        authorization: on_collection(Action::PlanCacheIndexFilter),
        help: "The index filters of a collection.",
        ..SERVER
    },
    Spec {
        name: "planCacheSetFilter",
        handler: waiting!(plan_cache::set_filter),
        authorization: on_collection(Action::PlanCacheIndexFilter),
        help: "Sets which indexes queries of a shape may use, until the server stops.",
        ..SERVER
    },
    Spec {
        name: "reIndex",
        handler: waiting!(index_commands::re_index),
        authorization: on_collection(Action::ReIndex),
        help: "Lists the indexes of a collection, which never need rebuilding.",
        ..SERVER
    },
];
