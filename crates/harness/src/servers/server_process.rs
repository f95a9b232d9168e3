//! The process of a started server.

use crate::process::Pid;
use anyhow::{Context, Result, bail};
use rustix::process::{Pid as SignalPid, Signal, kill_process};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

pub const START_TIMEOUT: Duration = Duration::from_secs(60);
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// A child process. Dropping it sends SIGTERM, and SIGKILL if it has not ended in time.
pub struct ServerProcess {
    name: String,
    child: Child,
    log: PathBuf,
}

impl ServerProcess {
    /// Starts the process with its log in `folder` and no standard input.
    pub fn spawn(name: &str, program: &Path, arguments: &[&OsStr], folder: &Path) -> Result<ServerProcess> {
        let log = folder.join(format!("{name}.log"));
        let output = File::create(&log)?;
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        Ok(ServerProcess { name: name.to_owned(), child, log })
    }

    pub fn pid(&self) -> Pid {
        self.child.id() as Pid
    }

    /// Waits until `ready` returns true; fails with the end of the log if the process ends first.
    pub fn wait_until(mut self, ready: impl Fn() -> bool) -> Result<ServerProcess> {
        let deadline = Instant::now() + START_TIMEOUT;
        while !ready() {
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended with {status}:\n{}", self.name, self.end_of_log());
            }
            if Instant::now() > deadline {
                bail!("{} did not start in {START_TIMEOUT:?}:\n{}", self.name, self.end_of_log());
            }
            sleep(Duration::from_millis(50));
        }
        Ok(self)
    }

    fn end_of_log(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if let Some(pid) = SignalPid::from_raw(self.pid()) {
            kill_process(pid, Signal::TERM).ok();
        }
        let deadline = Instant::now() + STOP_TIMEOUT;
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            sleep(Duration::from_millis(20));
        }
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
