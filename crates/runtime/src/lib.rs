//! Threads and sockets: one worker per core, and a connection that never leaves the worker that
//! serves it.
//!
//! The program names the listeners' addresses, and the [`Service`] of each. The runtime accepts
//! [`Connection`]s and hands each to the service on the worker that will serve it. Nothing here
//! reads a byte of a protocol.
//!
//! In reading order: [`service`], [`address`], `listener` (binding, and its error messages),
//! [`connection`], [`unix_stream`], [`tls_stream`], [`gate`] (limits on connections),
//! [`rate_limit`], `balance` (which worker takes a new connection), [`zero_copy`] (sending pages
//! without a copy), `worker` (a thread's life), [`busy_poll`] (how it waits),
//! [`process`](mod@process) (start, signals, drain), `listeners` (which may change), and `message`,
//! by which threads reach workers.

pub mod address;
mod balance;
pub mod busy_poll;
pub mod connection;
pub mod gate;
mod listener;
mod listeners;
mod message;
pub mod process;
pub mod rate_limit;
pub mod service;
pub mod tls_stream;
pub mod unix_stream;
mod worker;
pub mod zero_copy;

pub use address::ListenAddress;
pub use connection::{Connection, FirstBytes, Stream};
pub use gate::{ConnectionLimits, ConnectionRate, Refusal};
pub use listener::BindError;
pub use listeners::Listeners;
pub use process::{Options, Running, StartError, run};
pub use rate_limit::RateLimit;
pub use service::{Service, WorkerService};
pub use unix_stream::UnixStream;
