//! A login that has begun and needs more messages of the client.

use auth::UserName;
use auth::scram::{Mechanism, ServerConversation};

/// The unfinished SASL conversation of a connection. A connection has one at most: a new one
/// replaces it.
#[derive(Debug)]
pub struct Conversation {
    pub user: UserName,
    /// The user's identifier when the conversation began; `None` if there is no such user.
    pub user_id: Option<[u8; 16]>,
    pub mechanism: Mechanism,
    /// Whether the server's last message completes the login, without an empty one of the client.
    pub skips_empty_exchange: bool,
    /// It began in a `hello`.
    pub is_speculative: bool,
    pub step: Step,
}

/// The message that the client must send next.
#[derive(Debug)]
pub enum Step {
    /// The proof that it knows the password.
    Proof(Box<ServerConversation>),
    /// An empty message, after a proof that was right.
    Empty,
}
