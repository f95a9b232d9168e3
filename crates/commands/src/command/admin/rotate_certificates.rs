//! `rotateCertificates`: loads the TLS certificates, keys, authorities and revocation lists again.
//! New connections use them; open ones stay as they are.
//!
//! Source: <https://www.mongodb.com/docs/v6.0/reference/command/rotateCertificates/>

use crate::arguments::{is_absent, unknown_field, wrong_type};
use crate::call::{Call, Disposition};
use document::DocWriter;
use error::{Code, Error, Result};

/// Succeeds without effect if clients cannot use TLS, as MongoDB does. Fails with 140 if a file
/// cannot be used, and the earlier ones stay in use.
pub async fn rotate_certificates(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let message = message(call)?;
    let Some(tls) = call.worker.server.settings.tls.clone() else { return Ok(Disposition::Reply) };
    // Files are read on another thread, since they may be on a network.
    let rotation = tokio::task::spawn_blocking(move || tls.rotate());
    rotation
        .await
        .map_err(|error| Error::internal(format!("the rotation has ended: {error}")))?
        .map_err(|error| Error::new(Code::INVALID_SSL_CONFIGURATION, error.to_string()))?;
    tracing::info!(message, "certificate rotation completed successfully");
    Ok(Disposition::Reply)
}

/// Parses the fields.
pub fn parse(call: &Call<'_>) -> Result<()> {
    message(call).map(drop)
}

/// Returns the text that the client wants in the log.
fn message(call: &Call<'_>) -> Result<String> {
    let mut message = String::new();
    for field in call.fields() {
        match field.key() {
            "message" if is_absent(field) => {}
            "message" => {
                let text = field.value().as_str().ok_or_else(|| wrong_type("rotateCertificates", field, "string"))?;
                message = text.to_owned();
            }
            other => return Err(unknown_field("rotateCertificates", other)),
        }
    }
    Ok(message)
}
