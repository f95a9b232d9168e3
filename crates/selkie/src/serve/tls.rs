//! TLS of clients' connections: loading the files, and loading them again when they change.

use crate::config::Config;
use anyhow::Context;
use server::tls::{TlsListeners, log_warnings};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tls::ServerTls;
use tokio::signal::unix::{SignalKind, signal};

/// How often the files are checked for changes. A change takes effect at the second check that sees
/// it.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Loads and checks the files. Returns `None` if TLS is off.
pub fn load(config: &Config) -> anyhow::Result<Option<TlsListeners>> {
    let Some(tls) = &config.tls else { return Ok(None) };
    let certificates = ServerTls::load(tls.files.clone(), tls::system_clock());
    let certificates = certificates.map_err(|error| anyhow::anyhow!("TLS: {error}"))?;
    Ok(Some(TlsListeners { mode: tls.mode, certificates: Arc::new(certificates) }))
}

/// Loads the files again when they change, and on SIGHUP, while the process lives.
pub fn follow(tls: &TlsListeners) -> anyhow::Result<()> {
    log_warnings(&tls.certificates.current());
    let tls = tls.clone();
    let follow = move || {
        if let Err(error) = follow_files(&tls) {
            tracing::error!("changes of the TLS certificates are not followed: {error}; rotateCertificates loads them");
        }
    };
    std::thread::Builder::new().name("tls-files".to_owned()).spawn(follow).context("cannot start a thread")?;
    Ok(())
}

fn follow_files(tls: &TlsListeners) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut hangups = signal(SignalKind::hangup())?;
        loop {
            tokio::select! {
                // The outcome is in the log.
                _ = hangups.recv() => drop(tls.rotate()),
                () = tokio::time::sleep(CHECK_INTERVAL) => tls.follow_files(),
            }
        }
    })
}
