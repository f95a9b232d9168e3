//! Certificates for started servers, made for one run.

use anyhow::Result;
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The files of an authority's certificate, and of a server's certificate and key.
#[derive(Clone, Debug)]
pub struct Certificates {
    pub ca: PathBuf,
    server: String,
}

impl Certificates {
    /// Creates the files in `folder`. The server's certificate is for the addresses of this
    /// machine.
    pub fn create(folder: &Path) -> Result<Certificates> {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority_key = KeyPair::generate()?;
        let ca = write(folder, "ca.pem", &authority.self_signed(&authority_key)?.pem())?;
        let mut server = CertificateParams::new(["localhost".to_owned(), "127.0.0.1".to_owned()])?;
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let certificate = server.signed_by(&key, &Issuer::new(authority, authority_key))?;
        let server = write(folder, "server.pem", &format!("{}{}", certificate.pem(), key.serialize_pem()))?;
        Ok(Certificates { ca, server: server.display().to_string() })
    }

    /// Returns the options of Selkie that offer TLS beside plain connections.
    pub fn selkie_options(&self) -> [&str; 4] {
        ["--tls", "allow", "--tls-certificate", &self.server]
    }

    /// Returns the same options of mongod.
    pub fn mongod_options(&self) -> [&str; 4] {
        ["--tlsMode", "allowTLS", "--tlsCertificateKeyFile", &self.server]
    }
}

/// Writes a file that only its owner can read.
fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf> {
    let path = folder.join(name);
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?.write_all(text.as_bytes())?;
    Ok(path)
}
