//! A command's exchange with a server, by which it is known which side has failed.

use crate::packet_stream::PacketStream;
use crate::reply_tracker::ReplyTracker;
use mariadb_wire::ERR;
use mariadb_wire::err::ErrPacket;
use service::Assignment;
use std::io;

/// The longest error packet.
const ERROR_BYTES_MAX: usize = 64 << 10;

/// Why a reply did not arrive whole at the client.
#[derive(Debug)]
pub enum Failure {
    Client(io::Error),
    Server(ServerLost),
}

/// A server that cannot be used any more.
#[derive(Debug)]
pub struct ServerLost {
    pub reason: String,
    /// The client has received a part of the reply.
    pub has_begun: bool,
    /// The server's error and its code, if it has refused the statement and not executed it. The
    /// client has not received it.
    pub refusal: Option<(u16, Vec<u8>)>,
}

impl Failure {
    /// The connection has failed.
    fn of_connection(error: &io::Error, has_begun: bool) -> Failure {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Failure::lost("the connection to it was lost", has_begun),
            _ => Failure::lost(&format!("the connection to it was lost ({error})"), has_begun),
        }
    }

    fn lost(reason: &str, has_begun: bool) -> Failure {
        Failure::Server(ServerLost { reason: reason.to_owned(), has_begun, refusal: None })
    }
}

/// Sends a command, and forwards the reply as it arrives. Ends early if the session must leave the
/// server.
///
/// `says_lost`: whether the server says by an error that it cannot be used any more; the client
/// does not get it. `observe`: gets the bytes before the client gets them.
pub async fn exchange(
    client: &mut PacketStream,
    server: &mut PacketStream,
    assignment: &mut Assignment,
    packet: &[u8],
    reply: &mut ReplyTracker,
    says_lost: impl Fn(&ErrPacket<'_>) -> bool,
    observe: impl FnMut(&[u8], &ReplyTracker),
) -> Result<(), Failure> {
    tokio::select! {
        biased;
        sent = server.send(packet) => sent.map_err(|error| Failure::of_connection(&error, false))?,
        reason = assignment.end_now() => return Err(Failure::lost(reason, false)),
    }
    forward(client, server, assignment, reply, says_lost, observe).await
}

/// As [`exchange`], for a command that has been sent.
pub async fn forward(
    client: &mut PacketStream,
    server: &mut PacketStream,
    assignment: &mut Assignment,
    reply: &mut ReplyTracker,
    says_lost: impl Fn(&ErrPacket<'_>) -> bool,
    mut observe: impl FnMut(&[u8], &ReplyTracker),
) -> Result<(), Failure> {
    let mut has_begun = false;
    while !reply.is_over() {
        if server.bytes().is_empty() || !has_begun && server.bytes().len() < 5 {
            tokio::select! {
                biased;
                read = server.fill() => read.map_err(|error| Failure::of_connection(&error, has_begun))?,
                reason = assignment.end_now() => {
                    return Err(Failure::lost(reason, has_begun));
                }
            }
            continue;
        }
        if !has_begun && server.bytes().get(4) == Some(&ERR) {
            let packet =
                server.peek_packet(ERROR_BYTES_MAX).await.map_err(|error| Failure::of_connection(&error, false))?;
            if let Ok(error) = ErrPacket::decode(packet.get(4..).unwrap_or_default())
                && says_lost(&error)
            {
                let reason = String::from_utf8_lossy(error.message).into_owned();
                let code = error.code;
                server.consume(packet.len());
                return Err(Failure::Server(ServerLost { reason, has_begun: false, refusal: Some((code, packet)) }));
            }
        }
        let used = reply.feed(server.bytes());
        let bytes = server.bytes().get(..used).unwrap_or_default();
        observe(bytes, reply);
        client.send(bytes).await.map_err(Failure::Client)?;
        has_begun |= used > 0;
        server.consume(used);
        if reply.requests_file {
            tokio::select! {
                biased;
                sent = client.forward_file(server, reply.next_number) => sent.map_err(Failure::Client)?,
                reason = assignment.end_now() => return Err(Failure::lost(reason, true)),
            }
        }
    }
    Ok(())
}

/// Sends a command of the gateway's own, and returns its reply, of which all is read.
pub async fn ask(
    server: &mut PacketStream,
    packet: &[u8],
    reply: &mut ReplyTracker,
    assignment: &mut Assignment,
) -> Result<Vec<u8>, Failure> {
    let asked = async {
        server.send(packet).await?;
        server.read_reply(reply, usize::MAX).await
    };
    tokio::select! {
        biased;
        bytes = asked => match bytes {
            Ok(bytes) => Ok(bytes.unwrap_or_default()),
            Err(error) => Err(Failure::of_connection(&error, false)),
        },
        reason = assignment.end_now() => Err(Failure::lost(reason, false)),
    }
}
