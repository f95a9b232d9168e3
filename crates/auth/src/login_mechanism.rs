//! The ways in which a client may prove its identity, of which a server offers some.

use crate::scram::Mechanism;

/// A way to log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginMechanism {
    Scram(Mechanism),
    /// By the certificate of a TLS connection.
    X509,
    /// By sending the password.
    Plain,
}

impl LoginMechanism {
    pub const ALL: [LoginMechanism; 4] = [
        LoginMechanism::Scram(Mechanism::Sha256),
        LoginMechanism::Scram(Mechanism::Sha1),
        LoginMechanism::X509,
        LoginMechanism::Plain,
    ];

    pub fn name(self) -> &'static str {
        match self {
            LoginMechanism::Scram(mechanism) => mechanism.name(),
            LoginMechanism::X509 => "MONGODB-X509",
            LoginMechanism::Plain => "PLAIN",
        }
    }

    /// Returns the mechanism of a name; `None` if there is none.
    pub fn parse(name: &str) -> Option<LoginMechanism> {
        LoginMechanism::ALL.into_iter().find(|mechanism| mechanism.name() == name)
    }
}

/// The mechanisms that a server offers, in the order of its configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginMechanisms(Vec<LoginMechanism>);

impl LoginMechanisms {
    pub fn new(mechanisms: Vec<LoginMechanism>) -> LoginMechanisms {
        LoginMechanisms(mechanisms)
    }

    pub fn contains(&self, mechanism: LoginMechanism) -> bool {
        self.0.contains(&mechanism)
    }

    pub fn iter(&self) -> impl Iterator<Item = LoginMechanism> {
        self.0.iter().copied()
    }

    /// Returns the SCRAM mechanisms, the preferred one first.
    pub fn scram(&self) -> impl Iterator<Item = Mechanism> {
        Mechanism::ALL.into_iter().filter(|mechanism| self.contains(LoginMechanism::Scram(*mechanism)))
    }
}

/// Both SCRAM mechanisms.
impl Default for LoginMechanisms {
    fn default() -> Self {
        LoginMechanisms([Mechanism::Sha1, Mechanism::Sha256].map(LoginMechanism::Scram).to_vec())
    }
}
