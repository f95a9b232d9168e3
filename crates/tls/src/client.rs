//! TLS of connections to backends.

use crate::authorities;
use crate::certificate::Usage;
use crate::clock::{Clock, seconds};
use crate::error::TlsError;
use crate::identity::Identity;
use crate::versions::MinVersion;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::sign::SingleCertAndKey;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, SignatureScheme};
use std::path::PathBuf;
use std::sync::Arc;

/// How a server is verified, in the order of strictness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// Not at all: the connection is encrypted, but its other end may be any machine. MariaDB's
    /// clients: `--disable-ssl-verify-server-cert`.
    None,
    /// An authority of the CA file has signed its certificate, whatever host it is for. MySQL's
    /// clients: `VERIFY_CA`.
    Authority,
    /// Its certificate is also for the host that was asked for. MariaDB's clients:
    /// `--ssl-verify-server-cert`; MySQL's: `VERIFY_IDENTITY`.
    #[default]
    Host,
}

/// The files and rules of connections to a backend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientSettings {
    pub verify: Verify,
    /// The authorities that sign servers' certificates. Needed unless `verify` is [`Verify::None`].
    pub ca: Option<PathBuf>,
    pub crl: Option<PathBuf>,
    /// The certificate to present, if the server asks for one.
    pub certificate: Option<PathBuf>,
    /// `None`: the key is in the certificate's file.
    pub key: Option<PathBuf>,
    pub min_version: MinVersion,
}

/// Loads and checks the files, and returns the configuration of connections. It is meant to be
/// shared by all connections to one backend, whose sessions it resumes.
pub fn client_config(settings: &ClientSettings, clock: &Clock) -> Result<Arc<ClientConfig>, TlsError> {
    let now = seconds(clock)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = server_verifier(settings, &provider, now)?;
    let builder = ClientConfig::builder_with_details(provider.clone(), clock.clone())
        .with_protocol_versions(settings.min_version.versions())
        .map_err(|error| TlsError::new(format!("TLS cannot be set up: {error}")))?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let config = match (&settings.certificate, &settings.key) {
        (Some(certificate), key) => {
            let identity = Identity::load(certificate, key.as_deref(), Usage::Client, &provider, now)?;
            builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(identity.certified)))
        }
        (None, Some(key)) => {
            return Err(TlsError::new(format!(
                "the key {} needs its certificate; name the certificate's file",
                key.display()
            )));
        }
        (None, None) => builder.with_no_client_auth(),
    };
    Ok(Arc::new(config))
}

/// Returns a host as the name that its certificate must have: a DNS name or an IP address, without
/// brackets.
pub fn server_name(host: &str) -> Result<ServerName<'static>, TlsError> {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    ServerName::try_from(bare.to_owned())
        .map_err(|_| TlsError::new(format!("{host:?} is neither a DNS name nor an IP address")))
}

fn server_verifier(
    settings: &ClientSettings,
    provider: &Arc<CryptoProvider>,
    now: i64,
) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
    let Some(ca) = &settings.ca else {
        return match settings.verify {
            Verify::None => Ok(Arc::new(Encrypting(provider.clone()))),
            Verify::Authority | Verify::Host => Err(TlsError::new(
                "servers are verified by a CA file; name it (the system's is mostly /etc/ssl/certs/ca-certificates.crt), or \
                 switch the verification off",
            )),
        };
    };
    let (roots, _) = authorities::load(ca, now)?;
    let mut builder = WebPkiServerVerifier::builder_with_provider(roots, provider.clone());
    if let Some(crl) = &settings.crl {
        let lists = authorities::load_revocation_lists(crl, now)?;
        builder = builder.with_crls(lists).only_check_end_entity_revocation().enforce_revocation_expiration();
    }
    let strict = builder
        .build()
        .map_err(|error| TlsError::new(format!("the CA file {} cannot be used: {error}", ca.display())))?;
    Ok(match settings.verify {
        Verify::None => Arc::new(Encrypting(provider.clone())),
        Verify::Authority => Arc::new(AnyHost(strict)),
        Verify::Host => strict,
    })
}

/// Accepts any certificate. The server must still have the key of the one that it presents.
#[derive(Debug)]
struct Encrypting(Arc<CryptoProvider>);

impl ServerCertVerifier for Encrypting {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Verifies the chain of a certificate, but not that it is for the host.
#[derive(Debug)]
struct AnyHost(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for AnyHost {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        // The library checks the name last.
        match self.0.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
