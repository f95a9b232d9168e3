//! Keys for users that do not exist, or that lack a mechanism.

use super::Mechanism;
use super::hash::{Hash, hmac};
use crate::credentials::ScramCredentials;
use crate::name::UserName;

/// A secret of the process, from which the salts of users that do not exist are derived: the same
/// salt each time, as for a user that does exist.
#[derive(Clone)]
pub struct DecoySecret([u8; 32]);

impl DecoySecret {
    /// Creates the secret from 32 random bytes.
    pub fn new(random: [u8; 32]) -> DecoySecret {
        DecoySecret(random)
    }

    /// Returns keys that no password opens.
    pub(crate) fn credentials(&self, mechanism: Mechanism, user: &UserName) -> ScramCredentials {
        let derive = |purpose: &[u8]| {
            let length = (user.db.len() as u64).to_le_bytes();
            let parts = [purpose, mechanism.name().as_bytes(), &length, user.db.as_bytes(), user.user.as_bytes()];
            hmac(Mechanism::Sha256, &self.0, &parts)
        };
        let part = |hash: Hash, length: usize| hash.as_bytes().iter().take(length).copied().collect();
        ScramCredentials {
            iterations: mechanism.default_iterations(),
            salt: part(derive(b"salt"), mechanism.salt_bytes()),
            stored_key: part(derive(b"stored key"), mechanism.key_bytes()),
            server_key: part(derive(b"server key"), mechanism.key_bytes()),
        }
    }
}

/// Shows nothing of the secret.
impl std::fmt::Debug for DecoySecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DecoySecret")
    }
}
