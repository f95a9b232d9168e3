//! SCRAM, the login by a password that is never sent.
//!
//! Sources: <https://www.rfc-editor.org/rfc/rfc5802>, <https://www.rfc-editor.org/rfc/rfc7677>
//!
//! The server's side takes the same steps for users that exist and users that do not, so that
//! neither an answer nor its time reveals whether a user exists. Channel binding is not offered.
//!
//! In reading order: [`hash`] (the functions of a mechanism), [`keys`] (those that are stored),
//! [`message`] (the client's messages), [`conversation`], [`decoy`] (keys for users that do not
//! exist).

pub mod conversation;
pub mod decoy;
mod hash;
mod keys;
mod message;
#[cfg(test)]
mod tests;

pub use conversation::{ServerConversation, SignedServerConversation};
pub use decoy::DecoySecret;
pub use message::ClientFirst;

use std::fmt;

/// A SCRAM mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mechanism {
    Sha1,
    Sha256,
}

impl Mechanism {
    /// All mechanisms, the preferred one first.
    pub const ALL: [Mechanism; 2] = [Mechanism::Sha256, Mechanism::Sha1];

    pub fn name(self) -> &'static str {
        match self {
            Mechanism::Sha1 => "SCRAM-SHA-1",
            Mechanism::Sha256 => "SCRAM-SHA-256",
        }
    }

    /// Returns the mechanism of a name; `None` if there is none.
    pub fn parse(name: &str) -> Option<Mechanism> {
        Mechanism::ALL.into_iter().find(|mechanism| mechanism.name() == name)
    }

    /// Returns the iterations for the keys of new passwords, as in MongoDB.
    pub fn default_iterations(self) -> u32 {
        match self {
            Mechanism::Sha1 => 10_000,
            Mechanism::Sha256 => 15_000,
        }
    }

    /// Returns the length of salts, as in MongoDB.
    pub fn salt_bytes(self) -> usize {
        match self {
            Mechanism::Sha1 => 16,
            Mechanism::Sha256 => 28,
        }
    }

    pub(crate) fn key_bytes(self) -> usize {
        match self {
            Mechanism::Sha1 => 20,
            Mechanism::Sha256 => 32,
        }
    }
}

/// Why a login failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The text is for the log: the client learns only that the login failed.
    Refused(&'static str),
    /// A part of a message is not valid Base64.
    InvalidBase64,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Failure::Refused(reason) => reason,
            Failure::InvalidBase64 => "invalid base64",
        })
    }
}
