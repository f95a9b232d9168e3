//! `selkie serve`: assembles the program, from the listeners to the store.

mod audit_log;
mod caches;
mod definitions;
mod external_writes;
mod read_servers;
mod reload;
mod sentence;
mod server_settings;
mod service_caches;
mod sql_clients;
mod stores;
mod summary;
mod tls;

pub use reload::Reloading;
pub use summary::Summary;
pub use tls::load as load_tls;

use crate::config::{Config, Listener, Protocol};
use anyhow::Context;
use caches::Caches;
use mongo_session::{MongoService, Timeouts};
use selkie_runtime::process::Listening;
use selkie_runtime::{ListenAddress, Options, RateLimit, Service};
use server::Server;
use server::access_control::user_changes::UserChangeObserver;
use service::Registry;
use sql_clients::SqlClients;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::ChangeObserver;

/// The interval at which workers close idle cursors and release large buffers.
const TICK: Duration = Duration::from_secs(5);

/// `reloading`: how the configuration is read again.
pub fn serve(config: Config, reloading: Reloading) -> anyhow::Result<()> {
    crate::logging::start(&config.log);
    let as_written = config.clone();
    raise_open_files_limit();
    let config = with_room_for_files(config);
    steps::memory::set_limits(config.limits.memory);
    crate::memory::reserve();

    let tls = tls::load(&config)?;
    let listening = Listening::bind(Options {
        listen: config.listeners.iter().map(|listener| listener.address.clone()).collect(),
        workers: config.threads,
        drain_deadline: config.drain_deadline,
        tick: TICK,
        busy_poll: config.busy_poll,
        connections: config.limits.connections.clone(),
    })?;
    let config = with_effective_addresses(config, listening.addresses());
    warn_of_open_listeners(&config);

    let caches = Arc::new(Caches::new(&config)?);
    let nothing_stored = tempfile::tempdir().context("cannot create a temporary directory")?;
    let sql_servers = Arc::new(Registry::default());
    sql_servers.apply(config.servers.clone()).context("cannot start the monitors and filters")?;
    let primary = stores::primary(&config, &sql_servers)?;
    let engine = stores::open(&config, (&caches, &sql_servers), primary.as_ref(), nothing_stored.path())?;
    let definitions = sql_clients::definitions(&config)?;
    let external_writes = external_writes::follow(&config, &caches, primary.as_ref(), definitions.as_ref())?;

    let service_caches = service_caches::start(&config, &sql_servers)?;

    let cache_observer = caches.observer_if_any();
    let server = Server::new(
        server_settings::settings(&config, tls.clone(), sql_servers),
        engine.clone(),
        caches.for_commands(&config, service_caches::statistics(&caches, &service_caches)),
        commands::table::COUNT,
    );
    observe_changes(&server, cache_observer);
    primary.map_or(Ok(()), |primary| stores::announce_primary(primary, server.clone()))?;
    server.access_control.throttle.set_limits(config.limits.logins);
    audit_log::start(&config, &server)?;
    audit_log::rotate_on_signal(&server)?;
    let limits = &config.limits;
    let timeouts = Timeouts { handshake: limits.handshake, stalled: limits.stalled, idle: limits.idle };
    let request_rate = limits.requests.map(|rate| RateLimit::new(rate.per_second, rate.burst, Instant::now()));
    let mongo = MongoService::new(server.clone())
        .with_housekeeping(crate::memory::give_back)
        .with_timeouts(timeouts)
        .with_request_rate(request_rate);
    let mongo: Arc<dyn Service> = Arc::new(mongo);
    let sql =
        SqlClients { config: &config, caches: &caches, definitions, service_caches: &service_caches, server: &server };
    let services = services(&config, &mongo, &sql)?;
    tls.iter().try_for_each(tls::follow)?;

    let started = |listeners| {
        summary::print(&config, &engine.describe());
        let caches = (caches.clone(), service_caches.clone());
        let running = reload::Running::new(as_written, caches, server.clone(), mongo.clone(), listeners);
        reload::follow(reloading, running);
    };
    let outcome = selkie_runtime::run(listening, services, started);
    drop(external_writes);
    engine.close();
    audit_log::close(&server);
    outcome?;
    tracing::info!("stopped");
    Ok(())
}

/// Reports the store's changes to the caches, and to the directory of users if clients must log in.
fn observe_changes(server: &Server, caches: Option<Arc<dyn ChangeObserver>>) {
    let observer = match server.access_control.is_enabled() {
        false => caches,
        true => {
            let changes = server.access_control.directory.changes();
            Some(Arc::new(UserChangeObserver { changes, next: caches }) as Arc<dyn ChangeObserver>)
        }
    };
    if let Some(observer) = observer {
        server.engine.observe_changes(observer);
    }
}

/// Returns the service of each listener. Listeners with the same service share it.
fn services(config: &Config, mongo: &Arc<dyn Service>, sql: &SqlClients<'_>) -> anyhow::Result<Vec<Arc<dyn Service>>> {
    let mut of_sql: Vec<(&Listener, Arc<dyn Service>)> = Vec::new();
    let mut services = Vec::new();
    for listener in &config.listeners {
        let known = of_sql.iter().find(|(known, _)| known.service == listener.service);
        services.push(match (listener.protocol, known) {
            (Protocol::MongoDb, _) => mongo.clone(),
            (Protocol::MariaDb, Some((_, service))) => service.clone(),
            (Protocol::MariaDb, None) => {
                let service = sql.service(listener)?;
                of_sql.push((listener, service.clone()));
                service
            }
        });
    }
    Ok(services)
}

/// Replaces port 0 by the port assigned.
fn with_effective_addresses(mut config: Config, addresses: &[ListenAddress]) -> Config {
    for (listener, address) in config.listeners.iter_mut().zip(addresses) {
        listener.address = address.clone();
    }
    config
}

/// Lowers the limit of connections to four fifths of the open files that the process may have, as
/// MongoDB does: the store needs descriptors too, and a connection that finds none could not even
/// be refused.
fn with_room_for_files(mut config: Config) -> Config {
    let total = &mut config.limits.connections.total;
    let room = usize::try_from(server::host::open_files_max() / 5 * 4).unwrap_or(usize::MAX).max(1);
    if *total > room {
        tracing::debug!(connections = room, "lowered the limit of connections to four fifths of the open files");
        *total = room;
    }
    config
}

/// Logs a warning, which MongoDB shells show when they connect.
fn warn_of_open_listeners(config: &Config) {
    for address in config.addresses(Protocol::MongoDb).filter(|address| !address.is_local()) {
        let warning =
            format!("There is no authentication: every client that reaches {address} may read and write everything");
        tracing::warn!("{warning}");
        server::log_lines::recent().push_startup_warning(&warning);
    }
}

/// Raises the soft limit of open files to the hard one. Every connection takes a file descriptor,
/// and the usual soft limit of 1,024 is meant for other programs.
fn raise_open_files_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }) {
        tracing::warn!(%error, "cannot raise the limit of open files from {:?}", limit.current);
    }
}
