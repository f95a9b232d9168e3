//! Mirroring: statements are also executed by a second server, and its replies compared.
//!
//! The session executes them there, since it has the connection.

use crate::filter::Filter;
use crate::settings::MirrorSettings;

/// A mirror.
#[derive(Debug)]
pub struct Mirror {
    settings: MirrorSettings,
}

impl Mirror {
    pub fn new(settings: MirrorSettings) -> Mirror {
        Mirror { settings }
    }
}

impl Filter for Mirror {
    fn mirror(&self) -> Option<&str> {
        Some(&self.settings.server)
    }
}
