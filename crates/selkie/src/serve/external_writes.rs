//! External writes: those that other programs make in MariaDB, which the caches must notice.

use super::caches::Caches;
use crate::config::{Config, choices};
use mariadb_client::PrimarySource;
use sql_session::{DefinitionCache, DefinitionObserver};
use std::sync::Arc;
use store::ChangeObserver;
use store::change_observer::ChangeObservers;
use store_mariadb::ExternalWrites;

/// Follows MariaDB's log while the returned value lives. Until it is followed, nothing is cached.
pub fn follow(
    config: &Config,
    caches: &Caches,
    primary: Option<&PrimarySource>,
    definitions: Option<&Arc<DefinitionCache>>,
) -> anyhow::Result<Option<ExternalWrites>> {
    let Some(own_writes) = caches.own_writes.as_ref().filter(|_| config.store.is_in_servers()) else { return Ok(None) };
    let strict = match config.cache.external_writes {
        choices::ExternalWrites::None => return Ok(None),
        choices::ExternalWrites::Follow => false,
        choices::ExternalWrites::Strict => true,
    };
    let set_follower_lost = caches.follower_lost_setter();
    set_follower_lost(true);
    let tell: store_mariadb::ReportFollowing = Box::new(move |followed| {
        match followed {
            Ok(()) => tracing::info!("following external writes in MariaDB: the caches are on"),
            Err(why) => tracing::warn!("cannot follow external writes in MariaDB, so the caches are off: {why}"),
        }
        set_follower_lost(followed.is_err());
    });
    let definitions =
        definitions.map(|definitions| Arc::new(DefinitionObserver(definitions.clone())) as Arc<dyn ChangeObserver>);
    let observer = Arc::new(ChangeObservers(definitions.into_iter().chain([caches.observer()]).collect()));
    let own_writes = own_writes.clone();
    let follower = match (primary, config.store.url()) {
        (Some(primary), _) => ExternalWrites::follow_primary(primary.clone(), observer, own_writes, tell),
        (None, Some(url)) => ExternalWrites::follow(url, strict, observer, own_writes, tell),
        (None, None) => return Ok(None),
    };
    let follower = follower.map_err(|error| {
        anyhow::anyhow!(
            "{}; or, if no other program writes there, set --external-writes none (external-writes = \"none\" in [cache])",
            error.message()
        )
    })?;
    if let Some(shared) = &caches.shared {
        shared.view.set_behind(follower.behind());
    }
    Ok(Some(follower))
}
