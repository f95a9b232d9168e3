//! The credentials of new passwords.

use auth::{Credentials, ScramCredentials, UserName, password};
use document::DocBuf;
use error::{Error, Result};

const SHA_1: &str = "SCRAM-SHA-1";
const SHA_256: &str = "SCRAM-SHA-256";

/// A password as the client sent it.
pub struct Password<'a> {
    pub text: &'a str,
    /// Whether it is the digest of the password that SCRAM-SHA-1 uses.
    pub is_digested: bool,
}

/// Returns the field `credentials` of a user: the keys of the password for each mechanism, by
/// default for all.
///
/// Fails with 2 for an unknown mechanism or one that needs the password itself, and with 50687 or
/// 50692 for a password with characters that none may have.
pub async fn make(user: &UserName, password: Password<'_>, mechanisms: Option<&[&str]>) -> Result<DocBuf> {
    let mechanisms = mechanisms.unwrap_or(&[SHA_1, SHA_256]);
    let (mut digest, mut prepared) = (None, None);
    for mechanism in mechanisms {
        match *mechanism {
            SHA_1 if password.is_digested => digest = Some(password.text.to_owned()),
            SHA_1 => digest = Some(password::digest(&user.user, password.text)),
            SHA_256 if password.is_digested => {
                return Err(Error::bad_value("Use of SCRAM-SHA-256 requires undigested passwords"));
            }
            SHA_256 => prepared = Some(password::prepare(password.text)?),
            other => return Err(Error::bad_value(format!("Unknown auth mechanism '{other}'"))),
        }
    }
    // It takes milliseconds, which other sessions of the worker need not wait for.
    let computation = tokio::task::spawn_blocking(move || compute(digest.as_deref(), prepared.as_deref()));
    let credentials = computation.await.map_err(|_| Error::internal("the keys of a password were not computed"))?;
    Ok(DocBuf::build(|document| credentials.write(document)))
}

/// Computes the keys of a password with new salts: those of its digest and those of its prepared
/// form.
fn compute(digest: Option<&str>, prepared: Option<&str>) -> Credentials {
    Credentials {
        scram_sha_1: digest.map(|digest| {
            let salt: [u8; password::SHA_1_SALT_BYTES] = rand::random();
            ScramCredentials::of_digest(digest, password::SHA_1_ITERATIONS, &salt)
        }),
        scram_sha_256: prepared.map(|prepared| {
            let salt: [u8; password::SHA_256_SALT_BYTES] = rand::random();
            ScramCredentials::of_prepared(prepared, password::SHA_256_ITERATIONS, &salt)
        }),
        external: false,
    }
}
