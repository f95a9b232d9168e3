//! The outcome of a run: tables, JSON, and warnings.

use super::measurements::{Measurements, OperationCounts, Summary};
use super::scenario::{Run, Scenario};
use super::stage::CheckResult;
use harness::report::{Machine, markdown, three_digits};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// The results of one scenario on each server.
#[derive(Serialize)]
pub struct Outcome {
    pub machine: Machine,
    pub scenario: String,
    pub about: String,
    pub run: Run,
    pub servers: Vec<Server>,
    /// The reasons why servers were skipped.
    pub left_out: Vec<String>,
}

#[derive(Serialize)]
pub struct Server {
    pub name: String,
    pub operations: Vec<Operation>,
    pub checks: Vec<CheckResult>,
    pub load: Load,
}

#[derive(Serialize)]
pub struct Operation {
    pub name: String,
    pub done: u64,
    pub stopped: u64,
    pub failed: u64,
    pub abandoned: u64,
    pub retries: u64,
    /// From the scheduled start of users.
    pub times: Summary,
    /// From their first message.
    pub times_from_sending: Summary,
    pub steps: Vec<Step>,
    pub errors: BTreeMap<String, u64>,
    pub by_second: Vec<Summary>,
    /// Pairs of a quantile, from 0 to 1, and its time in milliseconds.
    pub quantiles: Vec<(f64, f64)>,
}

#[derive(Serialize)]
pub struct Step {
    pub name: String,
    #[serde(flatten)]
    pub times: Summary,
}

#[derive(Serialize)]
pub struct Load {
    pub runtime_seconds: f64,
    pub offered_per_second: f64,
    /// Users per second that finished before the last second was over.
    pub achieved_per_second: f64,
    /// The lateness of the starts of users.
    pub lateness: Summary,
    /// CPU time of the simulation's processes, in percent of one core.
    pub own_cpu_percent: f64,
    /// CPU time of the server, and of its backend, in microseconds per user.
    pub server_cpu_us: Option<f64>,
    pub backend_cpu_us: Option<f64>,
}

/// CPU time spent by a server and by its backend.
pub type ServerCpu = (Option<Duration>, Option<Duration>);

/// The share of the offered load from which a server counts as keeping up.
const ACHIEVED_MIN: f64 = 0.99;
/// If the simulation itself takes more of a core, or is later, its own delays affect the results.
const OWN_CPU_MAX_PERCENT: f64 = 80.0;
const LATENESS_MAX_MS: f64 = 2.0;
/// Points of the curve of quantiles, evenly spaced in the number of nines.
const QUANTILES: usize = 100;

impl Server {
    pub fn new(
        name: &str,
        scenario: &Scenario,
        run: &Run,
        measurements: &Measurements,
        checks: Vec<CheckResult>,
        cpu: ServerCpu,
    ) -> Server {
        let users = measurements.operations.iter().map(OperationCounts::users).sum::<u64>().max(1);
        let per_user = |cpu: Option<Duration>| cpu.map(|cpu| cpu.as_secs_f64() * 1e6 / users as f64);
        let load = Load {
            runtime_seconds: measurements.runtime.as_secs_f64(),
            offered_per_second: run.users_per_second.into(),
            achieved_per_second: measurements.finished_in_time as f64 / run.window().as_secs_f64(),
            lateness: measurements.lateness.summary(),
            own_cpu_percent: 100.0 * measurements.cpu.as_secs_f64() / measurements.runtime.as_secs_f64().max(1e-9),
            server_cpu_us: per_user(cpu.0),
            backend_cpu_us: per_user(cpu.1),
        };
        let operations = scenario.operations.iter().zip(&measurements.operations);
        let operations = operations.map(|(operation, counts)| Operation::new(operation, counts)).collect();
        Server { name: name.to_owned(), operations, checks, load }
    }

