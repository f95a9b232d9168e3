//! The login of a connection: whether a command needs one.

use crate::table::spec::Spec;
use error::{Code, Error, Result};
use server::{ClientSession, Worker};

/// Fails with 13 if a command needs a login that the connection does not have.
#[inline]
pub fn check(worker: &Worker, session: &ClientSession, spec: &Spec) -> Result<()> {
    let is_needed = worker.server.access_control.is_enabled() && spec.needs_authentication;
    if !is_needed || session.is_logged_in() || session.has_localhost_exception() {
        return Ok(());
    }
    Err(Error::new(Code::UNAUTHORIZED, format!("command {} requires authentication", spec.name)))
}
