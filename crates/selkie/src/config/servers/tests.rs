//! Sections with names, right and wrong.

use crate::config::{Config, ConfigError, Protocol, Store, file};
use service::{ClusterKind, WantedRole};
use std::path::Path;
use std::time::Duration;

fn load(text: &str) -> Result<Config, ConfigError> {
    file::read(Path::new("selkie.toml"), text).and_then(Config::resolve)
}

fn check_refused(text: &str, expected: &str) {
    let error = load(text).map(drop).expect_err(text).to_string();
    assert!(error.starts_with(&format!("selkie.toml:{expected}")), "{error}");
}

const SERVERS: &str =
    "[server.db1]\naddress = 'h'\n[server.db2]\naddress = '[::1]:99'\nweight = 3\nmax-connections = 5\n";

#[test]
fn servers_and_monitors() {
    let monitor = "[monitor.main]\nkind = 'galera'\nservers = ['db2', 'db1']\nuser = 'joe'\npassword = 's3cret'\ninterval-ms = 200\n";
    let config = load(&format!("{SERVERS}{monitor}")).unwrap();
    let [first, second] = &config.servers.servers[..] else { panic!("two servers") };
    assert_eq!((first.host.as_str(), first.port, first.weight, first.connections_max), ("h", 3306, 1, None));
    assert_eq!((second.host.as_str(), second.port, second.weight, second.connections_max), ("::1", 99, 3, Some(5)));
    let [monitor] = &config.servers.monitors[..] else { panic!("one monitor") };
    assert_eq!(
        (monitor.kind, monitor.interval, monitor.failures_max),
        (ClusterKind::Galera, Duration::from_millis(200), 3)
    );
    assert_eq!(monitor.servers, ["db2", "db1"]);
    assert!(!format!("{config:?}").contains("s3cret"));
}

#[test]
fn a_password_can_come_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("password");
    let monitor = format!("{SERVERS}[monitor.main]\nkind = 'replication'\nservers = ['db1']\nuser = 'joe'\n");
    let with_file = format!("{monitor}password-file = {:?}\n", path.display().to_string());
    check_refused(&with_file, "11: cannot read");
    std::fs::write(&path, "s3cret\nmore\n").unwrap();
    assert_eq!(load(&with_file).unwrap().servers.monitors[0].password.0, "s3cret");
    check_refused(&format!("{with_file}password = 'x'"), "11: password is set, too");
}

#[test]
fn a_monitor_changes_servers_if_it_is_allowed() {
    let monitor = |kind: &str, more: &str| {
        format!("{SERVERS}[monitor.main]\nkind = '{kind}'\nservers = ['db1']\nuser = 'joe'\npassword = 'a'\n{more}")
    };
    let load = |more: &str| load(&monitor("replication", more)).unwrap().servers.monitors[0].clone();
    assert!(!load("").is_active());
    let monitor_of_all = load("failover = true\nmajority-of = 'running'\nchange-timeout-ms = 5000\n");
    assert!(monitor_of_all.allowed.failover && !monitor_of_all.allowed.rejoin);
    assert_eq!(monitor_of_all.majority_of, service::MajorityOf::Running);
    let account =
        |monitor: service::MonitorSettings| (monitor.replication_account.user, monitor.replication_account.password.0);
    assert_eq!(account(monitor_of_all), ("joe".into(), "a".into()));
    let own = load("replication-user = 'r'\nreplication-password = 'b'\n");
    assert_eq!(account(own), ("r".into(), "b".into()));
    check_refused(&monitor("replication", "replication-password = 'b'\n"), "12: there is no replication-user");
    check_refused(&monitor("galera", "failover = true\n"), "12: failover is for kind");
    check_refused(&monitor("replication", "majority-of = 'most'\n"), "12: ");
    let long =
        monitor("replication", "rejoin = true\n").replace("monitor.main", &format!("monitor.{}", "m".repeat(49)));
    check_refused(&long, "12: with rejoin, the monitor's name must not be longer than 48 bytes");
}

