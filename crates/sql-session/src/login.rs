//! The login phase. The server authenticates the client; the gateway only clears the capabilities
//! that would make the packets unreadable to it.

use crate::packet_stream::PacketStream;
use crate::reply_tracker::{ReplyKind, ReplyTracker};
use mariadb_wire::{Capabilities, ERR, OK};
use std::io;

/// The longest packet of a login.
const PACKET_BYTES_MAX: usize = 1 << 20;

/// The capabilities that both sides may negotiate: no TLS, no compression, no LOCAL INFILE, no
/// progress reports and no omitted metadata.
const ALLOWED: u32 = !(1 << 5 | 1 << 7 | 1 << 11 | 1 << 25 | 1 << 26 | 1 << 27);
/// MariaDB's extended capabilities: bulk operations and extended metadata.
const ALLOWED_EXTENDED: u32 = 1 << 2 | 1 << 3;

const LONG_PASSWORD: u32 = 1;
const PROTOCOL_41: u32 = 1 << 9;
const TLS: u32 = 1 << 11;

/// A successful login.
pub struct Login {
    /// The client's capabilities, as bytes. Results depend on them.
    pub capabilities: [u8; 8],
    pub deprecates_eof: bool,
    pub status: Option<u16>,
    /// The connection id of the session on the server.
    pub session: u64,
}

/// Forwards the login. Returns `None` if the server or the gateway refuses it.
pub async fn log_in(client: &mut PacketStream, server: &mut PacketStream) -> io::Result<Option<Login>> {
    let mut greeting = server.packet(PACKET_BYTES_MAX).await?;
    let session = mask_greeting(&mut greeting);
    client.send(&greeting).await?;
    let Some(session) = session else { return Ok(None) };
    let mut login = client.packet(PACKET_BYTES_MAX).await?;
    let Some(capabilities) = mask_login(&mut login) else {
        client
            .send(&error_packet(2, 1043, "08S01", "Selkie takes no TLS here, and no clients older than MySQL 4.1"))
            .await?;
        return Ok(None);
    };
    server.send(&login).await?;
    let deprecates_eof = capabilities[3] & (Capabilities::DEPRECATE_EOF.low() >> 24) as u8 != 0;
    let status = authenticate(client, server).await?;
    Ok(status.map(|status| Login { capabilities, deprecates_eof, status, session }))
}

/// Forwards packets both ways until the server has decided. Returns the session's status flags, or
/// `None` if it refuses.
pub async fn authenticate(client: &mut PacketStream, server: &mut PacketStream) -> io::Result<Option<Option<u16>>> {
    loop {
        tokio::select! {
            reply = server.packet(PACKET_BYTES_MAX) => {
                let reply = reply?;
                client.send(&reply).await?;
                match reply.get(4) {
                    Some(&OK) => {
                        let mut ok = ReplyTracker::new(ReplyKind::Single, true);
                        ok.feed(&reply);
                        return Ok(Some(ok.status));
                    }
                    Some(&ERR) => return Ok(None),
                    _ => {}
                }
            }
            packet = client.packet(PACKET_BYTES_MAX) => server.send(&packet?).await?,
        }
    }
}

/// Clears capabilities in the server's greeting. Returns the connection id, or `None` if the packet
/// is an error.
fn mask_greeting(packet: &mut [u8]) -> Option<u64> {
    let payload = packet.get_mut(4..)?;
    if *payload.first()? != 10 {
        return None;
    }
    let version_end = payload.iter().position(|&byte| byte == 0)?;
    // The connection id, half of the scramble, a zero; then the capabilities.
    let at = version_end + 1 + 4 + 8 + 1;
    let session = u32::from_le_bytes(*payload.get(version_end + 1..)?.first_chunk()?);
    let [low, high] = [at, at + 5].map(|at| Some(u16::from_le_bytes([*payload.get(at)?, *payload.get(at + 1)?])));
    let capabilities = (u32::from(low?) | u32::from(high?) << 16) & ALLOWED;
    let [a, b, c, d] = capabilities.to_le_bytes();
    payload.get_mut(at..at + 2)?.copy_from_slice(&[a, b]);
    payload.get_mut(at + 5..at + 7)?.copy_from_slice(&[c, d]);
    if capabilities & LONG_PASSWORD == 0 {
        mask(payload.get_mut(at + 14..at + 18)?, ALLOWED_EXTENDED);
    }
    Some(u64::from(session))
}

/// Clears capabilities in the client's login. Returns those that remain, or `None` if the client
/// requests TLS or is older than MySQL 4.1.
fn mask_login(packet: &mut [u8]) -> Option<[u8; 8]> {
    let payload = packet.get_mut(4..)?;
    let low = u32::from_le_bytes(*payload.first_chunk()?);
    if low & TLS != 0 || low & PROTOCOL_41 == 0 || payload.len() < 32 {
        return None;
    }
    mask(payload.get_mut(..4)?, ALLOWED);
    if low & LONG_PASSWORD == 0 {
        mask(payload.get_mut(28..32)?, ALLOWED_EXTENDED);
    }
    let mut capabilities = [0; 8];
    capabilities[..4].copy_from_slice(payload.get(..4)?);
    capabilities[4..].copy_from_slice(payload.get(28..32)?);
    Some(capabilities)
}

fn mask(bytes: &mut [u8], mask: u32) {
    bytes.iter_mut().zip(mask.to_le_bytes()).for_each(|(byte, mask)| *byte &= mask);
}

/// Encodes an error packet with sequence number `number`.
pub fn error_packet(number: u8, code: u16, state: &str, message: &str) -> Vec<u8> {
    let mut payload = vec![ERR];
    payload.extend_from_slice(&code.to_le_bytes());
    // Before the handshake, the packet has no SQLSTATE.
    if number > 0 {
        payload.push(b'#');
        payload.extend_from_slice(state.as_bytes());
    }
    payload.extend_from_slice(message.as_bytes());
    let mut packet = (payload.len() as u32).to_le_bytes()[..3].to_vec();
    packet.push(number);
    packet.extend_from_slice(&payload);
    packet
}
