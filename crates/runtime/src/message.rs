//! Messages to workers, the only way in which threads reach them.

use crate::balance::Seat;
use crate::listener::Listener;
use crate::service::Service;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// A connection on its way to the worker that will serve it.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub stream: ArrivedStream,
    pub listener: usize,
    pub peer: Option<SocketAddr>,
    pub seat: Seat,
}

#[derive(Debug)]
pub(crate) enum ArrivedStream {
    Tcp(std::net::TcpStream),
    Unix(UnixStream),
}

pub(crate) enum Message {
    Arrival(Arrival),
    /// Serve the connections of a new listener, and accept them if the socket is there.
    Listen {
        number: usize,
        service: Arc<dyn Service>,
        listener: Option<Listener>,
    },
    /// Stop accepting on a listener. Its connections stay.
    Unlisten(usize),
    /// Stop accepting, close idle connections, and wait this long for the others.
    Drain(Duration),
}

/// Sends messages to the workers of a process, from any thread. The queues are not bounded: file
/// descriptors bound the number of connections.
#[derive(Clone)]
pub(crate) struct Handle {
    pub workers: Vec<mpsc::UnboundedSender<Message>>,
}

impl Handle {
    pub fn send(&self, worker: usize, message: Message) -> bool {
        self.workers.get(worker).is_some_and(|sender| sender.send(message).is_ok())
    }

    pub fn drain(&self, deadline: Duration) {
        for worker in &self.workers {
            // A worker that has ended has nothing to drain.
            let _ = worker.send(Message::Drain(deadline));
        }
    }
}
