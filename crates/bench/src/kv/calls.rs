//! Counts the system calls of this process and of servers: a child process stops each of their
//! threads at each call (ptrace).
//!
//! That makes everything slow, so nothing else is measured meanwhile. All entries into the kernel
//! are counted. The system may forbid tracing (`kernel.yama.ptrace_scope`); then there is no
//! result.

use anyhow::{Context, Result, bail};
use harness::process::Pid;
use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid as NixPid;
use rustix::process::{PTracer, set_ptracer};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[derive(clap::Args, Debug, Clone)]
pub struct CountCallsArgs {
    /// The processes, by their ids
    pub pids: Vec<Pid>,
}

/// The line that the child prints once it traces all threads.
const READY: &str = "ready";

/// The interval at which the child polls for stopped threads.
const POLL_INTERVAL: Duration = Duration::from_micros(20);

/// The kernel's `PTRACE_SYSCALL_INFO_ENTRY`.
const ENTRY: u8 = 1;

/// The child process, while it counts.
pub struct Counter {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Counter {
    /// Starts to count. Returns `None` if the processes may not be traced.
    pub fn begin(pids: &[Pid]) -> Result<Option<Counter>> {
        // Needed on systems where a child may not trace its parent; others refuse it.
        let _ = set_ptracer(PTracer::Any);
        let mut child = Command::new(std::env::current_exe()?)
            .arg("count-calls")
            .args(pids.iter().map(Pid::to_string))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("starting the process that counts system calls")?;
        let mut output = BufReader::new(child.stdout.take().context("the counter has no output")?);
        let mut line = String::new();
        output.read_line(&mut line)?;
        if line.trim() == READY {
            return Ok(Some(Counter { child, output }));
        }
        child.wait()?;
        Ok(None)
    }

    /// Returns the number of calls since the beginning.
    pub fn end(mut self) -> Result<u64> {
        drop(self.child.stdin.take());
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        self.child.wait()?;
        line.trim().parse().context("the process that counts system calls printed no number")
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

static OVER: AtomicBool = AtomicBool::new(false);

/// Runs the child process: traces until standard input ends, and prints the number of calls.
pub fn count_calls(args: &CountCallsArgs) -> Result<()> {
    for &pid in &args.pids {
        let threads = fs::read_dir(format!("/proc/{pid}/task")).with_context(|| format!("process {pid}"))?;
        for thread in threads.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
            trace(NixPid::from_raw(thread))?;
        }
    }
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        OVER.store(true, Ordering::Release);
    });
    println!("{READY}");
    let mut calls = 0;
    while !OVER.load(Ordering::Acquire) {
        match waitpid(None, Some(WaitPidFlag::__WALL | WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => std::thread::sleep(POLL_INTERVAL),
            Ok(WaitStatus::PtraceSyscall(thread)) => {
                calls += u64::from(ptrace::syscall_info(thread).is_ok_and(|info| info.op == ENTRY));
                resume(thread, None)?;
            }
            Ok(WaitStatus::PtraceEvent(thread, ..)) => resume(thread, None)?,
            Ok(WaitStatus::Stopped(thread, signal)) => resume(thread, Some(signal))?,
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => bail!("waiting for the processes: {error}"),
        }
    }
    // When this process ends, the traced processes continue.
    println!("{calls}");
    Ok(())
}

/// Traces a thread from its next call on.
fn trace(thread: NixPid) -> Result<()> {
    let options = Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_TRACECLONE;
    match ptrace::seize(thread, options) {
        Ok(()) => Ok(ptrace::interrupt(thread)?),
        // The thread has ended meanwhile.
        Err(Errno::ESRCH) => Ok(()),
        Err(error) => bail!("thread {thread} may not be traced: {error}"),
    }
}

fn resume(thread: NixPid, signal: Option<Signal>) -> Result<()> {
    match ptrace::syscall(thread, signal) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(error) => bail!("thread {thread}: {error}"),
    }
}
