//! Logins of MongoDB clients: whether they are required, and which account of MariaDB serves them.

use super::choices::BackendIdentity;
use super::setting::Setting;

/// The settings of logins as written.
#[derive(Clone, Debug, Default)]
pub struct Written {
    pub auth: Option<Setting<bool>>,
    pub insecure_without_auth: Option<Setting<bool>>,
    pub backend_identity: Option<Setting<BackendIdentity>>,
}

impl Written {
    /// Merges two sources, as [`super::Written::over`] does.
    pub fn over(self, beneath: Written) -> Written {
        Written {
            auth: self.auth.or(beneath.auth),
            insecure_without_auth: self.insecure_without_auth.or(beneath.insecure_without_auth),
            backend_identity: self.backend_identity.or(beneath.backend_identity),
        }
    }

    /// Returns whether MongoDB clients must log in.
    pub fn requires_login(&self) -> bool {
        is_set(&self.auth)
    }

    /// Returns whether other machines may reach a MongoDB listener: its clients must log in, or the
    /// user has accepted that they need not.
    pub fn admits_remote_clients(&self) -> bool {
        self.requires_login() || is_set(&self.insecure_without_auth)
    }
}

fn is_set(setting: &Option<Setting<bool>>) -> bool {
    setting.as_ref().is_some_and(|setting| setting.value)
}
