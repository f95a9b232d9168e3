//! The end of every login: the user is logged in on its connection, or the attempt is logged.

use crate::call::Call;
use auth::UserName;
use document::doc;
use error::{Code, Error, Result};
use server::access_control::login::Login;
use server::audit::kind;
use std::sync::Arc;

/// A failed login. The client learns nothing but that it failed.
#[derive(Debug)]
pub struct Failed<'a> {
    pub user: Option<&'a UserName>,
    pub mechanism: &'a str,
    /// For the log.
    pub reason: &'a str,
}

/// Logs a failed login, and returns its error.
pub fn fail(call: &Call<'_>, failed: &Failed<'_>) -> Error {
    let Failed { user, mechanism, reason } = failed;
    record(call, *user, mechanism, Code::AUTHENTICATION_FAILED);
    let user = user.map(UserName::at_database);
    let client = call.session.client.map_or_else(|| "a Unix socket".to_owned(), |client| client.to_string());
    tracing::info!(user, mechanism, client, reason, connection = call.session.connection_id, "authentication failed");
    Error::new(Code::AUTHENTICATION_FAILED, "Authentication failed.")
}

/// Logs a user in that has proved its identity. `user_id`: of the user at the time of the proof.
/// Fails with 18 if it may not log in from this address, and with 5626701 or 5626702 if another
/// user is logged in.
pub async fn log_in(call: &Call<'_>, name: &UserName, user_id: Option<[u8; 16]>, mechanism: &str) -> Result<()> {
    let session = call.session;
    let failed = |reason| fail(call, &Failed { user: Some(name), mechanism, reason });
    if let Some(previous) = session.login().filter(|previous| previous.name != *name) {
        let (code, message) = match previous.name.db == name.db {
            true => (5626702, "Client has attempted to authenticate on multiple databases.Already authenticated as: "),
            false => (5626701, "Each client connection may only be authenticated once. Previously authenticated as: "),
        };
        failed("another user is logged in on this connection");
        return Err(Error::new(Code(code), format!("{message}{}", previous.name.at_database())));
    }
    let (directory, store) = (&call.worker.server.access_control.directory, &*call.worker.store);
    let user = directory.user(store, name).await?.filter(|user| user.id == user_id);
    let user = user.ok_or_else(|| failed("the user was dropped meanwhile"))?;
    let login = Login::of(directory, store, user, session.addresses()).await?;
    let login = login.ok_or_else(|| failed("the user may not log in between these addresses"))?;
    session.set_login(Some(Arc::new(login)));
    record(call, Some(name), mechanism, Code(0));
    let user = name.at_database();
    tracing::debug!(user, mechanism, connection = session.connection_id, "logged in");
    Ok(())
}

/// Records an attempt to log in.
fn record(call: &Call<'_>, user: Option<&UserName>, mechanism: &str, result: Code) {
    let param = || {
        let (name, db) = user.map_or(("", ""), |user| (&*user.user, &*user.db));
        doc! { "user": name, "db": db, "mechanism": mechanism }
    };
    // Dispatch waits until the event is written.
    let _ = call.worker.server.audit.record(&call.session.audited(), kind::AUTHENTICATE, param, result);
}
