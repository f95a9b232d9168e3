//! The experiments that were published for the systems Selkie starts from, made here, and a report that puts each figure beside the
//! published one.
//!
//! A section is one function: it runs a command of `selkie bench`, read from the very words that the report shows under the table.

mod cars;
mod environment;
mod key_value;
mod slice_cache;
mod sql;

use crate::Bench;
use crate::report::markdown;
use anyhow::{Context, Result};
use clap::Parser;
use environment::Environment;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

#[derive(clap::Args, Debug, Clone)]
pub struct PublishedArgs {
    /// The mongod to compare with
    #[arg(long, value_name = "PROGRAM")]
    pub mongod: PathBuf,

    /// The mariadbd behind half of the servers
    #[arg(long, value_name = "PROGRAM", default_value = "mariadbd")]
    pub mariadbd: PathBuf,

    /// The Selkie to measure; this program if not given
    #[arg(long, value_name = "PROGRAM")]
    pub selkie: Option<PathBuf>,

    /// The folder that report and plots are written to
    #[arg(long, value_name = "DIR", default_value = "docs/benchmarks")]
    pub out: PathBuf,

    /// A small part of the work, for trying it out; the figures mean nothing
    #[arg(long)]
    pub quick: bool,
}

/// An experiment: what was published, what was done here, and what came of it.
struct Section {
    title: &'static str,
    /// What was published, and what is different here.
    about: &'static str,
    tables: Vec<Table>,
    /// What there is to say to the figures.
    notes: Vec<String>,
}

struct Table {
    lines: Vec<Vec<String>>,
    /// What the table was made with, as arguments of `selkie bench`.
    command: Vec<String>,
    /// Images and pages beside the report.
    plots: Vec<PathBuf>,
}

const REPORT: &str = "report.md";

pub fn run(args: &PublishedArgs) -> Result<()> {
    std::fs::create_dir_all(&args.out).with_context(|| format!("making {}", args.out.display()))?;
    let environment = Environment::find(args);
    let mut text = head(args, &environment);
    for section in [cars::section, sql::section, slice_cache::section, key_value::section] {
        let section = section(args)?;
        text += &section.markdown();
    }
    let path = args.out.join(REPORT);
    std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    println!("{}", path.display());
    Ok(())
}

fn head(args: &PublishedArgs, environment: &Environment) -> String {
    let quick = if args.quick { "**Made with `--quick`: the figures mean nothing.**\n\n" } else { "" };
    let again =
        format!("selkie bench report --mongod {} --mariadbd {}", args.mongod.display(), args.mariadbd.display());
    format!(
        "# Published experiments, made again\n\n{quick}Written by `{again}`, which `make report` runs. The published figures were made on other \
         machines with other versions, and more cores as a rule: what can be compared are ratios between servers of the same line, not \
         milliseconds. What is measured in general and how is in [benchmarks.md](../benchmarks.md).\n\n{}{}\n",
        environment.warning(),
        environment.markdown()
    )
}

impl Section {
    fn markdown(&self) -> String {
        let mut text = format!("## {}\n\n{}\n\n", self.title, self.about);
        for table in &self.tables {
            text += &format!("{}\n`selkie bench {}`\n\n", markdown(&table.lines), table.command.join(" "));
            for plot in &table.plots {
                text += &link(plot);
            }
        }
        for note in &self.notes {
            text += &format!("{note}\n\n");
        }
        text
    }
}

/// An image is shown, a page linked.
fn link(plot: &Path) -> String {
    let part = |part: Option<&OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let (name, what) = (part(plot.file_name()), part(plot.file_stem()).replace('-', " "));
    match plot.extension().is_some_and(|extension| extension == "png") {
        true => format!("![{what}]({name})\n\n"),
        false => format!("[All figures of {what}]({name})\n\n"),
    }
}

#[derive(clap::Parser)]
struct Line {
    #[command(subcommand)]
    bench: Bench,
}

/// The experiment that the words name.
fn experiment(command: &[String]) -> Result<Bench> {
    let words = std::iter::once("bench".to_owned()).chain(command.iter().cloned());
    Ok(Line::try_parse_from(words)?.bench)
}

impl PublishedArgs {
    /// A command with these words and what names the servers' programs, except for those that it has no need of.
    fn command(&self, words: &[&str], programs: Programs) -> Vec<String> {
        let mut command: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let mut add =
            |option: &str, program: &PathBuf| command.extend([option.to_owned(), program.display().to_string()]);
        if programs == Programs::All {
            add("--mongod", &self.mongod);
        }
        add("--mariadbd", &self.mariadbd);
        self.selkie.iter().for_each(|selkie| add("--selkie", selkie));
        command
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Programs {
    All,
    WithoutMongod,
}

/// Cells of a line.
fn line<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args() -> PublishedArgs {
        let path = PathBuf::from;
        PublishedArgs {
            mongod: path("mongod"),
            mariadbd: path("mariadbd"),
            selkie: None,
            out: path("out"),
            quick: false,
        }
    }

    #[test]
    fn every_command_shown_is_one_that_can_be_run() {
        for quick in [false, true] {
            let args = PublishedArgs { quick, selkie: quick.then(|| "selkie".into()), ..args() };
            let commands = [cars::command(&args), sql::command(&args), key_value::command(&args)];
            for command in commands.into_iter().chain(slice_cache::commands(&args)) {
                assert!(experiment(&command).is_ok(), "{command:?}: {:?}", experiment(&command).err());
            }
        }
    }

    #[test]
    fn a_section_shows_its_command_under_its_table() {
        let table = Table {
            lines: vec![line(["a", "b"]), line(["1", "2"])],
            command: vec!["cars".into(), "--modes".into()],
            plots: vec!["out/a-page.html".into(), "out/some-plot.png".into()],
        };
        let section =
            Section { title: "Cars", about: "About them.", tables: vec![table], notes: vec!["A note.".into()] };
        let expected = "## Cars\n\nAbout them.\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\n`selkie bench cars --modes`\n\n\
                        [All figures of a page](a-page.html)\n\n![some plot](some-plot.png)\n\nA note.\n\n";
        assert_eq!(section.markdown(), expected);
    }
}
