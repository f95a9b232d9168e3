//! `MONGODB-X509`: the login by the certificate of a TLS connection, which TLS has verified.

use super::arguments::Authenticate;
use super::attempt::{Attempt, Refusal, abandon, not_enabled};
use crate::call::Call;
use auth::{LoginMechanism, UserName, name::EXTERNAL};
use document::DocWriter;
use error::{Code, Error, Result};

/// A user that is logged in by its certificate.
pub struct Authenticated(UserName);

impl Authenticated {
    /// Appends the fields of the reply.
    pub fn write(&self, reply: &mut DocWriter<'_>) {
        reply.append("dbname", &*self.0.db);
        reply.append("user", &*self.0.user);
    }
}

/// Logs in the user whose name is the subject of the client's certificate. Fails with 11 if there
/// is no such user, 18 without a certificate, and 2 or 334 for a mechanism that is not offered.
pub async fn authenticate(call: &Call<'_>, arguments: &Authenticate<'_>) -> Result<Authenticated> {
    abandon(call.worker, call.session);
    let db = arguments.db.unwrap_or(call.database());
    let mut attempt = Attempt::new(arguments.mechanism, db).counted(call, arguments.db.is_some());
    let outcome = log_in(call, arguments, &mut attempt).await;
    attempt.end(call, outcome)
}

async fn log_in(
    call: &Call<'_>,
    arguments: &Authenticate<'_>,
    attempt: &mut Attempt,
) -> Result<Authenticated, Refusal> {
    let offered = &call.worker.server.settings.login_mechanisms;
    match LoginMechanism::parse(arguments.mechanism) {
        Some(LoginMechanism::X509) => {}
        Some(other) if offered.contains(other) => {
            return Err(Error::bad_value(format!("Unsupported mechanism: {}", other.name())).into());
        }
        _ => return Err(Error::new(Code::MECHANISM_UNAVAILABLE, not_enabled(arguments.mechanism)).into()),
    }
    let Some(subject) = &call.session.certificate_subject else {
        let error = Error::new(Code::AUTHENTICATION_FAILED, "No verified subject name available from client");
        return Err(Refusal::with(error, "the client has no certificate"));
    };
    if *attempt.user.db != *EXTERNAL {
        let message = "X.509 authentication must always use the $external database.";
        return Err(Error::new(Code::PROTOCOL_ERROR, message).into());
    }
    if !offered.contains(LoginMechanism::X509) {
        return Err(Error::bad_value("x.509 authentication is disabled.").into());
    }
    attempt.user = UserName::new(subject, EXTERNAL);
    if arguments.user.is_some_and(|user| *user != **subject) {
        let message = "There is no x.509 client certificate matching the user.";
        let error = Error::new(Code::AUTHENTICATION_FAILED, message);
        return Err(Refusal::with(error, "the client asks for another user"));
    }
    let directory = &call.worker.server.access_control.directory;
    let user = directory.user(&*call.worker.store, &attempt.user).await?.filter(|user| user.credentials.external);
    let Some(user) = user else {
        let message = format!("Could not find user \"{subject}\" for db \"{EXTERNAL}\"");
        return Err(Error::new(Code::USER_NOT_FOUND, message).into());
    };
    attempt.log_in(call, user.id).await?;
    Ok(Authenticated(attempt.user.clone()))
}
