//! Proofs of a password, by authentication plugin.
//!
//! Sources: <https://mariadb.com/kb/en/authentication-plugin-mysql_native_password/>,
//! <https://mariadb.com/kb/en/authentication-plugin-ed25519/>,
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_caching_sha2_authentication_exchanges.html>

use curve25519_dalek::Scalar;
use curve25519_dalek::constants::ED25519_BASEPOINT_TABLE;
use curve25519_dalek::scalar::clamp_integer;
use sha1::{Digest, Sha1};
use sha2::{Sha256, Sha512};

pub const NATIVE: &str = "mysql_native_password";
pub const ED25519: &str = "client_ed25519";
pub const CACHING_SHA2: &str = "caching_sha2_password";
/// The password itself, followed by a zero.
pub const CLEAR: &str = "mysql_clear_password";
/// The proof of servers before 4.1, from which the password can be computed.
pub const OLD: &str = "mysql_old_password";
/// The operating system authenticates the user of a Unix socket; nothing is sent.
pub const UNIX_SOCKET: &str = "auth_socket";

/// `SHA1(password) XOR SHA1(scramble, SHA1(SHA1(password)))`; empty for an empty password.
pub fn native_password(password: &[u8], scramble: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = Sha1::digest(password);
    let twice = Sha1::digest(once);
    let mixed = Sha1::new().chain_update(scramble).chain_update(twice).finalize();
    once.iter().zip(mixed.iter()).map(|(a, b)| a ^ b).collect()
}

/// `SHA256(password) XOR SHA256(SHA256(SHA256(password)), scramble)`; empty for an empty password.
pub fn caching_sha2(password: &[u8], scramble: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = Sha256::digest(password);
    let twice = Sha256::digest(once);
    let mixed = Sha256::new().chain_update(twice).chain_update(scramble).finalize();
    once.iter().zip(mixed.iter()).map(|(a, b)| a ^ b).collect()
}

/// An Ed25519 signature of the scramble with the key derived from the password.
pub fn ed25519(password: &[u8], scramble: &[u8]) -> [u8; 64] {
    let expanded = Sha512::digest(password);
    let (mut low, mut high) = ([0; 32], [0; 32]);
    low.copy_from_slice(&expanded[..32]);
    high.copy_from_slice(&expanded[32..]);
    let secret = Scalar::from_bytes_mod_order(clamp_integer(low));
    let public = (&secret * ED25519_BASEPOINT_TABLE).compress();

    let nonce = wide_scalar(Sha512::new().chain_update(high).chain_update(scramble).finalize().as_slice());
    let point = (&nonce * ED25519_BASEPOINT_TABLE).compress();
    let challenge = wide_scalar(
        Sha512::new()
            .chain_update(point.as_bytes())
            .chain_update(public.as_bytes())
            .chain_update(scramble)
            .finalize()
            .as_slice(),
    );

    let mut signature = [0; 64];
    signature[..32].copy_from_slice(point.as_bytes());
    signature[32..].copy_from_slice((nonce + challenge * secret).as_bytes());
    signature
}

/// Returns what the server stores of a password for mysql_native_password.
pub fn native_hash(password: &[u8]) -> String {
    let twice = Sha1::digest(Sha1::digest(password));
    twice.iter().fold("*".to_owned(), |hash, byte| format!("{hash}{byte:02X}"))
}

/// Returns what the server stores of a password for ed25519: the public key in base64, without its
/// padding.
pub fn ed25519_hash(password: &[u8]) -> String {
    let expanded = Sha512::digest(password);
    let mut low = [0; 32];
    low.copy_from_slice(&expanded[..32]);
    let secret = Scalar::from_bytes_mod_order(clamp_integer(low));
    base64((&secret * ED25519_BASEPOINT_TABLE).compress().as_bytes())
}

/// Encodes bytes in base64, without padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0_u32, |group, byte| group << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for digit in 0..=chunk.len() {
            text.push(char::from(DIGITS[(group >> (18 - 6 * digit) & 63) as usize]));
        }
    }
    text
}

fn wide_scalar(hash: &[u8]) -> Scalar {
    let mut wide = [0; 64];
    wide.copy_from_slice(hash);
    Scalar::from_bytes_mod_order_wide(&wide)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_native_proof_opens_to_the_stored_hash() {
        let scramble = b"abcdefghijklmnopqrst";
        assert!(native_password(b"", scramble).is_empty());
        let proof = native_password(b"secret", scramble);
        // As the server does: XOR with SHA1(scramble, stored), hash, compare with the stored hash.
        let stored = Sha1::digest(Sha1::digest(b"secret"));
        let mixed = Sha1::new().chain_update(scramble).chain_update(stored).finalize();
        let once: Vec<u8> = proof.iter().zip(mixed.iter()).map(|(a, b)| a ^ b).collect();
        assert_eq!(Sha1::digest(once), stored);
    }

    #[test]
    fn the_sha2_proof_opens_to_the_cached_hash() {
        let scramble = b"abcdefghijklmnopqrst";
        assert!(caching_sha2(b"", scramble).is_empty());
        // As the server does, which caches the hash of the hash.
        let cached = Sha256::digest(Sha256::digest(b"secret"));
        let mixed = Sha256::new().chain_update(cached).chain_update(scramble).finalize();
        let once: Vec<u8> = caching_sha2(b"secret", scramble).iter().zip(mixed.iter()).map(|(a, b)| a ^ b).collect();
        assert_eq!(Sha256::digest(once), cached);
    }

    /// The first test vector of RFC 8032, section 7.1; a password of 32 bytes is an ordinary
    /// Ed25519 seed.
    #[test]
    fn the_signature_is_ed25519() {
        let seed = hex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60");
        let expected = hex(concat!(
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555",
            "fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
        ));
        assert_eq!(ed25519(&seed, b"").to_vec(), expected);
    }

    /// What MariaDB 10.11 stores for `IDENTIFIED VIA ed25519 USING PASSWORD('secret')`, by its
    /// documentation, and for `IDENTIFIED BY 'pw'`.
    #[test]
    fn hashes_are_those_that_the_server_stores() {
        assert_eq!(ed25519_hash(b"secret"), "ZIgUREUg5PVgQ6LskhXmO+eZLS0nC8be6HPjYWR4YJY");
        assert_eq!(native_hash(b"pw"), "*D821809F681A40A6E379B50D0463EFAE20BDD122");
        assert_eq!([base64(b""), base64(b"f"), base64(b"fo"), base64(b"foo")], ["", "Zg", "Zm8", "Zm9v"]);
    }

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
    }
}