    /// Returns warnings about the results.
    fn warnings(&self) -> Vec<String> {
        let (name, load) = (&self.name, &self.load);
        let mut warnings = Vec::new();
        if load.achieved_per_second < ACHIEVED_MIN * load.offered_per_second {
            warnings.push(format!(
                "{name} did not keep up: {} of {} users a second; times include waiting since the scheduled start",
                three_digits(load.achieved_per_second),
                three_digits(load.offered_per_second)
            ));
        }
        for operation in &self.operations {
            if operation.abandoned > 0 {
                warnings.push(format!(
                    "{name}: {} users of {:?} had not finished at the end; the times do not include them",
                    operation.abandoned, operation.name
                ));
            }
            for (error, count) in &operation.errors {
                warnings.push(format!("{name}: {count} users of {:?} failed with {error}", operation.name));
            }
        }
        if load.own_cpu_percent > OWN_CPU_MAX_PERCENT {
            warnings.push(format!(
                "{name}: the simulation itself took {} % of a core; use more processes or fewer users for better results",
                three_digits(load.own_cpu_percent)
            ));
        }
        // If the server does not keep up, lateness is due to its occupied connections.
        if load.lateness.p99_ms > LATENESS_MAX_MS && load.achieved_per_second >= ACHIEVED_MIN * load.offered_per_second
        {
            warnings.push(format!(
                "{name}: one user of a hundred started {} ms late or later, because of a missing connection or CPU time of the simulation",
                three_digits(load.lateness.p99_ms)
            ));
        }
        let broken = self.checks.iter().filter(|check| !check.holds);
        warnings.extend(broken.map(|check| {
            format!("{name}: CHECK FAILED: {}: {} instead of {}", check.check, check.found, check.expected)
        }));
        warnings
    }
}

impl Operation {
    fn new(operation: &super::scenario::Operation, counts: &OperationCounts) -> Operation {
        let steps = operation.steps.iter().zip(&counts.steps);
        let quantile = |point: usize| 1.0 - 10f64.powf(-4.0 * point as f64 / QUANTILES as f64);
        let quantiles = (0..QUANTILES).map(quantile).map(|part| (part, counts.times.quantile_ms(part)));
        Operation {
            name: operation.name.clone(),
            done: counts.done,
            stopped: counts.stopped,
            failed: counts.failed,
            abandoned: counts.abandoned,
            retries: counts.retries,
            times: counts.times.summary(),
            times_from_sending: counts.times_from_sending.summary(),
            steps: steps.map(|(step, times)| Step { name: step.name.clone(), times: times.summary() }).collect(),
            errors: counts.errors.clone(),
            by_second: counts.by_second.iter().map(|times| times.summary()).collect(),
            quantiles: if counts.times.count() == 0 { Vec::new() } else { quantiles.collect() },
        }
    }
}

impl Outcome {
    /// Returns whether all checks hold.
    pub fn holds(&self) -> bool {
        self.servers.iter().flat_map(|server| &server.checks).all(|check| check.holds)
    }

    /// Formats the outcome as text.
    pub fn text(&self) -> String {
        let run = &self.run;
        let machine = &self.machine;
        let mut text = format!(
            "{}: {}\n{} processes with {} connections each; {} iterations of a second; {} users a second, in slices of {} ms\n\n",
            self.scenario, self.about, run.processes, run.pool, run.iterations, run.users_per_second, run.slice_ms
        );
        text += &markdown(&self.times());
        text += "\n";
        text += &markdown(&self.loads());
        if let Some(checks) = self.checks() {
            text += "\n";
            text += &markdown(&checks);
        }
        let warnings: Vec<String> = self.warnings().collect();
        if !warnings.is_empty() {
            text += &format!("\n- {}\n", warnings.join("\n- "));
        }
        text + &format!(
            "\n{} cores, {}, load average at the start {}\n",
            machine.cores, machine.cpu, machine.load_average
        )
    }

    pub fn warnings(&self) -> impl Iterator<Item = String> {
        let left_out = self.left_out.iter().map(|reason| format!("skipped: {reason}"));
        left_out.chain(self.servers.iter().flat_map(Server::warnings))
    }

    /// Returns a line per operation and server, and per step if there are several.
    pub fn times(&self) -> Vec<Vec<String>> {
        let heads = [
            "operation",
            "server",
            "users",
            "stopped",
            "failed",
            "mean ms",
            "sd",
            "p50",
            "p75",
            "p95",
            "p99",
            "min",
            "max",
        ];
        let mut lines = vec![heads.map(str::to_owned).to_vec()];
        for index in 0..self.servers.first().map_or(0, |server| server.operations.len()) {
            for server in &self.servers {
                let operation = &server.operations[index];
                let counts =
                    [operation.times.count, operation.stopped, operation.failed].map(|count| count.to_string());
                lines.push(line(&operation.name, &server.name, counts, &operation.times));
            }
            let steps = self.servers.first().map_or(0, |server| server.operations[index].steps.len());
            for step in (0..steps).filter(|_| steps > 1) {
                for server in &self.servers {
                    let step = &server.operations[index].steps[step];
                    let counts = [step.times.count.to_string(), String::new(), String::new()];
                    lines.push(line(&format!("· {}", step.name), &server.name, counts, &step.times));
                }
            }
        }
        lines
    }

