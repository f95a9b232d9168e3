//! Configuration files, right and wrong.

use super::choices::Protocol;
use super::choices::{BackendIdentity, CacheMode, Selects};
use super::listeners::Listener;
use super::parameter;
use super::{Config, ConfigError, Store, defaults, file};
use server::Topology;
use server::tls::TlsMode;
use std::path::Path;
use std::time::Duration;
use tls::ClientCertificates;

fn load(text: &str) -> Result<Config, ConfigError> {
    file::read(Path::new("selkie.toml"), text).and_then(Config::resolve)
}

fn check_refused(text: &str, expected: &str) {
    match load(text) {
        Err(error) => assert_eq!(error.to_string(), expected),
        Ok(config) => panic!("accepted: {config:?}"),
    }
}

fn check_refused_with(text: &str, place: &str, part: &str) {
    let error = load(text).map(drop).expect_err(text).to_string();
    assert!(error.starts_with(place) && error.contains(part), "{error}");
}

#[test]
fn an_empty_file_is_a_complete_configuration() {
    let config = load("").unwrap();
    let (protocol, cache) = (Protocol::MongoDb, CacheMode::Off);
    assert_eq!(
        config.listeners,
        [Listener { protocol, address: defaults::default_listen(), cache, service: None, name: None }]
    );
    assert!(config.threads >= 1);
    assert!(matches!(config.store, Store::Embedded(path) if path == Path::new("selkie-data")));
    assert_eq!(config.topology, Topology::Router);
    assert_eq!(config.drain_deadline, Duration::from_secs(10));
}

#[test]
fn everything_written() {
    let config = load(
        "listen = ['127.0.0.1:1', '/tmp/s.sock']\nthreads = 3\nlog = 'warn'\n[store]\ndata = '/data'\n\
         [mongodb]\ntopology = 'replica-set'\nreplica-set = 'rs0'\nadvertise = 'db:1'\ncompressors = []\n",
    )
    .unwrap();
    assert_eq!(config.listeners.len(), 2);
    assert_eq!(config.threads, 3);
    assert_eq!(config.topology, Topology::ReplicaSet { name: "rs0".into(), advertised: "db:1".into() });
    assert!(config.compressors.is_empty());
}

#[test]
fn every_example_is_a_value() {
    for parameter in parameter::all() {
        for value in [parameter.example, parameter.default].into_iter().filter(|value| !value.starts_with('#')) {
            let section =
                if parameter.section.is_empty() { String::new() } else { format!("[{}]\n", parameter.section) };
            let text = format!("{section}{} = {value}\n", parameter.name);
            file::read(Path::new("selkie.toml"), &text).unwrap();
        }
    }
}

#[test]
fn unknown_keys() {
    check_refused(
        "log = 'info'\nlisen = ['127.0.0.1']\n",
        "selkie.toml:2: there is no parameter \"lisen\" at the top of the file; did you mean \"listen\"?",
    );
    check_refused(
        "data = '/data'\n",
        "selkie.toml:1: there is no parameter \"data\" at the top of the file; it belongs to [store]",
    );
    check_refused(
        "[mongodb]\n\ntopolgy = 'router'\n",
        "selkie.toml:3: there is no parameter \"topolgy\" in [mongodb]; did you mean \"topology\"?",
    );
    check_refused(
        "[mongo]\ntopology = 'router'\n",
        "selkie.toml:1: there is no parameter \"mongo\" at the top of the file; did you mean \"mongodb\"?",
    );
    check_refused(
        "[store]\nxyzzy = 1\n",
        "selkie.toml:2: there is no parameter \"xyzzy\" in [store]; its parameters are data, accept-lost-writes, oplog, oplog-mb, oplog-hours, mariadb, service, user, password, password-file, mariadb-connections, mariadb-transactions, mariadb-wait-seconds, shards, gateway-name, embedded-mariadb, sql-listen, sql-filters",
    );
}

