//! The server's first packet.
//!
//! Source: <https://mariadb.com/kb/en/connection/#initial-handshake-packet>

use crate::{Capabilities, Malformed, Reader};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handshake<'a> {
    /// As sent; MariaDB 10 prefixes its own version with `5.5.5-`.
    pub server_version: &'a [u8],
    pub connection_id: u32,
    pub scramble: [u8; 20],
    pub capabilities: Capabilities,
    pub collation: u8,
    pub status: u16,
    pub auth_plugin: &'a [u8],
}

impl<'a> Handshake<'a> {
    pub fn decode(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(payload, "handshake");
        if reader.u8()? != 10 {
            return Err(Malformed("handshake (protocol version 10 expected)"));
        }
        let server_version = reader.null_terminated()?;
        let connection_id = reader.u32()?;
        let mut scramble = [0; 20];
        scramble[..8].copy_from_slice(reader.bytes(8)?);
        reader.u8()?;
        let low = reader.u16()?;
        let collation = reader.u8()?;
        let status = reader.u16()?;
        let high = reader.u16()?;
        let mut capabilities = Capabilities(u64::from(low) | u64::from(high) << 16);
        let scramble_length = reader.u8()?;
        reader.bytes(6)?;
        let extended = reader.u32()?;
        if !capabilities.contains(Capabilities::CLIENT_MYSQL) {
            capabilities = capabilities | Capabilities(u64::from(extended) << 32);
        }
        // The second half is padded to 13 bytes, the last of them a zero.
        let second = reader.bytes(usize::from(scramble_length).saturating_sub(8).max(13))?;
        scramble[8..].copy_from_slice(second.get(..12).ok_or(Malformed("handshake"))?);
        let auth_plugin = if capabilities.contains(Capabilities::PLUGIN_AUTH) {
            until_zero(reader.rest())
        } else {
            b"mysql_native_password"
        };
        Ok(Handshake { server_version, connection_id, scramble, capabilities, collation, status, auth_plugin })
    }

    /// Returns `10.11.19` for MariaDB; `None` for another server.
    pub fn mariadb_version(&self) -> Option<(u16, u16, u16)> {
        let text = std::str::from_utf8(self.server_version).ok()?;
        if !text.contains("MariaDB") {
            return None;
        }
        let text = text.strip_prefix("5.5.5-").unwrap_or(text);
        let mut numbers = text.split(['.', '-']).map(|part| part.parse::<u16>().ok());
        Some((numbers.next()??, numbers.next()??, numbers.next()??))
    }
}

fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check_truncations;

    /// From a MariaDB 10.11.19 server.
    pub const SAMPLE: &[u8] =
        b"\x0a5.5.5-10.11.19-MariaDB\x00\x21\x00\x00\x00abcdefgh\x00\xfe\xf7\x2d\x02\x00\xff\x81\x15\
        \x00\x00\x00\x00\x00\x00\x1d\x00\x00\x00ijklmnopqrst\x00mysql_native_password\x00";

    #[test]
    fn a_handshake_is_read() {
        let handshake = Handshake::decode(SAMPLE).unwrap();
        assert_eq!(handshake.mariadb_version(), Some((10, 11, 19)));
        assert_eq!(handshake.connection_id, 0x21);
        assert_eq!(&handshake.scramble, b"abcdefghijklmnopqrst");
        assert_eq!(handshake.auth_plugin, b"mysql_native_password");
        assert!(handshake.capabilities.contains(Capabilities::STMT_BULK_OPERATIONS | Capabilities::CACHE_METADATA));
        check_truncations(SAMPLE, |bytes| Handshake::decode(bytes).is_ok());
    }

    #[test]
    fn another_server_is_recognized() {
        let mut handshake = Handshake::decode(SAMPLE).unwrap();
        handshake.server_version = b"8.0.36";
        assert_eq!(handshake.mariadb_version(), None);
        handshake.server_version = b"11.4.2-MariaDB-log";
        assert_eq!(handshake.mariadb_version(), Some((11, 4, 2)));
    }
}
