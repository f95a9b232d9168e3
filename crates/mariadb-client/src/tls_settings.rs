//! TLS to MariaDB: the settings of a URL, and the configuration that is made of their files.

mod explain;
mod mode;

pub use explain::tls_failure;
pub use mode::TlsMode;

use error::{Error, Result};
use rustls::ClientConfig;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tls::ClientSettings;
use tls::file::FileState;

/// How connections to a server are protected.
#[derive(Clone, Debug, Default)]
pub struct TlsSettings {
    pub mode: TlsMode,
    files: ClientSettings,
    loaded: Arc<Mutex<Option<Loaded>>>,
}

/// A configuration, and the state of the files of which it was made.
#[derive(Debug)]
struct Loaded {
    states: Vec<FileState>,
    config: Arc<ClientConfig>,
}

impl PartialEq for TlsSettings {
    fn eq(&self, other: &Self) -> bool {
        self.mode == other.mode && self.files == other.files
    }
}

impl Eq for TlsSettings {}

impl TlsSettings {
    /// Sets a parameter of a URL. Returns false if it has another name.
    pub fn set(&mut self, name: &str, value: String) -> Result<bool> {
        let path = Some(PathBuf::from(&value)).filter(|path| !path.as_os_str().is_empty());
        match name {
            "tls" | "ssl-mode" | "sslMode" => self.mode = TlsMode::parse(name, &value)?,
            "tls-ca" | "ssl-ca" => self.files.ca = path,
            "tls-crl" | "ssl-crl" => self.files.crl = path,
            "tls-certificate" | "ssl-cert" => self.files.certificate = path,
            "tls-key" | "ssl-key" => self.files.key = path,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Checks that the settings fit together. `has_mode`: one was set; if not, a certificate of a
    /// CA means that the server is to be verified. Fails with 9.
    pub fn resolve(&mut self, has_mode: bool) -> Result<()> {
        if !has_mode && self.files.ca.is_some() {
            self.mode = TlsMode::VerifyIdentity;
        }
        let wrong = |message: &str| Err(Error::failed_to_parse(message));
        match (self.mode.verifies(), &self.files.ca) {
            (true, None) => {
                return wrong(
                    "tls=verify-ca and tls=verify-identity in the URL of MariaDB need tls-ca: the file with the \
                     certificate (PEM) that signed MariaDB's",
                );
            }
            (false, Some(_)) => {
                return wrong(
                    "tls-ca in the URL of MariaDB has no effect with this tls: write verify-ca or verify-identity, so \
                     that MariaDB's certificate is verified",
                );
            }
            _ => {}
        }
        if self.files.crl.is_some() && !self.mode.verifies() {
            return wrong("tls-crl in the URL of MariaDB has an effect only with tls=verify-ca or tls=verify-identity");
        }
        if self.files.key.is_some() && self.files.certificate.is_none() {
            return wrong("tls-key in the URL of MariaDB has an effect only with tls-certificate");
        }
        if self.files.certificate.is_some() && self.mode == TlsMode::Disabled {
            return wrong("tls-certificate in the URL of MariaDB has an effect only with TLS: add tls=verify-identity");
        }
        self.files.verify = self.mode.verification();
        Ok(())
    }

    /// Returns the configuration; `None` if TLS is disabled. A file that has changed since the last
    /// call is read again. If that fails, the configuration stays as it was.
    ///
    /// Fails with 9 and a sentence that names the file.
    pub fn config(&self) -> Result<Option<Arc<ClientConfig>>> {
        if self.mode == TlsMode::Disabled {
            return Ok(None);
        }
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let states = self.states();
        if let Some(loaded) = loaded.as_ref().filter(|loaded| loaded.states == states) {
            return Ok(Some(loaded.config.clone()));
        }
        let config = match (tls::client_config(&self.files, &tls::system_clock()), loaded.as_ref()) {
            (Ok(config), _) => config,
            (Err(error), None) => return Err(Error::failed_to_parse(format!("TLS to MariaDB: {error}"))),
            (Err(error), Some(before)) => {
                tracing::warn!("TLS to MariaDB continues with the files as they were: {error}");
                before.config.clone()
            }
        };
        *loaded = Some(Loaded { states, config: config.clone() });
        Ok(Some(config))
    }

    fn states(&self) -> Vec<FileState> {
        let ClientSettings { ca, crl, certificate, key, .. } = &self.files;
        [ca, crl, certificate, key].into_iter().flatten().map(|path| FileState::of(path)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(parameters: &[(&str, &str)]) -> Result<TlsSettings> {
        let mut settings = TlsSettings::default();
        let mut has_mode = false;
        for (name, value) in parameters {
            assert!(settings.set(name, (*value).to_owned())?);
            has_mode |= *name == "tls";
        }
        settings.resolve(has_mode)?;
        Ok(settings)
    }

    #[test]
    fn settings_fit_together() {
        assert_eq!(resolved(&[]).unwrap().mode, TlsMode::Disabled);
        assert_eq!(resolved(&[("tls-ca", "ca.pem")]).unwrap().mode, TlsMode::VerifyIdentity);
        assert_eq!(resolved(&[("tls", "verify-ca"), ("tls-ca", "x")]).unwrap().mode, TlsMode::VerifyCa);
        for (parameters, part) in [
            (&[("tls", "verify-ca")][..], "need tls-ca"),
            (&[("tls", "required"), ("tls-ca", "x")], "no effect"),
            (&[("tls", "required"), ("tls-crl", "x")], "tls-crl"),
            (&[("tls", "required"), ("tls-key", "x")], "tls-certificate"),
            (&[("tls-certificate", "x")], "only with TLS"),
            (&[("tls", "on")], "verify-identity"),
        ] {
            let message = resolved(parameters).unwrap_err().message().to_owned();
            assert!(message.contains(part), "{parameters:?}: {message}");
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        let settings = resolved(&[("tls-ca", "/no/such/ca.pem")]).unwrap();
        assert!(settings.config().unwrap_err().message().contains("/no/such/ca.pem"));
        assert!(resolved(&[("tls", "preferred")]).unwrap().config().unwrap().is_some());
        assert!(resolved(&[("tls", "disabled")]).unwrap().config().unwrap().is_none());
    }
}
