//! `shutdown`: stops the server as SIGTERM does. Requests under way are finished, and the store
//! flushes pending writes.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/command/shutdown/>

use crate::arguments::{is_absent, unknown_field, wrong_type};
use crate::call::Call;
use document::DocWriter;
use error::{Code, Error, Result};
use rustix::process::{Signal, getpid, kill_process};

/// Fails with 13 for a client on another machine, as long as there is no login.
///
/// `force` and `timeoutSecs` concern secondaries, which do not exist.
pub fn shutdown(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    if call.session.client.is_some_and(|client| !client.ip().is_loopback()) {
        let message = "unauthorized: this command must run from localhost when running db without auth";
        return Err(Error::new(Code(13), message));
    }
    for field in call.fields().filter(|field| !is_absent(*field)) {
        match field.key() {
            "force" => {}
            "timeoutSecs" if field.kind.is_number() => {}
            "timeoutSecs" => return Err(wrong_type("shutdown", field, "long")),
            other => return Err(unknown_field("shutdown", other)),
        }
    }
    tracing::info!("shutdown was asked for by a client");
    kill_process(getpid(), Signal::TERM).map_err(|error| Error::internal(format!("cannot end the process: {error}")))
}
