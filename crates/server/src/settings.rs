//! What the process was started with, and what `setParameter` can change.

use crate::cursor::CursorLimits;
use crate::tls::TlsListeners;
use auth::LoginMechanisms;
use document::DocBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64};
use std::time::Duration;
use values::spill::SpillSpace;

/// How the server presents itself in `hello`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// `msg: "isdbgrid"`: works behind any address translation.
    Router,
    /// `setName`, with one member at the advertised address.
    ReplicaSet {
        name: String,
        advertised: String,
    },
    Standalone,
}

/// The settings that commands report or depend on.
#[derive(Clone, Debug)]
pub struct Settings {
    pub topology: Topology,
    pub cursor_timeout: Duration,
    pub cursor_limits: CursorLimits,
    /// The most client connections.
    pub connections_max: usize,
    /// Operations that take longer are slow, in milliseconds.
    pub slow_ms: i64,
    /// Whether slow operations are logged.
    pub slow_log: bool,
    /// The command line, for `getCmdLineOpts`.
    pub argv: Vec<String>,
    /// The configuration in effect, for `getCmdLineOpts`.
    pub parsed: DocBuf,
    /// The compressors offered, in order of preference.
    pub compressors: Vec<String>,
    pub workers: usize,
    /// Whether clients must log in.
    pub access_control: bool,
    /// The ways to log in that are offered.
    pub login_mechanisms: LoginMechanisms,
    /// `None`: clients cannot use TLS.
    pub tls: Option<TlsListeners>,
    /// The MariaDB servers with a name, their monitors and services.
    pub sql_servers: Arc<service::Registry>,
    /// The service whose servers store the documents; `None`: another store does.
    pub store_service: Option<Arc<service::Service>>,
    /// The disk space for sorts and groups that exceed their memory; `None` forbids spilling.
    pub disk: Option<Arc<dyn SpillSpace>>,
    /// Whether the commands for tests exist.
    pub test_commands: bool,
}

/// A router with one worker, and without logins, TLS, compression and space for sorts.
impl Default for Settings {
    fn default() -> Settings {
        Settings {
            topology: Topology::Router,
            cursor_timeout: Duration::from_secs(600),
            cursor_limits: CursorLimits::default(),
            connections_max: 1000,
            slow_ms: 100_000,
            slow_log: false,
            argv: Vec::new(),
            parsed: DocBuf::new(),
            compressors: Vec::new(),
            workers: 1,
            access_control: false,
            login_mechanisms: LoginMechanisms::default(),
            tls: None,
            sql_servers: Arc::default(),
            store_service: None,
            disk: None,
            test_commands: false,
        }
    }
}

/// The parameters that `setParameter` can change.
#[derive(Debug)]
pub struct Parameters {
    pub cursor_timeout_ms: AtomicI64,
    /// `ttlMonitorSleepSecs`: the pause between two rounds of the TTL monitor.
    pub ttl_monitor_sleep_seconds: AtomicI64,
    /// `ttlMonitorEnabled`.
    pub ttl_monitor_enabled: AtomicBool,
}

impl Parameters {
    pub fn new(cursor_timeout_ms: i64) -> Parameters {
        Parameters {
            cursor_timeout_ms: AtomicI64::new(cursor_timeout_ms),
            ttl_monitor_sleep_seconds: AtomicI64::new(60),
            ttl_monitor_enabled: AtomicBool::new(true),
        }
    }
}
