//! TLS of clients' connections.

use super::setting::{ConfigError, Setting};
use server::tls::TlsMode;
use std::path::PathBuf;
use tls::{ClientCertificates, MinVersion, ServerSettings};

/// Settings of one source; `None`: not set there.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// `Some(None)`: off.
    pub mode: Option<Setting<Option<TlsMode>>>,
    pub certificate: Option<Setting<PathBuf>>,
    pub key: Option<Setting<PathBuf>>,
    pub ca: Option<Setting<PathBuf>>,
    pub crl: Option<Setting<PathBuf>>,
    pub min_version: Option<Setting<MinVersion>>,
    pub client_certificates: Option<Setting<ClientCertificates>>,
}

/// TLS in effect. The files are not loaded yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    pub mode: TlsMode,
    pub files: ServerSettings,
}

impl Written {
    /// Merges two sources: these settings take precedence over `beneath`.
    pub fn over(self, beneath: Written) -> Written {
        Written {
            mode: self.mode.or(beneath.mode),
            certificate: self.certificate.or(beneath.certificate),
            key: self.key.or(beneath.key),
            ca: self.ca.or(beneath.ca),
            crl: self.crl.or(beneath.crl),
            min_version: self.min_version.or(beneath.min_version),
            client_certificates: self.client_certificates.or(beneath.client_certificates),
        }
    }

    /// Checks the settings against each other. Returns `None` if TLS is off.
    pub fn resolve(self) -> Result<Option<Tls>, ConfigError> {
        let Some((mode, written_mode)) = self.mode.as_ref().and_then(|mode| Some((mode.value?, mode))) else {
            return self.check_unused().map(|()| None);
        };
        let Some(certificate) = self.certificate else {
            return Err(written_mode.refuse(
                "TLS needs a certificate; name its file with --tls-certificate (certificate in [tls]), and that of its key, if \
                 it has one of its own, with --tls-key (key in [tls])",
            ));
        };
        let by_default = if self.ca.is_some() { ClientCertificates::Required } else { ClientCertificates::None };
        let client_certificates = self.client_certificates.as_ref().map_or(by_default, |setting| setting.value);
        match (&self.client_certificates, &self.ca) {
            (Some(setting), None) if client_certificates != ClientCertificates::None => {
                return Err(setting.refuse(
                    "clients' certificates are verified by the authorities that sign them; name their file with --tls-ca (ca \
                     in [tls])",
                ));
            }
            (_, Some(ca)) if client_certificates == ClientCertificates::None => {
                return Err(ca.refuse(
                    "the authorities verify clients' certificates, and clients are not asked for one; set \
                     --tls-client-certificates (client-certificates in [tls]) to optional or required, or leave out --tls-ca",
                ));
            }
            _ => {}
        }
        if let (Some(crl), None) = (&self.crl, &self.ca) {
            return Err(crl.refuse(
                "a list of revoked certificates concerns those of clients, which are verified by authorities; name their \
                 file with --tls-ca (ca in [tls]), or leave out --tls-crl",
            ));
        }
        let value = |setting: Option<Setting<PathBuf>>| setting.map(|setting| setting.value);
        Ok(Some(Tls {
            mode,
            files: ServerSettings {
                certificate: certificate.value,
                key: value(self.key),
                ca: value(self.ca),
                crl: value(self.crl),
                min_version: self.min_version.map(|setting| setting.value).unwrap_or_default(),
                client_certificates,
            },
        }))
    }

    /// Fails if a setting has no effect, because TLS is off.
    fn check_unused(&self) -> Result<(), ConfigError> {
        let paths = [(&self.certificate, "certificate"), (&self.key, "key"), (&self.ca, "ca"), (&self.crl, "crl")];
        let paths = paths.into_iter().filter_map(|(setting, name)| Some((setting.as_ref()?.origin.clone(), name)));
        let version = self.min_version.as_ref().map(|setting| (setting.origin.clone(), "min-version"));
        let clients = self.client_certificates.as_ref().map(|setting| (setting.origin.clone(), "client-certificates"));
        match paths.chain(version).chain(clients).next() {
            None => Ok(()),
            Some((origin, name)) => Err(ConfigError {
                origin: Some(origin),
                message: format!(
                    "{name} has no effect while TLS is off; set --tls (mode in [tls]) to allow, prefer or require, or leave it out"
                ),
            }),
        }
    }
}
