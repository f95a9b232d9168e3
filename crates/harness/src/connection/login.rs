//! The client's messages of a login by SCRAM-SHA-256. Sources: RFC 5802, RFC 7677.

use crate::address::Login;
use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// The client's part of the nonce. It need not be secret: only servers under test see it.
const NONCE: &str = "selkie-bench-selkie-bench";

/// Returns the client's first message.
pub fn first_message(login: &Login) -> String {
    format!("n,,{}", bare_message(login))
}

fn bare_message(login: &Login) -> String {
    format!("n={},r={NONCE}", login.user)
}

/// Returns the client's last message, which proves that it knows the password.
pub fn last_message(login: &Login, server_first: &str) -> Result<String> {
    let part = |name: &str| {
        let found = server_first.split(',').find_map(|part| part.strip_prefix(name));
        found.with_context(|| format!("no {name} in {server_first}"))
    };
    let (salt, iterations) = (BASE64.decode(part("s=")?)?, part("i=")?.parse()?);
    let mut salted = [0; 32];
    pbkdf2::pbkdf2_hmac::<Sha256>(login.password.as_bytes(), &salt, iterations, &mut salted);
    let client_key = hmac(&salted, b"Client Key")?;
    let without_proof = format!("c=biws,r={}", part("r=")?);
    let exchanged = format!("{},{server_first},{without_proof}", bare_message(login));
    let signature = hmac(&Sha256::digest(client_key), exchanged.as_bytes())?;
    let proof: Vec<u8> = client_key.iter().zip(signature).map(|(key, signature)| key ^ signature).collect();
    Ok(format!("{without_proof},p={}", BASE64.encode(proof)))
}

fn hmac(key: &[u8], message: &[u8]) -> Result<[u8; 32]> {
    Ok(Hmac::<Sha256>::new_from_slice(key)?.chain_update(message).finalize().into_bytes().into())
}
