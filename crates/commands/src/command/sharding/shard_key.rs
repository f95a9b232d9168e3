//! Shard keys: which forms are valid, and which of these are supported.

use document::{Doc, Value};
use error::{Code, Error, Result};

/// A shard key that is supported: one field, ascending or hashed. In both cases a document's shard
/// is that of the hash of its value.
#[derive(Clone, Copy, Debug)]
pub struct ShardKey<'a>(Doc<'a>);

impl<'a> ShardKey<'a> {
    /// Fails with 2 for a key that is no shard key, and with 72 for one that is not supported.
    pub fn parse(key: Doc<'a>) -> Result<ShardKey<'a>> {
        let shown = || store::duplicate::text_of(key);
        let Some(first) = key.first() else { return Err(Error::bad_value("Shard key is empty")) };
        for field in key.elements() {
            let path = field.key();
            if path.split('.').any(|part| part.is_empty()) || path.starts_with('$') {
                let message = format!("Shard key {} contains the field '{path}', which is no path", shown());
                return Err(Error::bad_value(message));
            }
            let is_ascending = field.value().to_i64() == Some(1);
            if !is_ascending && field.value() != Value::String("hashed") {
                let message = format!(
                    "Shard key {} can contain either a single 'hashed' field, or multiple numerical fields set to a value \
                     of 1. Failed to parse field {path}",
                    shown()
                );
                return Err(Error::bad_value(message));
            }
        }
        if key.elements().nth(1).is_some() || first.key() != "_id" {
            let message = format!(
                "the shard key {} is not supported on MariaDB: shard by {{_id: 1}} or {{_id: \"hashed\"}}",
                shown()
            );
            return Err(Error::new(Code::INVALID_OPTIONS, message));
        }
        Ok(ShardKey(key))
    }

    pub fn as_doc(self) -> Doc<'a> {
        self.0
    }

    /// Returns whether the client has asked for a hashed key.
    pub fn is_hashed(self) -> bool {
        self.0.elements().any(|field| field.value() == Value::String("hashed"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::DocBuf;
    use document::json::json_to_bson;

    #[test]
    fn keys_are_checked() {
        let code = |key: &str| {
            let mut bson = Vec::new();
            json_to_bson(key.as_bytes(), &mut bson).unwrap();
            ShardKey::parse(DocBuf::from_vec(bson).unwrap().as_doc()).err().map(|error| error.code())
        };
        for good in [r#"{"_id": 1}"#, r#"{"_id": "hashed"}"#, r#"{"_id": 1.0}"#] {
            assert_eq!(code(good), None, "{good}");
        }
        for bad in [
            "{}",
            r#"{"_id": -1}"#,
            r#"{"_id": "text"}"#,
            r#"{"": 1}"#,
            r#"{"a..b": 1}"#,
            r#"{"$$a": 1}"#,
            r#"{"_id": 1, "a": 2}"#,
        ] {
            assert_eq!(code(bad), Some(Code::BAD_VALUE), "{bad}");
        }
        for unsupported in [r#"{"a": 1}"#, r#"{"_id": 1, "a": 1}"#, r#"{"a": "hashed", "b": 1}"#] {
            assert_eq!(code(unsupported), Some(Code::INVALID_OPTIONS), "{unsupported}");
        }
    }
}
