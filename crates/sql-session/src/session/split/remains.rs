//! What only a connection knows of its session: the value of LAST_INSERT_ID(). It is read from an
//! idle connection before another session uses it, or before it is closed.

use super::exchange::Failure;
use super::further_connection::FurtherConnection;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::timeout;

/// How long a session waits for another to read.
const READ_LIMIT: Duration = Duration::from_secs(3);

/// The remains of a session on its connection, which others may take.
#[derive(Debug)]
pub struct Remains {
    /// The statement that reads them; empty if there is nothing to read.
    question: String,
    state: RefCell<State>,
    changed: Notify,
}

#[derive(Debug)]
enum State {
    /// No session has the connection.
    Idle,
    /// Another session has taken it, and reads.
    Reading,
    Read(Vec<u8>),
    /// The session has the connection again.
    Kept,
    Lost,
}

/// The place of remains, or their values.
#[derive(Debug, PartialEq, Eq)]
pub enum RemainsFound {
    /// The reply to the question.
    Reply(Vec<u8>),
    /// They are on the session's connection, which it has again.
    Kept,
    /// They are on the session's connection, which no session has.
    Idle,
    Lost,
}

/// Remains on an idle connection. They are lost if this is dropped.
#[derive(Debug)]
pub struct Unread(Rc<Remains>);

impl Remains {
    /// Remains that `question` reads, for the session and for its connection.
    pub fn new(question: String) -> (Rc<Remains>, Unread) {
        let (state, changed) = (RefCell::new(State::Idle), Notify::new());
        let remains = Rc::new(Remains { question, state, changed });
        (remains.clone(), Unread(remains))
    }

    /// Returns the remains once another session has read them.
    pub async fn find(&self) -> RemainsFound {
        let reading = async {
            while matches!(*self.state.borrow(), State::Reading) {
                self.changed.notified().await;
            }
        };
        let _ = timeout(READ_LIMIT, reading).await;
        match &*self.state.borrow() {
            State::Read(reply) => RemainsFound::Reply(reply.clone()),
            State::Kept => RemainsFound::Kept,
            State::Idle => RemainsFound::Idle,
            State::Reading | State::Lost => RemainsFound::Lost,
        }
    }

    fn set(&self, state: State) {
        self.state.replace(state);
        self.changed.notify_one();
    }
}

impl Unread {
    /// Notes that the session has its connection again.
    pub fn keep(self) {
        self.0.set(State::Kept);
    }

    /// Returns whether there is anything to read.
    pub fn asks(&self) -> bool {
        !self.0.question.is_empty()
    }

    /// Notes that another session has the connection, and reads.
    pub fn begin(&self) {
        self.0.set(State::Reading);
    }

    /// Reads the remains from the connection.
    pub async fn read(self, connection: &mut FurtherConnection) -> Result<(), Failure> {
        let reply = if self.asks() { connection.run(&self.0.question).await? } else { Some(Vec::new()) };
        if let Some(reply) = reply {
            self.0.set(State::Read(reply));
        }
        Ok(())
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let is_unread = matches!(*self.0.state.borrow(), State::Idle | State::Reading);
        if is_unread {
            self.0.set(State::Lost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remains_that_are_not_read_are_lost() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (remains, unread) = Remains::new(String::new());
            assert_eq!(remains.find().await, RemainsFound::Idle);
            unread.keep();
            assert_eq!(remains.find().await, RemainsFound::Kept);
            let (remains, unread) = Remains::new(String::new());
            unread.begin();
            let (found, ()) = tokio::join!(remains.find(), async { drop(unread) });
            assert_eq!(found, RemainsFound::Lost);
            let (remains, unread) = Remains::new(String::new());
            unread.begin();
            let (found, ()) = tokio::join!(remains.find(), async { unread.0.set(State::Read(vec![7])) });
            assert_eq!(found, RemainsFound::Reply(vec![7]));
        });
    }
}
