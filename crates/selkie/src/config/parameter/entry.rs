//! An entry of the table of parameters.

use crate::config::setting::Origin;
use crate::config::value::Raw;
use crate::config::written::Written;

/// A setting.
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "only the test that generates the reference page reads the descriptions")
)]
pub struct Parameter {
    /// Its TOML table; empty for the top of the file.
    pub section: &'static str,
    pub name: &'static str,
    /// The flag of `selkie serve`, if there is one.
    pub flag: Option<&'static str>,
    /// The kind of value and its unit, for the reference page.
    pub kind: &'static str,
    /// As written in the file; a comment where it depends on other settings or on the machine.
    pub default: &'static str,
    /// A value other than the default.
    pub example: &'static str,
    pub about: &'static str,
    pub(super) read: fn(&mut Written, Raw, Origin) -> Result<(), String>,
}

impl Parameter {
    /// Parses a value into `written`. Fails with a sentence about the expected value.
    pub fn read(&self, written: &mut Written, raw: Raw, origin: Origin) -> Result<(), String> {
        (self.read)(written, raw, origin)
    }
}
