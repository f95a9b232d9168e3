//! How threads talk to workers: by message only.

use crate::balance::Seat;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

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

type Work<W> = Box<dyn FnOnce(&W) + Send>;

pub(crate) enum Message<W> {
    Arrival(Arrival),
    Run(Work<W>),
    /// Stop accepting, close what is idle, wait for the rest as long as this.
    Drain(Duration),
}

/// Reaches all workers of a process, from any thread. Their number of messages is not bounded: connections are bounded by the
/// process's file descriptors, questions by those who wait for the answer.
pub struct Handle<W> {
    pub(crate) workers: Vec<mpsc::UnboundedSender<Message<W>>>,
}

impl<W> Clone for Handle<W> {
    fn clone(&self) -> Self {
        Handle { workers: self.workers.clone() }
    }
}

impl<W: 'static> Handle<W> {
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Asks every worker and gives the answers, for merging. A worker that has ended does not answer.
    pub async fn ask<T: Send + 'static>(&self, question: impl Fn(&W) -> T + Send + Clone + 'static) -> Vec<T> {
        let mut pending = Vec::with_capacity(self.workers.len());
        for worker in &self.workers {
            let (answer, answered) = oneshot::channel();
            let question = question.clone();
            let work: Work<W> = Box::new(move |worker| drop(answer.send(question(worker))));
            if worker.send(Message::Run(work)).is_ok() {
                pending.push(answered);
            }
        }
        let mut answers = Vec::with_capacity(pending.len());
        for answered in pending {
            answers.extend(answered.await.ok());
        }
        answers
    }

    pub(crate) fn send(&self, worker: usize, message: Message<W>) -> bool {
        self.workers.get(worker).is_some_and(|sender| sender.send(message).is_ok())
    }

    pub(crate) fn drain(&self, deadline: Duration) {
        for worker in &self.workers {
            // A worker that has ended already has nothing to drain.
            let _ = worker.send(Message::Drain(deadline));
        }
    }
}
