//! The log: to standard error, and to the lines that `getLog` shows.

use std::io::{self, Write};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// Begins logging. `filter` has been checked; one that is broken all the same logs at `info`.
pub fn start(filter: &str) {
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(Tee).with_ansi(false);
    if subscriber.try_init().is_err() {
        eprintln!("selkie: logging was begun twice");
    }
    std::panic::set_hook(Box::new(|panic| {
        tracing::error!("{panic}\n{}", std::backtrace::Backtrace::capture());
    }));
}

struct Tee;

impl<'w> MakeWriter<'w> for Tee {
    type Writer = Tee;

    fn make_writer(&'w self) -> Tee {
        Tee
    }
}

/// One line per call, as the formatter writes it.
impl Write for Tee {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        commands::log_lines::recent().write_all(line)?;
        io::stderr().write_all(line)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
