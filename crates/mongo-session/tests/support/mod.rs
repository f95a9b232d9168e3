//! A server within the test, on an embedded store of its own, and a client that can send any bytes.

use bytes::BytesMut;
use document::DocBuf;
use mongo_session::MongoService;
use mongo_wire::Codecs;
use mongo_wire::client::{Command, Reply, Trust, decode_reply};
use selkie_runtime::process::{Listening, Running};
use selkie_runtime::{ListenAddress, Options};
use server::{Server, Settings, Topology};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

pub struct TestServer {
    running: Option<Running>,
    pub address: SocketAddr,
    engine: Arc<dyn store::Engine>,
    _directory: tempfile::TempDir,
}

impl TestServer {
    pub fn start(workers: usize) -> TestServer {
        let settings = Settings {
            topology: Topology::Router,
            cursor_timeout: Duration::from_secs(600),
            cursor_limits: Default::default(),
            connections_max: 1000,
            slow_ms: 100,
            slow_log: true,
            argv: Vec::new(),
            parsed: DocBuf::new(),
            compressors: ["snappy", "zstd", "zlib"].map(String::from).to_vec(),
            workers,
            access_control: false,
            login_mechanisms: Default::default(),
            tls: None,
            ..Settings::default()
        };
        let options = Options {
            listen: vec!["127.0.0.1:0".parse().unwrap()],
            workers,
            drain_deadline: Duration::from_secs(2),
            tick: Duration::from_secs(1),
            busy_poll: Duration::ZERO,
            connections: Default::default(),
        };
        let listening = Listening::bind(options).unwrap();
        let [ListenAddress::Tcp(address)] = *listening.addresses() else { panic!("one address") };
        let directory = tempfile::tempdir().unwrap();
        let engine = store_sqlite::open(directory.path(), Default::default()).unwrap();
        let service =
            MongoService::new(Server::new(settings, engine.clone(), Default::default(), commands::table::COUNT));
        let running = selkie_runtime::process::start(listening, vec![Arc::new(service)]).unwrap();
        TestServer { running: Some(running), address, engine, _directory: directory }
    }

    pub fn client(&self) -> Client {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream, buffer: BytesMut::new(), codecs: Codecs::default() }
    }

    /// Drains and waits for the end.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(running) = self.running.take() {
            running.drain();
            running.join();
            self.engine.close();
        }
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.end();
    }
}

pub struct Client {
    pub stream: TcpStream,
    buffer: BytesMut,
    pub codecs: Codecs,
}

impl Client {
    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Returns the next reply; `None` when the server has closed the connection.
    pub fn receive(&mut self) -> Option<Reply> {
        loop {
            if let Some(reply) = decode_reply(&mut self.buffer, &mut self.codecs, Trust::Check).unwrap() {
                return Some(reply);
            }
            let mut chunk = [0; 65536];
            match self.stream.read(&mut chunk) {
                Ok(0) => return None,
                Ok(received) => self.buffer.extend_from_slice(&chunk[..received]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("no reply: {error}"),
            }
        }
    }

    pub fn run(&mut self, body: &DocBuf) -> Reply {
        let mut bytes = Vec::new();
        Command { request_id: 7, body: body.as_bytes(), ..Command::default() }.encode(&mut bytes);
        self.send(&bytes);
        self.receive().unwrap()
    }

    pub fn is_alive(&mut self) -> bool {
        let reply = self.run(&document::doc! { "ping": 1, "$db": "admin" });
        reply.body().get("ok") == Some(document::Value::Double(1.0))
    }
}
