//! The processes of a simulation: instances of this program, controlled by their standard input.
//!
//! Each reads its [`Job`] from a line, opens its connections and prints [`READY`]. Then it reads
//! the time of the start, on the clock that all processes of a machine share, and at the end prints
//! its measurements as JSON.

use super::generator::Source;
use super::measurements::Measurements;
use super::scenario::{Run, Scenario};
use super::worker::Worker;
use anyhow::{Context, Result, anyhow, bail};
use harness::address::Address;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// The work of a process.
#[derive(Serialize, Deserialize)]
pub struct Job {
    /// The text of the scenario; each process parses it.
    pub scenario: String,
    pub set: Vec<(String, String)>,
    pub run: Run,
    pub process: u32,
    pub address: Address,
    pub seed: u64,
    /// The next number of each sequence.
    pub sequences: Vec<i64>,
}

/// The hidden option that runs this program as one of the processes.
pub const OPTION: &str = "--as-process";
const READY: &str = "ready";
/// The time for all processes to receive the start.
const LEAD: Duration = Duration::from_millis(200);

/// Runs all processes of a run. `job` returns the job of each.
pub fn run(processes: u32, job: impl Fn(u32) -> Job) -> Result<Measurements> {
    let mut started = (0..processes).map(|number| Process::start(&job(number))).collect::<Result<Vec<_>>>()?;
    started.iter_mut().try_for_each(Process::wait_until_ready)?;
    let begin = clock() + LEAD;
    started.iter_mut().try_for_each(|process| process.send(&begin.as_nanos().to_string()))?;
    Measurements::sum(started.into_iter().map(Process::finish).collect::<Result<_>>()?)
}

struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Process {
    fn start(job: &Job) -> Result<Process> {
        let program = std::env::current_exe().context("finding this program")?;
        let mut child = Command::new(program)
            .arg(OPTION)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting a process of the simulation")?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("a process without pipes");
        };
        let mut process = Process { child, input, output: BufReader::new(output) };
        process.send(&serde_json::to_string(job)?)?;
        Ok(process)
    }

    fn send(&mut self, line: &str) -> Result<()> {
        writeln!(self.input, "{line}").context("writing to a process of the simulation")?;
        Ok(())
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        // The process has printed the error itself.
        if line.trim_end() == READY { Ok(()) } else { bail!("a process of the simulation did not get ready") }
    }

    fn finish(mut self) -> Result<Measurements> {
        let mut text = String::new();
        self.output.read_to_string(&mut text)?;
        let status = self.child.wait()?;
        if !status.success() {
            bail!("a process of the simulation ended with {status}");
        }
        serde_json::from_str(&text).context("reading the measurements of a process")
    }
}

impl Drop for Process {
    /// Kills the process if it still runs after a failure.
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.child.kill().ok();
            self.child.wait().ok();
        }
    }
}

/// Runs this program as one of the processes.
pub fn run_as_process() -> Result<()> {
    let mut lines = std::io::stdin().lines();
    let mut line = || lines.next().context("the simulation has closed its pipe")?.context("reading standard input");
    let job: Job = serde_json::from_str(&line()?)?;
    let scenario = Scenario::read(&job.scenario, &job.set).map_err(|refusal| anyhow!("line {refusal}"))?;
    let source = Source::new(job.seed, &job.sequences, job.process, job.run.processes);
    let worker = Worker::prepare(&scenario, &job.run, job.process, source, &job.address)?;
    println!("{READY}");
    let begin = Duration::from_nanos(line()?.trim().parse().context("parsing the time of the start")?);
    let measurements = worker.run(Instant::now() + begin.saturating_sub(clock()))?;
    println!("{}", serde_json::to_string(&measurements)?);
    Ok(())
}

/// Returns the monotonic clock, which is the same for all processes.
fn clock() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
