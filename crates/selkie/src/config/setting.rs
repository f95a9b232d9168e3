//! A setting as written, with its origin; and errors, which name the origin.

use std::fmt;
use std::path::PathBuf;

/// A value and where it was written.
#[derive(Clone, Debug)]
pub struct Setting<T> {
    pub value: T,
    pub origin: Origin,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Flag(&'static str),
    Environment(&'static str),
    File { path: PathBuf, line: usize },
}

/// An error of the configuration: its place, and a sentence with the probable intention.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    pub origin: Option<Origin>,
    pub message: String,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Flag(name) | Origin::Environment(name) => f.write_str(name),
            Origin::File { path, line } => write!(f, "{}:{line}", path.display()),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Some(origin) => write!(f, "{origin}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for ConfigError {}

impl<T> Setting<T> {
    /// Returns an error about this setting.
    pub fn refuse(&self, message: impl Into<String>) -> ConfigError {
        ConfigError { origin: Some(self.origin.clone()), message: message.into() }
    }
}

/// Returns a setting's value, if it was written.
pub fn value<T>(setting: Option<Setting<T>>) -> Option<T> {
    setting.map(|setting| setting.value)
}
