//! What the table knows of each thing that can be set.

use crate::config::value::Raw;
use crate::config::{Origin, Written};

/// One thing that can be set.
#[cfg_attr(not(test), expect(dead_code, reason = "the descriptions are for the reference page, which a test writes"))]
pub struct Parameter {
    /// The TOML table it stands in; empty for the top of the file.
    pub section: &'static str,
    pub name: &'static str,
    /// The flag of `selkie serve`, if there is one.
    pub flag: Option<&'static str>,
    /// What kind of value, for the reference page.
    pub kind: &'static str,
    /// As it would be written in the file; a comment in words where it depends on the machine.
    pub default: &'static str,
    /// A value other than the default that shows how it is written.
    pub example: &'static str,
    pub about: &'static str,
    pub(super) read: fn(&mut Written, Raw, Origin) -> Result<(), String>,
}

impl Parameter {
    /// Reads a value into `written`. The error says what would have been a value.
    pub fn read(&self, written: &mut Written, raw: Raw, origin: Origin) -> Result<(), String> {
        (self.read)(written, raw, origin)
    }
}
