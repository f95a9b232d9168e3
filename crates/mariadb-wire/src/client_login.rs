//! A client's account, as a gateway reads it: in the response to the handshake, and in
//! COM_CHANGE_USER.
//!
//! Sources: <https://mariadb.com/kb/en/connection/#handshake-response-packet>,
//! <https://mariadb.com/kb/en/com_change_user/>

use crate::{Capabilities, Malformed, Reader};

/// The bytes before the user's name, which are also the whole of a request for TLS.
pub const HEAD_BYTES: usize = 32;

const COM_CHANGE_USER: u8 = 0x11;

/// The account and the proof of its password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLogin<'a> {
    pub user: &'a [u8],
    pub auth_response: &'a [u8],
    pub database: &'a [u8],
    /// Empty: mysql_native_password.
    pub plugin: &'a [u8],
}

/// Decodes the capabilities at the front of a response to the handshake, or of a request for TLS.
pub fn capabilities(payload: &[u8]) -> Result<Capabilities, Malformed> {
    let mut head = Reader::new(payload, "login");
    let low = u64::from(head.u32()?);
    head.bytes(HEAD_BYTES - 8)?;
    let extended = u64::from(head.u32()?);
    let is_mysql = Capabilities(low).contains(Capabilities::CLIENT_MYSQL);
    Ok(Capabilities(if is_mysql { low } else { low | extended << 32 }))
}

impl<'a> ClientLogin<'a> {
    /// Decodes the response to the handshake.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Malformed> {
        let capabilities = capabilities(payload)?;
        let mut reader = Reader::new(payload, "login");
        reader.bytes(HEAD_BYTES)?;
        let user = reader.null_terminated()?;
        let auth_response = if capabilities.contains(Capabilities::PLUGIN_AUTH_LENGTH_ENCODED) {
            reader.length_encoded_bytes()?
        } else {
            short_response(&mut reader, capabilities)?
        };
        let database = match capabilities.contains(Capabilities::CONNECT_WITH_DB) {
            true => until_zero_or_end(&mut reader),
            false => b"",
        };
        Self::end(reader, capabilities, ClientLogin { user, auth_response, database, plugin: b"" })
    }

    /// Decodes a COM_CHANGE_USER of a client that has logged in with these capabilities.
    pub fn decode_change(payload: &'a [u8], capabilities: Capabilities) -> Result<Self, Malformed> {
        let mut reader = Reader::new(payload, "COM_CHANGE_USER");
        if reader.u8()? != COM_CHANGE_USER {
            return Err(reader.malformed());
        }
        let user = reader.null_terminated()?;
        let auth_response = short_response(&mut reader, capabilities)?;
        let database = until_zero_or_end(&mut reader);
        if !reader.is_empty() {
            // The collation.
            reader.u16()?;
        }
        Self::end(reader, capabilities, ClientLogin { user, auth_response, database, plugin: b"" })
    }

    /// Decodes the plugin and checks the attributes, either of which may be missing.
    fn end(mut reader: Reader<'a>, capabilities: Capabilities, login: Self) -> Result<Self, Malformed> {
        let plugin = match capabilities.contains(Capabilities::PLUGIN_AUTH) {
            true => until_zero_or_end(&mut reader),
            false => b"",
        };
        if capabilities.contains(Capabilities::CONNECT_ATTRIBUTES) && !reader.is_empty() {
            let mut attributes = Reader::new(reader.length_encoded_bytes()?, "attributes");
            while !attributes.is_empty() {
                attributes.length_encoded_bytes()?;
                attributes.length_encoded_bytes()?;
            }
        }
        Ok(ClientLogin { plugin, ..login })
    }
}

/// Returns a proof whose length is one byte, or which ends with a zero.
fn short_response<'a>(reader: &mut Reader<'a>, capabilities: Capabilities) -> Result<&'a [u8], Malformed> {
    if !capabilities.contains(Capabilities::SECURE_CONNECTION) {
        return Ok(until_zero_or_end(reader));
    }
    let length = reader.u8()?;
    reader.bytes(usize::from(length))
}

