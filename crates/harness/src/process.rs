//! CPU time and memory of a server's process, from /proc and the process's CPU clock.

use crate::address::Address;
use anyhow::{Context, Result};
use std::collections::HashSet;
use std::fs;
use std::net::ToSocketAddrs;
use std::path::Path;
use std::time::Duration;

pub type Pid = i32;

/// Returns the CPU time of all threads of the process, running and ended, in kernel and user mode,
/// to the nanosecond.
pub fn cpu_time(pid: Pid) -> Option<Duration> {
    let clock = nix::time::clock_getcpuclockid(nix::unistd::Pid::from_raw(pid)).ok()?;
    clock.now().ok().map(Duration::from)
}

/// Returns the CPU time of several processes together; `None` if there are none or one of them
/// cannot be read.
pub fn cpu_time_of(pids: &[Pid]) -> Option<Duration> {
    if pids.is_empty() { None } else { pids.iter().map(|&pid| cpu_time(pid)).sum() }
}

/// Returns the context switches of the threads that run now, voluntary and involuntary.
pub fn context_switches(pid: Pid) -> Option<u64> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let of_thread = |status: String| -> u64 {
        let counts = status.lines().filter_map(|line| line.split_once("ctxt_switches:"));
        counts.filter_map(|(_, count)| count.trim().parse::<u64>().ok()).sum()
    };
    Some(threads.filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok()).map(of_thread).sum())
}

/// Returns the resident memory now, in bytes.
pub fn resident_bytes(pid: Pid) -> Result<u64> {
    status_bytes(pid, "VmRSS:")
}

/// Returns the largest resident memory since the start or since [`reset_peak`], in bytes.
pub fn peak_resident_bytes(pid: Pid) -> Result<u64> {
    status_bytes(pid, "VmHWM:")
}

/// Resets the peak to the memory that is resident now.
pub fn reset_peak(pid: Pid) -> Result<()> {
    fs::write(format!("/proc/{pid}/clear_refs"), "5").context("resetting the process's peak memory")
}

fn status_bytes(pid: Pid, key: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).with_context(|| format!("process {pid}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(key)).context("no such line in /proc/…/status")?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kibibytes * 1024)
}

/// Returns the process of this machine that listens on `address`, if this process may inspect it.
pub fn listening_pid(address: &Address) -> Option<Pid> {
    let inodes = match address {
        Address::Tcp(host) | Address::Tls { host, .. } | Address::Login { host, .. } => {
            tcp_inodes(host.to_socket_addrs().ok()?.next()?.port())
        }
        Address::Unix(path) => unix_inodes(path),
    };
    if inodes.is_empty() {
        return None;
    }
    let pids = fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.into_iter().find(|&pid| holds_socket(pid, &inodes))
}

/// Returns the inodes of the sockets that listen on the port, on any local address.
fn tcp_inodes(port: u16) -> HashSet<String> {
    const LISTEN: &str = "0A";
    let suffix = format!(":{port:04X}");
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
    let lines = tables.iter().flat_map(|table| table.lines());
    let listening = lines.filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let ours = fields.get(1)?.ends_with(&suffix) && fields.get(3) == Some(&LISTEN);
        ours.then(|| fields.get(9).map(|inode| (*inode).to_owned())).flatten()
    });
    listening.collect()
}

fn unix_inodes(path: &Path) -> HashSet<String> {
    let table = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let ours = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        (fields.get(7).map(Path::new) == Some(path)).then(|| fields.get(6).map(|inode| (*inode).to_owned())).flatten()
    };
    table.lines().filter_map(ours).collect()
}

fn holds_socket(pid: Pid, inodes: &HashSet<String>) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    descriptors.flatten().filter_map(|entry| fs::read_link(entry.path()).ok()).any(|link| {
        let link = link.to_string_lossy();
        link.strip_prefix("socket:[")
            .and_then(|rest| rest.strip_suffix(']'))
            .is_some_and(|inode| inodes.contains(inode))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_this_process_by_its_port() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let pid = std::process::id() as Pid;
        assert_eq!(listening_pid(&Address::Tcp(listener.local_addr().unwrap().to_string())), Some(pid));
        assert!(cpu_time(pid).unwrap() > Duration::ZERO);
        assert!(resident_bytes(pid).unwrap() > 100_000);
        assert!(peak_resident_bytes(pid).unwrap() >= resident_bytes(pid).unwrap() / 2);
    }

    #[test]
    fn finds_this_process_by_its_unix_socket() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert_eq!(listening_pid(&Address::Unix(path)), Some(std::process::id() as Pid));
    }
}
