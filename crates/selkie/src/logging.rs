//! The log: standard error, and the lines that `getLog` returns.

use std::io::{self, Write};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

/// Starts logging. `filter` has been checked; an invalid one logs at `info`.
pub fn start(filter: &str) {
    let configured = filter.to_owned();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(Tee)
        .with_ansi(false)
        .with_env_filter(of_level(&configured, 0))
        .with_filter_reloading();
    let handle = subscriber.reload_handle();
    if subscriber.try_init().is_err() {
        eprintln!("selkie: logging was begun twice");
    }
    server::log_level::on_change(move |level| {
        if let Err(error) = handle.reload(of_level(&configured, level)) {
            tracing::warn!(%error, "the log level stays as it was");
        }
    });
    std::panic::set_hook(Box::new(|panic| {
        tracing::error!("{panic}\n{}", std::backtrace::Backtrace::capture());
    }));
}

/// Returns the filter for a `logLevel`: the configured one at 0, with more above that.
fn of_level(configured: &str, level: i32) -> EnvFilter {
    let filter = EnvFilter::try_new(configured).unwrap_or_else(|_| EnvFilter::new("info"));
    match level {
        ..=0 => filter,
        1 | 2 => filter.add_directive(LevelFilter::DEBUG.into()),
        _ => filter.add_directive(LevelFilter::TRACE.into()),
    }
}

struct Tee;

impl<'w> MakeWriter<'w> for Tee {
    type Writer = Tee;

    fn make_writer(&'w self) -> Tee {
        Tee
    }
}

/// The formatter writes one line per call.
impl Write for Tee {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        server::log_lines::recent().write_all(line)?;
        io::stderr().write_all(line)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
