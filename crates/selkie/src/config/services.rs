//! Services and listeners: sections with a name, such as `[service.app]`.

use super::choices::Protocol;
use super::object::{Object, known};
use super::servers;
use super::setting::{ConfigError, Setting, value};
use mariadb_client::{Address, ServerUrl};
use selkie_runtime::ListenAddress;
use service::settings::Account;
use service::{MonitorSettings, Secret, ServerSettings, ServiceSettings, Settings, WantedRole};
use std::net::IpAddr;

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
    /// There is one router.
    pub router: Option<Setting<()>>,
    pub role: Option<Setting<WantedRole>>,
    pub monitor: Option<Setting<String>>,
    pub servers: Option<Setting<Vec<String>>>,
}

/// A listener as written.
#[derive(Clone, Debug, Default)]
pub struct WrittenListener {
    pub protocol: Option<Setting<Protocol>>,
    pub address: Option<Setting<ListenAddress>>,
    pub service: Option<Setting<String>>,
}

/// Resolves servers, monitors and services. `store`: the URL of the server that stores the
/// documents, if it has SQL clients: the service of `sql-listen` has this server.
pub fn resolve(
    written_servers: &servers::Written,
    written: &Written,
    store: Option<&str>,
) -> Result<Settings, ConfigError> {
    let (mut servers, monitors) = (written_servers.resolve_servers()?, written_servers.resolve_monitors()?);
    let mut services = Vec::new();
    for object in &written.services {
        services.push(service(object, written_servers, &monitors)?);
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
            servers.push(ServerSettings { name, host, port, tls, weight: 1, connections_max });
            services.push(ServiceSettings {
                name: STORE_SERVICE.to_owned(),
                servers: vec![STORE_SERVER.to_owned()],
                role: WantedRole::Any,
                account: Some(Account { user, password: Secret(password) }),
            });
        }
    }
    Ok(Settings { servers, monitors, services })
}

fn service(
    object: &Object<WrittenService>,
    written: &servers::Written,
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
    Ok(ServiceSettings {
        name: object.name.clone(),
        servers,
        role: value(role.clone()).unwrap_or_default(),
        account: monitor.map(|it| Account { user: it.user.clone(), password: it.password.clone() }),
    })
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