    pub fn loads(&self) -> Vec<Vec<String>> {
        let heads = [
            "load",
            "server",
            "offered/s",
            "achieved/s",
            "runtime s",
            "late start, mean ms",
            "p99",
            "cpu µs/user",
            "backend",
            "simulator's CPU, % of a core",
        ];
        let mut lines = vec![heads.map(str::to_owned).to_vec()];
        for server in &self.servers {
            let load = &server.load;
            let cpu = |cpu: Option<f64>| cpu.map(three_digits).unwrap_or_default();
            lines.push(vec![
                "users".to_owned(),
                server.name.clone(),
                three_digits(load.offered_per_second),
                three_digits(load.achieved_per_second),
                three_digits(load.runtime_seconds),
                three_digits(load.lateness.mean_ms),
                three_digits(load.lateness.p99_ms),
                cpu(load.server_cpu_us),
                cpu(load.backend_cpu_us),
                three_digits(load.own_cpu_percent),
            ]);
        }
        lines
    }

    pub fn checks(&self) -> Option<Vec<Vec<String>>> {
        let mut lines = vec![["check", "server", "holds", "expected", "found"].map(str::to_owned).to_vec()];
        for server in &self.servers {
            for check in &server.checks {
                let holds = if check.holds { "yes" } else { "NO" }.to_owned();
                let found = check.found.chars().take(60).collect();
                lines.push(vec![check.check.clone(), server.name.clone(), holds, check.expected.clone(), found]);
            }
        }
        (lines.len() > 1).then_some(lines)
    }
}

fn line(name: &str, server: &str, counts: [String; 3], times: &Summary) -> Vec<String> {
    let names = [name.to_owned(), server.to_owned()];
    names.into_iter().chain(counts).chain(times.columns().map(three_digits)).collect()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::measurements::Times;

    /// Returns a run on one server that has served `achieved` of its thousand users.
    pub fn outcome(achieved: u64) -> Outcome {
        let run =
            Run { processes: 1, pool: 1, iterations: 1, users_per_second: 1000, slice_ms: 10, overtime_seconds: 1 };
        let servers = vec![server(achieved, true)];
        let machine = Machine::default();
        Outcome { machine, scenario: "a test".into(), about: "1 < 2".into(), run, servers, left_out: Vec::new() }
    }

    fn server(achieved: u64, holds: bool) -> Server {
        let text = "[[operation]]\nname = 'read'\n[[operation.step]]\ncommand = { ping = 1 }";
        let scenario = Scenario::read(text, &[]).unwrap();
        let run = Run { iterations: 1, users_per_second: 1000, ..scenario.run.clone() };
        let mut counts = OperationCounts { done: achieved, abandoned: 1000 - achieved, ..OperationCounts::new(1, 1) };
        let mut times = Times::default();
        (0..achieved).for_each(|number| times.record(Duration::from_micros(100 + number)));
        counts.times = times.clone();
        counts.by_second = vec![times];
        let measurements = Measurements {
            operations: vec![counts],
            finished_in_time: achieved,
            runtime: Duration::from_secs(1),
            cpu: Duration::from_millis(100),
            ..Measurements::default()
        };
        let check = CheckResult { check: "it is so".into(), holds, expected: "1".into(), found: "2".into() };
        Server::new("one", &scenario, &run, &measurements, vec![check], (Some(Duration::from_millis(50)), None))
    }

    #[test]
    fn a_server_that_keeps_up_causes_no_warnings() {
        let server = server(1000, true);
        assert_eq!(server.warnings(), Vec::<String>::new());
        assert_eq!((server.load.own_cpu_percent, server.load.server_cpu_us), (10.0, Some(50.0)));
    }

    #[test]
    fn overload_and_failed_checks_are_warnings() {
        let warnings = server(600, false).warnings();
        let check = |part: &str| assert!(warnings.iter().any(|warning| warning.contains(part)), "{part}: {warnings:?}");
        check("did not keep up: 600 of 1000");
        check("400 users of \"read\" had not finished");
        check("CHECK FAILED: it is so: 2 instead of 1");
    }
}
