//! The login of a connection: whether a command needs one, and how a client gets one.
//!
//! In reading order: [`arguments`] (the fields of the commands), [`attempt`] (what all logins
//! share, and their end), [`sasl`] (conversations), [`users`], [`plain`] (logins that send the
//! password), [`password`] (its check), [`x509`] (certificates).

pub mod arguments;
pub mod attempt;
pub mod password;
pub mod plain;
pub mod sasl;
pub mod users;
pub mod x509;

use crate::authorization::denial;
use crate::table::spec::Spec;
use error::Result;
use server::{ClientSession, Worker};

/// Fails with 13 if a command needs a login that the connection does not have.
#[inline]
pub fn check(worker: &Worker, session: &ClientSession, spec: &Spec) -> Result<()> {
    let is_needed = worker.server.access_control.is_enabled() && spec.needs_authentication;
    if !is_needed || session.is_logged_in() || session.has_localhost_exception() {
        return Ok(());
    }
    Err(denial::needs_login(spec.name))
}
