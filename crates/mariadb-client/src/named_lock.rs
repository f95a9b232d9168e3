//! Locks that MariaDB keeps by name, for all gateways: they hold as long as the connection that took them.

use crate::connection::Connection;
use crate::event::Event;
use crate::failure::Result;
use error::{Code, Error};
use mariadb_wire::Param;

/// What stands for an answer that is none: the wait was broken off, or the server had no memory for the lock.
const NO_ANSWER: u64 = 2;

/// Takes a lock, for which somebody else is waited for so long; gives whether that was enough. Error 11601 where the wait was broken off.
pub async fn take(connection: &mut Connection, name: &str, seconds_max: u32) -> Result<bool> {
    let sql = format!("SELECT COALESCE(GET_LOCK(?, {seconds_max}), {NO_ANSWER})");
    connection.queue_execute(&sql.into(), &[Param::Text(name.as_bytes())]);
    let mut answer = NO_ANSWER;
    while let Event::Row(range) = connection.next().await? {
        answer = connection.row(range)?.next_u64()?;
    }
    match answer {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Error::new(Code::INTERRUPTED, format!("waiting for the lock '{name}' was interrupted")).into()),
    }
}

pub async fn release(connection: &mut Connection, name: &str) -> Result<()> {
    connection.queue_execute(&"DO RELEASE_LOCK(?)".into(), &[Param::Text(name.as_bytes())]);
    connection.finish().await.map(drop)
}
