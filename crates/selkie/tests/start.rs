//! The program from the command line: its output, and its errors at the start.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

fn selkie(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selkie"));
    command.args(arguments).env_remove("SELKIE_LOG").stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A running server that is killed when the test ends, however it ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server. Returns the port assigned, and its output.
fn serve(data: &Path, more: &[&str]) -> (Running, u16, String) {
    let arguments = [&["serve", "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()], more].concat();
    let mut running = Running(selkie(&arguments).spawn().unwrap());
    let mut out = BufReader::new(running.0.stdout.take().unwrap());
    let mut said = String::new();
    while !said.contains("  try ") {
        assert!(out.read_line(&mut said).unwrap() > 0, "it ended after saying {said:?}");
    }
    let port = said.split("127.0.0.1:").nth(1).unwrap().lines().next().unwrap().trim().parse().unwrap();
    (running, port, said)
}

fn check_refused(arguments: &[&str], parts: &[&str]) {
    let Output { status, stderr, stdout } = selkie(arguments).output().unwrap();
    let said = String::from_utf8(stderr).unwrap();
    assert!(!status.success(), "{arguments:?} was accepted: {}", String::from_utf8_lossy(&stdout));
    for part in parts {
        assert!(said.contains(part), "{said:?} lacks {part:?}");
    }
    assert_eq!(said.lines().count(), 1, "one sentence, not {said:?}");
    assert!(!said.contains("secret"), "a password in {said:?}");
}

#[test]
fn it_prints_its_addresses_and_drains_on_sigterm() {
    let directory = tempfile::tempdir().unwrap();
    let (mut running, port, said) = serve(directory.path(), &["--threads", "2"]);
    assert!(said.contains(&format!("data in       {}", directory.path().display())), "{said}");
    assert!(said.contains(&format!("mongosh mongodb://127.0.0.1:{port}")), "{said}");
    let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let process = rustix::process::Pid::from_child(&running.0);
    rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
    assert!(running.0.wait().unwrap().success());
    assert_eq!(client.read(&mut [0; 1]).unwrap_or(0), 0);
}

#[test]
fn a_port_in_use() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().to_str().unwrap();
    check_refused(&["serve", "--listen", &address, "--data", data], &[&address, "in use", "--listen"]);
    // A Selkie shares ports between its own threads, and with no other process.
    let (_running, port, _) = serve(directory.path(), &[]);
    let address = format!("127.0.0.1:{port}");
    check_refused(&["serve", "--listen", &address, "--data", data], &[&address, "in use", "--listen"]);
}

#[test]
fn a_data_directory_in_use() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().to_str().unwrap();
    let (_running, ..) = serve(directory.path(), &[]);
    check_refused(&["serve", "--listen", "127.0.0.1:0", "--data", data], &[data]);
}

#[test]
fn a_data_directory_that_cannot_be_created() {
    check_refused(&["serve", "--listen", "127.0.0.1:0", "--data", "/proc/no/such/place"], &["/proc/no/such/place"]);
}

#[test]
fn invalid_addresses() {
    check_refused(&["serve", "--listen", "192.0.2.1:0"], &["--listen", "--auth", "--insecure-without-auth"]);
    check_refused(
        &["serve", "--listen", "192.0.2.1:27017", "--insecure-without-auth"],
        &["not an address of this machine"],
    );
    check_refused(&["serve", "--listen", "/no/such/directory/s.sock"], &["directory", "does not exist"]);
    check_refused(&["serve", "--listen", "somewhere"], &["--listen", "host:port"]);
}

#[test]
fn an_unreachable_mariadb() {
    let url = "mysql://joe:secret@127.0.0.1:1";
    check_refused(&["serve", "--listen", "127.0.0.1:0", "--mariadb", url], &["127.0.0.1:1"]);
    check_refused(&["serve", "--mariadb", "postgres://joe:secret@host"], &["--mariadb", "mysql://"]);
    check_refused(&["serve", "--mariadb", url, "--data", "x"], &["--mariadb", "--data", "leave one of them out"]);
}

#[test]
fn configuration_files() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("selkie.toml");
    let file = path.to_str().unwrap();
    check_refused(&["check", "--config", file], &["cannot read", file]);
    std::fs::write(&path, "threads = 2\n[store]\ndta = 'x'\n").unwrap();
    let place = format!("{file}:3: ");
    check_refused(&["check", "--config", file], &[&place, "did you mean \"data\"?"]);
    check_refused(&["serve", "--config", file], &[&place, "did you mean \"data\"?"]);
    std::fs::write(&path, "threads = 2\n").unwrap();
    let output = selkie(&["check", "--config", file]).output().unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8(output.stdout).unwrap().contains("127.0.0.1:27017"));
}

#[test]
fn a_unix_socket_is_served_and_removed() {
    use std::io::Write;
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("selkie.sock");
    let (mut running, ..) = serve(&directory.path().join("data"), &["--listen", socket.to_str().unwrap()]);
    let mut client = std::os::unix::net::UnixStream::connect(&socket).unwrap();
    let mut ping = Vec::new();
    let body = document::doc! { "ping": 1, "$db": "admin" };
    mongo_wire::client::Command { body: body.as_bytes(), ..Default::default() }.encode(&mut ping);
    for _ in 0..4 {
        client.write_all(&ping).unwrap();
        client.read_exact(&mut [0; 38]).unwrap();
    }
    let process = rustix::process::Pid::from_child(&running.0);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    assert!(running.0.wait().unwrap().success());
    assert!(!socket.exists());
}

#[test]
fn version() {
    let output = selkie(&["--version"]).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("selkie {}\n", env!("CARGO_PKG_VERSION")));
}
