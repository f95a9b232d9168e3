//! `PLAIN`: the login by a password that the client sends, over TLS only.

use super::attempt::{Attempt, Refusal};
use super::{password, users};
use crate::call::Call;
use auth::plain::PlainMessage;
use auth::{LoginMechanism, UserName};
use error::{Code, Error};

/// Logs a user in whose name and password the client has sent. Refuses a connection without TLS
/// with 334, before anything of the password is read, and a `hello`, as MongoDB does.
pub async fn log_in(call: &Call<'_>, payload: &[u8], in_hello: bool, attempt: &mut Attempt) -> Result<(), Refusal> {
    let name = LoginMechanism::Plain.name();
    if call.session.tls.is_none() {
        let message = format!("Mechanism '{name}' sends the password, and is not available without TLS");
        return Err(Error::new(Code::MECHANISM_UNAVAILABLE, message).into());
    }
    if in_hello {
        let message = format!("Mechanism '{name}' cannot begin in a hello");
        return Err(Error::new(Code::MECHANISM_UNAVAILABLE, message).into());
    }
    let message = PlainMessage::parse(payload)?;
    attempt.user = UserName::new(message.user, &attempt.user.db);
    let user = users::look_up(call, &attempt.user).await;
    password::verify(call, &attempt.user, user.as_ref(), message.password).await?;
    attempt.log_in(call, user.and_then(|user| user.id)).await
}
