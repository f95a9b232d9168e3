//! The connection of a session to the server that its service chooses.

use crate::context::SqlContext;
use crate::login;
use crate::packet_stream::PacketStream;
use service::{Candidate, ConnectError, Lease};
use std::io;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

/// How long connecting to a server may take if there are others.
const TIMEOUT_WITH_OTHERS: Duration = Duration::from_secs(3);

/// A connection to a server, and the permit to log in there.
pub type BackendConnection = (Lease, OwnedSemaphorePermit, PacketStream);

/// Connects a client to a server. A client that has not logged in takes one of the server's
/// connections, which are few, so it needs a permit.
pub async fn connect(context: &SqlContext) -> Result<BackendConnection, ConnectError> {
    let patience = context.timeouts.login;
    let admit = async { timeout(patience, context.logins.clone().acquire_owned()).await.ok()?.ok() };
    context.service.connect(patience, admit, |candidate| open(candidate, context.timeouts.connect)).await
}

/// Connects to a server, and waits for its greeting. Returns the connection id with the connection.
async fn open(candidate: Candidate, limit: Duration) -> io::Result<(PacketStream, u64)> {
    let limit = if candidate.has_others { limit.min(TIMEOUT_WITH_OTHERS) } else { limit };
    let connecting = async {
        let mut stream = PacketStream::connect(&candidate.server).await?;
        let greeting = stream.peek_packet(login::PACKET_BYTES_MAX).await?;
        match login::connection_id(&greeting) {
            Some(id) => Ok((stream, id)),
            None if candidate.has_others => Err(io::Error::other("it refuses connections")),
            // The client gets the server's error.
            None => Ok((stream, 0)),
        }
    };
    timeout(limit, connecting).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
