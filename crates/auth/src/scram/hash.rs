//! The functions of a mechanism: hash, HMAC, and the slow hash of passwords.

use super::Mechanism;
use hmac::{Hmac, KeyInit, Mac};
use pbkdf2::pbkdf2_hmac_array;
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// The longest hash.
const HASH_BYTES_MAX: usize = 32;

/// A hash, or the key or signature that is as long.
#[derive(Clone, Copy)]
pub(super) struct Hash {
    bytes: [u8; HASH_BYTES_MAX],
    length: usize,
}

impl Hash {
    pub fn of(bytes: &[u8]) -> Hash {
        let mut hash = Hash { bytes: [0; HASH_BYTES_MAX], length: bytes.len().min(HASH_BYTES_MAX) };
        hash.bytes.iter_mut().zip(bytes).for_each(|(own, byte)| *own = *byte);
        hash
    }

    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    pub fn xor(mut self, other: &Hash) -> Hash {
        self.bytes.iter_mut().zip(other.bytes).for_each(|(own, byte)| *own ^= byte);
        self
    }
}

pub(super) fn hash(mechanism: Mechanism, text: &[u8]) -> Hash {
    count(text.len());
    match mechanism {
        Mechanism::Sha1 => Hash::of(&Sha1::digest(text)),
        Mechanism::Sha256 => Hash::of(&Sha256::digest(text)),
    }
}

/// Returns the HMAC of the concatenated parts of a text.
pub(super) fn hmac(mechanism: Mechanism, key: &[u8], parts: &[&[u8]]) -> Hash {
    count(parts.iter().map(|part| part.len()).sum());
    match mechanism {
        Mechanism::Sha1 => hmac_of::<Hmac<Sha1>>(key, parts),
        Mechanism::Sha256 => hmac_of::<Hmac<Sha256>>(key, parts),
    }
}

/// Returns a password with its salt, hashed so often that guesses are slow.
pub(super) fn pbkdf2(mechanism: Mechanism, password: &[u8], iterations: u32, salt: &[u8]) -> Hash {
    count((iterations as usize).saturating_mul(password.len() + salt.len()));
    match mechanism {
        Mechanism::Sha1 => Hash::of(&pbkdf2_hmac_array::<Sha1, 20>(password, salt, iterations)),
        Mechanism::Sha256 => Hash::of(&pbkdf2_hmac_array::<Sha256, 32>(password, salt, iterations)),
    }
}

fn hmac_of<M: Mac + KeyInit>(key: &[u8], parts: &[&[u8]]) -> Hash {
    // A key of any length is valid for HMAC.
    let Ok(mut mac) = <M as KeyInit>::new_from_slice(key) else { return Hash::of(&[]) };
    parts.iter().for_each(|part| mac.update(part));
    Hash::of(&mac.finalize().into_bytes())
}

/// Counts the work for tests that compare it.
#[cfg(test)]
fn count(work: usize) {
    WORK.with(|counted| counted.set(counted.get() + 64 + work));
}

#[cfg(not(test))]
fn count(_work: usize) {}

#[cfg(test)]
thread_local! {
    pub(super) static WORK: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}
