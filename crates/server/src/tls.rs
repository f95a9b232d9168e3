//! TLS of the listeners for MongoDB clients.

use std::sync::Arc;
use tls::ServerTls;

/// Whether clients may or must use TLS. All of them share one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsMode {
    /// Clients may use it. `Prefer` differs from `Allow` in connections to other servers only.
    Allow,
    Prefer,
    Require,
}

impl TlsMode {
    /// The mode's name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            TlsMode::Allow => "allow",
            TlsMode::Prefer => "prefer",
            TlsMode::Require => "require",
        }
    }

    /// The mode's name in MongoDB's configuration.
    pub fn mongodb_name(self) -> &'static str {
        match self {
            TlsMode::Allow => "allowTLS",
            TlsMode::Prefer => "preferTLS",
            TlsMode::Require => "requireTLS",
        }
    }
}

/// TLS of listeners: the mode, and the certificates in effect.
#[derive(Clone, Debug)]
pub struct TlsListeners {
    pub mode: TlsMode,
    pub certificates: Arc<ServerTls>,
}

impl TlsListeners {
    /// Loads the files again, at a client's or an administrator's request. Logs the outcome.
    pub fn rotate(&self) -> Result<(), tls::TlsError> {
        report(self.certificates.reload())
    }

    /// Loads the files again if they have changed. Logs the outcome.
    pub fn follow_files(&self) {
        if let Some(outcome) = self.certificates.reload_if_changed() {
            // The error is in the log.
            let _ = report(outcome);
        }
    }
}

fn report(outcome: Result<Arc<tls::server::Loaded>, tls::TlsError>) -> Result<(), tls::TlsError> {
    let loaded = outcome.inspect_err(|error| {
        tracing::error!("the TLS certificates were not replaced, and the earlier ones stay in use: {error}");
    })?;
    log_warnings(&loaded);
    tracing::info!(
        certificate = loaded.facts.subject,
        valid_until = loaded.facts.valid_until(),
        "loaded the TLS certificates"
    );
    Ok(())
}

/// Logs probable misconfigurations.
pub fn log_warnings(loaded: &tls::server::Loaded) {
    loaded.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
}
