//! Changes of the configuration while the process runs: servers, monitors, filters, services and
//! listeners with a name.

use super::caches::Caches;
use super::service_caches::ServiceCache;
use super::sql_clients::SqlClients;
use crate::config::{Config, ConfigError, Listener, Protocol, Store};
use selkie_runtime::{Listeners, Service};
use server::Server;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tls::file::FileState;
use tokio::signal::unix::{SignalKind, signal};

/// How often the file is checked for changes. A change takes effect at the second check that sees
/// it, so that a file that is being written is not read.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// How often an address is tried again that was in use, and how many times. The workers close the
/// sockets of a removed listener one after the other.
const BIND_AGAIN_AFTER: Duration = Duration::from_millis(50);
const BIND_ATTEMPTS: usize = 20;

/// How the configuration is read again.
pub struct Reloading {
    /// The file; `None`: there is nothing to reload.
    pub path: Option<PathBuf>,
    pub read: Box<dyn Fn() -> Result<Config, ConfigError> + Send>,
}

/// The parts of the running process that may change.
pub struct Running {
    /// As written, with port 0 where that was written.
    config: Config,
    caches: Arc<Caches>,
    service_caches: Arc<[ServiceCache]>,
    server: Arc<Server>,
    mongo: Arc<dyn Service>,
    listeners: Listeners,
    /// The listeners with a name, and their numbers.
    named: Vec<(Listener, usize)>,
}

/// Reloads the configuration when the file changes and on SIGHUP, while the process lives.
pub fn follow(reloading: Reloading, mut running: Running) {
    let Some(path) = reloading.path.clone() else { return };
    let follow = move || {
        if let Err(error) = follow_file(path, &reloading, &mut running) {
            tracing::error!("changes of the configuration are not followed: {error}");
        }
    };
    if let Err(error) = std::thread::Builder::new().name("reload".to_owned()).spawn(follow) {
        tracing::error!("changes of the configuration are not followed: {error}");
    }
}

fn follow_file(path: PathBuf, reloading: &Reloading, running: &mut Running) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut hangups = signal(SignalKind::hangup())?;
        let mut loaded = FileState::of(&path);
        let mut last = loaded.clone();
        loop {
            tokio::select! {
                _ = hangups.recv() => running.server.sql_servers.reopen_files(),
                () = tokio::time::sleep(CHECK_INTERVAL) => {
                    let state = FileState::of(&path);
                    let is_settled = state == last;
                    last = state;
                    if !is_settled || last == loaded {
                        continue;
                    }
                }
            }
            loaded = FileState::of(&path);
            last = loaded.clone();
            match (reloading.read)() {
                Ok(config) => running.reload(config).await,
                Err(error) => tracing::error!("the configuration stays as it is: {error}"),
            }
        }
    })
}

impl Running {
    pub fn new(
        config: Config,
        (caches, service_caches): (Arc<Caches>, Arc<[ServiceCache]>),
        server: Arc<Server>,
        mongo: Arc<dyn Service>,
        listeners: Listeners,
    ) -> Running {
        let numbered = config.listeners.iter().cloned().zip(0..);
        let named = numbered.filter(|(listener, _)| listener.name.is_some()).collect();
        Running { config, caches, service_caches, server, mongo, listeners, named }
    }

    /// Puts a configuration into effect, as far as that is possible without a restart. Listeners
    /// that have not changed stay, with their connections.
    async fn reload(&mut self, config: Config) {
        if config.stores_documents() && !self.config.stores_documents() {
            return tracing::error!(
                "the configuration stays as it is: MongoDB clients take a restart, to open the store"
            );
        }
        if let Store::Service(store) = &self.config.store
            && !config.servers.services.iter().any(|service| service.name == store.name)
        {
            let name = &store.name;
            return tracing::error!(
                "the configuration stays as it is: the service {name} stores the documents until a restart"
            );
        }
        if other_settings(&config) != other_settings(&self.config) {
            tracing::warn!("some settings have changed that take effect at the next start");
        }
        let wanted: Vec<&Listener> = config.listeners.iter().filter(|listener| listener.name.is_some()).collect();
        let (kept, removed): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.named).into_iter().partition(|(listener, _)| wanted.contains(&listener));
        self.named = kept;
        for (listener, number) in removed {
            self.listeners.remove(number);
            tracing::info!("no longer listening on {}", listener.address);
        }
        if let Err(error) = self.server.sql_servers.apply(config.servers.clone()) {
            tracing::error!("some monitors or filters cannot be started: {error}");
        }
        let added = wanted.into_iter().filter(|wanted| !self.named.iter().any(|(listener, _)| listener == *wanted));
        for listener in added.collect::<Vec<_>>() {
            match self.add(listener, &config).await {
                Ok(number) => {
                    tracing::info!("listening on {}", listener.address);
                    self.named.push((listener.clone(), number));
                }
                Err(error) => tracing::error!("{error:#}"),
            }
        }
        tracing::info!("the configuration was reloaded");
        // The store stays until a restart.
        let store = self.config.store.clone();
        self.config = Config { store, ..config };
    }

    async fn add(&self, listener: &Listener, config: &Config) -> anyhow::Result<usize> {
        let service = match listener.protocol {
            Protocol::MongoDb => self.mongo.clone(),
            Protocol::MariaDb => {
                let (caches, service_caches, server) = (&self.caches, &self.service_caches, &self.server);
                SqlClients { config, caches, definitions: None, service_caches, server }.service(listener)?
            }
        };
        let mut attempts = 1..BIND_ATTEMPTS;
        loop {
            match self.listeners.add(&listener.address, &service) {
                Err(_) if attempts.next().is_some() => tokio::time::sleep(BIND_AGAIN_AFTER).await,
                bound => return Ok(bound?),
            }
        }
    }
}

/// Returns the settings that cannot change while the process runs.
fn other_settings(config: &Config) -> String {
    let mut others = config.clone();
    others.servers = service::Settings::default();
    others.listeners.retain(|listener| listener.name.is_none());
    format!("{others:?}")
}
