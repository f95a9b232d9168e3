//! The two transports of a connection: the client/server protocol, and a library in this process.

#[cfg(feature = "embedded")]
pub mod embedded;
pub mod protocol;
#[cfg(feature = "embedded")]
mod runner;
mod statements;
pub mod stream;

/// How commands reach MariaDB and rows come back.
pub enum Transport {
    Protocol(protocol::Protocol),
    #[cfg(feature = "embedded")]
    Embedded(embedded::Embedded),
}

/// Evaluates the same expression with whichever transport the connection has.
macro_rules! by_transport {
    ($connection:expr, $transport:ident => $act:expr) => {
        match $connection {
            Transport::Protocol($transport) => $act,
            #[cfg(feature = "embedded")]
            Transport::Embedded($transport) => $act,
        }
    };
}
pub(crate) use by_transport;
