//! The metadata of a client: the `client` of its handshake, and the `$client` that a router passes
//! on.

use document::{Element, Value};
use error::{Code, Error, Result};

const APPLICATION_NAME_BYTES_MAX: usize = 128;

/// Checks a client's metadata. Fails with 14, 183, or 184 for a long application name.
pub fn check_client(element: Element<'_>) -> Result<()> {
    let mismatch = |message: String| Error::type_mismatch(message);
    let client = match element.value() {
        Value::Document(client) | Value::Array(client) => Some(client),
        _ => None,
    };
    let client = client.ok_or_else(|| mismatch("The client metadata document must be a document".to_owned()))?;
    if let Some(application) = client.get("application") {
        let application = application.as_document().ok_or_else(|| mismatch(not_a_document("application")))?;
        let name = application.get("name");
        let name = name.map(|name| name.as_str().ok_or_else(|| mismatch(not_a_string("application.name"))));
        if name.transpose()?.is_some_and(|name| name.len() > APPLICATION_NAME_BYTES_MAX) {
            let message = format!(
                "The 'application.name' field must be less then or equal to {APPLICATION_NAME_BYTES_MAX} bytes in the \
                 client metadata document"
            );
            return Err(Error::new(Code::CLIENT_METADATA_APP_NAME_TOO_LARGE, message));
        }
    }
    for (part, fields) in [("driver", &["name", "version"][..]), ("os", &["type"])] {
        let value = client.get(part).ok_or_else(|| {
            let message = format!("Missing required sub-document '{part}' in the client metadata document");
            Error::new(Code::CLIENT_METADATA_MISSING_FIELD, message)
        })?;
        let inner = value.as_document().ok_or_else(|| mismatch(not_a_document(part)))?;
        for field in fields {
            let value = inner.get(field).ok_or_else(|| {
                let message = format!("Missing required field '{part}.{field}' in the client metadata document");
                Error::new(Code::CLIENT_METADATA_MISSING_FIELD, message)
            })?;
            value.as_str().ok_or_else(|| mismatch(not_a_string(&format!("{part}.{field}"))))?;
        }
    }
    Ok(())
}

fn not_a_document(part: &str) -> String {
    format!("The '{part}' field is required to be a BSON document in the client metadata document")
}

fn not_a_string(field: &str) -> String {
    format!("The '{field}' field must be a string in the client metadata document")
}
