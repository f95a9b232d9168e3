//! Statements whose client has left: MariaDB does not notice that while it executes one, so it is
//! told to end it.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How often it is looked whether the client is still there, while a command is carried out.
const LOOKS_EVERY: Duration = Duration::from_millis(200);

/// Ends the session of this number on the server.
pub type Kill = Arc<dyn Fn(u64) + Send + Sync>;

/// A session's client, and what the server executes for it.
pub struct Running {
    client: Option<OwnedFd>,
    kill: Kill,
    /// The number of the session on the server.
    pub session: u64,
    is_busy: bool,
}

impl Running {
    pub fn new(client: &impl AsFd, kill: Kill) -> Running {
        Running { client: client.as_fd().try_clone_to_owned().ok(), kill, session: 0, is_busy: false }
    }

    /// Carries a command out; `None` when the client has left before its end.
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

    /// What the server executes is not waited for any more.
    pub fn failed(&mut self) {
        self.is_busy = true;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.is_busy && self.session != 0 {
            (self.kill)(self.session);
        }
    }
}

/// Waits until the client has closed its side.
async fn has_left(client: Option<&OwnedFd>) {
    let Some(client) = client else { return std::future::pending().await };
    loop {
        tokio::time::sleep(LOOKS_EVERY).await;
        let mut asked = [PollFd::new(client, PollFlags::RDHUP)];
        let is_closed = poll(&mut asked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0);
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
        let kill: Kill = {
            let killed = killed.clone();
            Arc::new(move |session| killed.lock().unwrap().push(session))
        };
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut running = Running::new(&ours, kill);
        running.session = 7;
        assert_eq!(run(running.while_connected(std::future::ready(5))), Some(5));
        let waits = async {
            tokio::time::sleep(LOOKS_EVERY * 2).await;
        };
        assert_eq!(run(running.while_connected(waits)), Some(()));
        drop(theirs);
        assert_eq!(run(running.while_connected(std::future::pending::<()>())), None);
        assert!(killed.lock().unwrap().is_empty());
        drop(running);
        assert_eq!(*killed.lock().unwrap(), [7]);
    }
}
