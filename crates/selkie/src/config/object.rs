//! An object of the configuration file: a section with a name, such as `[server.db1]`.

use super::setting::{ConfigError, Origin, Setting};

/// An object of the file: its name, where that is written, and its settings.
#[derive(Clone, Debug)]
pub struct Object<W> {
    pub name: String,
    pub origin: Origin,
    pub written: W,
}

impl<W> Object<W> {
    /// Returns an error about the object as a whole.
    pub fn refuse(&self, message: impl Into<String>) -> ConfigError {
        ConfigError { origin: Some(self.origin.clone()), message: message.into() }
    }

    /// Returns a setting that has no default.
    pub fn required<'s, T>(&self, setting: &'s Option<Setting<T>>, name: &str) -> Result<&'s Setting<T>, ConfigError> {
        setting.as_ref().ok_or_else(|| self.refuse(format!("{} has no {name}; it must be set", self.name)))
    }
}

/// Fails if no object has the name to which a setting refers.
pub fn known<'n, T>(
    setting: &Setting<T>,
    name: &str,
    section: &str,
    names: impl Iterator<Item = &'n str> + Clone,
) -> Result<(), ConfigError> {
    if names.clone().any(|known| known == name) {
        return Ok(());
    }
    let meant = strict_toml::nearest(name, names.clone());
    let names: Vec<&str> = names.collect();
    let hint = match (meant, names.is_empty()) {
        (Some(meant), _) => format!("did you mean {meant:?}?"),
        (None, true) => format!("write a section [{section}.{name}]"),
        (None, false) => format!("there are {}", names.join(", ")),
    };
    Err(setting.refuse(format!("there is no [{section}.{name}]; {hint}")))
}
