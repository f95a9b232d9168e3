//! Whether a connection is encrypted, which its first bytes decide.

use crate::worker::SessionWorker;
use selkie_runtime::{Connection, FirstBytes};
use server::tls::{TlsListeners, TlsMode};
use std::fmt;
use std::io;

/// Why a connection does not get as far as a request. The texts are MongoDB's where it has any.
enum Refused {
    /// The client hung up, or its socket failed.
    Lost(io::Error),
    PlainText,
    Handshake(io::Error),
    TimedOut,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Lost(error) => error.fmt(f),
            Refused::PlainText => f.write_str("The server is configured to only allow SSL connections"),
            Refused::Handshake(error) => write!(f, "SSL handshake failed: {error}"),
            Refused::TimedOut => f.write_str("SSL handshake timed out"),
        }
    }
}

/// Returns the connection as it is to be used: encrypted if the client begins with TLS. Returns
/// `None` if it must be closed, which is logged.
pub(crate) async fn negotiate(
    worker: &SessionWorker,
    tls: &TlsListeners,
    connection: Connection,
) -> Option<Connection> {
    let (id, peer) = (connection.id, connection.peer);
    let negotiated = match worker.timeouts.handshake {
        Some(timeout) => tokio::time::timeout(timeout, begin(tls, connection)).await.unwrap_or(Err(Refused::TimedOut)),
        None => begin(tls, connection).await,
    };
    match negotiated {
        Ok(connection) => {
            count(worker, connection.as_ref());
            connection
        }
        Err(Refused::Lost(error)) => {
            tracing::debug!(connection = id, %error, "connection lost");
            None
        }
        Err(reason) => {
            worker.malformed_log.log_closed(id, peer, &reason);
            None
        }
    }
}

/// Returns `None` if the client hangs up without a byte.
async fn begin(tls: &TlsListeners, connection: Connection) -> Result<Option<Connection>, Refused> {
    match connection.stream.first_bytes().await.map_err(Refused::Lost)? {
        FirstBytes::Nothing => Ok(None),
        FirstBytes::Other if tls.mode == TlsMode::Require => Err(Refused::PlainText),
        FirstBytes::Other => Ok(Some(connection)),
        FirstBytes::Tls => {
            let config = tls.certificates.current().config.clone();
            connection.accept_tls(config, Vec::new()).await.map(Some).map_err(Refused::Handshake)
        }
    }
}

fn count(worker: &SessionWorker, connection: Option<&Connection>) {
    let statistics = worker.commands.statistics();
    match connection.and_then(|connection| connection.tls.as_ref()).map(|tls| tls.version) {
        Some("1.3") => statistics.tls_1_3.add(1),
        Some(_) => statistics.tls_1_2.add(1),
        None => {}
    }
}
