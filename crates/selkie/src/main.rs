//! The program: reads the command line and the configuration, and runs a command. An error is one
//! sentence.
//!
//! In reading order: [`cli`], [`config`], [`serve`].

mod audit;
mod cli;
mod config;
mod logging;
mod memory;
mod serve;
mod temporary_files;
mod verify;

use clap::Parser;
use cli::{AuditCommand, Cli, Command, ServeArgs};
use config::parameter;
use config::value::Raw;
use config::{Config, ConfigError, Origin, Written, file};
use serve::Reloading;
use std::process::ExitCode;

fn main() -> ExitCode {
    memory::use_small_pages();
    let outcome = match Cli::parse().command {
        Command::Serve(args) => {
            let again = args.clone();
            let path = args.config.clone();
            let read = Box::new(move || configure(again.clone()));
            configure(args).map_err(Into::into).and_then(|config| serve::serve(config, Reloading { path, read }))
        }
        Command::Check(args) => check(args),
        Command::Verify(args) => verify::verify(&args.data, args.add_checksums),
        Command::Audit(AuditCommand::Verify(args)) => audit::verify(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("selkie: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn configure(args: ServeArgs) -> Result<Config, ConfigError> {
    let beneath = match &args.config {
        Some(path) => file::load(path)?,
        None => Written::default(),
    };
    Config::resolve(args.written()?.over(beneath).over(environment()?))
}

/// Reads the environment, which flags and file override.
fn environment() -> Result<Written, ConfigError> {
    let mut written = Written::default();
    if let (Ok(level), Some(parameter)) = (std::env::var("SELKIE_LOG"), parameter::find("", "log")) {
        let origin = Origin::Environment("SELKIE_LOG");
        let read = parameter.read(&mut written, Raw::Text(level), origin.clone());
        read.map_err(|message| ConfigError { origin: Some(origin), message })?;
    }
    Ok(written)
}

fn check(args: ServeArgs) -> anyhow::Result<()> {
    let config = configure(args)?;
    serve::load_tls(&config)?;
    println!("The configuration is valid.");
    print!("{}", serve::Summary(&config));
    Ok(())
}
