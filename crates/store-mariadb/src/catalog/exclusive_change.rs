//! Running a change of collections' definitions while no other change of them runs.

use crate::catalog::attempts::{ATTEMPTS_MAX, pause};
use crate::catalog::definition_lock::{collection_lock, locked};
use crate::store::MariaDbStore;
use error::{Code, Error};
use mariadb_client::{Connection, Failure, Result};
use store::Namespace;

/// Runs a change of these collections while no other change of them runs, on a connection of its
/// own. Fails with 117 if it keeps losing races against SQL clients, or gateways on other servers
/// of a cluster.
pub(crate) async fn exclusively<T>(
    store: &MariaDbStore,
    namespaces: &[&Namespace],
    mut change: impl AsyncFnMut(&mut Connection) -> Result<T>,
) -> Result<T> {
    let mut names = Vec::with_capacity(namespaces.len());
    for namespace in namespaces {
        let (schema, table) = store.catalog.names(namespace)?;
        names.push(collection_lock(schema, &table));
    }
    names.sort();
    names.dedup();
    let mut guards = Vec::with_capacity(names.len());
    for name in &names {
        guards.push(store.definitions.of(name).lock_owned().await);
    }
    let mut attempt = 0;
    loop {
        let mut lease = store.pool.lease().await?;
        namespaces.iter().for_each(|namespace| store.catalog.invalidate(namespace));
        let outcome = locked(store.catalog.cluster_locks.as_ref(), &mut lease, &names, async |connection| {
            change(connection).await
        })
        .await;
        drop(lease);
        // Entries that other workers have read meanwhile are stale, even if the change failed.
        namespaces.iter().for_each(|namespace| store.catalog.invalidate(namespace));
        store.catalog.invalidate_all();
        match outcome {
            Err(failure) if failure.is_lost_race() => {
                attempt += 1;
                if attempt >= ATTEMPTS_MAX {
                    return Err(conflict(namespaces, &failure));
                }
                pause(attempt).await;
            }
            outcome => return outcome,
        }
    }
}

fn conflict(namespaces: &[&Namespace], failure: &Failure) -> Failure {
    let names: Vec<String> = namespaces.iter().map(ToString::to_string).collect();
    let message = format!("{} is being changed by others at the same time: {failure}", names.join(", "));
    Error::new(Code::CONFLICTING_OPERATION_IN_PROGRESS, message).into()
}
