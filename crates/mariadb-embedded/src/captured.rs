//! What the library writes to standard error while it starts: there is no other way to hear why it does not.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::OwnedFd;

/// Standard error goes to a file in memory until this is ended.
pub struct Captured {
    file: File,
    original: OwnedFd,
}

impl Captured {
    pub fn begin() -> io::Result<Captured> {
        let original = rustix::io::dup(rustix::stdio::stderr())?;
        let file = File::from(rustix::fs::memfd_create("mariadb-start", rustix::fs::MemfdFlags::CLOEXEC)?);
        rustix::stdio::dup2_stderr(&file)?;
        Ok(Captured { file, original })
    }

    /// What has been written, a message each.
    pub fn end(mut self) -> Vec<String> {
        let _ = rustix::stdio::dup2_stderr(&self.original);
        let mut bytes = Vec::new();
        let _ = self.file.rewind();
        let _ = self.file.read_to_end(&mut bytes);
        messages(&String::from_utf8_lossy(&bytes))
    }
}

/// `Got ERROR: "Cannot open it" errno: 2000` → `Cannot open it`; what is written otherwise stays as it is.
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
    fn messages_are_freed_from_what_is_around_them() {
        let text = "Got ERROR: \"InnoDB: File \"x\" is gone\" errno: 2000\n\n2026-11-22 [Note] well\n";
        assert_eq!(messages(text), ["InnoDB: File \"x\" is gone", "2026-11-22 [Note] well"]);
    }
}
