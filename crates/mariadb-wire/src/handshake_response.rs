//! The client's response to the handshake, and the request for TLS that may precede it.
//!
//! Source: <https://mariadb.com/kb/en/connection/#handshake-response-packet>

use crate::Capabilities;
use crate::reader::write_bytes;

#[derive(Clone, Copy, Debug)]
pub struct HandshakeResponse<'a> {
    pub capabilities: Capabilities,
    /// The largest packet that the client will send, in bytes.
    pub packet_bytes_max: u32,
    pub collation: u8,
    pub user: &'a str,
    pub auth_response: &'a [u8],
    pub auth_plugin: &'a str,
    /// Shown in `performance_schema.session_connect_attrs`.
    pub attributes: &'a [(&'a str, &'a str)],
}

impl HandshakeResponse<'_> {
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.encode_head(out);
        // A zero inside the name would shift every later field; the server refuses such a name
        // anyway.
        out.extend(self.user.bytes().take_while(|&byte| byte != 0));
        out.push(0);
        write_bytes(self.auth_response, out);
        out.extend_from_slice(self.auth_plugin.as_bytes());
        out.push(0);
        if self.capabilities.contains(Capabilities::CONNECT_ATTRIBUTES) {
            let mut attributes = Vec::new();
            for (key, value) in self.attributes {
                write_bytes(key.as_bytes(), &mut attributes);
                write_bytes(value.as_bytes(), &mut attributes);
            }
            write_bytes(&attributes, out);
        }
    }

    /// Encodes the SSLRequest packet: the head alone. TLS begins after it.
    pub fn encode_tls_request(&self, out: &mut Vec<u8>) {
        self.encode_head(out);
    }

    fn encode_head(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.capabilities.low().to_le_bytes());
        out.extend_from_slice(&self.packet_bytes_max.to_le_bytes());
        out.push(self.collation);
        out.extend_from_slice(&[0; 19]);
        out.extend_from_slice(&self.capabilities.extended().to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_the_layout_of_the_server() {
        let response = HandshakeResponse {
            capabilities: Capabilities::PROTOCOL_41 | Capabilities::CONNECT_ATTRIBUTES | Capabilities::CACHE_METADATA,
            packet_bytes_max: 1 << 24,
            collation: 46,
            user: "u\0x",
            auth_response: b"secret",
            auth_plugin: "p",
            attributes: &[("k", "v")],
        };
        let mut bytes = Vec::new();
        response.encode(&mut bytes);
        assert_eq!(&bytes[..9], &[0, 2, 16, 0, 0, 0, 0, 1, 46]);
        assert_eq!(&bytes[28..32], &[16, 0, 0, 0]);
        assert_eq!(&bytes[32..], b"u\0\x06secretp\0\x04\x01k\x01v");
        let mut head = Vec::new();
        response.encode_tls_request(&mut head);
        assert_eq!(head, bytes[..32]);
    }
}
