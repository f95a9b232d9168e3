//! What a client has proved when it logged in, and the key that follows from it.
//!
//! With `mysql_native_password`, a client sends
//! `SHA1(password) XOR SHA1(scramble, SHA1(SHA1(password)))`. The server stores
//! `SHA1(SHA1(password))`. From both follows `SHA1(password)`, which is all that a login needs.
//!
//! Source: <https://mariadb.com/kb/en/authentication-plugin-mysql_native_password/>

use mariadb_wire::auth;
use sha1::{Digest, Sha1};
use zeroize::Zeroizing;

/// The length of a hash, and of a proof.
pub const HASH_BYTES: usize = 20;

/// `SHA1(SHA1(password))`, as the server stores it.
pub type StoredHash = [u8; HASH_BYTES];

/// The last proof of a login.
#[derive(Clone, Default)]
pub struct Proof {
    plugin: Vec<u8>,
    scramble: Vec<u8>,
    answer: Vec<u8>,
}

/// `SHA1(password)`, by which the gateway logs in as the client. It is not shown, and overwritten
/// when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(Zeroizing<[u8; HASH_BYTES]>);

impl Proof {
    /// `plugin`: empty for `mysql_native_password`.
    pub fn new(plugin: &[u8], scramble: &[u8], answer: &[u8]) -> Proof {
        let scramble = scramble.get(..HASH_BYTES).unwrap_or(scramble);
        Proof { plugin: plugin.to_vec(), scramble: scramble.to_vec(), answer: answer.to_vec() }
    }

    /// Records the client's answer to a request.
    pub fn answer(&mut self, answer: &[u8]) {
        self.answer = answer.to_vec();
    }

    /// Returns whether the plugin is one whose key can be found.
    pub fn is_native(&self) -> bool {
        self.plugin.is_empty() || self.plugin == auth::NATIVE.as_bytes()
    }

    /// Returns whether the account has no password.
    pub fn is_empty(&self) -> bool {
        self.answer.is_empty()
    }

    /// Returns the key, if one of these hashes is that of the password.
    pub fn key(&self, hashes: &[StoredHash]) -> Option<Key> {
        let answer: [u8; HASH_BYTES] = self.answer.as_slice().try_into().ok()?;
        hashes.iter().find_map(|stored| {
            let mixed: [u8; HASH_BYTES] =
                Sha1::new().chain_update(&self.scramble).chain_update(stored).finalize().into();
            let key = std::array::from_fn(|at| answer[at] ^ mixed[at]);
            (Sha1::digest(key).as_slice() == stored).then(|| Key(Zeroizing::new(key)))
        })
    }
}

impl Key {
    /// Returns the proof for a scramble.
    pub fn prove(&self, scramble: &[u8]) -> [u8; HASH_BYTES] {
        let stored = Sha1::digest(*self.0);
        let mixed: [u8; HASH_BYTES] = Sha1::new().chain_update(scramble).chain_update(stored).finalize().into();
        std::array::from_fn(|at| self.0[at] ^ mixed[at])
    }
}

/// Returns the hashes in the JSON of an account (`mysql.global_priv`): each `*` with 40 hexadecimal
/// digits. An account may have several ways to log in.
pub fn stored_hashes(account: &str) -> Vec<StoredHash> {
    let hash = |text: &str| {
        let digits = text.get(..2 * HASH_BYTES)?;
        let mut hash = [0; HASH_BYTES];
        for (byte, at) in hash.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(digits.get(at..at + 2)?, 16).ok()?;
        }
        Some(hash)
    };
    account.split('*').skip(1).filter_map(hash).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRAMBLE: &[u8; 20] = b"abcdefghijklmnopqrst";

    #[test]
    fn the_key_logs_in_with_any_scramble() {
        let stored = |password: &[u8]| Sha1::digest(Sha1::digest(password)).into();
        let answer = auth::native_password(b"s3cret", SCRAMBLE);
        // With a zero behind the scramble, as in a request for another plugin.
        let proof = Proof::new(auth::NATIVE.as_bytes(), b"abcdefghijklmnopqrst\0", &answer);
        assert!(proof.is_native() && !proof.is_empty());
        let key = proof.key(&[stored(b"other"), stored(b"s3cret")]).unwrap();
        let other = b"01234567890123456789";
        assert_eq!(key.prove(other).to_vec(), auth::native_password(b"s3cret", other));
        assert!(proof.key(&[stored(b"other")]).is_none() && proof.key(&[]).is_none());
        for length in 0..answer.len() {
            assert!(Proof::new(b"", SCRAMBLE, &answer[..length]).key(&[stored(b"s3cret")]).is_none());
        }
        assert!(!Proof::new(b"client_ed25519", SCRAMBLE, b"").is_native());
    }

    #[test]
    fn hashes_are_found_in_an_account() {
        let hash = auth::native_hash(b"s3cret");
        let account = format!(
            r#"{{"access":0,"plugin":"mysql_native_password","authentication_string":"{hash}","auth_or":[{{"plugin":"ed25519","authentication_string":"*short"}},{{}}]}}"#
        );
        let expected: StoredHash = Sha1::digest(Sha1::digest(b"s3cret")).into();
        assert_eq!(stored_hashes(&account), [expected]);
        for odd in ["", "*", "**", "{\"a\":\"*é000000000000000000000000000000000000000\"}"] {
            assert_eq!(stored_hashes(odd), [[0; 20]; 0], "{odd}");
        }
    }
}
