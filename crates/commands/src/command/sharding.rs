//! Commands that distribute collections over shards.

mod enable_sharding;
mod shard_collection;
mod shard_key;

use crate::authorization::requirement::{computed, on_full_name};
use crate::authorization::sharding as authorization;
use crate::call::Call;
use crate::table::spec::{CATALOG_WRITE, Existence, Handler, Spec, parsed_when_running};
use auth::Action;
use error::{Code, Error, Result};
use store::Sharding;

/// The facts about these commands, sorted by name.
pub const COMMANDS: &[Spec] = &[
    Spec {
        name: "enableSharding",
        handler: waiting!(enable_sharding::enable_sharding),
        authorization: computed(&[Action::EnableSharding], authorization::enable_sharding),
        existence: Existence::WithShards,
        admin_database_only: true,
        parsing: parsed_when_running(enable_sharding::parse, &[]),
        help: "Checks the name of a database: collections of each may be sharded.",
        ..CATALOG_WRITE
    },
    Spec {
        name: "shardCollection",
        handler: waiting!(shard_collection::shard_collection),
        authorization: on_full_name(Action::EnableSharding),
        existence: Existence::WithShards,
        admin_database_only: true,
        parsing: parsed_when_running(shard_collection::parse, &[]),
        help: "Distributes a collection over the shards.",
        ..CATALOG_WRITE
    },
];

/// Returns the sharding of the store. The commands exist only where there is one.
fn sharding<'a>(call: &'a Call<'_>) -> Result<&'a dyn Sharding> {
    let none = || Error::new(Code::NO_SHARDING_ENABLED, "the store has no shards");
    call.worker.store.sharding().ok_or_else(none)
}
