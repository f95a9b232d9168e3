//! The snapshot of a transaction.

use mariadb_client::{Connection, Result};

const BEGIN: &str = "START TRANSACTION WITH CONSISTENT SNAPSHOT";

/// Begins a transaction of MariaDB, with a snapshot.
pub(super) async fn take(connection: &mut Connection) -> Result<()> {
    connection.queue_query(BEGIN);
    connection.finish().await.map(drop)
}

/// Gives up what a transaction has seen and done, and takes a new snapshot.
pub(super) async fn take_again(connection: &mut Connection) -> Result<()> {
    connection.queue_query("ROLLBACK");
    connection.queue_query(BEGIN);
    let (ended, begun) = (connection.finish().await, connection.finish().await);
    ended?;
    begun.map(drop)
}
