//! Runs the experiments that were published for the systems Selkie starts from, and writes a report
//! with the published numbers beside the results.
//!
//! A section is one function. It runs a command of `bench` or `simulate`, which the report shows
//! under the table.

mod args;
mod cars;
mod environment;
mod key_value;
mod section;
mod slice_cache;
mod sql;

pub use args::PublishedArgs;

use anyhow::{Context, Result};
use environment::Environment;

const REPORT: &str = "report.md";

pub fn run(args: &PublishedArgs) -> Result<()> {
    args.servers.gateway.mariadbd_program()?;
    args.servers.mongod.as_ref().context("name the mongod to compare with, by --mongod")?;
    std::fs::create_dir_all(&args.out).with_context(|| format!("creating {}", args.out.display()))?;
    let environment = Environment::find(&args.servers)?;
    let mut text = head(args, &environment);
    for section in [cars::section, sql::section, slice_cache::section, key_value::section] {
        text += &section(args)?.markdown();
    }
    let path = args.out.join(REPORT);
    std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    println!("{}", path.display());
    Ok(())
}

fn head(args: &PublishedArgs, environment: &Environment) -> String {
    let quick = if args.quick { "**Made with `--quick`: the results mean nothing.**\n\n" } else { "" };
    let command = args.command(&["bench", "report"]).join(" ");
    format!(
        "# Published experiments, repeated\n\n{quick}Written by `{command}`, which `make report` runs. The published numbers come from other \
         machines with other versions, and mostly more cores. Compare ratios between servers of the same line, not \
         milliseconds. [benchmarks.md](../benchmarks.md) describes the method.\n\n{}{}\n",
        environment.warning(),
        environment.markdown()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness::servers::{GatewayArgs, ServerArgs};

    #[test]
    fn every_command_of_bench_that_is_shown_can_be_parsed() {
        for quick in [false, true] {
            let gateway = GatewayArgs { selkie: quick.then(|| "selkie".into()), mariadbd: Some("mariadbd".into()) };
            let servers = ServerArgs { gateway, mongod: Some("mongod".into()) };
            let args = PublishedArgs { servers, out: "out".into(), quick };
            args::parse::<crate::cars::CarsArgs>(&cars::command(&args)).unwrap();
            args::parse::<crate::sql::SqlArgs>(&sql::command(&args)).unwrap();
            args::parse::<crate::kv::KvArgs>(&key_value::command(&args)).unwrap();
        }
    }
}
