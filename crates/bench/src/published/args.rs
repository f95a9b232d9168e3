//! The options of the report, and the commands that it runs.

use anyhow::Result;
use clap::Parser;
use harness::servers::{GatewayArgs, ServerArgs};
use std::path::PathBuf;

#[derive(clap::Args, Debug, Clone)]
pub struct PublishedArgs {
    #[command(flatten)]
    pub servers: ServerArgs,

    /// The folder for the report and its plots
    #[arg(long, value_name = "DIR", default_value = "docs/benchmarks")]
    pub out: PathBuf,

    /// A small part of the work, to try it out; the results mean nothing
    #[arg(long)]
    pub quick: bool,
}

impl PublishedArgs {
    /// Returns a command with these words and the options of the programs that it starts.
    pub fn command(&self, words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).chain(self.servers.to_words()).collect()
    }

    /// Like [`PublishedArgs::command`], for a command that does not start MongoDB.
    pub fn command_without_mongod(&self, words: &[&str]) -> Vec<String> {
        let servers = ServerArgs { mongod: None, gateway: self.gateway().clone() };
        words.iter().map(|word| (*word).to_owned()).chain(servers.to_words()).collect()
    }

    fn gateway(&self) -> &GatewayArgs {
        &self.servers.gateway
    }
}

#[derive(clap::Parser)]
struct CommandLine<A: clap::Args> {
    #[command(flatten)]
    args: A,
}

/// Parses a command of `bench` (`bench`, the experiment, options), so that a section runs exactly
/// the command that it shows.
pub fn parse<A: clap::Args>(command: &[String]) -> Result<A> {
    Ok(CommandLine::try_parse_from(command.iter().skip(1))?.args)
}
