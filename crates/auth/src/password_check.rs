//! The check of a password that is known, against the keys of its user.

use crate::credentials::{Credentials, ScramCredentials};
use crate::name::UserName;
use crate::password;
use crate::scram::{DecoySecret, Mechanism};
use subtle::{Choice, ConstantTimeEq};

/// Keys with more iterations are not checked: they would occupy a thread for seconds.
const ITERATIONS_MAX: u32 = 1_000_000;

/// A password and the keys to check it with. A user that does not exist has keys as well, which no
/// password opens, so that the check takes the same time.
pub struct PasswordCheck {
    mechanism: Mechanism,
    keys: ScramCredentials,
    secret: String,
    /// Whether the password may be right.
    is_possible: Choice,
}

impl PasswordCheck {
    /// Prepares a check. `credentials`: of the user; `None` if it does not exist.
    pub fn new(
        user: &UserName,
        credentials: Option<&Credentials>,
        password: &str,
        decoy: &DecoySecret,
    ) -> PasswordCheck {
        let of_user = credentials.and_then(|credentials| {
            let mut keys = Mechanism::ALL.into_iter().map(|mechanism| (mechanism, credentials.scram(mechanism)));
            keys.find_map(|(mechanism, keys)| Some((mechanism, keys?)))
        });
        let of_user = of_user.filter(|(mechanism, keys)| keys.fit(*mechanism) && keys.iterations <= ITERATIONS_MAX);
        // Computed for each user.
        let own_decoy = decoy.credentials(Mechanism::Sha256, user);
        let (mechanism, keys) = of_user.unwrap_or((Mechanism::Sha256, &own_decoy));
        let secret = password::secret(mechanism, &user.user, password);
        let is_possible = Choice::from(u8::from(of_user.is_some())) & Choice::from(u8::from(secret.is_ok()));
        // A password that none may have takes the same time.
        let secret = secret.unwrap_or_else(|_| password.to_owned());
        PasswordCheck { mechanism, keys: keys.clone(), secret, is_possible }
    }

    /// Returns whether the password is right. Takes milliseconds.
    pub fn succeeds(&self) -> bool {
        let ScramCredentials { iterations, salt, stored_key, .. } = &self.keys;
        let actual = ScramCredentials::of_secret(self.mechanism, &self.secret, *iterations, salt);
        bool::from(actual.stored_key.ct_eq(stored_key) & self.is_possible)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: &str = "joe";

    fn keys(mechanism: Mechanism, password: &str) -> ScramCredentials {
        let secret = password::secret(mechanism, USER, password).expect("a valid password");
        ScramCredentials::of_secret(mechanism, &secret, 10, &vec![3; mechanism.salt_bytes()])
    }

    fn check(credentials: Option<&Credentials>, password: &str) -> bool {
        PasswordCheck::new(&UserName::new(USER, "shop"), credentials, password, &DecoySecret::new([7; 32])).succeeds()
    }

    #[test]
    fn only_the_right_password_passes() {
        let sha_1 = Some(keys(Mechanism::Sha1, "I\u{AD}X"));
        let sha_256 = Some(keys(Mechanism::Sha256, "I\u{AD}X"));
        let of = |scram_sha_1: &Option<ScramCredentials>, scram_sha_256: &Option<ScramCredentials>| Credentials {
            scram_sha_1: scram_sha_1.clone(),
            scram_sha_256: scram_sha_256.clone(),
            external: false,
        };
        for (credentials, prepares) in
            [(of(&sha_1, &None), false), (of(&None, &sha_256), true), (of(&sha_1, &sha_256), true)]
        {
            assert!(check(Some(&credentials), "I\u{AD}X"));
            assert_eq!(check(Some(&credentials), "IX"), prepares);
            assert_eq!(check(Some(&credentials), "\u{2168}"), prepares);
            for wrong in ["", "ix", "IX ", "I\u{7}X", "\u{627}1"] {
                assert!(!check(Some(&credentials), wrong), "{wrong:?}");
            }
        }
    }

    #[test]
    fn users_without_usable_keys_pass_with_no_password() {
        assert!(!check(None, "pw") && !check(Some(&Credentials::default()), "pw"));
        assert!(!check(Some(&Credentials { external: true, ..Credentials::default() }), "pw"));
        let right = keys(Mechanism::Sha256, "pw");
        let with = |keys: ScramCredentials| Credentials { scram_sha_256: Some(keys), ..Credentials::default() };
        assert!(check(Some(&with(right.clone())), "pw"));
        let cut = ScramCredentials { stored_key: Vec::new(), ..right.clone() };
        assert!(!check(Some(&with(cut)), "pw"));
        assert!(!check(Some(&with(ScramCredentials { iterations: u32::MAX, ..right })), "pw"), "and in no time");
    }
}
