//! MariaDB servers and their monitors: sections with a name, such as `[server.db1]`.

use super::object::{Object, known};
use super::setting::{ConfigError, Origin, Setting, value};
use mariadb_client::TlsSettings;
use service::{Account, Allowed, ClusterKind, MajorityOf, MonitorSettings, Secret, ServerSettings};
use std::path::PathBuf;
use std::time::Duration;

const INTERVAL: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(3);
const FAILURES: u32 = 3;
const CHANGE_TIMEOUT: Duration = Duration::from_secs(30);

/// A name of a lock in MariaDB has at most 64 characters.
const MONITOR_NAME_MAX: usize = 48;

/// The servers and monitors of the file, in its order.
#[derive(Clone, Debug, Default)]
pub struct Written {
    pub servers: Vec<Object<WrittenServer>>,
    pub monitors: Vec<Object<WrittenMonitor>>,
}

/// A server as written.
#[derive(Clone, Debug, Default)]
pub struct WrittenServer {
    pub address: Option<Setting<(String, u16)>>,
    pub weight: Option<Setting<u32>>,
    pub connections_max: Option<Setting<usize>>,
    pub tags: Option<Setting<Vec<(String, String)>>>,
    pub tls: Option<Setting<String>>,
    pub tls_ca: Option<Setting<PathBuf>>,
    pub tls_crl: Option<Setting<PathBuf>>,
    pub tls_certificate: Option<Setting<PathBuf>>,
    pub tls_key: Option<Setting<PathBuf>>,
}

/// A monitor as written.
#[derive(Clone, Debug, Default)]
pub struct WrittenMonitor {
    pub kind: Option<Setting<ClusterKind>>,
    pub servers: Option<Setting<Vec<String>>>,
    pub user: Option<Setting<String>>,
    pub password: Option<Setting<String>>,
    pub password_file: Option<Setting<PathBuf>>,
    pub interval: Option<Setting<Duration>>,
    pub timeout: Option<Setting<Duration>>,
    pub failures: Option<Setting<u32>>,
    pub failover: Option<Setting<bool>>,
    pub rejoin: Option<Setting<bool>>,
    pub enforce_read_only: Option<Setting<bool>>,
    pub replication_user: Option<Setting<String>>,
    pub replication_password: Option<Setting<String>>,
    pub replication_password_file: Option<Setting<PathBuf>>,
    pub majority_of: Option<Setting<MajorityOf>>,
    pub change_timeout: Option<Setting<Duration>>,
}

impl Written {
    /// Only a file has objects.
    pub fn over(self, beneath: Written) -> Written {
        Written {
            servers: [self.servers, beneath.servers].concat(),
            monitors: [self.monitors, beneath.monitors].concat(),
        }
    }

    pub fn resolve_servers(&self) -> Result<Vec<ServerSettings>, ConfigError> {
        self.servers.iter().map(server).collect()
    }

    pub fn resolve_monitors(&self) -> Result<Vec<MonitorSettings>, ConfigError> {
        let mut monitored: Vec<(String, String)> = Vec::new();
        let mut monitors = Vec::new();
        for object in &self.monitors {
            let monitor = self.monitor(object)?;
            for server in &monitor.servers {
                if let Some((_, other)) = monitored.iter().find(|(known, _)| known == server) {
                    let message = format!("{server} has the monitor {other} already; a server has one monitor");
                    return Err(object.required(&object.written.servers, "servers")?.refuse(message));
                }
                monitored.push((server.clone(), monitor.name.clone()));
            }
            monitors.push(monitor);
        }
        Ok(monitors)
    }

    fn monitor(&self, object: &Object<WrittenMonitor>) -> Result<MonitorSettings, ConfigError> {
        let written = &object.written;
        Ok(MonitorSettings {
            name: object.name.clone(),
            kind: object.required(&written.kind, "kind")?.value,
            servers: self.known_servers(object.required(&written.servers, "servers")?)?,
            user: object.required(&written.user, "user")?.value.clone(),
            password: password(&written.password, &written.password_file, "password")?,
            interval: value(written.interval.clone()).unwrap_or(INTERVAL),
            timeout: value(written.timeout.clone()).unwrap_or(TIMEOUT),
            failures_max: value(written.failures.clone()).unwrap_or(FAILURES),
            allowed: allowed(object)?,
            replication_account: replication_account(object)?,
            majority_of: value(written.majority_of.clone()).unwrap_or_default(),
            change_timeout: value(written.change_timeout.clone()).unwrap_or(CHANGE_TIMEOUT),
        })
    }

    /// Returns the names of servers, of which each must exist and be named once.
    pub fn known_servers(&self, names: &Setting<Vec<String>>) -> Result<Vec<String>, ConfigError> {
        for (number, name) in names.value.iter().enumerate() {
            known(names, name, "server", self.servers.iter().map(|server| server.name.as_str()))?;
            if names.value[..number].contains(name) {
                return Err(names.refuse(format!("{name} is named twice")));
            }
        }
        Ok(names.value.clone())
    }
}

