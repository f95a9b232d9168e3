//! Counting system calls, of this process and of servers: a helper process stops each of their threads at each call (ptrace).
//!
//! That makes everything slow, so nothing else is measured meanwhile. What is counted are entries into the kernel, whatever they are for; who
//! may be traced is the system's affair (`kernel.yama.ptrace_scope`), and where it may not, there is no figure.

use crate::process::Pid;
use anyhow::{Context, Result, bail};
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

/// What the helper says when all threads are being watched.
const READY: &str = "ready";

/// How often the helper looks for threads that have stopped.
const LOOK_EVERY: Duration = Duration::from_micros(20);

/// The kernel's `PTRACE_SYSCALL_INFO_ENTRY`.
const ENTRY: u8 = 1;

/// The helper, while it counts.
pub struct Counter {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Counter {
    /// `None`: these processes may not be watched.
    pub fn begin(pids: &[Pid]) -> Result<Option<Counter>> {
        // Only asked for where a parent may not be traced by its children; elsewhere it is refused, and not needed.
        let _ = set_ptracer(PTracer::Any);
        let mut child = Command::new(std::env::current_exe()?)
            .args(["bench", "count-calls"])
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

    /// All calls since then.
    pub fn end(mut self) -> Result<u64> {
        drop(self.child.stdin.take());
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        self.child.wait()?;
        line.trim().parse().context("the process that counts system calls did not say how many there were")
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

static OVER: AtomicBool = AtomicBool::new(false);

/// The helper: watches until standard input ends, and prints one number.
pub fn count_calls(args: &CountCallsArgs) -> Result<()> {
    for &pid in &args.pids {
        let threads = fs::read_dir(format!("/proc/{pid}/task")).with_context(|| format!("process {pid}"))?;
        for thread in threads.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
            watch(NixPid::from_raw(thread))?;
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
            Ok(WaitStatus::StillAlive) => std::thread::sleep(LOOK_EVERY),
            Ok(WaitStatus::PtraceSyscall(thread)) => {
                calls += u64::from(ptrace::syscall_info(thread).is_ok_and(|info| info.op == ENTRY));
                go_on(thread, None)?;
            }
            Ok(WaitStatus::PtraceEvent(thread, ..)) => go_on(thread, None)?,
            Ok(WaitStatus::Stopped(thread, signal)) => go_on(thread, Some(signal))?,
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => bail!("waiting for the processes: {error}"),
        }
    }
    // When this process ends, those it watches go on by themselves.
    println!("{calls}");
    Ok(())
}

/// From the thread's next call on.
fn watch(thread: NixPid) -> Result<()> {
    let options = Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_TRACECLONE;
    match ptrace::seize(thread, options) {
        Ok(()) => Ok(ptrace::interrupt(thread)?),
        // It has ended meanwhile.
        Err(Errno::ESRCH) => Ok(()),
        Err(error) => bail!("thread {thread} may not be watched: {error}"),
    }
}

fn go_on(thread: NixPid, signal: Option<Signal>) -> Result<()> {
    match ptrace::syscall(thread, signal) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(error) => bail!("thread {thread}: {error}"),
    }
}