#[test]
fn bad_values() {
    check_refused("threads = 0", "selkie.toml:1: threads: a number from 1 to 1024 is expected here, not 0");
    check_refused("threads = '4'", "selkie.toml:1: threads: a number from 1 to 1024 is expected here, not \"4\"");
    check_refused("threads = 1.5", "selkie.toml:1: threads: a number from 1 to 1024 is expected here, not a fraction");
    check_refused("\nallow-remote = 1", "selkie.toml:2: allow-remote: true or false is expected here, not 1");
    check_refused(
        "[mongodb]\ntopology = 'replicaset'",
        "selkie.toml:2: topology: \"replicaset\" is not a topology; write one of router, replica-set, standalone; \
         did you mean \"replica-set\"?",
    );
    check_refused(
        "[mongodb]\ncompressors = ['gzip']",
        "selkie.toml:2: compressors: \"gzip\" is not a compressor; write one of snappy, zstd, zlib",
    );
    check_refused_with(
        "listen = ['nowhere:x']",
        "selkie.toml:1: listen: \"nowhere:x\" is not an address",
        "127.0.0.1:27017",
    );
    check_refused_with("listen = []", "selkie.toml:1: listen: a list of addresses", "");
    check_refused_with("log = 'loud'", "selkie.toml:1: log: \"loud\" is not a log level", "debug");
    check_refused_with("store = 1", "selkie.toml:1: store is a section", "[store]");
    check_refused_with("a = ", "selkie.toml:1: this is not TOML", "");
    check_refused_with("threads = 1\nthreads = 2", "selkie.toml:2: this is not TOML", "duplicate");
}

#[test]
fn a_bad_url_is_not_repeated() {
    let error = load("[store]\nmariadb = 'root:secret@host'").map(drop).expect_err("accepted").to_string();
    assert!(error.contains("mysql://") && !error.contains("secret"), "{error}");
}

#[test]
fn contradictory_settings_are_refused() {
    check_refused_with(
        "listen = ['0.0.0.0:27017']",
        "selkie.toml:1: other machines can reach 0.0.0.0:27017",
        "--insecure-without-auth",
    );
    assert!(load("listen = ['0.0.0.0:27017']\nallow-remote = true").is_err());
    assert!(load("listen = ['0.0.0.0:27017']\n[security]\nauth = true").is_ok_and(|config| config.auth));
    assert!(load("listen = ['0.0.0.0:27017']\n[security]\ninsecure-without-auth = true").is_ok());
    check_refused_with(
        "[store]\ndata = 'x'\nmariadb = 'mysql://h'",
        "selkie.toml:3: documents are stored either",
        "selkie.toml:2",
    );
    check_refused_with(
        "[store]\nembedded-mariadb = 'x'\nmariadb = 'mysql://h'",
        "selkie.toml:2: documents are stored either",
        "selkie.toml:3",
    );
    check_refused_with("[mongodb]\nadvertise = 'a:1'", "selkie.toml:2: advertise has an effect only", "replica-set");
    check_refused_with(
        "listen = ['/tmp/x.sock']\n[mongodb]\ntopology = 'replica-set'",
        "selkie.toml:3: drivers of a replica set",
        "advertise",
    );
}

#[test]
fn embedded_mariadb_must_be_built_in() {
    let outcome = load("[store]\nembedded-mariadb = 'x'");
    if cfg!(feature = "embedded-mariadb") {
        assert!(matches!(outcome.unwrap().store, Store::EmbeddedMariaDb(path) if path == Path::new("x")));
    } else {
        let error = outcome.map(drop).expect_err("accepted").to_string();
        assert!(error.contains("selkie.toml:2") && error.contains("--features embedded-mariadb"), "{error}");
    }
}

