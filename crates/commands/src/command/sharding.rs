//! Commands that distribute collections over shards.

mod enable_sharding;
mod shard_collection;
mod shard_key;

use crate::authorization::requirement::{computed, on_full_name};
use crate::authorization::sharding as authorization;
use crate::call::Call;
use crate::table::spec::{CATALOG_WRITE, Handler, Spec, parsed_when_running};
use auth::Action;
use error::{Code, Error, Result};
use server::Topology;
use store::Sharding;

/// The facts about these commands, sorted by name.
pub const COMMANDS: &[Spec] = &[
    Spec {
        name: "enableSharding",
        handler: waiting!(enable_sharding::enable_sharding),
        authorization: computed(&[Action::EnableSharding], authorization::enable_sharding),
        parsing: parsed_when_running(enable_sharding::parse, &[]),
        help: "Checks the name of a database, on `admin`: collections of each may be sharded.",
        ..CATALOG_WRITE
    },
    Spec {
        name: "shardCollection",
        handler: waiting!(shard_collection::shard_collection),
        authorization: on_full_name(Action::EnableSharding),
        parsing: parsed_when_running(shard_collection::parse, &[]),
        help: "Distributes a collection over the shards, on `admin`.",
        ..CATALOG_WRITE
    },
];

/// Returns the sharding of the store. Fails with 59, as other servers do, if this is no router or
/// has no shards, and then with 13 in another database than `admin`.
fn sharding<'a>(call: &'a Call<'_>) -> Result<&'a dyn Sharding> {
    let (name, is_router) = (call.first().key(), call.worker.server.settings.topology == Topology::Router);
    let unknown = || Error::new(Code::COMMAND_NOT_FOUND, format!("no such command: '{name}'"));
    let sharding = call.worker.store.sharding().filter(|_| is_router).ok_or_else(unknown)?;
    if call.envelope.database != "admin" {
        return Err(Error::new(Code::UNAUTHORIZED, format!("{name} may only be run against the admin database.")));
    }
    Ok(sharding)
}
