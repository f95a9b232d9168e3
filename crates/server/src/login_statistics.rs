//! Counters of logins, by mechanism, as `serverStatus` shows them.

use auth::LoginMechanism;
use service::SharedCounter;

/// The counters of the process.
#[derive(Debug, Default)]
pub struct LoginStatistics {
    /// Clients that have asked for the mechanisms of a user.
    pub mechanisms_asked: SharedCounter,
    by_mechanism: [MechanismStatistics; LoginMechanism::ALL.len()],
}

/// The counters of a mechanism.
#[derive(Debug, Default)]
pub struct MechanismStatistics {
    /// All attempts.
    pub all: Attempts,
    /// Those that began in a `hello`.
    pub speculative: Attempts,
}

#[derive(Debug, Default)]
pub struct Attempts {
    pub received: SharedCounter,
    pub successful: SharedCounter,
}

impl LoginStatistics {
    pub fn of(&self, mechanism: LoginMechanism) -> &MechanismStatistics {
        let number = LoginMechanism::ALL.iter().position(|one| *one == mechanism).unwrap_or_default();
        &self.by_mechanism[number]
    }

    /// Counts the beginning of an attempt.
    pub fn received(&self, mechanism: &str, is_speculative: bool) {
        self.count(mechanism, is_speculative, |attempts| &attempts.received);
    }

    /// Counts a login.
    pub fn successful(&self, mechanism: &str, is_speculative: bool) {
        self.count(mechanism, is_speculative, |attempts| &attempts.successful);
    }

    fn count(&self, mechanism: &str, is_speculative: bool, counter: fn(&Attempts) -> &SharedCounter) {
        let Some(mechanism) = LoginMechanism::parse(mechanism) else { return };
        let statistics = self.of(mechanism);
        counter(&statistics.all).increment();
        if is_speculative {
            counter(&statistics.speculative).increment();
        }
    }
}
