//! Shared by the tests: a store in memory, and running a command given as a document.

use commands::{Disposition, ImmediateOutcome};
use document::DocBuf;
use mongo_wire::Request;
use mongo_wire::request::{RequestKind, Sequence};
use server::{ClientSession, Server, Settings, Topology, Worker};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use store_testing::MemoryEngine;

/// A server with one worker and one client.
pub struct Bench {
    pub worker: Rc<Worker>,
    pub session: ClientSession,
    runtime: tokio::runtime::Runtime,
}

impl Bench {
    pub fn new(topology: Topology) -> Bench {
        let settings = Settings {
            topology,
            cursor_timeout: Duration::from_secs(600),
            cursor_limits: Default::default(),
            connections_max: 1000,
            slow_ms: 100,
            slow_log: true,
            argv: vec!["selkie".into(), "serve".into()],
            parsed: DocBuf::new(),
            compressors: vec!["zstd".into(), "snappy".into()],
            workers: 1,
            access_control: false,
            login_mechanisms: Default::default(),
            tls: None,
            test_commands: true,
            ..Settings::default()
        };
        let server = Server::new(settings, Arc::new(MemoryEngine), Default::default(), commands::table::COUNT);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let session = ClientSession::new(&server, 1, None, 0);
        Bench { worker: Worker::open(server).unwrap(), session, runtime }
    }

    /// Runs a command and returns its reply; `$db` is `test` by default.
    pub fn run(&mut self, command: bson::Document) -> bson::Document {
        without_times(self.run_request(&request(command, &[])).0)
    }

    /// Runs a command with a document sequence beside the body.
    pub fn run_with(&mut self, command: bson::Document, name: &str, documents: &[bson::Document]) -> bson::Document {
        without_times(self.run_request(&request(command, &[(name, documents)])).0)
    }

    /// Deletes the documents that have expired at a moment.
    pub fn expire(&self, now_ms: i64) -> u64 {
        self.runtime.block_on(commands::ttl_monitor::expire(&self.worker, now_ms)).unwrap()
    }

    /// Executes a request as a connection does: without waiting if possible.
    pub fn run_request(&mut self, request: &Request) -> (bson::Document, Disposition) {
        let mut reply = Vec::new();
        let disposition = match commands::run_immediately(&self.worker, &self.session, request, &mut reply) {
            ImmediateOutcome::Written => Disposition::Reply,
            ImmediateOutcome::Cached { body, end } => {
                reply = [&reply[..], &body, &end].concat();
                Disposition::Reply
            }
            ImmediateOutcome::MayWait => {
                self.runtime.block_on(commands::run(&self.worker, &self.session, request, &mut reply))
            }
        };
        document::validate::check(&reply).expect("a reply is valid BSON");
        (bson::Document::from_reader(&*reply).unwrap(), disposition)
    }
}

/// Removes the times that each reply has.
fn without_times(mut reply: bson::Document) -> bson::Document {
    reply.remove("$clusterTime");
    reply.remove("operationTime");
    reply
}

/// Builds a request as it comes from the wire.
pub fn request(mut command: bson::Document, sequences: &[(&str, &[bson::Document])]) -> Request {
    if !command.contains_key("$db") {
        command.insert("$db", "test");
    }
    let mut message = command.to_vec().unwrap();
    let body = 0..message.len();
    let sequences = sequences
        .iter()
        .map(|(name, documents)| {
            let identifier = message.len()..message.len() + name.len();
            message.extend_from_slice(name.as_bytes());
            let start = message.len();
            documents.iter().for_each(|document| message.extend(document.to_vec().unwrap()));
            Sequence { identifier, documents: start..message.len() }
        })
        .collect();
    Request {
        message: message.into(),
        request_id: 1,
        kind: RequestKind::Msg { more_to_come: false, exhaust_allowed: false, checksum: false },
        body,
        sequences,
        compressor: None,
    }
}
