//! The first packets of a session. The server checks who the client is; all that is done here is to take out what would keep others from
//! reading along.

use crate::answer::{Answer, Shape};
use crate::peer::Peer;
use mariadb_wire::{Capabilities, ERR, OK};
use std::io;

/// Greetings, logins and what plugins say to each other are short.
const PACKET_BYTES_MAX: usize = 1 << 20;

/// What both ends may agree on: no TLS, no compression, no files of the client's, no reports of progress and no definitions left out.
const LOW: u32 = !(1 << 5 | 1 << 7 | 1 << 11 | 1 << 25 | 1 << 26 | 1 << 27);
/// Bulk operations and types in full.
const EXTENDED: u32 = 1 << 2 | 1 << 3;

const LONG_PASSWORD: u32 = 1;
const PROTOCOL_41: u32 = 1 << 9;
const TLS: u32 = 1 << 11;

/// What a login came to.
pub struct Login {
    /// What the client said that it can, as bytes: answers depend on it.
    pub capabilities: [u8; 8],
    pub deprecates_eof: bool,
    pub status: Option<u16>,
    /// The number of the session on the server.
    pub session: u64,
}

/// Greeting, login, and what the two have to say until the server lets the client in; `None` where it does not.
pub async fn log_in(client: &mut Peer, server: &mut Peer) -> io::Result<Option<Login>> {
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

/// Passes on what both say until the server has decided: the session's flags, or `None` for a refusal.
pub async fn authenticate(client: &mut Peer, server: &mut Peer) -> io::Result<Option<Option<u16>>> {
    loop {
        tokio::select! {
            answer = server.packet(PACKET_BYTES_MAX) => {
                let answer = answer?;
                client.send(&answer).await?;
                match answer.get(4) {
                    Some(&OK) => {
                        let mut ok = Answer::new(Shape::Single, true);
                        ok.feed(&answer);
                        return Ok(Some(ok.status));
                    }
                    Some(&ERR) => return Ok(None),
                    _ => {}
                }
            }
            said = client.packet(PACKET_BYTES_MAX) => server.send(&said?).await?,
        }
    }
}

/// Takes out of a greeting what is not to be used; gives the session's number. `None` where it is
/// none, but an error.
fn mask_greeting(packet: &mut [u8]) -> Option<u64> {
    let payload = packet.get_mut(4..)?;
    if *payload.first()? != 10 {
        return None;
    }
    let version_end = payload.iter().position(|&byte| byte == 0)?;
    // Number, half of the scramble, a zero; then what the server can.
    let at = version_end + 1 + 4 + 8 + 1;
    let session = u32::from_le_bytes(*payload.get(version_end + 1..)?.first_chunk()?);
    let [low, high] = [at, at + 5].map(|at| Some(u16::from_le_bytes([*payload.get(at)?, *payload.get(at + 1)?])));
    let capabilities = (u32::from(low?) | u32::from(high?) << 16) & LOW;
    let [a, b, c, d] = capabilities.to_le_bytes();
    payload.get_mut(at..at + 2)?.copy_from_slice(&[a, b]);
    payload.get_mut(at + 5..at + 7)?.copy_from_slice(&[c, d]);
    if capabilities & LONG_PASSWORD == 0 {
        mask(payload.get_mut(at + 14..at + 18)?, EXTENDED);
    }
    Some(u64::from(session))
}

/// The same in a login; gives what is left. `None` where it asks for TLS or is of a kind not known.
fn mask_login(packet: &mut [u8]) -> Option<[u8; 8]> {
    let payload = packet.get_mut(4..)?;
    let low = u32::from_le_bytes(*payload.first_chunk()?);
    if low & TLS != 0 || low & PROTOCOL_41 == 0 || payload.len() < 32 {
        return None;
    }
    mask(payload.get_mut(..4)?, LOW);
    if low & LONG_PASSWORD == 0 {
        mask(payload.get_mut(28..32)?, EXTENDED);
    }
    let mut capabilities = [0; 8];
    capabilities[..4].copy_from_slice(payload.get(..4)?);
    capabilities[4..].copy_from_slice(payload.get(28..32)?);
    Some(capabilities)
}

fn mask(bytes: &mut [u8], mask: u32) {
    bytes.iter_mut().zip(mask.to_le_bytes()).for_each(|(byte, mask)| *byte &= mask);
}

/// A refusal in MariaDB's words: its number, five letters, a sentence.
pub fn error_packet(number: u8, code: u16, state: &str, message: &str) -> Vec<u8> {
    let mut payload = vec![ERR];
    payload.extend_from_slice(&code.to_le_bytes());
    // Before the login there is no state.
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
