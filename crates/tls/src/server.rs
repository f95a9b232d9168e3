//! TLS of listeners: the settings, and the loaded files, which a reload replaces.

use crate::authorities;
use crate::certificate::{Facts, Usage};
use crate::clock::{Clock, seconds};
use crate::error::TlsError;
use crate::file::FileState;
use crate::identity::Identity;
use crate::versions::MinVersion;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::sign::SingleCertAndKey;
use rustls::{ServerConfig, ServerConnection};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

/// Whether clients present certificates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientCertificates {
    /// They are not asked for one.
    #[default]
    None,
    /// A client may present one. It must be valid then.
    Optional,
    Required,
}

/// The files and rules of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSettings {
    /// The certificate, followed by those of intermediate authorities, and possibly the key.
    pub certificate: PathBuf,
    /// `None`: the key is in the certificate's file.
    pub key: Option<PathBuf>,
    /// The authorities that sign clients' certificates.
    pub ca: Option<PathBuf>,
    pub crl: Option<PathBuf>,
    pub min_version: MinVersion,
    pub client_certificates: ClientCertificates,
}

/// The files in effect, as they were when they were loaded.
#[derive(Debug)]
pub struct Loaded {
    pub config: Arc<ServerConfig>,
    /// The server's certificate.
    pub certificate: CertificateDer<'static>,
    pub facts: Facts,
    pub has_authorities: bool,
    /// Probable misconfigurations, a sentence each.
    pub warnings: Vec<String>,
}

/// TLS of listeners. Each handshake uses the configuration in effect when it begins; a reload
/// replaces it, and open connections stay as they are.
#[derive(Debug)]
pub struct ServerTls {
    settings: ServerSettings,
    clock: Clock,
    current: RwLock<Arc<Loaded>>,
    seen: Mutex<Seen>,
}

/// The states of the files, by which changes are noticed.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    /// When they were last loaded, or could not be.
    tried: Vec<FileState>,
    /// At the last look.
    last: Vec<FileState>,
}

impl ServerSettings {
    /// Loads and checks the files.
    pub fn load(&self, clock: &Clock) -> Result<Loaded, TlsError> {
        let now = seconds(clock)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let identity = Identity::load(&self.certificate, self.key.as_deref(), Usage::Server, &provider, now)?;
        let mut warnings = Vec::new();
        if !identity.facts.has_names {
            warnings.push(format!(
                "the certificate in {} has no subjectAltName, so most clients refuse it",
                self.certificate.display()
            ));
        }
        let verifier = self.client_verifier(&provider, now, &mut warnings)?;
        let config = ServerConfig::builder_with_details(provider, clock.clone())
            .with_protocol_versions(self.min_version.versions())
            .map_err(|error| TlsError::new(format!("TLS cannot be set up: {error}")))?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(identity.certified.clone())));
        let certificate = identity.certificate().cloned();
        Ok(Loaded {
            config: Arc::new(without_resumption(config)),
            certificate: certificate.ok_or_else(|| TlsError::new("the certificate chain is empty"))?,
            facts: identity.facts,
            has_authorities: self.ca.is_some(),
            warnings,
        })
    }

    fn client_verifier(
        &self,
        provider: &Arc<CryptoProvider>,
        now: i64,
        warnings: &mut Vec<String>,
    ) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
        let authorities = match &self.ca {
            Some(path) => {
                let (roots, left_out) = authorities::load(path, now)?;
                warnings.extend(left_out);
                Some(roots)
            }
            None => None,
        };
        let lists = match &self.crl {
            Some(path) => authorities::load_revocation_lists(path, now)?,
            None => Vec::new(),
        };
        let (true, Some(roots)) = (self.client_certificates != ClientCertificates::None, authorities) else {
            return match self.client_certificates {
                ClientCertificates::None => Ok(WebPkiClientVerifier::no_client_auth()),
                _ => Err(TlsError::new("client certificates are verified by a CA file; name it")),
            };
        };
        let mut builder = WebPkiClientVerifier::builder_with_provider(roots, provider.clone());
        if !lists.is_empty() {
            // As MongoDB does: a certificate without a current list of its authority is refused.
            builder = builder.with_crls(lists).only_check_end_entity_revocation().enforce_revocation_expiration();
        }
        if self.client_certificates == ClientCertificates::Optional {
            builder = builder.allow_unauthenticated();
        }
        let of_file = |path: &Option<PathBuf>| path.as_deref().map(Path::display).map(|shown| shown.to_string());
        builder.build().map_err(|error| {
            TlsError::new(format!(
                "the CA file {} and the CRL file {} cannot be used: {error}",
                of_file(&self.ca).unwrap_or_default(),
                of_file(&self.crl).unwrap_or_else(|| "(none)".to_owned())
            ))
        })
    }

    fn files(&self) -> impl Iterator<Item = &Path> {
        let optional = [&self.key, &self.ca, &self.crl];
        std::iter::once(self.certificate.as_path()).chain(optional.into_iter().filter_map(|path| path.as_deref()))
    }

    fn states(&self) -> Vec<FileState> {
        self.files().map(FileState::of).collect()
    }
}

/// Disables resumption of sessions, as in MongoDB: each connection's certificate is verified by the
/// authorities and revocation lists in effect.
fn without_resumption(mut config: ServerConfig) -> ServerConfig {
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config
}

impl ServerTls {
    /// Loads and checks the files.
    pub fn load(settings: ServerSettings, clock: Clock) -> Result<ServerTls, TlsError> {
        let states = settings.states();
        let loaded = settings.load(&clock)?;
        let seen = Mutex::new(Seen { tried: states.clone(), last: states });
        Ok(ServerTls { settings, clock, current: RwLock::new(Arc::new(loaded)), seen })
    }

    pub fn settings(&self) -> &ServerSettings {
        &self.settings
    }

    /// Returns the files in effect.
    pub fn current(&self) -> Arc<Loaded> {
        self.current.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// Returns the state of a new connection, for its handshake.
    pub fn accept(&self) -> Result<ServerConnection, rustls::Error> {
        ServerConnection::new(self.current().config.clone())
    }

    /// Loads the files again. If they cannot be used, the earlier ones stay in effect.
    pub fn reload(&self) -> Result<Arc<Loaded>, TlsError> {
        let states = self.settings.states();
        *self.seen() = Seen { tried: states.clone(), last: states };
        let loaded = Arc::new(self.settings.load(&self.clock)?);
        *self.current.write().unwrap_or_else(|poisoned| poisoned.into_inner()) = loaded.clone();
        Ok(loaded)
    }

    /// Loads the files again if they have changed since they were last loaded, and have not changed
    /// since the last call: a certificate and its key are not written at once. Returns `None` if
    /// there is nothing to do.
    pub fn reload_if_changed(&self) -> Option<Result<Arc<Loaded>, TlsError>> {
        let states = self.settings.states();
        let is_due = {
            let mut seen = self.seen();
            let is_due = states != seen.tried && states == seen.last;
            seen.last = states;
            is_due
        };
        is_due.then(|| self.reload())
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
