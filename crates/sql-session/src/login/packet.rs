//! Packets of the login, as bytes: header and payload.

use mariadb_wire::client_login::HEAD_BYTES;
use mariadb_wire::{Capabilities, ERR};

/// The longest packet of a login.
pub const PACKET_BYTES_MAX: usize = 1 << 20;

/// The capabilities that both sides may negotiate: no TLS and no compression (which each side has
/// for itself), no obsolete forms of progress reports and no omitted metadata.
pub const ALLOWED: u32 = !(1 << 5 | 1 << 11 | 1 << 25 | 1 << 26 | 1 << 27);
/// MariaDB's extended capabilities: progress reports, bulk operations and extended metadata.
pub const ALLOWED_EXTENDED: u32 = 1 | 1 << 2 | 1 << 3;

pub const LONG_PASSWORD: u32 = 1;
const PROTOCOL_41: u32 = 1 << 9;
/// Whether bytes of TLS follow the packet or precede it.
pub const TLS: u32 = Capabilities::TLS.0 as u32;
/// Offered to every client, and used with no server.
pub const COMPRESS: u32 = Capabilities::COMPRESS.0 as u32;

/// Returns the sequence number of a packet.
pub fn number(packet: &[u8]) -> u8 {
    packet.get(3).copied().unwrap_or_default()
}

pub fn set_number(packet: &mut [u8], number: u8) {
    if let Some(byte) = packet.get_mut(3) {
        *byte = number;
    }
}

/// Clears capabilities in the client's login, and sets that of TLS if the server's side has it.
/// Returns those that both sides know, or `None` if the client is older than MySQL 4.1.
pub fn mask_login(packet: &mut [u8], server_has_tls: bool) -> Option<[u8; 8]> {
    let payload = packet.get_mut(4..)?;
    let low = u32::from_le_bytes(*payload.first_chunk()?);
    if low & PROTOCOL_41 == 0 || payload.len() < HEAD_BYTES {
        return None;
    }
    mask(payload.get_mut(..4)?, ALLOWED);
    if low & LONG_PASSWORD == 0 {
        mask(payload.get_mut(28..32)?, ALLOWED_EXTENDED);
    }
    let mut capabilities = [0; 8];
    capabilities[..4].copy_from_slice(payload.get(..4)?);
    capabilities[4..].copy_from_slice(payload.get(28..32)?);
    if server_has_tls {
        payload.iter_mut().zip(TLS.to_le_bytes()).for_each(|(byte, bits)| *byte |= bits);
    }
    Some(capabilities)
}

/// Encodes the request for TLS that precedes a login, with the login's capabilities: the server
/// takes them from here.
pub fn tls_request(login: &[u8]) -> Vec<u8> {
    let mut packet = vec![HEAD_BYTES as u8, 0, 0, 1];
    packet.extend_from_slice(login.get(4..4 + HEAD_BYTES).unwrap_or_default());
    packet
}

pub fn mask(bytes: &mut [u8], mask: u32) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_of_a_login_are_masked() {
        let mut login = vec![36, 0, 0, 2];
        login.extend_from_slice(&u32::MAX.to_le_bytes());
        login.extend_from_slice(&[0xFF; HEAD_BYTES]);
        let known = mask_login(&mut login.clone(), false).unwrap();
        assert_eq!(u32::from_le_bytes(*known.first_chunk().unwrap()), ALLOWED);
        assert_eq!(mask_login(&mut login, true).unwrap(), known);
        assert_eq!(u32::from_le_bytes(*login[4..].first_chunk().unwrap()), ALLOWED | TLS);
        let request = tls_request(&login);
        assert_eq!((&request[..4], &request[4..]), (&[32, 0, 0, 1][..], &login[4..36]));
        for length in 0..4 + HEAD_BYTES {
            assert!(mask_login(&mut login[..length].to_vec(), true).is_none());
        }
        login[5] &= !(PROTOCOL_41 >> 8) as u8;
        assert!(mask_login(&mut login, false).is_none(), "before MySQL 4.1");
    }
}
