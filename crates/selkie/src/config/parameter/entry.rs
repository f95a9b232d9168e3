//! An entry of the table of parameters.

use crate::config::setting::Origin;
use crate::config::value::Raw;
use crate::config::written::Written;

/// A setting, of the process or of an object with a name (`W`: [`Written`], or that of the object).
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "only the test that generates the reference page reads the descriptions")
)]
pub struct Parameter<W: 'static = Written> {
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
    pub(super) read: fn(&mut W, Raw, Origin) -> Result<(), String>,
}

impl<W> Parameter<W> {
    /// Returns the entry without its parser.
    #[cfg(test)]
    pub fn description(&self) -> Description {
        let Parameter { name, flag, kind, default, example, about, .. } = *self;
        Description { name, flag, kind, default, example, about }
    }

    /// Parses a value into `written`. Fails with a sentence about the expected value.
    pub fn read(&self, written: &mut W, raw: Raw, origin: Origin) -> Result<(), String> {
        (self.read)(written, raw, origin)
    }
}

/// The fields of [`Parameter`] that the reference page shows.
#[cfg(test)]
#[derive(Clone, Copy)]
pub struct Description {
    pub name: &'static str,
    pub flag: Option<&'static str>,
    pub kind: &'static str,
    pub default: &'static str,
    pub example: &'static str,
    pub about: &'static str,
}
