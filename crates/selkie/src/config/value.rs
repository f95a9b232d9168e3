//! Parses values of the file and of flags. An error names the expected value.

use super::choices::{
    BackendIdentity, CacheMode, ExternalWrites, FilterKindName, FilterMode, Invalidation, Protocol, RouterKind,
    Selects, TopologyKind, WhenExceeded, WhenTooFast,
};
use audit::{Destination, OnFailure};
use auth::LoginMechanism;
use mongo_wire::Compressor;
use selkie_runtime::ListenAddress;
use server::tls::TlsMode;
use service::{CausalReads, ClusterKind, MajorityOf, WantedRole};
use sql_filter::deny_rule::{DenyRule, TablePattern};
use sql_filter::mask_rule::MaskRule;
use std::path::PathBuf;
use tls::{ClientCertificates, MinVersion};

/// A value as written, before it is parsed.
#[derive(Clone, Debug, PartialEq)]
pub enum Raw {
    Text(String),
    Integer(i64),
    Boolean(bool),
    List(Vec<Raw>),
    /// The name of a TOML type that no parameter has.
    Other(&'static str),
}

impl Raw {
    fn show(&self) -> String {
        match self {
            Raw::Text(text) => format!("{text:?}"),
            Raw::Integer(integer) => integer.to_string(),
            Raw::Boolean(boolean) => boolean.to_string(),
            Raw::List(_) => "a list".to_owned(),
            Raw::Other(name) => format!("a {name}"),
        }
    }
}

fn expected(what: &str, raw: &Raw) -> String {
    format!("{what} is expected here, not {}", raw.show())
}

pub fn text(raw: Raw, what: &str) -> Result<String, String> {
    match raw {
        Raw::Text(text) if !text.trim().is_empty() => Ok(text),
        other => Err(expected(what, &other)),
    }
}

pub fn boolean(raw: Raw) -> Result<bool, String> {
    match raw {
        Raw::Boolean(boolean) => Ok(boolean),
        other => Err(expected("true or false", &other)),
    }
}

pub fn integer(raw: Raw, least: i64, most: i64) -> Result<i64, String> {
    match raw {
        Raw::Integer(integer) if (least..=most).contains(&integer) => Ok(integer),
        other => Err(expected(&format!("a number from {least} to {most}"), &other)),
    }
}

fn list<T>(raw: Raw, what: &str, item: impl Fn(Raw) -> Result<T, String>) -> Result<Vec<T>, String> {
    match raw {
        Raw::List(items) if !items.is_empty() => items.into_iter().map(item).collect(),
        other => Err(expected(&format!("a list of {what}, such as [\"…\"],"), &other)),
    }
}

pub fn addresses(raw: Raw) -> Result<Vec<ListenAddress>, String> {
    list(raw, "addresses", |item| text(item, "an address")?.parse())
}

pub fn compressors(raw: Raw) -> Result<Vec<Compressor>, String> {
    match raw {
        Raw::List(items) if items.is_empty() => Ok(Vec::new()),
        other => list(other, "compressors", |item| {
            one_of(item, "a compressor", &["snappy", "zstd", "zlib"], Compressor::from_name)
        }),
    }
}

pub fn topology(raw: Raw) -> Result<TopologyKind, String> {
    one_of(raw, "a topology", &["router", "replica-set", "standalone"], |name| match name {
        "router" => Some(TopologyKind::Router),
        "replica-set" => Some(TopologyKind::ReplicaSet),
        "standalone" => Some(TopologyKind::Standalone),
        _ => None,
    })
}

pub fn backend_identity(raw: Raw) -> Result<BackendIdentity, String> {
    one_of(raw, "an identity", &["gateway", "user"], |name| match name {
        "gateway" => Some(BackendIdentity::Gateway),
        "user" => Some(BackendIdentity::User),
        _ => None,
    })
}

pub fn cache_mode(raw: Raw) -> Result<CacheMode, String> {
    one_of(raw, "a mode", &["off", "results", "documents", "both"], |name| match name {
        "off" => Some(CacheMode::Off),
        "results" => Some(CacheMode::Results),
        "documents" => Some(CacheMode::Documents),
        "both" => Some(CacheMode::Both),
        _ => None,
    })
}

/// Parses addresses, each with the part of the cache that its clients use.
pub fn listener_modes(raw: Raw) -> Result<Vec<(ListenAddress, CacheMode)>, String> {
    list(raw, "addresses with a mode", |item| {
        let pair = text(item, "an address with a mode")?;
        let Some((address, mode)) = pair.rsplit_once('=') else {
            return Err(format!(
                "{pair:?} has no mode; write an address, = and a mode, as in \"127.0.0.1:27018 = off\""
            ));
        };
        Ok((address.trim().parse()?, cache_mode(Raw::Text(mode.trim().to_owned()))?))
    })
}

pub fn commands(raw: Raw) -> Result<Vec<String>, String> {
    const COMMANDS: [&str; 4] = ["find", "count", "distinct", "aggregate"];
    list(raw, "commands", |item| one_of(item, "a command that can be cached", &COMMANDS, |name| Some(name.to_owned())))
}

pub fn external_writes(raw: Raw) -> Result<ExternalWrites, String> {
    one_of(raw, "a method", &["follow", "strict", "none"], |name| match name {
        "follow" => Some(ExternalWrites::Follow),
        "strict" => Some(ExternalWrites::Strict),
        "none" => Some(ExternalWrites::None),
        _ => None,
    })
}

pub fn selects(raw: Raw) -> Result<Selects, String> {
    one_of(raw, "a method", &["verify", "assume-cacheable"], |name| match name {
        "verify" => Some(Selects::Verify),
        "assume-cacheable" => Some(Selects::AssumeCacheable),
        _ => None,
    })
}

pub fn invalidation(raw: Raw) -> Result<Invalidation, String> {
    one_of(raw, "a method", &["precise", "collection"], |name| match name {
        "precise" => Some(Invalidation::Precise),
        "collection" => Some(Invalidation::Collection),
        _ => None,
    })
}

pub fn users(raw: Raw) -> Result<Vec<String>, String> {
    list(raw, "users", |item| {
        let name = text(item, "a user's name")?;
        match name.contains('@') {
            true => Err(format!("{name:?} contains a host; write the name alone")),
            false => Ok(name),
        }
    })
}

pub fn login_mechanisms(raw: Raw) -> Result<Vec<LoginMechanism>, String> {
    let names = LoginMechanism::ALL.map(LoginMechanism::name);
    list(raw, "mechanisms", |item| one_of(item, "a mechanism", &names, LoginMechanism::parse))
}

pub fn audit_log(raw: Raw) -> Result<Destination, String> {
    let destination = text(raw, "a path or \"syslog\"")?;
    Ok(if destination == "syslog" { Destination::Syslog } else { Destination::File(destination.into()) })
}

pub fn audit_events(raw: Raw) -> Result<Vec<String>, String> {
    let kinds = audit::event::kind::FILTERED;
    list(raw, "kinds of events", |item| one_of(item, "a kind of event", kinds, |name| Some(name.to_owned())))
}

pub fn audit_users(raw: Raw) -> Result<Vec<String>, String> {
    list(raw, "users", |item| {
        let name = text(item, "a user, such as \"admin.joe\"")?;
        match name.split_once('.') {
            Some((database, user)) if !database.is_empty() && !user.is_empty() => Ok(name),
            _ => Err(format!("{name:?} names no user; write database.user, as in \"admin.joe\"")),
        }
    })
}

pub fn audit_on_failure(raw: Raw) -> Result<OnFailure, String> {
    one_of(raw, "a reaction", &["refuse", "continue"], |name| match name {
        "refuse" => Some(OnFailure::Refuse),
        "continue" => Some(OnFailure::Continue),
        _ => None,
    })
}

pub fn statements(raw: Raw) -> Result<Vec<String>, String> {
    list(raw, "regular expressions", |item| {
        let pattern = text(item, "a regular expression")?;
        match sql_session::pattern(&pattern) {
            Ok(_) => Ok(pattern),
            Err(why) => Err(format!("{pattern:?} is not a regular expression: {why}")),
        }
    })
}

pub fn patterns(raw: Raw) -> Result<Vec<String>, String> {
    list(raw, "collections", |item| {
        let pattern = text(item, "database.collection")?;
        match pattern.split_once('.') {
            Some((database, collection)) if !database.is_empty() && !collection.is_empty() => Ok(pattern),
            _ => Err(format!(
                "{pattern:?} names no collection; write database.collection, or database.* for all of them"
            )),
        }
    })
}

pub fn path(raw: Raw) -> Result<PathBuf, String> {
    text(raw, "a path").map(PathBuf::from)
}

/// Parses a mode of TLS; `None`: off.
pub fn tls_mode(raw: Raw) -> Result<Option<TlsMode>, String> {
    one_of(raw, "a mode", &["off", "allow", "prefer", "require"], |name| match name {
        "off" => Some(None),
        "allow" => Some(Some(TlsMode::Allow)),
        "prefer" => Some(Some(TlsMode::Prefer)),
        "require" => Some(Some(TlsMode::Require)),
        _ => None,
    })
}

pub fn tls_version(raw: Raw) -> Result<MinVersion, String> {
    one_of(raw, "a version", &["1.2", "1.3"], |name| match name {
        "1.2" => Some(MinVersion::Tls12),
        "1.3" => Some(MinVersion::Tls13),
        _ => None,
    })
}

pub fn client_certificates(raw: Raw) -> Result<ClientCertificates, String> {
    one_of(raw, "a rule", &["none", "optional", "required"], |name| match name {
        "none" => Some(ClientCertificates::None),
        "optional" => Some(ClientCertificates::Optional),
        "required" => Some(ClientCertificates::Required),
        _ => None,
    })
}

/// Parses one of several names.
fn one_of<T>(raw: Raw, what: &str, names: &[&str], find: impl Fn(&str) -> Option<T>) -> Result<T, String> {
    let name = text(raw, what)?;
    if let Some(found) = names.contains(&name.as_str()).then(|| find(&name)).flatten() {
        return Ok(found);
    }
    let meant = strict_toml::nearest(&name, names.iter().copied()).map(|meant| format!("; did you mean \"{meant}\"?"));
    Err(format!("{name:?} is not {what}; write one of {}{}", names.join(", "), meant.unwrap_or_default()))
}

pub fn log_filter(raw: Raw) -> Result<String, String> {
    let filter = text(raw, "a log level")?;
    match filter.parse::<tracing_subscriber::EnvFilter>() {
        // A word that is not a level would be taken for a crate's name, and disable everything
        // else.
        Ok(_) if filter.contains('=') || filter.parse::<tracing::Level>().is_ok() => Ok(filter),
        _ => Err(format!("{filter:?} is not a log level; write one of error, warn, info, debug, trace")),
    }
}

pub fn mariadb_url(raw: Raw) -> Result<String, String> {
    let url = text(raw, "a URL such as \"mysql://user:password@host:3306\"")?;
    if url.starts_with("mysql://") || url.starts_with("mariadb://") {
        return Ok(url);
    }
    // The value may contain a password, so the error does not repeat it.
    Err("a URL such as \"mysql://user:password@host:3306\" is expected here; it begins with mysql://".to_owned())
}

pub fn host_and_port(raw: Raw) -> Result<String, String> {
    let address = text(raw, "an address such as \"db.example.org:27017\"")?;
    let port =
        address.rsplit_once(':').filter(|(host, _)| !host.is_empty()).and_then(|(_, port)| port.parse::<u16>().ok());
    match port {
        Some(1..) => Ok(address),
        _ => Err(format!(
            "{address:?} is not an address that clients can connect to; write host:port, as in db.example.org:27017"
        )),
    }
}

pub fn cluster_kind(raw: Raw) -> Result<ClusterKind, String> {
    one_of(raw, "a kind of cluster", &["replication", "galera"], |name| match name {
        "replication" => Some(ClusterKind::Replication),
        "galera" => Some(ClusterKind::Galera),
        _ => None,
    })
}

/// Parses the servers of which a majority is needed.
pub fn majority_of(raw: Raw) -> Result<MajorityOf, String> {
    one_of(raw, "a group of servers", &["all", "running"], |name| {
        [MajorityOf::All, MajorityOf::Running].into_iter().find(|group| group.name() == name)
    })
}

/// Parses names of objects.
pub fn names(raw: Raw, what: &str) -> Result<Vec<String>, String> {
    list(raw, what, |item| text(item, "a name"))
}

/// Parses tags such as "dc:east", as drivers write them.
pub fn tags(raw: Raw) -> Result<Vec<(String, String)>, String> {
    list(raw, "tags", |item| {
        let tag = text(item, "a tag such as \"dc:east\"")?;
        let parts = tag.split_once(':').map(|(name, value)| (name.to_owned(), value.to_owned()));
        parts.ok_or_else(|| format!("{tag:?} is not a tag; write name:value, as in dc:east"))
    })
}

/// Parses the address of a MariaDB server.
pub fn server_address(raw: Raw) -> Result<(String, u16), String> {
    const PORT: u16 = 3306;
    let address = text(raw, "an address such as \"db.example.org:3306\"")?;
    let expected = || format!("{address:?} is not the address of a server; write host:port, as in db.example.org:3306");
    if address.starts_with('/') {
        return Err(format!(
            "{address:?} is a Unix socket, over which MariaDB would take each client for the user that Selkie runs as; write host:port"
        ));
    }
    let (host, port) = match address.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(Some((host, port))) => (host, port.strip_prefix(':').map(str::parse)),
        Some(None) => return Err(expected()),
        None => match address.rsplit_once(':') {
            Some((host, _)) if host.contains(':') => (address.as_str(), None),
            Some((host, port)) => (host, Some(port.parse())),
            None => (address.as_str(), None),
        },
    };
    match port.unwrap_or(Ok(PORT)) {
        Ok(port @ 1..) if !host.is_empty() && !host.contains(char::is_whitespace) => Ok((host.to_owned(), port)),
        _ => Err(expected()),
    }
}

