//! Logins of MongoDB clients: whether they are required, in which ways, and which account of
//! MariaDB serves them.

use super::choices::BackendIdentity;
use super::setting::{ConfigError, Setting};
use super::tls::Tls;
use auth::{LoginMechanism, LoginMechanisms};

/// The settings of logins as written.
#[derive(Clone, Debug, Default)]
pub struct Written {
    pub auth: Option<Setting<bool>>,
    pub insecure_without_auth: Option<Setting<bool>>,
    pub backend_identity: Option<Setting<BackendIdentity>>,
    pub mechanisms: Option<Setting<Vec<LoginMechanism>>>,
}

impl Written {
    /// Merges two sources, as [`super::Written::over`] does.
    pub fn over(self, beneath: Written) -> Written {
        Written {
            auth: self.auth.or(beneath.auth),
            insecure_without_auth: self.insecure_without_auth.or(beneath.insecure_without_auth),
            backend_identity: self.backend_identity.or(beneath.backend_identity),
            mechanisms: self.mechanisms.or(beneath.mechanisms),
        }
    }

    /// Returns whether MongoDB clients must log in.
    pub fn requires_login(&self) -> bool {
        is_set(&self.auth)
    }

    /// Returns the mechanisms that are offered: by default SCRAM, and certificates if there is an
    /// authority that verifies them. Checks those that are written against the settings of TLS.
    pub fn login_mechanisms(&self, tls: Option<&Tls>) -> Result<LoginMechanisms, ConfigError> {
        let verifies_clients = tls.is_some_and(|tls| tls.files.ca.is_some());
        let Some(setting) = &self.mechanisms else {
            let x509 = verifies_clients.then_some(LoginMechanism::X509);
            return Ok(LoginMechanisms::new(x509.into_iter().chain(LoginMechanisms::default().iter()).collect()));
        };
        let offered = LoginMechanisms::new(setting.value.clone());
        if offered.contains(LoginMechanism::X509) && !verifies_clients {
            return Err(setting.refuse(
                "MONGODB-X509 needs the authorities that sign clients' certificates; name their file with --tls-ca (ca in \
                 [tls]), or leave the mechanism out",
            ));
        }
        if offered.contains(LoginMechanism::Plain) && tls.is_none() {
            return Err(setting.refuse(
                "PLAIN sends passwords, and is offered on connections with TLS only; set --tls (mode in [tls]), or leave the \
                 mechanism out",
            ));
        }
        if offered.contains(LoginMechanism::Plain) && offered.scram().next().is_none() {
            return Err(setting.refuse(
                "PLAIN checks passwords by the keys that SCRAM stores; name SCRAM-SHA-256, too, or users cannot be created",
            ));
        }
        Ok(offered)
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
