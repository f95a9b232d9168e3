//! The machine and the versions of a report.

use anyhow::Result;
use harness::report::{Machine, markdown};
use harness::servers::ServerArgs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

pub struct Environment {
    /// The load average of the last minute, at the start.
    load: f64,
    lines: Vec<(&'static str, String)>,
}

/// A higher load average means that the machine had other work.
const LOAD_MAX: f64 = 1.0;

impl Environment {
    pub fn find(servers: &ServerArgs) -> Result<Environment> {
        let machine = Machine::default();
        let load = machine.load_average.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0);
        let selkie = version(&servers.gateway.selkie_program()?);
        // A Selkie that is named may be of another commit.
        let commit = if servers.gateway.selkie.is_none() { commit() } else { String::new() };
        let version_of = |program: &Option<PathBuf>| program.as_deref().map_or_else(String::new, version);
        let lines = vec![
            ("machine", format!("{} cores ({}), {} of memory", machine.cores, machine.cpu, memory())),
            ("system", system()),
            ("load average at the start", machine.load_average),
            ("Selkie", selkie + &commit),
            ("MongoDB", version_of(&servers.mongod)),
            ("MariaDB", version_of(&servers.gateway.mariadbd)),
            ("date", date(machine.unix_seconds as i64)),
        ];
        Ok(Environment { load, lines })
    }

    /// Returns a warning if the machine had other work, or an empty text.
    pub fn warning(&self) -> String {
        if self.load <= LOAD_MAX {
            return String::new();
        }
        format!(
            "**The machine had other work**: its load average at the start was {:.1}. Waiting for a core increases means, standard deviations and \
             high percentiles most; medians (p50), CPU times and ratios least. Servers of one table were measured in turns, except in \
             simulations, which run on one server after the other.\n\n",
            self.load
        )
    }

    pub fn markdown(&self) -> String {
        let head = vec!["environment".to_owned(), String::new()];
        let lines = self.lines.iter().map(|(name, value)| vec![(*name).to_owned(), value.clone()]);
        markdown(&std::iter::once(head).chain(lines).collect::<Vec<_>>())
    }
}

/// Returns the first line that a program prints for `--version`, without its path.
fn version(program: &Path) -> String {
    let output = Command::new(program).arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let line = text.lines().next().unwrap_or("unknown").trim();
    let name = program.display().to_string();
    line.strip_prefix(&name).map_or(line, str::trim_start).to_owned()
}

/// Returns the commit of the current directory, or an empty text outside of a repository.
fn commit() -> String {
    let output = Command::new("git").args(["rev-parse", "--short", "HEAD"]).output();
    match output {
        Ok(output) if output.status.success() => format!(", {}", String::from_utf8_lossy(&output.stdout).trim()),
        _ => String::new(),
    }
}

fn system() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let release = read("/etc/os-release");
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME=")).unwrap_or("unknown");
    format!("{}, Linux {}", name.trim_matches('"'), read("/proc/sys/kernel/osrelease").trim())
}

fn memory() -> String {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = info.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kibibytes = total.and_then(|total| f64::from_str(total.trim().trim_end_matches("kB").trim()).ok());
    kibibytes.map_or_else(|| "an unknown amount".to_owned(), |kibibytes| format!("{:.1} GiB", kibibytes / 1_048_576.0))
}

/// Returns the day, such as 2026-01-31.
fn date(unix_seconds: i64) -> String {
    let mut text = Vec::new();
    document::json::value_to_json(document::Value::DateTime(unix_seconds * 1000), &mut text);
    // `{"$date":"2026-01-31T…`
    let text = String::from_utf8_lossy(&text).into_owned();
    text.split('"').find(|part| part.contains('T')).and_then(|date| date.get(..10)).unwrap_or("unknown").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_formatted() {
        assert_eq!(date(951_782_400), "2000-02-29");
    }
}