/// Parses the name of a router. There is one.
pub fn router(raw: Raw) -> Result<RouterKind, String> {
    one_of(raw, "a router", &["connections", "read-write-split"], |name| match name {
        "connections" => Some(RouterKind::Connections),
        "read-write-split" => Some(RouterKind::ReadWriteSplit),
        _ => None,
    })
}

pub fn filter_kind(raw: Raw) -> Result<FilterKindName, String> {
    let names = FilterKindName::ALL.map(FilterKindName::name);
    one_of(raw, "a kind of filter", &names, |name| FilterKindName::ALL.into_iter().find(|kind| kind.name() == name))
}

pub fn when_exceeded(raw: Raw) -> Result<WhenExceeded, String> {
    one_of(raw, "a reply to a statement whose result exceeds a limit", &["error", "empty"], |name| match name {
        "error" => Some(WhenExceeded::Error),
        "empty" => Some(WhenExceeded::Empty),
        _ => None,
    })
}

pub fn when_too_fast(raw: Raw) -> Result<WhenTooFast, String> {
    one_of(raw, "what happens to statements beyond the rate", &["wait", "refuse"], |name| match name {
        "wait" => Some(WhenTooFast::Wait),
        "refuse" => Some(WhenTooFast::Refuse),
        _ => None,
    })
}

