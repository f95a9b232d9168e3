//! Captures standard error while the library starts: it reports its errors nowhere else.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::OwnedFd;

/// Redirects standard error to a file in memory until it is ended.
pub struct Captured {
    file: File,
    original: OwnedFd,
}

impl Captured {
    /// Starts redirecting.
    pub fn begin() -> io::Result<Captured> {
        let original = rustix::io::dup(rustix::stdio::stderr())?;
        let file = File::from(rustix::fs::memfd_create("mariadb-start", rustix::fs::MemfdFlags::CLOEXEC)?);
        rustix::stdio::dup2_stderr(&file)?;
        Ok(Captured { file, original })
    }

    /// Restores standard error; returns the messages.
    pub fn end(mut self) -> Vec<String> {
        let _ = rustix::stdio::dup2_stderr(&self.original);
        let mut bytes = Vec::new();
        let _ = self.file.rewind();
        let _ = self.file.read_to_end(&mut bytes);
        messages(&String::from_utf8_lossy(&bytes))
    }
}

/// Splits the text into messages. `Got ERROR: "Cannot open it" errno: 2000` becomes
/// `Cannot open it`; other lines are unchanged.
fn messages(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| quoted(line).unwrap_or(line).to_owned()).collect()
}

fn quoted(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once(": \"").filter(|(before, _)| before.starts_with("Got "))?;
    rest.rsplit_once("\" errno:").map(|(message, _)| message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_extracted() {
        let text = "Got ERROR: \"InnoDB: File \"x\" is gone\" errno: 2000\n\n2026-11-22 [Note] well\n";
        assert_eq!(messages(text), ["InnoDB: File \"x\" is gone", "2026-11-22 [Note] well"]);
    }
}
