//! The credentials of new passwords.

use auth::scram::Mechanism;
use auth::{Credentials, LoginMechanism, LoginMechanisms, ScramCredentials, UserName, password};
use document::DocBuf;
use error::{Error, Result};

/// A password as the client sent it.
pub struct Password<'a> {
    pub text: &'a str,
    /// Whether it is the digest of the password that SCRAM-SHA-1 uses.
    pub is_digested: bool,
}

/// Returns the field `credentials` of a user: the keys of the password for each mechanism, by
/// default for all that are offered.
///
/// Fails with 2 for a mechanism that is unknown, not offered or needs the password itself, and with
/// 50687 or 50692 for a password with characters that none may have.
pub async fn make(
    user: &UserName,
    password: Password<'_>,
    mechanisms: Option<&[&str]>,
    offered: &LoginMechanisms,
) -> Result<DocBuf> {
    let mechanisms = match mechanisms {
        Some(names) => names.iter().map(|name| named(name, offered)).collect::<Result<Vec<_>>>()?,
        None => offered.scram().collect(),
    };
    if mechanisms.is_empty() {
        return Err(Error::bad_value("User document needs 'credentials' field to be a non-empty object"));
    }
    let mut secrets = Vec::new();
    for mechanism in mechanisms {
        let secret = match mechanism {
            Mechanism::Sha1 if password.is_digested => password.text.to_owned(),
            Mechanism::Sha256 if password.is_digested => {
                return Err(Error::bad_value("Use of SCRAM-SHA-256 requires undigested passwords"));
            }
            mechanism => password::secret(mechanism, &user.user, password.text)?,
        };
        secrets.push((mechanism, secret));
    }
    // It takes milliseconds, which other sessions of the worker need not wait for.
    let computation = tokio::task::spawn_blocking(move || compute(&secrets));
    let credentials = computation.await.map_err(|_| Error::internal("the keys of a password were not computed"))?;
    Ok(DocBuf::build(|document| credentials.write(document)))
}

/// Returns the SCRAM mechanism of a name, if it is offered.
fn named(name: &str, offered: &LoginMechanisms) -> Result<Mechanism> {
    let mechanism = Mechanism::parse(name);
    let mechanism = mechanism.ok_or_else(|| Error::bad_value(format!("Unknown auth mechanism '{name}'")))?;
    match offered.contains(LoginMechanism::Scram(mechanism)) {
        true => Ok(mechanism),
        false => Err(Error::bad_value(format!("{name} not supported in authMechanisms"))),
    }
}

/// Computes keys with new salts.
fn compute(secrets: &[(Mechanism, String)]) -> Credentials {
    let mut credentials = Credentials::default();
    for (mechanism, secret) in secrets {
        let salt: [u8; 32] = rand::random();
        let salt = salt.get(..mechanism.salt_bytes()).unwrap_or(&salt);
        let keys = ScramCredentials::of_secret(*mechanism, secret, mechanism.default_iterations(), salt);
        match mechanism {
            Mechanism::Sha1 => credentials.scram_sha_1 = Some(keys),
            Mechanism::Sha256 => credentials.scram_sha_256 = Some(keys),
        }
    }
    credentials
}
