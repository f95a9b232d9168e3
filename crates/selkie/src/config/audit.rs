//! The audit log's settings.

use super::setting::{ConfigError, Setting, value};
use audit::{Destination, Filter, Key, OnFailure};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The settings of one source; `None`: not set there.
#[derive(Clone, Debug, Default)]
pub struct Written {
    pub log: Option<Setting<Destination>>,
    pub key: Option<Setting<PathBuf>>,
    pub only: Option<Setting<Vec<String>>>,
    pub except: Option<Setting<Vec<String>>>,
    pub only_users: Option<Setting<Vec<String>>>,
    pub except_users: Option<Setting<Vec<String>>>,
    pub authorization_success: Option<Setting<bool>>,
    pub on_failure: Option<Setting<OnFailure>>,
    pub sync: Option<Setting<bool>>,
}

/// The settings in effect.
#[derive(Clone, Debug)]
pub struct Audit {
    pub destination: Destination,
    pub key: Option<Key>,
    pub filter: Filter,
    pub authorization_success: bool,
    pub on_failure: OnFailure,
    pub sync: bool,
}

impl Written {
    /// Merges two sources: these settings take precedence over `beneath`.
    pub fn over(self, beneath: Written) -> Written {
        Written {
            log: self.log.or(beneath.log),
            key: self.key.or(beneath.key),
            only: self.only.or(beneath.only),
            except: self.except.or(beneath.except),
            only_users: self.only_users.or(beneath.only_users),
            except_users: self.except_users.or(beneath.except_users),
            authorization_success: self.authorization_success.or(beneath.authorization_success),
            on_failure: self.on_failure.or(beneath.on_failure),
            sync: self.sync.or(beneath.sync),
        }
    }

    /// Applies the defaults. Returns `None` without a destination. Reads the key.
    pub fn resolve(self) -> Result<Option<Audit>, ConfigError> {
        let key = self.key.as_ref().map(read_key).transpose()?;
        let Some(destination) = value(self.log) else { return Ok(None) };
        Ok(Some(Audit {
            destination,
            key,
            filter: Filter {
                only: value(self.only).unwrap_or_default(),
                except: value(self.except).unwrap_or_default(),
                only_users: value(self.only_users).unwrap_or_default(),
                except_users: value(self.except_users).unwrap_or_default(),
            },
            authorization_success: value(self.authorization_success).unwrap_or(false),
            on_failure: value(self.on_failure).unwrap_or(OnFailure::Refuse),
            sync: value(self.sync).unwrap_or(false),
        }))
    }
}

fn read_key(setting: &Setting<PathBuf>) -> Result<Key, ConfigError> {
    key_of(&setting.value).map_err(|message| setting.refuse(message))
}

/// Reads a key. Fails with a sentence if others may read it, or if it is short.
pub fn key_of(path: &Path) -> Result<Key, String> {
    let shown = path.display();
    let unreadable = |error: std::io::Error| format!("the key {shown} cannot be read: {error}");
    let mode = std::fs::metadata(path).map_err(unreadable)?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(format!("others may read the key {shown}; run chmod 600 on it"));
    }
    let bytes = std::fs::read(path).map_err(unreadable)?;
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    Key::new(bytes).ok_or_else(|| {
        let least = Key::BYTES_MIN;
        format!("the key {shown} has {} bytes; at least {least} are needed: openssl rand -hex 32", bytes.len())
    })
}
