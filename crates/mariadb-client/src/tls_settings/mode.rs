//! The modes of TLS, by the names of MySQL's and MariaDB's clients.

use error::{Error, Result};
use tls::Verify;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsMode {
    #[default]
    Disabled,
    /// TLS if the server offers it; nothing is verified.
    Preferred,
    /// TLS or no connection; nothing is verified.
    Required,
    /// The server's certificate must be signed by a trusted one.
    VerifyCa,
    /// As `VerifyCa`, and it must be for the host of the URL.
    VerifyIdentity,
}

impl TlsMode {
    /// Parses the value of the parameter `name`. Fails with 9.
    pub fn parse(name: &str, value: &str) -> Result<TlsMode> {
        match value.to_ascii_lowercase().replace('_', "-").as_str() {
            "disabled" | "disable" => Ok(TlsMode::Disabled),
            "preferred" => Ok(TlsMode::Preferred),
            "required" | "trust" => Ok(TlsMode::Required),
            "verify-ca" => Ok(TlsMode::VerifyCa),
            "verify-identity" | "verify-full" => Ok(TlsMode::VerifyIdentity),
            _ => Err(Error::failed_to_parse(format!(
                "{name}={value} in the URL of MariaDB: write disabled, preferred, required, verify-ca or verify-identity"
            ))),
        }
    }

    /// Returns how the server's certificate is verified.
    pub fn verification(self) -> Verify {
        match self {
            TlsMode::Disabled | TlsMode::Preferred | TlsMode::Required => Verify::None,
            TlsMode::VerifyCa => Verify::Authority,
            TlsMode::VerifyIdentity => Verify::Host,
        }
    }

    /// Returns whether the server's certificate is verified, so that only the server can read what
    /// it is sent.
    pub fn verifies(self) -> bool {
        self.verification() != Verify::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_several_clients_are_known() {
        for (name, mode) in [
            ("DISABLED", TlsMode::Disabled),
            ("preferred", TlsMode::Preferred),
            ("trust", TlsMode::Required),
            ("VERIFY_CA", TlsMode::VerifyCa),
            ("verify-full", TlsMode::VerifyIdentity),
        ] {
            assert_eq!(TlsMode::parse("tls", name).unwrap(), mode);
        }
        assert!(TlsMode::parse("sslMode", "true").unwrap_err().message().starts_with("sslMode=true"));
    }
}
