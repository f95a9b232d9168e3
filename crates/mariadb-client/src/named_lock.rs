//! MariaDB's named locks, which all gateways observe. They are held as long as the connection that
//! took them is open.

use crate::connection::Connection;
use crate::event::Event;
use crate::failure::Result;
use error::{Code, Error};
use mariadb_wire::Param;

/// Stands for GET_LOCK's NULL: the wait was interrupted, or the server had no memory for the lock.
const INTERRUPTED: u64 = 2;

/// Takes a lock, waiting at most this long for its holder; returns whether it was taken. Fails with
/// 11601 if the wait was interrupted.
pub async fn take(connection: &mut Connection, name: &str, seconds_max: u32) -> Result<bool> {
    let sql = format!("SELECT COALESCE(GET_LOCK(?, {seconds_max}), {INTERRUPTED})");
    connection.queue_execute(&sql.into(), &[Param::Text(name.as_bytes())]);
    let mut answer = INTERRUPTED;
    while let Event::Row(range) = connection.next().await? {
        answer = connection.row(range)?.next_u64()?;
    }
    match answer {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Error::new(Code::INTERRUPTED, format!("waiting for the lock '{name}' was interrupted")).into()),
    }
}

/// Releases a lock that this connection holds.
pub async fn release(connection: &mut Connection, name: &str) -> Result<()> {
    connection.queue_execute(&"DO RELEASE_LOCK(?)".into(), &[Param::Text(name.as_bytes())]);
    connection.finish().await.map(drop)
}