#[test]
fn wrong_sections_say_what_was_meant() {
    for (text, expected) in [
        ("[server]\naddress = 'h'", "2: each server has a name: write [server.NAME]"),
        ("server = 1", "1: each server has a name"),
        (
            "[serv.db1]\naddress = 'h'",
            "1: there is no parameter \"serv\" at the top of the file; did you mean \"server\"?",
        ),
        ("[server.'a b']\naddress = 'h'", "1: \"a b\" is not a name"),
        (
            "[server.db1]\nadress = 'h'",
            "2: there is no parameter \"adress\" in [server.NAME]; did you mean \"address\"?",
        ),
        ("[server.db1]\nweight = 1", "1: db1 has no address"),
        ("[server.db1]\naddress = '/run/x'", "2: address: \"/run/x\" is a Unix socket"),
        ("[server.db1]\naddress = 'h:x'", "2: address: \"h:x\" is not the address"),
        ("[server.db1]\naddress = 'h:0'", "2: address: \"h:0\" is not the address"),
        ("[server.db1]\naddress = 'h'\nweight = 0", "3: weight: a number from 1 to 1000"),
        ("[server.db1]\naddress = 'h'\ntls = 'on'", "3: "),
        ("[server.db1]\naddress = 'h'\ntls = 'verify-ca'", "3: tls=verify-ca and tls=verify-identity need tls-ca"),
        (
            "[monitor.main]\nkind = 'galera'\nservers = ['db1']\nuser = 'u'",
            "3: there is no [server.db1]; write a section",
        ),
        (
            "[monitor.main]\nkind = 'mysql'",
            "2: kind: \"mysql\" is not a kind of cluster; write one of replication, galera",
        ),
        ("[monitor.main]\nkind = 'galera'\nservers = []", "3: servers: a list of servers"),
        ("[monitor.main]\nfailovers = true", "2: there is no parameter \"failovers\" in [monitor.NAME]; "),
    ] {
        check_refused(text, expected);
    }
    let monitor = |name: &str, servers: &str| {
        format!("[monitor.{name}]\nkind = 'replication'\nservers = {servers}\nuser = 'u'\n")
    };
    check_refused(
        &format!("{SERVERS}{}", monitor("a", "['db3']")),
        "9: there is no [server.db3]; did you mean \"db1\"?",
    );
    check_refused(&format!("{SERVERS}{}", monitor("a", "['db1', 'db1']")), "9: db1 is named twice");
    check_refused(
        &format!("{SERVERS}{}{}", monitor("a", "['db1']"), monitor("b", "['db2', 'db1']")),
        "13: db1 has the monitor a already",
    );
    check_refused(&format!("{SERVERS}[monitor.a]\nkind = 'galera'\nservers = ['db1']"), "7: a has no user");
}

const MONITOR: &str = "[monitor.main]\nkind = 'replication'\nservers = ['db1', 'db2']\nuser = 'u'\n";
const SERVICE: &str = "[service.app]\nmonitor = 'main'\nrole = 'primary'\n";
const LISTENER: &str = "[listener.sql]\nprotocol = 'mariadb'\naddress = '127.0.0.1:4006'\nservice = 'app'\n";

#[test]
fn services_and_listeners() {
    let config = load(&[SERVERS, MONITOR, SERVICE, LISTENER].concat()).unwrap();
    let [service] = &config.servers.services[..] else { panic!("one service") };
    assert_eq!((service.role, &service.servers[..]), (WantedRole::Primary, &["db1".to_owned(), "db2".to_owned()][..]));
    assert_eq!(service.account.as_ref().map(|account| account.user.as_str()), Some("u"));
    let [listener] = &config.listeners[..] else { panic!("no listener for MongoDB clients") };
    assert_eq!((listener.protocol, listener.service.as_deref()), (Protocol::MariaDb, Some("app")));
    assert!(!config.stores_documents() && !config.has_sql_clients());

    let mongodb = "[listener.documents]\nprotocol = 'mongodb'\naddress = '/tmp/x.sock'\n";
    let config = load(&[SERVERS, MONITOR, SERVICE, LISTENER, mongodb].concat()).unwrap();
    assert!(config.stores_documents() && config.listeners.len() == 2);
    let config = load(&["listen = ['127.0.0.1:1']\n", SERVERS, MONITOR, SERVICE, LISTENER].concat()).unwrap();
    assert!(config.stores_documents() && config.listeners.len() == 2);

    let direct = "[service.app]\nservers = ['db2']\n[listener.sql]\nprotocol = 'mariadb'\naddress = '/tmp/x.sock'\nservice = 'app'\n";
    let config = load(&[SERVERS, direct].concat()).unwrap();
    assert_eq!((config.servers.services[0].role, &config.servers.services[0].account), (WantedRole::Any, &None));
}

#[test]
fn sql_listen_is_short_for_a_server_and_a_service() {
    let store = "[store]\nmariadb = 'mysql://joe:secret@h:99'\nsql-listen = ['127.0.0.1:1']\n";
    let config = load(store).unwrap();
    assert_eq!((config.servers.servers[0].host.as_str(), config.servers.servers[0].port), ("h", 99));
    assert_eq!(config.servers.services[0].account.as_ref().map(|account| account.user.as_str()), Some("joe"));
    assert!(config.has_sql_clients() && config.stores_documents());
    check_refused(
        &format!("{store}[server.mariadb]\naddress = 'x'"),
        "4: mariadb is the name of the server of sql-listen",
    );
}

