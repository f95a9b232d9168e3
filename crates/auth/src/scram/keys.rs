//! The keys that are stored for a password.

use super::Mechanism;
use super::hash::{hash, hmac, pbkdf2};
use crate::credentials::{Credentials, ScramCredentials};

impl Credentials {
    /// Returns the keys for a mechanism.
    pub fn scram(&self, mechanism: Mechanism) -> Option<&ScramCredentials> {
        match mechanism {
            Mechanism::Sha1 => self.scram_sha_1.as_ref(),
            Mechanism::Sha256 => self.scram_sha_256.as_ref(),
        }
    }
}

impl ScramCredentials {
    /// Computes the keys of a password in the mechanism's form ([`crate::password::secret`]).
    pub fn of_secret(mechanism: Mechanism, secret: &str, iterations: u32, salt: &[u8]) -> ScramCredentials {
        let salted = pbkdf2(mechanism, secret.as_bytes(), iterations, salt);
        let key = |name: &[u8]| hmac(mechanism, salted.as_bytes(), &[name]);
        ScramCredentials {
            iterations,
            salt: salt.to_vec(),
            stored_key: hash(mechanism, key(b"Client Key").as_bytes()).as_bytes().to_vec(),
            server_key: key(b"Server Key").as_bytes().to_vec(),
        }
    }

    /// Returns whether the keys are as long as those of a mechanism.
    pub(crate) fn fit(&self, mechanism: Mechanism) -> bool {
        let length = mechanism.key_bytes();
        self.stored_key.len() == length && self.server_key.len() == length
    }
}
