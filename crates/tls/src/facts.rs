//! Facts of an open TLS connection.

use rustls::pki_types::CertificateDer;
use rustls::{Connection, ProtocolVersion};

/// What a handshake agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFacts {
    /// "1.2" or "1.3".
    pub version: &'static str,
    /// The cipher suite's registered name, such as `TLS_AES_256_GCM_SHA384`.
    pub cipher: String,
    /// The peer's certificate and those that it sent with it, in DER. On a listener: those of the
    /// client, which were verified; empty if it has none.
    pub peer_certificates: Vec<CertificateDer<'static>>,
    /// The name under which the client reached the server (SNI).
    pub server_name: Option<String>,
}

impl TlsFacts {
    /// Returns the facts of a connection whose handshake is done.
    pub fn of(connection: &Connection) -> TlsFacts {
        let cipher = connection.negotiated_cipher_suite().and_then(|suite| suite.suite().as_str());
        TlsFacts {
            version: match connection.protocol_version() {
                Some(ProtocolVersion::TLSv1_3) => "1.3",
                _ => "1.2",
            },
            // The library marks the suites of version 1.3.
            cipher: cipher.map(|name| name.replacen("TLS13_", "TLS_", 1)).unwrap_or_default(),
            peer_certificates: connection.peer_certificates().map(<[_]>::to_vec).unwrap_or_default(),
            server_name: match connection {
                Connection::Server(server) => server.server_name().map(str::to_owned),
                Connection::Client(_) => None,
            },
        }
    }
}
