//! The credentials that are stored with a user.

use crate::fields::malformed;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use document::{Doc, DocWriter};
use error::Result;
use std::fmt;

/// The ways in which a user can prove its identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    pub scram_sha_1: Option<ScramCredentials>,
    pub scram_sha_256: Option<ScramCredentials>,
    /// Whether something else, such as a certificate, proves the identity.
    pub external: bool,
}

/// The keys of a password for one mechanism. They check a password, and cannot be used to log in.
#[derive(Clone, PartialEq, Eq)]
pub struct ScramCredentials {
    pub iterations: u32,
    pub salt: Vec<u8>,
    pub stored_key: Vec<u8>,
    pub server_key: Vec<u8>,
}

/// Shows no keys.
impl fmt::Debug for ScramCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScramCredentials").field("iterations", &self.iterations).finish_non_exhaustive()
    }
}

impl Credentials {
    /// Reads the field `credentials` of a user.
    pub fn from_document(document: Doc<'_>) -> Result<Credentials> {
        let read = |mechanism: &str| match document.get(mechanism) {
            None => Ok(None),
            Some(value) => {
                let keys = value.as_document().and_then(ScramCredentials::from_document);
                keys.map(Some).ok_or_else(|| malformed(mechanism, "the keys of a password"))
            }
        };
        Ok(Credentials {
            scram_sha_1: read("SCRAM-SHA-1")?,
            scram_sha_256: read("SCRAM-SHA-256")?,
            external: document.get("external").is_some_and(|value| value.is_truthy()),
        })
    }

    /// Appends the fields.
    pub fn write(&self, document: &mut DocWriter<'_>) {
        if let Some(keys) = &self.scram_sha_1 {
            keys.write(&mut document.document("SCRAM-SHA-1"));
        }
        if let Some(keys) = &self.scram_sha_256 {
            keys.write(&mut document.document("SCRAM-SHA-256"));
        }
        if self.external {
            document.append("external", true);
        }
    }
}

impl ScramCredentials {
    fn from_document(document: Doc<'_>) -> Option<ScramCredentials> {
        let bytes = |key: &str| STANDARD.decode(document.get(key)?.as_str()?).ok();
        let iterations = u32::try_from(document.get("iterationCount")?.to_i64()?).ok()?;
        Some(ScramCredentials {
            iterations,
            salt: bytes("salt")?,
            stored_key: bytes("storedKey")?,
            server_key: bytes("serverKey")?,
        })
    }

    fn write(&self, document: &mut DocWriter<'_>) {
        document.append("iterationCount", i32::try_from(self.iterations).unwrap_or(i32::MAX));
        document.append("salt", &*STANDARD.encode(&self.salt));
        document.append("storedKey", &*STANDARD.encode(&self.stored_key));
        document.append("serverKey", &*STANDARD.encode(&self.server_key));
    }
}
