//! The owner of sessions on the server, so that none outlives its gateway unnoticed.
//!
//! When a gateway's process dies, MariaDB goes on with the commands it has received: a statement,
//! and those pipelined behind it. They may take effect after the gateway has restarted, although
//! their clients never got an answer. Therefore each session holds a named lock that names its
//! gateway. A gateway that starts kills the sessions of its predecessor, and waits until they have
//! ended, before it serves. That needs no privileges: a user sees its locks and may kill its
//! sessions.
//!
//! One more session only holds the lock of the gateway's name. It executes nothing, so it ends with
//! the process. While it exists, another gateway of that name is running, and no session is killed.

use crate::connection::Connection;
use crate::establish::establish;
use crate::event::Event;
use crate::failure::Result;
use crate::named_lock;
use crate::server_url::ServerLocation;
use mariadb_wire::Param;
use sha2::{Digest, Sha256};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// Session slots; after the last one they are used again from 0.
const SLOTS: u64 = 4096;

/// Number of used slots that are skipped for one session.
const SLOTS_TRIED: usize = 16;

/// How long the predecessor's session that holds the name may take to end.
const NAME_SECONDS: u32 = 3;

/// How long its other sessions may take to end; some have much to roll back.
const ENDS_WITHIN: Duration = Duration::from_secs(60);

/// Interval of the checks for remaining sessions, and for the one that holds the name.
const CHECK_EVERY: Duration = Duration::from_millis(50);
const HOLD_CHECK_EVERY: Duration = Duration::from_secs(1);

/// Longer than any session is idle.
const NEVER_IDLE: &str = "SET SESSION wait_timeout = 31536000";

/// MariaDB in this process needs a large stack.
const STACK_BYTES: usize = 16 << 20;

/// A gateway's name on the server, and the slots of its sessions.
pub struct SessionOwner {
    name: String,
    next: AtomicU64,
}

impl SessionOwner {
    fn new(name: &str) -> SessionOwner {
        let hash = Sha256::digest(name);
        let name = hash.iter().take(16).fold(String::new(), |name, byte| format!("{name}{byte:02x}"));
        SessionOwner { name, next: AtomicU64::new(0) }
    }

    /// Claims the name on the server after the sessions of an earlier process of that name have
    /// ended. A thread holds the claim from then on.
    pub fn claim(location: &ServerLocation, name: &str, connect_timeout: Duration) -> Arc<SessionOwner> {
        let owner = SessionOwner::new(name);
        let (sender, receiver) = mpsc::channel();
        let (location, lock) = (location.clone(), owner.name.clone());
        let thread = std::thread::Builder::new().name("mariadb-name".into()).stack_size(STACK_BYTES);
        let started = thread.spawn(move || {
            if let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() {
                runtime.block_on(hold(&location, &lock, connect_timeout, &sender));
            }
        });
        let is_own = started.is_ok() && receiver.recv().unwrap_or(false);
        if is_own {
            return Arc::new(owner);
        }
        tracing::warn!(
            name,
            "another gateway of this name uses the MariaDB server, or its connections have not ended yet: sessions of an earlier \
             process are not killed. Give each gateway a gateway-name of its own"
        );
        // A random suffix, so that its sessions are not taken for the other gateway's.
        Arc::new(SessionOwner::new(&format!("{name} {}", rand::random::<u64>())))
    }

    /// Marks a session as this gateway's.
    pub async fn mark(&self, connection: &mut Connection) -> Result<()> {
        for _ in 0..SLOTS_TRIED {
            let slot = self.next.fetch_add(1, Ordering::Relaxed) % SLOTS;
            match named_lock::take(connection, &format!("{}{slot}", session_prefix(&self.name)), 0).await {
                Ok(false) => {}
                Err(failure) if failure.is_lost() => return Err(failure),
                _ => break,
            }
        }
        Ok(())
    }
}

fn session_prefix(name: &str) -> String {
    format!("selkie session {name} ")
}

/// Claims the name, sends whether that succeeded, and holds it while the process lives.
async fn hold(location: &ServerLocation, name: &str, connect_timeout: Duration, sender: &mpsc::Sender<bool>) {
    let mut is_first = true;
    loop {
        match establish(location, connect_timeout).await {
            Ok((mut connection, _)) => {
                let taken = take(&mut connection, name, is_first).await;
                if let Err(failure) = &taken {
                    tracing::debug!("the gateway's name cannot be taken on the MariaDB server: {failure}");
                }
                if is_first {
                    let _ = sender.send(matches!(taken, Ok(true)));
                }
                if let (true, Ok(false)) = (is_first, &taken) {
                    return;
                }
                is_first = false;
                while taken.is_ok() && !connection.has_hung_up() {
                    tokio::time::sleep(HOLD_CHECK_EVERY).await;
                }
            }
            Err(failure) => {
                tracing::debug!("the gateway's name cannot be taken on the MariaDB server: {failure}");
                if is_first {
                    let _ = sender.send(false);
                    return;
                }
            }
        }
        tokio::time::sleep(HOLD_CHECK_EVERY).await;
    }
}

/// Takes the name's lock. The first time, kills the sessions of the process that held it before.
async fn take(connection: &mut Connection, name: &str, is_first: bool) -> Result<bool> {
    connection.queue_query(NEVER_IDLE);
    connection.finish().await?;
    let seconds = if is_first { NAME_SECONDS } else { 0 };
    let taken = named_lock::take(connection, &format!("selkie gateway {name}"), seconds).await?;
    if taken && is_first {
        kill_sessions(connection, name).await?;
    }
    Ok(taken)
}

async fn kill_sessions(connection: &mut Connection, name: &str) -> Result<()> {
    let began = Instant::now();
    let digits =
        "(SELECT 0 AS n".to_owned() + &(1..16).map(|n| format!(" UNION ALL SELECT {n}")).collect::<String>() + ")";
    let sql: Arc<str> = format!(
        "SELECT session FROM (SELECT IS_USED_LOCK(CONCAT(?, a.n + 16 * b.n + 256 * c.n)) AS session \
         FROM {digits} a, {digits} b, {digits} c) sessions WHERE session IS NOT NULL"
    )
    .into();
    let mut logged = false;
    loop {
        connection.queue_execute(&sql, &[Param::Text(session_prefix(name).as_bytes())]);
        let mut sessions = Vec::new();
        while let Event::Row(range) = connection.next().await? {
            sessions.push(connection.row(range)?.next_u64()?);
        }
        if sessions.is_empty() {
            return Ok(());
        }
        if !logged {
            logged = true;
            tracing::info!(sessions = sessions.len(), "killing sessions of an earlier process of this gateway");
        }
        if began.elapsed() > ENDS_WITHIN {
            tracing::warn!(?sessions, "sessions of an earlier process of this gateway have not ended");
            return Ok(());
        }
        for session in sessions {
            connection.queue_query(&format!("KILL HARD CONNECTION {session}"));
            // A refusal is expected: the session may have ended meanwhile.
            if let Err(failure) = connection.finish().await
                && failure.is_lost()
            {
                return Err(failure);
            }
        }
        tokio::time::sleep(CHECK_EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_locks_fit() {
        let owner = SessionOwner::new(&"a long name ".repeat(100));
        assert!(format!("{}{SLOTS}", session_prefix(&owner.name)).len() <= 64);
        assert_ne!(owner.name, SessionOwner::new("another").name);
    }
}