pub fn filter_mode(raw: Raw) -> Result<FilterMode, String> {
    one_of(raw, "a mode", &["enforce", "report", "learn"], |name| match name {
        "enforce" => Some(FilterMode::Enforce),
        "report" => Some(FilterMode::Report),
        "learn" => Some(FilterMode::Learn),
        _ => None,
    })
}

/// Parses the rules by which a firewall refuses statements.
pub fn deny_rules(raw: Raw) -> Result<Vec<DenyRule>, String> {
    list(raw, "rules", |item| DenyRule::parse(&text(item, "a rule, such as \"table d.t user joe\"")?))
}

/// Parses the rules by which values are masked.
pub fn mask_rules(raw: Raw) -> Result<Vec<MaskRule>, String> {
    list(raw, "rules", |item| MaskRule::parse(&text(item, "a rule, such as \"column d.people.ssn\"")?))
}

/// Parses the names of views and routines.
pub fn tables(raw: Raw) -> Result<Vec<TablePattern>, String> {
    let parse = |name: String| {
        TablePattern::parse(&name)
            .ok_or_else(|| format!("{name:?} is no view or routine; write name, schema.name or schema.*"))
    };
    list(raw, "names", |item| parse(text(item, "a name")?))
}

pub fn causal_reads(raw: Raw) -> Result<CausalReads, String> {
    match raw {
        Raw::Boolean(true) => Ok(CausalReads::Session),
        Raw::Boolean(false) => Ok(CausalReads::Off),
        Raw::Text(text) if text == "all" => Ok(CausalReads::All),
        other => Err(expected("true, false or \"all\"", &other)),
    }
}

pub fn role(raw: Raw) -> Result<WantedRole, String> {
    one_of(raw, "a role", &["primary", "replica", "any"], |name| match name {
        "primary" => Some(WantedRole::Primary),
        "replica" => Some(WantedRole::Replica),
        "any" => Some(WantedRole::Any),
        _ => None,
    })
}

pub fn protocol(raw: Raw) -> Result<Protocol, String> {
    one_of(raw, "a protocol", &["mariadb", "mongodb"], |name| match name {
        "mariadb" => Some(Protocol::MariaDb),
        "mongodb" => Some(Protocol::MongoDb),
        _ => None,
    })
}

pub fn listen_address(raw: Raw) -> Result<ListenAddress, String> {
    text(raw, "an address")?.parse()
}
