//! Sections with names, right and wrong.

use crate::config::{Config, ConfigError, file};
use service::ClusterKind;
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
        ("[monitor.main]\nfailover = true", "2: there is no parameter \"failover\" in [monitor.NAME]; "),
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
