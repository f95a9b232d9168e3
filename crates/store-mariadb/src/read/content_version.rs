//! Versions of collections: hashes of all their documents, computed by the server.
//!
//! For small collections that must be current although other programs write them, such as users.

use crate::store::MariaDbStore;
use mariadb_client::{Event, Failure, Result};
use std::hash::{DefaultHasher, Hash, Hasher};
use store::Namespace;

/// Returns a number that changes with the documents of the collections. A missing collection has
/// none.
pub(crate) async fn of(store: &MariaDbStore, namespaces: &[Namespace]) -> Result<u64> {
    let mut version = DefaultHasher::new();
    for namespace in namespaces {
        of_one(store, namespace).await?.hash(&mut version);
    }
    Ok(version.finish())
}

/// Returns the number of documents, and all their hashes combined.
async fn of_one(store: &MariaDbStore, namespace: &Namespace) -> Result<[u64; 2]> {
    let Some(table) = store.known_table(namespace).await? else { return Ok([0; 2]) };
    let hash = "CAST(CONV(LEFT(MD5(doc), 16), 16, 10) AS UNSIGNED)";
    let sql = format!("SELECT COUNT(*), BIT_XOR({hash}) FROM {}", table.quoted);
    let mut lease = store.pool.lease_for(namespace).await?;
    lease.queue_execute(&sql.into(), &[]);
    let mut numbers = [0; 2];
    loop {
        match lease.next().await {
            Ok(Event::Row(range)) => {
                let mut row = lease.row(range)?;
                numbers = [row.next_u64()?, row.next_u64()?];
            }
            Ok(_) => return Ok(numbers),
            Err(failure) if Failure::is_missing_table(&failure) => {
                store.catalog.invalidate(namespace);
                return Ok([0; 2]);
            }
            Err(failure) => return Err(failure),
        }
    }
}
