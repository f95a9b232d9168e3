//! Certificates, keys and TLS settings, for listeners and for connections to backends.
//!
//! Everything is checked when it is loaded, so a wrong file is an error at the start and not a
//! failed handshake later. An error is one sentence that names the file and says what to do.
//!
//! In reading order: [`error`], [`clock`], [`file`](mod@file) (PEM files, and whether they have
//! changed), [`certificate`] (facts of a certificate), [`subject`], [`identity`] (a certificate
//! chain with its key), [`authorities`] (CAs and revocation lists), [`versions`], [`server`]
//! (listeners, with reload), [`client_hello`] (whether a client speaks TLS), [`client`]
//! (connections to backends), [`facts`] (of an open connection).

pub mod authorities;
pub mod certificate;
pub mod client;
pub mod client_hello;
pub mod clock;
pub mod error;
pub mod facts;
pub mod file;
pub mod identity;
pub mod server;
pub mod subject;
pub mod versions;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use client::{ClientSettings, Verify, client_config, server_name};
pub use clock::{Clock, system_clock};
pub use error::TlsError;
pub use facts::TlsFacts;
pub use server::{ClientCertificates, ServerSettings, ServerTls};
pub use versions::MinVersion;

/// The TLS library, so that users of this crate need no dependency on it.
pub use rustls;