#[test]
fn contradictory_cache_settings_are_refused() {
    check_refused_with("[cache]\nsoft-ttl-ms = 5\nhard-ttl-ms = 5", "selkie.toml:2: soft-ttl-ms is 5", "smaller");
    check_refused_with(
        "threads = 1024\n[cache]\nmode = 'documents'\nbytes = 1048576",
        "selkie.toml:4: with 1024 threads, 1048576 bytes are divided into 2048 shards of 512 bytes",
        "at least 33554432",
    );
    check_refused_with("[cache]\nmode = 'documents'\nstale-ms = 5", "selkie.toml:3: stale-ms applies", "embedded");
    let mariadb = "[store]\nmariadb = 'mysql://h'\n[cache]\nmode = 'both'\n";
    let with = |more: &str| format!("{mariadb}{more}");
    check_refused_with(
        &with("external-writes = 'none'\nstale-ms = 5"),
        "selkie.toml:6: stale-ms applies",
        "leave it out",
    );
    check_refused_with(&with("external-writes = 'strict'\nstale-ms = 5"), "selkie.toml:6: stale-ms allows", "strict");
    check_refused_with(&with("selects = 'verify'"), "selkie.toml:5: selects applies", "sql-listen");
    check_refused_with(&with("only-users = ['joe']"), "selkie.toml:5: only-users applies", "sql-listen");
    check_refused_with(&with("only-users = ['joe@%']"), "selkie.toml:5: only-users: \"joe@%\"", "host");
    check_refused_with(&with("only-statements = ['(']"), "selkie.toml:5: only-statements: \"(\" is not a regular", "");
    check_refused_with(&with("storage = 'localhost'"), "selkie.toml:5: a URL such as", "redis://");
    check_refused_with(&with("storage-timeout-ms = 5"), "selkie.toml:5: storage-timeout-ms has an effect", "storage");
    check_refused_with(
        &with("external-writes = 'none'\nstorage = 'redis://h'"),
        "selkie.toml:6: MariaDB's log",
        "follow",
    );
    check_refused_with("[cache]\nmode = 'documents'\nstorage = 'redis://h'", "selkie.toml:3: replies are", "embedded");
    check_refused_with(&with("storage = 'redis://h'\nstorage-ca = 'x'"), "selkie.toml:6: storage-ca is for", "rediss");
    check_refused_with(&with("listeners = ['[::1]:9 = off']"), "selkie.toml:5: [::1]:9 is none of", "sql-listen");
    check_refused_with(
        &with("listeners = ['127.0.0.1:27017']"),
        "selkie.toml:5: listeners: \"127.0.0.1:27017\" has no mode",
        "off",
    );
    let documents = "[cache]\nmode = 'documents'\nlisteners = ['127.0.0.1:27017 = both']";
    check_refused_with(documents, "selkie.toml:3: the clients of 127.0.0.1:27017 cannot use both", "documents");
    check_refused_with(&with("selects = 'assume'"), "selkie.toml:5: selects: \"assume\" is not a method", "verify");
    let listening = "[store]\nmariadb = 'mysql://h'\nsql-listen = ['127.0.0.1:1']\n[cache]\nmode = 'results'\n";
    let config = load(&format!("{listening}selects = 'assume-cacheable'\nonly-statements = ['^select']")).unwrap();
    assert_eq!(config.cache.sql.selects, Selects::AssumeCacheable);
    let config = load(&format!("{listening}listeners = ['127.0.0.1:1=off']")).unwrap();
    let modes: Vec<CacheMode> = config.listeners.iter().map(|listener| listener.cache).collect();
    assert_eq!(modes, [CacheMode::Results, CacheMode::Off]);
}

#[test]
fn a_source_takes_precedence_over_another() {
    let file = |text| file::read(Path::new("selkie.toml"), text).unwrap();
    let both = file("threads = 1\n[store]\nmariadb = 'mysql://h'")
        .over(file("threads = 2\nlog = 'warn'\n[store]\ndata = 'x'"));
    let config = Config::resolve(both).unwrap();
    assert_eq!((config.threads, config.log.as_str()), (1, "warn"));
    assert!(matches!(config.store, Store::MariaDb(url) if url == "mysql://h"));
}

