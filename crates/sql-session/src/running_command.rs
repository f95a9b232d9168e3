//! Kills statements whose client has left. MariaDB does not notice a closed connection while it
//! executes a statement.

use std::os::fd::{AsFd, OwnedFd};
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
    /// How to end the session on the server, by its connection id; `None` before the login.
    session: Option<(u64, KillSession)>,
    is_busy: bool,
}

impl RunningCommand {
    pub fn new(client: &impl AsFd) -> RunningCommand {
        RunningCommand { client: client.as_fd().try_clone_to_owned().ok(), session: None, is_busy: false }
    }

    /// Notes the session on the server, and how to end it.
    pub fn set_session(&mut self, id: u64, kill: KillSession) {
        self.session = Some((id, kill));
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
            && let Some((id, kill)) = &self.session
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
        running.set_session(7, kill);
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
