//! The server's side of a SCRAM conversation.

use super::decoy::DecoySecret;
use super::hash::{Hash, hash, hmac};
use super::message::{ClientFinal, ClientFirst};
use super::{Failure, Mechanism};
use crate::credentials::ScramCredentials;
use crate::name::UserName;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use subtle::{Choice, ConstantTimeEq};

/// The bytes of the server's nonce, before its encoding.
pub const NONCE_BYTES: usize = 24;

/// A conversation after the server's first message, waiting for the client's last one.
pub struct ServerConversation {
    mechanism: Mechanism,
    first: ClientFirst,
    server_first: String,
    nonce: String,
    stored_key: Hash,
    server_key: Hash,
    /// Whether the keys are those of a user, and not a decoy.
    exists: Choice,
}

/// A conversation whose client has proved that it knows the password.
#[derive(Debug)]
pub struct SignedServerConversation {
    /// The server's last message, by which it proves that it knows the user.
    pub server_final: Vec<u8>,
}

impl ServerConversation {
    /// Answers the client's first message; returns the conversation and the server's first message.
    /// `credentials`: of the user for the mechanism, `None` if it has none or does not exist;
    /// `random`: for the nonce.
    pub fn begin(
        mechanism: Mechanism,
        first: ClientFirst,
        db: &str,
        credentials: Option<&ScramCredentials>,
        decoy: &DecoySecret,
        random: [u8; NONCE_BYTES],
    ) -> (ServerConversation, Vec<u8>) {
        // Computed for each user, so that the time does not depend on whether it exists.
        let own_decoy = decoy.credentials(mechanism, &UserName::new(&first.user, db));
        let usable = credentials.filter(|credentials| credentials.fit(mechanism));
        let exists = Choice::from(u8::from(usable.is_some()));
        let keys = usable.unwrap_or(&own_decoy);
        let nonce = format!("{}{}", first.nonce, STANDARD.encode(random));
        let server_first = format!("r={nonce},s={},i={}", STANDARD.encode(&keys.salt), keys.iterations);
        let message = server_first.clone().into_bytes();
        let (stored_key, server_key) = (Hash::of(&keys.stored_key), Hash::of(&keys.server_key));
        (ServerConversation { mechanism, first, server_first, nonce, stored_key, server_key, exists }, message)
    }

    /// Checks the client's last message. Succeeds if the client knows the password.
    pub fn finish(self, payload: &[u8]) -> Result<SignedServerConversation, Failure> {
        let last = ClientFinal::parse(payload, &self.first.header, &self.nonce)?;
        let signed = [&self.first.bare, ",", &self.server_first, ",", last.without_proof].map(str::as_bytes);
        let signature = hmac(self.mechanism, self.stored_key.as_bytes(), &signed);
        let client_key = Hash::of(&last.proof).xor(&signature);
        let actual = hash(self.mechanism, client_key.as_bytes());
        let is_right = actual.as_bytes().ct_eq(self.stored_key.as_bytes()) & self.exists;
        let server_signature = hmac(self.mechanism, self.server_key.as_bytes(), &signed);
        match bool::from(is_right) && last.proof.len() == self.mechanism.key_bytes() {
            true => {
                let server_final = format!("v={}", STANDARD.encode(server_signature.as_bytes())).into_bytes();
                Ok(SignedServerConversation { server_final })
            }
            false => Err(Failure::Refused("the password is wrong, or there is no such user")),
        }
    }

    /// Sets the server's first message to that of a test vector.
    #[cfg(test)]
    pub(super) fn replace_server_first(&mut self, message: &str) {
        let nonce = message.split(',').find_map(|part| part.strip_prefix("r="));
        (self.server_first, self.nonce) = (message.to_owned(), nonce.unwrap_or_default().to_owned());
    }

    /// Returns the name of the user.
    pub fn user(&self) -> &str {
        &self.first.user
    }

    pub fn mechanism(&self) -> Mechanism {
        self.mechanism
    }
}

/// Shows no keys.
impl std::fmt::Debug for ServerConversation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerConversation").field("mechanism", &self.mechanism).finish_non_exhaustive()
    }
}
