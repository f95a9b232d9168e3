//! An identity: a certificate chain and the key of its first certificate.

use crate::certificate::{Facts, Usage};
use crate::error::TlsError;
use crate::file::Pem;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::path::Path;
use std::sync::Arc;

/// A certificate chain with its key, checked against each other.
#[derive(Clone, Debug)]
pub struct Identity {
    pub certified: Arc<CertifiedKey>,
    pub facts: Facts,
}

impl Identity {
    /// Loads a certificate file and a key file. `key`: `None` if the key is in the certificate
    /// file. `now`: seconds since 1970.
    pub fn load(
        certificate: &Path,
        key: Option<&Path>,
        usage: Usage,
        provider: &CryptoProvider,
        now: i64,
    ) -> Result<Identity, TlsError> {
        let pem = Pem::read(certificate, "the certificate file")?;
        pem.check_secrecy(certificate)?;
        let (chain, own_key) = (pem.certificates, (pem.keys, pem.has_encrypted_key));
        let Some(first) = chain.first() else {
            let holds = if own_key.0.is_empty() { "" } else { ", only a key" };
            return Err(TlsError::new(format!(
                "there is no certificate in {}{holds}; a PEM file with BEGIN CERTIFICATE is expected",
                certificate.display()
            )));
        };
        let place = format!("the certificate in {}", certificate.display());
        let facts = Facts::of(first, &place)?;
        facts.check_time(now, &place)?;
        facts.check_usage(usage, &place)?;
        let (key, key_path) = match key {
            None => (only_key(own_key, certificate, true)?, certificate),
            Some(path) => {
                let pem = Pem::read(path, "the key file")?;
                pem.check_secrecy(path)?;
                (only_key((pem.keys, pem.has_encrypted_key), path, false)?, path)
            }
        };
        let certified = join(chain, key, (certificate, key_path), provider)?;
        Ok(Identity { certified: Arc::new(certified), facts })
    }

    /// Returns the first certificate.
    pub fn certificate(&self) -> Option<&CertificateDer<'static>> {
        self.certified.cert.first()
    }
}

/// Returns the key of a file. Fails if it has none, several, or one that needs a passphrase.
fn only_key(
    (keys, has_encrypted): (Vec<PrivateKeyDer<'static>>, bool),
    path: &Path,
    with_certificate: bool,
) -> Result<PrivateKeyDer<'static>, TlsError> {
    let shown = path.display();
    let count = keys.len();
    match keys.into_iter().next() {
        Some(key) if count == 1 => Ok(key),
        Some(_) => Err(TlsError::new(format!("there are {count} private keys in {shown}; leave the one to use"))),
        None if has_encrypted => Err(TlsError::new(format!(
            "the private key in {shown} is encrypted; decrypt it with `openssl pkey -in {shown} -out FILE`, and protect \
             that file by its permissions"
        ))),
        None if with_certificate => Err(TlsError::new(format!(
            "there is no private key in {shown}; add it to the file, or name its file as the key"
        ))),
        None => Err(TlsError::new(format!(
            "there is no private key in {shown}; a PEM file with BEGIN PRIVATE KEY is expected"
        ))),
    }
}

fn join(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    (certificate_path, key_path): (&Path, &Path),
    provider: &CryptoProvider,
) -> Result<CertifiedKey, TlsError> {
    let (certificate_path, key_path) = (certificate_path.display(), key_path.display());
    let signing = provider.key_provider.load_private_key(key).map_err(|error| {
        TlsError::new(format!(
            "the private key in {key_path} cannot be used ({error}); RSA of 2048 bits and more, ECDSA with P-256, P-384 or \
             P-521, and Ed25519 can"
        ))
    })?;
    let certified = CertifiedKey::new(chain, signing);
    match certified.keys_match() {
        // The library does not know the public half of this kind of key.
        Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => Ok(certified),
        Err(rustls::Error::InconsistentKeys(_)) => {
            let mut others = certified.cert.iter().skip(1);
            let matches_other =
                others.any(|other| CertifiedKey::new(vec![other.clone()], certified.key.clone()).keys_match().is_ok());
            let hint = match matches_other {
                true => "it belongs to a later certificate of that file, which must be the first",
                false => "name the key that the certificate was made with",
            };
            Err(TlsError::new(format!(
                "the private key in {key_path} does not belong to the first certificate in {certificate_path}; {hint}"
            )))
        }
        Err(error) => Err(TlsError::new(format!(
            "the certificate in {certificate_path} cannot be used: {error}; make another one"
        ))),
    }
}
