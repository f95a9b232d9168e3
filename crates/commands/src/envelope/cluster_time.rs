//! `$clusterTime`: the latest time that a client has received from any server of the cluster.

use document::{Doc, Element, Value};
use error::{Code, Error, Result};
use server::cluster_clock::ClusterTime;

/// The bytes of a signature's hash.
const HASH_BYTES: usize = 20;

/// Reads `$clusterTime`. Its signature must be well-formed; it is not verified, as by a MongoDB
/// without logins.
pub fn read_cluster_time(element: Element<'_>) -> Result<ClusterTime> {
    let Some(gossip) = element.value().as_document() else {
        let message = "invalid parameter: expected an object ($clusterTime)";
        return Err(Error::new(Code(10065), message));
    };
    let (time, increment) = match required(gossip, "clusterTime")? {
        Value::Timestamp { time, increment } => (time, increment),
        other => return Err(wrong_type("clusterTime", "timestamp", other)),
    };
    let signature = required(gossip, "signature")?;
    let signature = signature.as_document().ok_or_else(|| wrong_type("signature", "object", signature))?;
    match required(signature, "hash")? {
        Value::Binary { bytes, .. } if bytes.len() == HASH_BYTES => {}
        Value::Binary { bytes, .. } => {
            let message = format!("Unsupported SHA1Block hash length: {}", bytes.len());
            return Err(Error::new(Code::UNSUPPORTED_FORMAT, message));
        }
        other => return Err(wrong_type("hash", "binData", other)),
    }
    match required(signature, "keyId")? {
        key if key.kind().is_number() => Ok(ClusterTime::new(time, increment)),
        other => Err(wrong_type("keyId", "number", other)),
    }
}

fn required<'a>(document: Doc<'a>, name: &str) -> Result<Value<'a>> {
    let missing = || Error::new(Code::NO_SUCH_KEY, format!("Missing expected field \"{name}\""));
    document.get(name).ok_or_else(missing)
}

fn wrong_type(name: &str, expected: &str, found: Value<'_>) -> Error {
    let found = found.kind().alias();
    Error::type_mismatch(format!("\"{name}\" had the wrong type. Expected {expected}, found {found}"))
}
