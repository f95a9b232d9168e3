//! The destinations of lines: a file that continues an earlier chain, or syslog.

mod file;
mod syslog;

pub(crate) use file::LogFile;
pub(crate) use syslog::Syslog;

pub use file::{head_path, rotated_path};
pub use syslog::SOCKET as SYSLOG_SOCKET;

use std::path::PathBuf;

/// The destination of an audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    File(PathBuf),
    /// The system's log, facility `authpriv`.
    Syslog,
}
