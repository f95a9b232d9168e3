//! Kills statements whose client has left. MariaDB does not notice a closed connection while it
//! executes a statement.

use mariadb_client::Killer;
use std::cell::RefCell;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How often the client's connection is checked while a command runs.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// Ends the session with this connection id on the server.
type KillSession = Arc<dyn Fn(u64) + Send + Sync>;

/// The command that the server executes for a client. Dropped before its end, its session is
/// killed.
pub struct RunningCommand {
    client: Option<OwnedFd>,
    /// The session on the server.
    session: RunningAt,
    is_busy: bool,
}

/// The connection that executes a command, which may change while it runs.
#[derive(Clone, Default)]
pub struct RunningAt(Rc<RefCell<Option<(u64, KillSession)>>>);

impl RunningAt {
    /// Notes the connection's id on its server, and how to end it there.
    pub fn set(&self, id: u64, killer: Option<Arc<Killer>>) {
        *self.0.borrow_mut() =
            killer.map(|killer| -> (u64, KillSession) { (id, Arc::new(move |id| killer.kill_session(id))) });
    }
}

impl RunningAt {
    /// Notes that no connection executes commands.
    pub fn clear(&self) {
        *self.0.borrow_mut() = None;
    }
}

impl RunningCommand {
    pub fn new(client: &impl AsFd) -> RunningCommand {
        RunningCommand {
            client: client.as_fd().try_clone_to_owned().ok(),
            session: RunningAt::default(),
            is_busy: false,
        }
    }

    /// Returns the connection that executes the commands: none, until it is set.
    pub fn connection(&self) -> RunningAt {
        self.session.clone()
    }

    /// Runs a command. Returns `None` if the client leaves before its end.
    pub async fn while_connected<T>(&mut self, command: impl Future<Output = T>) -> Option<T> {
        self.is_busy = true;
        let done = tokio::select! {
            biased;
            done = command => Some(done),
            () = has_left(self.client.as_ref()) => None,
        };
        self.is_busy = done.is_none();
        done
    }

    /// Notes that the command's reply will not be read to its end.
    pub fn abandon(&mut self) {
        self.is_busy = true;
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        if self.is_busy
            && let Some((id, kill)) = &*self.session.0.borrow()
        {
            kill(*id);
        }
    }
}

/// Resolves when the client has closed its side.
async fn has_left(client: Option<&OwnedFd>) {
    let Some(client) = client else { return std::future::pending().await };
    loop {
        tokio::time::sleep(CHECK_INTERVAL).await;
        let mut polled = [PollFd::new(client, PollFlags::RDHUP)];
        let is_closed = poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0);
        if is_closed {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::sync::Mutex;

    fn run<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(work)
    }

    #[test]
    fn a_statement_of_a_client_that_left_is_killed() {
        let killed = Arc::new(Mutex::new(Vec::new()));
        let kill: KillSession = {
            let killed = killed.clone();
            Arc::new(move |session| killed.lock().unwrap().push(session))
        };
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut running = RunningCommand::new(&ours);
        *running.connection().0.borrow_mut() = Some((7, kill));
        assert_eq!(run(running.while_connected(std::future::ready(5))), Some(5));
        let waits = async {
            tokio::time::sleep(CHECK_INTERVAL * 2).await;
        };
        assert_eq!(run(running.while_connected(waits)), Some(()));
        drop(theirs);
        assert_eq!(run(running.while_connected(std::future::pending::<()>())), None);
        assert!(killed.lock().unwrap().is_empty());
        drop(running);
        assert_eq!(*killed.lock().unwrap(), [7]);
    }
}