#[test]
fn tls() {
    let tls = |text: &str| load(&format!("[tls]\n{text}")).map(|config| config.tls);
    assert_eq!(tls("").unwrap(), None);
    assert_eq!(tls("mode = 'off'").unwrap(), None);
    let config = tls("mode = 'allow'\ncertificate = 's.pem'").unwrap().unwrap();
    assert_eq!((config.mode, config.files.client_certificates), (TlsMode::Allow, ClientCertificates::None));
    let config = tls("mode = 'require'\ncertificate = 's.pem'\nca = 'ca.pem'").unwrap().unwrap();
    assert_eq!(config.files.client_certificates, ClientCertificates::Required);
    let optional = "mode = 'prefer'\ncertificate = 's.pem'\nca = 'c'\nclient-certificates = 'optional'\ncrl = 'x'";
    assert_eq!(tls(optional).unwrap().unwrap().files.client_certificates, ClientCertificates::Optional);

    for (text, part) in [
        ("mode = 'require'", "2: TLS needs a certificate; name its file with --tls-certificate"),
        ("mode = 'on'", "2: mode: \"on\" is not a mode; write one of off, allow, prefer, require"),
        ("certificate = 's.pem'", "2: certificate has no effect while TLS is off"),
        ("mode = 'off'\nmin-version = '1.3'", "3: min-version has no effect while TLS is off"),
        ("mode = 'require'\ncertificate = 's'\nmin-version = '1.1'", "write one of 1.2, 1.3"),
        ("mode = 'require'\ncertificate = 's'\nclient-certificates = 'required'", "--tls-ca"),
        ("mode = 'require'\ncertificate = 's'\ncrl = 'x'", "4: a list of revoked certificates"),
        ("mode = 'require'\ncertificate = 's'\nca = 'c'\nclient-certificates = 'none'", "4: the authorities verify"),
    ] {
        let error = tls(text).map(drop).expect_err(text).to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn an_identity_in_mariadb_needs_logins_and_no_cache() {
    let user = "[security]\nbackend-identity = 'user'\n";
    check_refused_with(user, "selkie.toml:2: ", "auth = true");
    let user = format!("{user}auth = true\n");
    check_refused_with(&user, "selkie.toml:2: ", "mariadb");
    let user = format!("{user}[store]\nmariadb = 'mysql://s:p@h'\n");
    assert_eq!(load(&user).unwrap().backend_identity, BackendIdentity::User);
    check_refused_with(&format!("{user}mariadb-connections = 3\n"), "selkie.toml:2: ", "needs 4 mariadb-connections");
    check_refused_with(&format!("{user}[cache]\nmode = 'results'\n"), "selkie.toml:2: ", "cache");
    assert_eq!(load("").unwrap().backend_identity, BackendIdentity::Gateway);
    check_refused_with("[security]\nbackend-identity = 'root'\n", "selkie.toml:2: ", "gateway");
}

#[test]
fn login_mechanisms() {
    let with_tls = |mechanisms: &str, tls: &str| {
        let text = format!("[security]\n{mechanisms}\n[tls]\n{tls}");
        load(&text).map(|config| config.login_mechanisms.iter().map(|mechanism| mechanism.name()).collect::<Vec<_>>())
    };
    let (tls, authority) = ("mode = 'prefer'\ncertificate = 's'", "mode = 'prefer'\ncertificate = 's'\nca = 'c'");
    let scram = ["SCRAM-SHA-1", "SCRAM-SHA-256"];
    assert_eq!(with_tls("", "").unwrap(), scram);
    assert_eq!(with_tls("", tls).unwrap(), scram);
    assert_eq!(with_tls("", authority).unwrap(), ["MONGODB-X509", "SCRAM-SHA-1", "SCRAM-SHA-256"]);
    assert_eq!(with_tls("mechanisms = ['PLAIN', 'SCRAM-SHA-1']", tls).unwrap(), ["PLAIN", "SCRAM-SHA-1"]);
    assert_eq!(with_tls("mechanisms = ['MONGODB-X509']", authority).unwrap(), ["MONGODB-X509"]);
    for (mechanisms, tls, part) in [
        ("['PLAIN', 'SCRAM-SHA-256']", "", "2: PLAIN sends passwords, and is offered on connections with TLS only"),
        ("['PLAIN']", tls, "2: PLAIN checks passwords by the keys that SCRAM stores"),
        ("['MONGODB-X509']", tls, "2: MONGODB-X509 needs the authorities"),
        ("[]", "", "2: mechanisms: a list of mechanisms"),
        ("['SCRAM-SHA-512']", "", "did you mean \"SCRAM-SHA-"),
    ] {
        let error = with_tls(&format!("mechanisms = {mechanisms}"), tls).expect_err(mechanisms).to_string();
        assert!(error.contains(part), "{error}");
    }
}
