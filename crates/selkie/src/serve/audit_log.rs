//! Opens the audit log.

use crate::config::Config;
use anyhow::Context;
use audit::event::kind;
use audit::{AuditLog, Destination, Endpoint, Options};
use document::doc;
use selkie_runtime::ListenAddress;
use server::Server;

/// Begins to record events, if the configuration asks for it.
pub fn start(config: &Config, server: &Server) -> anyhow::Result<()> {
    let Some(settings) = &config.audit else { return Ok(()) };
    let process: [u8; 8] = rand::random();
    let mut own = [0; 16];
    own[..8].copy_from_slice(&process);
    let options = Options {
        key: settings.key.clone(),
        filter: settings.filter.clone(),
        authorization_success: settings.authorization_success,
        on_failure: settings.on_failure,
        sync: settings.sync,
        ..Options::new(settings.destination.clone(), own, server::clock::now_ms)
    };
    let log = AuditLog::open(options).with_context(|| match &settings.destination {
        Destination::File(path) => format!("the audit log {} cannot be opened", path.display()),
        Destination::Syslog => "the system's log cannot be reached at /dev/log".to_owned(),
    })?;
    let options = &server.settings.parsed;
    log.record_own(kind::STARTUP, doc! { "startupOptions": options });
    server.audit.start(log, config.listeners.iter().map(|listener| endpoint(&listener.address)).collect(), process);
    Ok(())
}

/// Records the end of the process, and writes the queued events.
pub fn close(server: &Server) {
    if let Some(log) = server.audit.log() {
        log.record_own(kind::SHUTDOWN, document::DocBuf::new());
        log.close();
    }
}

/// Begins a new file at each signal USR1, on a thread of its own.
pub fn rotate_on_signal(server: &std::sync::Arc<Server>) -> anyhow::Result<()> {
    let server = server.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let rotate = async move {
        let Ok(mut signals) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::user_defined1()) else {
            return tracing::warn!("the signal USR1 cannot be received: it does not rotate the audit log");
        };
        while signals.recv().await.is_some() {
            let Some(log) = server.audit.log() else { continue };
            match log.rotate().await {
                Ok(Ok(())) => tracing::info!("the audit log has a new file"),
                Ok(Err(reason)) => tracing::warn!(reason, "the audit log was not rotated"),
                Err(_) => return,
            }
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(rotate))?;
    Ok(())
}

fn endpoint(address: &ListenAddress) -> Endpoint {
    match address {
        ListenAddress::Tcp(address) => Endpoint::Ip(*address),
        ListenAddress::Unix(path) => Endpoint::Unix(path.to_string_lossy().into_owned()),
    }
}

/// Returns the settings in the form of `getCmdLineOpts`, as MongoDB names them.
pub fn parsed(config: &Config) -> Option<document::DocBuf> {
    Some(match &config.audit.as_ref()?.destination {
        Destination::Syslog => doc! { "destination": "syslog" },
        Destination::File(path) => {
            doc! { "destination": "file", "format": "JSON", "path": path.to_string_lossy().as_ref() }
        }
    })
}
