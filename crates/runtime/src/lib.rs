//! Threads and sockets: one worker per core, and a connection that never leaves the worker that serves it.
//!
//! What comes in are addresses to listen on and a [`Service`]; what goes out are [`Connection`]s, handed to the service on the
//! worker that will serve them. Nothing here reads a byte of a protocol.
//!
//! In reading order: [`address`], `listener` (binding, and what to say when that fails), [`connection`], [`unix_stream`], `balance` (which worker
//! takes a new connection), [`splice`] and [`paged_bytes`] (what is sent from where it lies), `worker` (a thread's life), [`busy_poll`] (how it waits), [`process`](mod@process) (start, signals, drain),
//! and [`Handle`], by which threads talk to workers.

pub mod address;
mod balance;
pub mod busy_poll;
pub mod connection;
mod listener;
mod message;
pub mod paged_bytes;
pub mod process;
pub mod splice;
pub mod unix_stream;
mod worker;

pub use address::ListenAddress;
pub use connection::{Connection, Stream};
pub use listener::BindError;
pub use message::Handle;
pub use paged_bytes::PagedBytes;
pub use process::{Options, Running, StartError, run};
pub use unix_stream::UnixStream;

use std::future::Future;
use std::rc::Rc;

/// What the workers do for their connections.
pub trait Service: Send + Sync + 'static {
    /// A worker's own state. It is made on the worker's thread and never leaves it.
    type Worker: 'static;

    /// Makes a worker's state, on its thread and within its tokio runtime. An error ends the process: one sentence that
    /// says what to do.
    fn open(&self, index: usize) -> Result<Rc<Self::Worker>, String>;

    /// Serves a connection until either side closes it.
    fn serve(&self, worker: Rc<Self::Worker>, connection: Connection) -> impl Future<Output = ()> + 'static;

    /// Called on each worker now and then (see [`Options::tick`]), for housekeeping.
    fn tick(&self, worker: &Self::Worker);

    /// Called once when the process is asked to stop, before connections are closed: the time to release those who wait.
    fn drain(&self);
}
