//! How a session's wait for a command ends.

/// The event that ends a session's wait.
pub enum Awaited {
    Command,
    /// The server sends something before it closes the connection.
    ServerBytes,
    /// The client was idle for too long.
    Nothing,
    /// The session must leave its server.
    End(String),
}
