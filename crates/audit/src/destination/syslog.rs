//! The system's log, by its local socket.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

/// The usual socket of the system's log.
pub const SOCKET: &str = "/dev/log";

/// Facility `authpriv`, severity `info`.
const PRIORITY: u8 = 10 << 3 | 6;

pub(crate) struct Syslog {
    path: PathBuf,
    socket: Option<UnixDatagram>,
}

impl Syslog {
    pub fn open(path: PathBuf) -> io::Result<Syslog> {
        let mut syslog = Syslog { path, socket: None };
        syslog.connect()?;
        Ok(syslog)
    }

    fn connect(&mut self) -> io::Result<()> {
        let socket = UnixDatagram::unbound()?;
        socket.connect(&self.path)?;
        self.socket = Some(socket);
        Ok(())
    }

    /// Sends one line.
    pub fn send(&mut self, line: &[u8]) -> io::Result<()> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let mut message = format!("<{PRIORITY}>selkie[{}]: ", std::process::id()).into_bytes();
        message.extend_from_slice(line);
        // The daemon may have been restarted since.
        if self.socket.is_none() {
            self.connect()?;
        }
        let Some(socket) = &self.socket else { return Err(io::ErrorKind::NotConnected.into()) };
        socket.send(&message).map(drop).inspect_err(|_| self.socket = None)
    }
}
