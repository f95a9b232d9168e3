//! A copy of a session's statements for a second server, whose replies are compared with those of
//! the first.
//!
//! The session gives each command to a bounded queue when its reply has been sent, and never waits
//! for it. A task executes the commands in their order, by a connection of the client's account.

use super::com;
use super::query_packet::query_packet;
use crate::login::elsewhere::Identity;
use crate::packet_stream::PacketStream;
use crate::reply_gate::ReplyGate;
use crate::reply_tracker::ReplyKind;
use ahash::AHashMap;
use service::{Candidate, ServerSettings};
use sql_filter::{Column, Counters, ResultEditor, Row};
use std::cell::Cell;
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::spawn_local;

/// Commands that wait for the second server, of a session.
const QUEUE_MAX: usize = 64;

/// How long connecting to the second server may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// The place of the flags in a packet of COM_STMT_EXECUTE.
const FLAGS_AT: usize = 9;

/// A command for the second server.
pub struct Copy {
    pub packet: Vec<u8>,
    /// `None`: it gets no reply.
    pub kind: Option<ReplyKind>,
    /// The client's id of the prepared statement.
    pub id: u32,
    /// The reply of the first server; `None`: it is not compared.
    pub expected: Option<ReplyDigest>,
    /// The canonical form of the statement, for the log.
    pub form: Option<String>,
}

/// The compared parts of a reply. The rows may come in any order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyDigest {
    pub rows: u64,
    pub digest: u64,
    /// The number of the error.
    pub error: Option<u16>,
}

/// The connection of a session to the second server.
pub struct MirrorLink {
    copies: mpsc::Sender<Copy>,
    /// The name of the server.
    pub server: String,
}

/// The facts about a session that the task needs.
pub struct MirrorOf {
    pub identity: Arc<Identity>,
    pub server: Arc<ServerSettings>,
    pub schema: String,
    pub deprecates_eof: bool,
    pub is_extended: bool,
    pub counters: Arc<Counters>,
}

/// Adds up digests of the rows that pass.
#[derive(Debug)]
pub struct RowDigest(pub Rc<Cell<u64>>);

impl ResultEditor for RowDigest {
    fn columns(&mut self, _columns: &[Column]) {}

    fn row(&mut self, row: &mut Vec<u8>, _is_binary: bool) -> Row {
        let mut hasher = DefaultHasher::new();
        hasher.write(row);
        self.0.set(self.0.get().wrapping_add(hasher.finish()));
        Row::Keep
    }
}

/// Returns whether the second server gets copies of a command.
pub fn is_mirrored(command: u8) -> bool {
    let statements = [com::QUERY, com::STMT_PREPARE, com::STMT_EXECUTE, com::STMT_BULK_EXECUTE];
    let others = [
        com::STMT_CLOSE,
        com::STMT_RESET,
        com::STMT_SEND_LONG_DATA,
        com::INIT_DB,
        com::SET_OPTION,
        com::RESET_CONNECTION,
    ];
    statements.contains(&command) || others.contains(&command)
}

impl MirrorLink {
    pub fn open(of: MirrorOf) -> MirrorLink {
        let (sender, receiver) = mpsc::channel(QUEUE_MAX);
        let server = of.server.name.clone();
        spawn_local(serve(of, receiver));
        MirrorLink { copies: sender, server }
    }

    /// Gives a command to the queue. Returns false if there is no room.
    pub fn push(&self, copy: Copy) -> bool {
        self.copies.try_send(copy).is_ok()
    }
}

/// Executes copies until the session ends. After a failure the further ones are dropped.
async fn serve(of: MirrorOf, mut copies: mpsc::Receiver<Copy>) {
    let failed = match connect(&of).await {
        Ok(mut server) => execute_all(&of, &mut server, &mut copies).await.err(),
        Err(error) => Some(error),
    };
    if let Some(error) = failed {
        tracing::warn!(server = of.server.name, %error, "a session is mirrored no longer");
        of.counters.dropped.increment();
        while copies.recv().await.is_some() {
            of.counters.dropped.increment();
        }
    }
}

async fn connect(of: &MirrorOf) -> io::Result<PacketStream> {
    let candidate = Candidate { server: of.server.clone(), has_others: false };
    let (mut server, _) = of.identity.connect(candidate, CONNECT_LIMIT).await?;
    if !of.schema.is_empty() {
        let packet = query_packet(&format!("USE `{}`", of.schema.replace('`', "``")));
        ask(of, &mut server, &packet, ReplyKind::Results).await?;
    }
    Ok(server)
}

async fn execute_all(of: &MirrorOf, server: &mut PacketStream, copies: &mut mpsc::Receiver<Copy>) -> io::Result<()> {
    // The server's ids of prepared statements, by the client's.
    let mut ids: AHashMap<u32, u32> = AHashMap::default();
    while let Some(mut copy) = copies.recv().await {
        let command = copy.packet.get(4).copied().unwrap_or_default();
        let has_id = [com::STMT_EXECUTE, com::STMT_BULK_EXECUTE, com::STMT_CLOSE, com::STMT_RESET].contains(&command)
            || command == com::STMT_SEND_LONG_DATA;
        if has_id {
            let Some(id) = ids.get(&copy.id) else {
                // It was prepared before the mirror, or its copy was dropped.
                of.counters.dropped.increment();
                continue;
            };
            if let Some(bytes) = copy.packet.get_mut(5..9) {
                bytes.copy_from_slice(&id.to_le_bytes());
            }
        }
        if command == com::STMT_EXECUTE
            && let Some(flags) = copy.packet.get_mut(FLAGS_AT)
        {
            // Without a cursor.
            *flags = 0;
        }
        let Some(kind) = copy.kind else {
            server.send(&copy.packet).await?;
            if command == com::STMT_CLOSE {
                ids.remove(&copy.id);
            }
            continue;
        };
        let (answer, statement) = ask(of, server, &copy.packet, kind).await?;
        if command == com::STMT_PREPARE
            && let Some(statement) = statement
        {
            ids.insert(copy.id, statement);
        }
        of.counters.mirrored.increment();
        if let Some(expected) = copy.expected.filter(|expected| *expected != answer) {
            of.counters.differences.increment();
            let statement = copy.form.unwrap_or_default();
            tracing::warn!(server = of.server.name, ?expected, ?answer, statement, "a mirrored reply differs");
        }
    }
    Ok(())
}

/// Sends a command and reads its reply. Returns it, and the id of the statement that it prepares.
async fn ask(
    of: &MirrorOf,
    server: &mut PacketStream,
    packet: &[u8],
    kind: ReplyKind,
) -> io::Result<(ReplyDigest, Option<u32>)> {
    server.send(packet).await?;
    let digest = Rc::new(Cell::new(0));
    let mut gate = ReplyGate::new(kind, of.deprecates_eof);
    let is_execution = packet.get(4).is_some_and(|command| *command != com::QUERY);
    gate.edit(vec![Box::new(RowDigest(digest.clone()))], of.is_extended, is_execution);
    while !gate.reply.is_over() {
        if server.bytes().is_empty() {
            server.fill().await?;
        }
        // The server sends nothing after its reply.
        let length = server.bytes().len();
        gate.pass(server.bytes());
        server.consume(length);
        if gate.reply.requests_file {
            return Err(io::Error::other("it requests a file"));
        }
    }
    Ok((ReplyDigest { rows: gate.reply.rows, digest: digest.get(), error: gate.reply.error }, gate.reply.statement))
}