fn server(object: &Object<WrittenServer>) -> Result<ServerSettings, ConfigError> {
    let written = &object.written;
    let (host, port) = object.required(&written.address, "address")?.value.clone();
    Ok(ServerSettings {
        name: object.name.clone(),
        host,
        port,
        tls: tls(object)?,
        weight: value(written.weight.clone()).unwrap_or(1),
        connections_max: value(written.connections_max.clone()),
        tags: value(written.tags.clone()).unwrap_or_default(),
    })
}

fn tls(object: &Object<WrittenServer>) -> Result<TlsSettings, ConfigError> {
    let written = &object.written;
    let path = |setting: &Option<Setting<PathBuf>>| {
        let shown = |setting: &Setting<PathBuf>| (setting.value.to_string_lossy().into_owned(), setting.origin.clone());
        setting.as_ref().map(shown)
    };
    let mode = written.tls.as_ref().map(|setting| (setting.value.clone(), setting.origin.clone()));
    let settings = [
        ("tls", mode),
        ("tls-ca", path(&written.tls_ca)),
        ("tls-crl", path(&written.tls_crl)),
        ("tls-certificate", path(&written.tls_certificate)),
        ("tls-key", path(&written.tls_key)),
    ];
    let mut tls = TlsSettings::default();
    let mut last = object.origin.clone();
    // The messages are about the parameters of a URL, which have the same names.
    let refuse = |error: error::Error, origin: Origin| {
        let message = error.message().replace(" in the URL of MariaDB", "");
        ConfigError { origin: Some(origin), message }
    };
    for (name, setting) in settings {
        if let Some((value, origin)) = setting {
            tls.set(name, value).map_err(|error| refuse(error, origin.clone()))?;
            last = origin;
        }
    }
    tls.resolve(written.tls.is_some()).map_err(|error| refuse(error, last.clone()))?;
    tls.config().map_err(|error| refuse(error, last))?;
    Ok(tls)
}

/// Returns what the monitor changes by itself.
fn allowed(object: &Object<WrittenMonitor>) -> Result<Allowed, ConfigError> {
    let WrittenMonitor { failover, rejoin, enforce_read_only, kind, .. } = &object.written;
    let is_galera = kind.as_ref().is_some_and(|kind| kind.value == ClusterKind::Galera);
    for (name, setting) in [("failover", failover), ("rejoin", rejoin), ("enforce-read-only", enforce_read_only)] {
        let Some(setting) = setting.as_ref().filter(|setting| setting.value) else { continue };
        if is_galera {
            return Err(setting.refuse(format!("{name} is for kind = \"replication\"; a Galera cluster heals itself")));
        }
        if object.name.len() > MONITOR_NAME_MAX {
            let message = format!("with {name}, the monitor's name must not be longer than {MONITOR_NAME_MAX} bytes");
            return Err(setting.refuse(message));
        }
    }
    let is_on = |setting: &Option<Setting<bool>>| value(setting.clone()).unwrap_or_default();
    Ok(Allowed { failover: is_on(failover), rejoin: is_on(rejoin), enforce_read_only: is_on(enforce_read_only) })
}

/// Returns the account with which servers follow each other: the monitor's, unless there is one.
fn replication_account(object: &Object<WrittenMonitor>) -> Result<Account, ConfigError> {
    let written = &object.written;
    let (direct, file) = (&written.replication_password, &written.replication_password_file);
    match &written.replication_user {
        Some(user) => {
            Ok(Account { user: user.value.clone(), password: password(direct, file, "replication-password")? })
        }
        None => {
            let origin = direct.as_ref().map(|one| &one.origin).or(file.as_ref().map(|one| &one.origin));
            if let Some(origin) = origin {
                let message = "there is no replication-user to which the password belongs".to_owned();
                return Err(ConfigError { origin: Some(origin.clone()), message });
            }
            let user = object.required(&written.user, "user")?.value.clone();
            Ok(Account { user, password: password(&written.password, &written.password_file, "password")? })
        }
    }
}

/// Returns the password, which is set directly or in a file. `name`: that of the first setting.
pub fn password(
    direct: &Option<Setting<String>>,
    file: &Option<Setting<PathBuf>>,
    name: &str,
) -> Result<Secret, ConfigError> {
    match (direct, file) {
        (Some(_), Some(file)) => Err(file.refuse(format!("{name} is set, too; leave one of them out"))),
        (Some(password), None) => Ok(Secret(password.value.clone())),
        (None, Some(file)) => {
            let text = std::fs::read_to_string(&file.value)
                .map_err(|error| file.refuse(format!("cannot read {}: {error}", file.value.display())))?;
            Ok(Secret(text.lines().next().unwrap_or_default().to_owned()))
        }
        (None, None) => Ok(Secret::default()),
    }
}

#[cfg(test)]
mod tests;
