//! Services and listeners: sections with a name, such as `[service.app]`.

use super::choices::{Protocol, RouterKind};
use super::filters;
use super::object::{Object, known};
use super::servers;
use super::setting::{ConfigError, Setting, value};
use mariadb_client::{Address, ServerUrl};
use selkie_runtime::ListenAddress;
use service::settings::Account;
use service::{
    CausalReads, MonitorSettings, Router, Secret, ServerSettings, ServiceSettings, Settings, SplitSettings, WantedRole,
};
use std::net::IpAddr;
use std::time::Duration;

/// The server and the service of `sql-listen`.
pub const STORE_SERVER: &str = "mariadb";
pub const STORE_SERVICE: &str = "sql-listen";

/// The services and listeners of the file, in its order.
#[derive(Clone, Debug, Default)]
pub struct Written {
    pub services: Vec<Object<WrittenService>>,
    pub listeners: Vec<Object<WrittenListener>>,
}

impl Written {
    /// Only a file has objects.
    pub fn over(self, beneath: Written) -> Written {
        Written {
            services: [self.services, beneath.services].concat(),
            listeners: [self.listeners, beneath.listeners].concat(),
        }
    }
}

/// A service as written.
#[derive(Clone, Debug, Default)]
pub struct WrittenService {
    pub router: Option<Setting<RouterKind>>,
    pub role: Option<Setting<WantedRole>>,
    pub monitor: Option<Setting<String>>,
    pub servers: Option<Setting<Vec<String>>>,
    pub filters: Option<Setting<Vec<String>>>,
    pub causal_reads: Option<Setting<CausalReads>>,
    pub max_lag_seconds: Option<Setting<i64>>,
    pub primary_wait_ms: Option<Setting<i64>>,
    pub transaction_replay: Option<Setting<bool>>,
    pub commit_outcomes: Option<Setting<bool>>,
    pub multiplex: Option<Setting<bool>>,
    pub cache_bytes: Option<Setting<usize>>,
    pub connections_per_user: Option<Setting<usize>>,
}

/// A listener as written.
#[derive(Clone, Debug, Default)]
pub struct WrittenListener {
    pub protocol: Option<Setting<Protocol>>,
    pub address: Option<Setting<ListenAddress>>,
    pub service: Option<Setting<String>>,
}

/// Resolves servers, monitors, filters and services. `store`: the URL of the server that stores the
/// documents, if it has SQL clients: the service of `sql-listen` has this server.
pub fn resolve(
    (written_servers, filters): (&servers::Written, &filters::Written),
    written: &Written,
    store: Option<&str>,
) -> Result<Settings, ConfigError> {
    let (mut servers, monitors) = (written_servers.resolve_servers()?, written_servers.resolve_monitors()?);
    let mut services = Vec::new();
    for object in &written.services {
        services.push(service(object, (written_servers, filters), &monitors)?);
    }
    if let Some(url) = store {
        for (section, name, objects) in [
            (
                "server",
                STORE_SERVER,
                written_servers.servers.iter().map(|it| (&it.name, &it.origin)).collect::<Vec<_>>(),
            ),
            ("service", STORE_SERVICE, written.services.iter().map(|it| (&it.name, &it.origin)).collect()),
        ] {
            if let Some((_, origin)) = objects.into_iter().find(|(other, _)| *other == name) {
                let message = format!("{name} is the name of the {section} of sql-listen; choose another");
                return Err(ConfigError { origin: Some(origin.clone()), message });
            }
        }
        if let Ok(ServerUrl { address: Address::Tcp { host, port }, user, password, tls }) = ServerUrl::parse(url) {
            let (name, connections_max) = (STORE_SERVER.to_owned(), None);
            servers.push(ServerSettings { name, host, port, tls, weight: 1, connections_max, tags: Vec::new() });
            services.push(ServiceSettings {
                name: STORE_SERVICE.to_owned(),
                servers: vec![STORE_SERVER.to_owned()],
                role: WantedRole::Any,
                account: Some(Account { user, password: Secret(password) }),
                router: Router::Connections,
                connections_per_user: None,
                filters: match &filters.of_sql_listen {
                    Some(names) => filters.known_filters(names)?,
                    None => Vec::new(),
                },
            });
        }
    }
    let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    let filters = filters.resolve(&names)?;
    Ok(Settings { servers, monitors, services, filters })
}

