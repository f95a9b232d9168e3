//! What the figures were made on and with.

use super::PublishedArgs;
use crate::report::{Machine, markdown};
use std::path::Path;
use std::process::Command;
use std::str::FromStr;

pub struct Environment {
    /// The load average of the last minute, at the start.
    load: f64,
    lines: Vec<(&'static str, String)>,
}

/// With a load average beyond this, somebody else was at work.
const LOAD_MAX: f64 = 1.0;

impl Environment {
    pub fn find(args: &PublishedArgs) -> Environment {
        let machine = Machine::default();
        let load = machine.load_average.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0);
        let selkie = match &args.selkie {
            Some(program) => version(program),
            None => format!("selkie {}{}", env!("CARGO_PKG_VERSION"), commit()),
        };
        let lines = vec![
            ("machine", format!("{} cores ({}), {} of memory", machine.cores, machine.cpu, memory())),
            ("system", system()),
            ("load average at the start", machine.load_average),
            ("Selkie", selkie),
            ("MongoDB", version(&args.mongod)),
            ("MariaDB", version(&args.mariadbd)),
            ("date", date(machine.unix_seconds as i64)),
        ];
        Environment { load, lines }
    }

    /// What one should know of the machine's other work, if there was any.
    pub fn warning(&self) -> String {
        if self.load <= LOAD_MAX {
            return String::new();
        }
        format!(
            "**The machine had other work**: its load average at the start was {:.1}. Whoever had to wait for a core waited much longer than the servers \
             need, which shows in means, standard deviations and high percentiles first; medians (p50), CPU times and ratios suffer least. Servers of one table \
             were measured in turns except for simulations, which run on one server after the other.\n\n",
            self.load
        )
    }

    pub fn markdown(&self) -> String {
        let head = vec!["made".to_owned(), "on and with".to_owned()];
        let lines = self.lines.iter().map(|(what, is)| vec![(*what).to_owned(), is.clone()]);
        markdown(&std::iter::once(head).chain(lines).collect::<Vec<_>>())
    }
}

/// The first line of what a program says of its version, without where it lies.
fn version(program: &Path) -> String {
    let said = Command::new(program).arg("--version").output();
    let said = said.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let line = said.lines().next().unwrap_or("unknown").trim();
    let name = program.display().to_string();
    line.strip_prefix(&name).map_or(line, str::trim_start).to_owned()
}

/// The commit, where the program is run from its sources.
fn commit() -> String {
    let said = Command::new("git").args(["rev-parse", "--short", "HEAD"]).output();
    match said {
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

/// The day, as in 2026-01-31.
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
    fn days() {
        assert_eq!(date(951_782_400), "2000-02-29");
    }
}
