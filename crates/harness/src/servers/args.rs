//! The options that name the programs of started servers.

use anyhow::{Context, Result, bail};
use std::path::PathBuf;

/// Selkie, and the store that it may need.
#[derive(clap::Args, Debug, Clone, Default)]
pub struct GatewayArgs {
    /// The Selkie to measure [default: the one beside this program]
    #[arg(long, value_name = "PROGRAM")]
    pub selkie: Option<PathBuf>,

    /// Start this mariadbd, and measure Selkie on it too
    #[arg(long, value_name = "PROGRAM")]
    pub mariadbd: Option<PathBuf>,
}

/// All servers that are compared.
#[derive(clap::Args, Debug, Clone, Default)]
pub struct ServerArgs {
    #[command(flatten)]
    pub gateway: GatewayArgs,

    /// Start this mongod, and measure it too
    #[arg(long, value_name = "PROGRAM")]
    pub mongod: Option<PathBuf>,
}

impl GatewayArgs {
    /// Returns the Selkie to start: `--selkie`, else the program of that name beside this one.
    pub fn selkie_program(&self) -> Result<PathBuf> {
        if let Some(program) = &self.selkie {
            return Ok(program.clone());
        }
        let beside = std::env::current_exe().context("finding this program")?.with_file_name("selkie");
        if !beside.is_file() {
            bail!("there is no {}; name the Selkie to measure by --selkie", beside.display());
        }
        Ok(beside)
    }

    /// Returns the program of MariaDB's server; fails if it is not given.
    pub fn mariadbd_program(&self) -> Result<&PathBuf> {
        self.mariadbd.as_ref().context("name MariaDB's server, for example by --mariadbd mariadbd")
    }
}

impl ServerArgs {
    /// Returns the options as they are written on a command line.
    pub fn to_words(&self) -> Vec<String> {
        let GatewayArgs { selkie, mariadbd } = &self.gateway;
        let options = [("--mongod", &self.mongod), ("--mariadbd", mariadbd), ("--selkie", selkie)];
        let given = options.into_iter().filter_map(|(option, program)| Some((option, program.as_ref()?)));
        given.flat_map(|(option, program)| [option.to_owned(), program.display().to_string()]).collect()
    }
}