#[test]
fn a_service_can_store_the_documents() {
    let store = "[store]\nservice = 'app'\nuser = 'documents'\npassword = 's3cret'\n";
    let config = load(&[store, SERVERS, MONITOR, SERVICE].concat()).unwrap();
    let Store::Service(of) = &config.store else { panic!("a service") };
    assert_eq!((of.name.as_str(), of.account.user.as_str()), ("app", "documents"));
    assert!(!format!("{config:?}").contains("s3cret"));
    let unmonitored = "[service.app]\nservers = ['db1']\n";
    for (text, expected) in [
        ([store, SERVERS, MONITOR].concat(), "2: there is no [service.app]; write a section"),
        ([store, SERVERS, unmonitored].concat(), "2: the service app has no monitor, so its primary is unknown"),
        (["[store]\nservice = 'app'\n", SERVERS, MONITOR, SERVICE].concat(), "2: service needs user"),
        ("[store]\nuser = 'u'\n".into(), "2: user belongs to service, which is not set"),
        ([store, "data = 'd'\n", SERVERS, MONITOR, SERVICE].concat(), "2: documents are stored either in MariaDB or"),
        (
            [store, "sql-listen = ['127.0.0.1:1']\n", SERVERS, MONITOR, SERVICE].concat(),
            "5: sql-listen forwards SQL clients to the one server of mariadb",
        ),
        (
            [store, "[cache]\nexternal-writes = 'none'\n", SERVERS, MONITOR, SERVICE].concat(),
            "6: with a service, the caches have to follow the log of its primary",
        ),
    ] {
        check_refused(&text, expected);
    }
}

#[test]
fn wrong_services_and_listeners_say_what_was_meant() {
    let base = [SERVERS, MONITOR, SERVICE].concat();
    for (text, expected) in [
        ("[service.app]\ncausal-reads = 'some'", "2: causal-reads: true, false or \"all\" is expected"),
        (
            "[service.app]\nrouter = 'readwritesplit'",
            "2: router: \"readwritesplit\" is not a router; write one of connections, read-write-split; did you mean",
        ),
        ("[service.app]\nfilter = ['log']", "2: there is no parameter \"filter\" in [service.NAME]; did you mean"),
        ("[service.app]\nrole = 'master'", "2: role: \"master\" is not a role; write one of primary, replica, any"),
        ("[service.app]\nrole = 'any'", "1: app has no servers; set monitor, or servers"),
        ("[service.app]\nmonitor = 'main'", "2: there is no [monitor.main]; write a section"),
        (
            "[listener.sql]\nprotocol = 'mysql'",
            "2: protocol: \"mysql\" is not a protocol; write one of mariadb, mongodb",
        ),
        ("[listener.sql]\nprotocol = 'mariadb'\naddress = '127.0.0.1:1'", "1: sql has no service; it must be set"),
    ] {
        check_refused(text, expected);
    }
    let with = |text: &str| format!("{base}{text}");
    let service = |text: &str| format!("{SERVERS}{MONITOR}[service.other]\nservers = ['db1']\n{text}");
    for (text, expected) in [
        ("router = 'read-write-split'", "13: read-write-split needs the roles of its servers; set monitor"),
        ("causal-reads = true", "13: causal-reads is a setting of the router read-write-split"),
        ("max-lag-seconds = 5", "13: max-lag-seconds is a setting of the router read-write-split"),
        ("monitor = 'main'\nrouter = 'read-write-split'\nrole = 'any'", "15: read-write-split uses servers of all"),
    ] {
        check_refused(&service(text), expected);
    }
    let listener = |name: &str, address: &str, service: &str| {
        format!("[listener.{name}]\nprotocol = 'mariadb'\naddress = '{address}'\nservice = '{service}'\n")
    };
    check_refused(&with(&listener("sql", "127.0.0.1:1", "ap")), "17: there is no [service.ap]; did you mean \"app\"?");
    check_refused(&with(&listener("sql", "0.0.0.0:1", "app")), "16: other machines can reach 0.0.0.0:1");
    let twice = listener("a", "127.0.0.1:1", "app") + &listener("b", "127.0.0.1:1", "app");
    check_refused(&with(&twice), "18: b has the address 127.0.0.1:1 of [listener.a]");
    let taken = "[listener.a]\nprotocol = 'mongodb'\naddress = '127.0.0.1:1'\n";
    check_refused(
        &format!("listen = ['127.0.0.1:1']\n{taken}"),
        "2: a has the address 127.0.0.1:1 of another listener",
    );
    check_refused(&with(&format!("{taken}service = 'app'")), "17: documents of MongoDB clients are in the store");
    check_refused(
        &with(&listener("sql", "[::1]:99", "app")),
        "3: db2 has the address [::1]:99, on which Selkie listens itself",
    );
    check_refused(&with("[service.other]\nmonitor = 'main'\nservers = ['db1', 'db3']"), "16: there is no [server.db3]");
    check_refused(
        &with("[service.other]\nservers = ['db1']\nrole = 'primary'"),
        "16: without a monitor, the roles of servers",
    );
    let cached = |more: &str| format!("{}[cache]\nmode = 'documents'\n{more}", with(LISTENER));
    assert!(load(&cached("")).is_ok());
    check_refused(
        &cached("listeners = ['127.0.0.1:4006 = results']"),
        "20: nothing is cached for the SQL clients of 127.0.0.1:4006",
    );
    check_refused(&cached("external-writes = 'none'"), "20: SQL clients of 127.0.0.1:4006 may write what is cached");
}