/// Returns the bytes before a zero, which is consumed too; the rest if there is no zero.
fn until_zero_or_end<'a>(reader: &mut Reader<'a>) -> &'a [u8] {
    reader.null_terminated().unwrap_or_else(|_| reader.rest())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handshake_response::HandshakeResponse;
    use crate::reader::write_length;
    use crate::testing::check_truncations;

    const ALL: Capabilities = Capabilities(
        Capabilities::PROTOCOL_41.0
            | Capabilities::SECURE_CONNECTION.0
            | Capabilities::PLUGIN_AUTH.0
            | Capabilities::PLUGIN_AUTH_LENGTH_ENCODED.0
            | Capabilities::CONNECT_ATTRIBUTES.0,
    );

    fn response(auth_response: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let response = HandshakeResponse {
            capabilities: ALL,
            packet_bytes_max: 1 << 24,
            collation: 45,
            user: "joe",
            auth_response,
            auth_plugin: "client_ed25519",
            attributes: &[("k", "v"), ("program", "p")],
        };
        response.encode(&mut bytes);
        bytes
    }

    #[test]
    fn a_login_is_read() {
        let bytes = response(b"proof");
        let login = ClientLogin::decode(&bytes).unwrap();
        assert_eq!(
            (login.user, login.auth_response, login.plugin),
            (&b"joe"[..], &b"proof"[..], &b"client_ed25519"[..])
        );
        assert_eq!(capabilities(&bytes).unwrap(), ALL);
        check_truncations(&bytes, |bytes| ClientLogin::decode(bytes).is_ok());
        let long = vec![7; 64 << 10];
        assert_eq!(ClientLogin::decode(&response(&long)).unwrap().auth_response, long);
    }

    #[test]
    fn older_forms_are_read() {
        let head = |capabilities: Capabilities| [&capabilities.low().to_le_bytes()[..], &[0; HEAD_BYTES - 4]].concat();
        let with_schema = Capabilities::SECURE_CONNECTION | Capabilities::CONNECT_WITH_DB | Capabilities::PLUGIN_AUTH;
        let bytes = [head(with_schema), b"joe\0\x03abcd\0mysql_clear_password".to_vec()].concat();
        let login = ClientLogin::decode(&bytes).unwrap();
        assert_eq!(
            (login.auth_response, login.database, login.plugin),
            (&b"abc"[..], &b"d"[..], &b"mysql_clear_password"[..])
        );
        let bytes = [head(Capabilities::PROTOCOL_41), b"joe\0".to_vec()].concat();
        assert_eq!(ClientLogin::decode(&bytes).unwrap().plugin, b"");
        let change = b"\x11joe\0\x03abcd\0\x2d\0client_ed25519\0\x04\x01k\x01v";
        let login = ClientLogin::decode_change(change, ALL).unwrap();
        assert_eq!((login.user, login.database, login.plugin), (&b"joe"[..], &b"d"[..], &b"client_ed25519"[..]));
        check_truncations(change, |bytes| ClientLogin::decode_change(bytes, ALL).is_ok());
    }

    /// Each length that a client states may be any number.
    #[test]
    fn lengths_beyond_the_packet_are_refused() {
        let base = response(b"proof");
        let plugin_and_attributes = b"proof".len() + 1;
        let at = HEAD_BYTES + b"joe\0".len();
        for length in [6 + base.len() as u64, 0xFFFF, 0xFF_FFFF, u64::from(u32::MAX), u64::MAX >> 1, u64::MAX] {
            let mut stated = Vec::new();
            write_length(length, &mut stated);
            let bytes = [&base[..at], &stated, &base[at + 1..]].concat();
            assert!(ClientLogin::decode(&bytes).is_err(), "the proof's length {length}");
            let attributes = at + plugin_and_attributes + b"client_ed25519\0".len();
            let bytes = [&base[..attributes], &stated, &base[attributes + 1..]].concat();
            assert!(ClientLogin::decode(&bytes).is_err(), "the attributes' length {length}");
            let mut inner = stated.clone();
            inner.extend_from_slice(b"k\x01v");
            let mut outer = Vec::new();
            write_length(inner.len() as u64, &mut outer);
            let bytes = [&base[..attributes], &outer, &inner].concat();
            assert!(ClientLogin::decode(&bytes).is_err(), "a key's length {length}");
        }
        for byte in [0xFB, 0xFF] {
            let mut bytes = base.clone();
            bytes[at] = byte;
            assert!(ClientLogin::decode(&bytes).is_err());
        }
        for length in 0..=255 {
            let _ = ClientLogin::decode_change(&[b"\x11joe\0", &[length][..], b"proof\0d\0"].concat(), ALL);
        }
    }
}
