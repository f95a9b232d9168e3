//! The server's request for another authentication plugin.
//!
//! Source: <https://mariadb.com/kb/en/connection/#authentication-switch-request>

use crate::{END, Malformed, Reader};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthSwitch<'a> {
    pub plugin: &'a [u8],
    /// The plugin's data, usually a scramble and a zero.
    pub data: &'a [u8],
}

impl<'a> AuthSwitch<'a> {
    pub fn decode(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(payload, "authentication switch");
        if reader.u8()? != END {
            return Err(reader.malformed());
        }
        if reader.is_empty() {
            return Ok(AuthSwitch { plugin: b"mysql_old_password", data: b"" });
        }
        Ok(AuthSwitch { plugin: reader.null_terminated()?, data: reader.rest() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check_truncations;

    #[test]
    fn the_plugin_is_read() {
        let sample = b"\xfeclient_ed25519\x000123456789abcdef0123456789abcdef";
        let switch = AuthSwitch::decode(sample).unwrap();
        assert_eq!(switch.plugin, b"client_ed25519");
        assert_eq!(switch.data.len(), 32);
        check_truncations(sample, |bytes| AuthSwitch::decode(bytes).is_ok());
    }
}
