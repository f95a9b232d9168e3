//! Commands: from a decoded request to the bytes of its reply.
//!
//! [`run`] is the door: it looks the command up in the table of facts, checks what all commands share, carries it out against
//! the worker's store and appends the reply's BSON body to a buffer. Errors become replies here and nowhere else.

use document::DocBuf;
use mongo_wire::Request;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use store::{DocumentStore, Engine};

/// How the server presents itself in `hello`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// `msg: "isdbgrid"`: works behind any address translation.
    Router,
    /// `setName`, with one member at the advertised address.
    ReplicaSet {
        name: String,
        advertised: String,
    },
    Standalone,
}

/// What the process was started with, as far as commands answer from it or depend on it.
#[derive(Clone, Debug)]
pub struct Settings {
    pub topology: Topology,
    pub cursor_timeout: std::time::Duration,
    /// The command line, for `getCmdLineOpts`.
    pub argv: Vec<String>,
    /// The configuration in effect, for `getCmdLineOpts`.
    pub parsed: DocBuf,
    /// Compressors offered, by preference.
    pub compressors: Vec<String>,
    pub workers: usize,
}

/// Process-wide state: settings, cursors, counters. Shared by all workers.
pub struct Server {
    pub settings: Settings,
    pub engine: Arc<dyn Engine>,
}

impl Server {
    pub fn new(settings: Settings, engine: Arc<dyn Engine>) -> Arc<Server> {
        Arc::new(Server { settings, engine })
    }
}

/// A worker thread's half: its store and its statistics. Never leaves the thread.
pub struct Worker {
    pub server: Arc<Server>,
    pub store: Rc<dyn DocumentStore>,
}

impl Worker {
    pub fn open(server: Arc<Server>) -> error::Result<Rc<Worker>> {
        let store = server.engine.clone().open()?;
        Ok(Rc::new(Worker { server, store }))
    }
}

/// The life of one client connection, as commands see it.
pub struct ClientSession {
    pub connection_id: u64,
    pub client: Option<SocketAddr>,
    /// The compressors agreed on in the handshake, by the client's preference; the connection reads it after each reply.
    pub compressors: Vec<String>,
}

impl ClientSession {
    pub fn new(connection_id: u64, client: Option<SocketAddr>) -> Self {
        ClientSession { connection_id, client, compressors: Vec::new() }
    }
}

/// What the connection does with what [`run`] appended.
#[derive(Debug)]
pub enum Disposition {
    /// Send it (unless the request said moreToCome).
    Reply,
    /// Send it flagged moreToCome, then run this body again as if the client had sent it (exhaust cursors, streaming hello).
    /// Only given to requests that allow it.
    ReplyThenRun(DocBuf),
}

/// Carries out one request and appends the reply's body, one BSON document, to `reply`. Never fails: errors are replies.
pub async fn run(
    _worker: &Worker,
    _session: &mut ClientSession,
    _request: &Request,
    reply: &mut Vec<u8>,
) -> Disposition {
    reply.extend_from_slice(document::Doc::EMPTY.as_bytes());
    Disposition::Reply
}