fn service(
    object: &Object<WrittenService>,
    (written, filters): (&servers::Written, &filters::Written),
    monitors: &[MonitorSettings],
) -> Result<ServiceSettings, ConfigError> {
    let WrittenService { role, monitor, servers, .. } = &object.written;
    let monitor = match monitor {
        None => None,
        Some(setting) => {
            known(setting, &setting.value, "monitor", monitors.iter().map(|monitor| monitor.name.as_str()))?;
            monitors.iter().find(|monitor| monitor.name == setting.value)
        }
    };
    let servers = match (servers, monitor) {
        (Some(servers), monitor) => {
            let names = written.known_servers(servers)?;
            let other =
                monitor.and_then(|monitor| Some((monitor, names.iter().find(|name| !monitor.servers.contains(name))?)));
            if let Some((monitor, name)) = other {
                return Err(servers.refuse(format!("{name} is none of the servers of the monitor {}", monitor.name)));
            }
            names
        }
        (None, Some(monitor)) => monitor.servers.clone(),
        (None, None) => {
            return Err(object.refuse(format!("{} has no servers; set monitor, or servers", object.name)));
        }
    };
    if let (Some(role), None) = (role, monitor)
        && role.value != WantedRole::Any
    {
        return Err(role.refuse("without a monitor, the roles of servers are unknown; set monitor, or leave role out"));
    }
    let router = router(object, monitor)?;
    check_cache(object)?;
    Ok(ServiceSettings {
        name: object.name.clone(),
        servers,
        role: match router {
            Router::Connections => value(role.clone()).unwrap_or_default(),
            Router::ReadWriteSplit(_) => WantedRole::PrimaryFirst,
        },
        account: monitor.map(|it| Account { user: it.user.clone(), password: it.password.clone() }),
        router,
        connections_per_user: value(object.written.connections_per_user.clone()),
        filters: match &object.written.filters {
            Some(names) => filters.known_filters(names)?,
            None => Vec::new(),
        },
    })
}

/// Refuses a cache on servers whose log is not followed.
fn check_cache(object: &Object<WrittenService>) -> Result<(), ConfigError> {
    let WrittenService { router, role, monitor, cache_bytes, causal_reads, .. } = &object.written;
    let Some(setting) = cache_bytes else { return Ok(()) };
    let splits = router.as_ref().is_some_and(|router| router.value == RouterKind::ReadWriteSplit);
    let is_of_primary = splits || role.as_ref().is_some_and(|role| role.value == WantedRole::Primary);
    if !is_of_primary || monitor.is_none() {
        return Err(setting.refuse(
            "results are cached only with a monitor, for the router read-write-split or role = \"primary\"; set these, or leave cache-bytes out",
        ));
    }
    if causal_reads.as_ref().is_some_and(|setting| setting.value == CausalReads::All) {
        return Err(setting.refuse(
            "causal-reads = \"all\" includes writes that the cache does not know yet; set causal-reads to true, or leave cache-bytes out",
        ));
    }
    Ok(())
}

/// Returns the services with a cache, and its bytes.
pub fn caches(written: &Written) -> Vec<(String, usize)> {
    let of = |object: &Object<WrittenService>| Some((object.name.clone(), object.written.cache_bytes.as_ref()?.value));
    written.services.iter().filter_map(of).collect()
}

/// Resolves the router of a service. Settings of another router are errors.
fn router(object: &Object<WrittenService>, monitor: Option<&MonitorSettings>) -> Result<Router, ConfigError> {
    let WrittenService {
        router,
        role,
        causal_reads,
        max_lag_seconds,
        primary_wait_ms,
        transaction_replay,
        commit_outcomes,
        multiplex,
        ..
    } = &object.written;
    match router.as_ref().map(|router| (router, router.value)) {
        None | Some((_, RouterKind::Connections)) => {
            let only = "is a setting of the router read-write-split; set router, or leave it out";
            if let Some(setting) = causal_reads {
                return Err(setting.refuse(format!("causal-reads {only}")));
            }
            let switches = [
                ("transaction-replay", transaction_replay),
                ("commit-outcomes", commit_outcomes),
                ("multiplex", multiplex),
            ];
            if let Some((name, setting)) = switches.iter().find_map(|(name, setting)| Some((name, setting.as_ref()?))) {
                return Err(setting.refuse(format!("{name} {only}")));
            }
            let numbers = [("max-lag-seconds", max_lag_seconds), ("primary-wait-ms", primary_wait_ms)];
            if let Some((name, setting)) = numbers.iter().find_map(|(name, setting)| Some((name, setting.as_ref()?))) {
                return Err(setting.refuse(format!("{name} {only}")));
            }
            Ok(Router::Connections)
        }
        Some((router, RouterKind::ReadWriteSplit)) => {
            if monitor.is_none() {
                return Err(router.refuse("read-write-split needs the roles of its servers; set monitor"));
            }
            if let Some(role) = role {
                return Err(role.refuse("read-write-split uses servers of all roles; leave role out"));
            }
            let defaults = SplitSettings::default();
            let number = |setting: &Option<Setting<i64>>| setting.as_ref().and_then(|it| u64::try_from(it.value).ok());
            Ok(Router::ReadWriteSplit(SplitSettings {
                causal_reads: value(causal_reads.clone()).unwrap_or_default(),
                lag_max_seconds: number(max_lag_seconds),
                primary_wait: number(primary_wait_ms).map_or(defaults.primary_wait, Duration::from_millis),
                replays_transactions: value(transaction_replay.clone()).unwrap_or_default(),
                keeps_commit_outcomes: value(commit_outcomes.clone()).unwrap_or_default(),
                multiplexes: value(multiplex.clone()).unwrap_or_default(),
            }))
        }
    }
}

/// Returns whether a server's address is that of a listener: Selkie would forward clients to
/// itself.
pub fn leads_back(server: &ServerSettings, listener: &ListenAddress) -> bool {
    let ListenAddress::Tcp(address) = listener else { return false };
    let ip = match server.host.as_str() {
        "localhost" => IpAddr::from([127, 0, 0, 1]),
        host => match host.parse() {
            Ok(ip) => ip,
            Err(_) => return false,
        },
    };
    server.port == address.port() && (ip == address.ip() || address.ip().is_unspecified() && ip.is_loopback())
}
