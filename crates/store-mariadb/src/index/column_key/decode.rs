//! Decodes values from keys that determine them. Keys of numbers lack the type, and the key of null
//! is also that of a missing field.

use document::{Kind, ObjectId, Value};

/// Returns whether [`write`] can decode values of a kind.
pub(crate) fn is_decodable(kind: Kind) -> bool {
    matches!(kind, Kind::String | Kind::ObjectId | Kind::Boolean | Kind::DateTime)
}

/// Returns the condition that a column's key does not determine its value; true if there is no key.
pub(crate) fn undecodable_condition(column: &str) -> String {
    format!(
        "({column} >= 'A' AND {column} < 'B' OR {column} >= 'K' AND {column} < 'M' OR {column} >= 'M5' AND {column} < 'M6') \
         IS NOT TRUE"
    )
}

/// Appends the JSON text of the value with this key; returns false, and appends nothing, if the key
/// does not determine it.
pub(crate) fn write(key: &[u8], out: &mut Vec<u8>) -> bool {
    let Some((first, rest)) = key.split_first() else { return false };
    let value = match (first, rest) {
        (b'A', text) => std::str::from_utf8(text).ok().map(Value::String),
        (b'K', id) => id.try_into().ok().map(|id| Value::ObjectId(ObjectId(id))),
        (b'L', [flag]) => Some(Value::Boolean(*flag == b'1')),
        (b'M', [b'5', time @ ..])
            if time.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'-' | b':' | b'.' | b'T')) =>
        {
            // The text between the quotes, without the letter at its end.
            out.extend_from_slice(b"{\"$date\":\"");
            out.extend_from_slice(time);
            out.extend_from_slice(b"Z\"}");
            return true;
        }
        _ => None,
    };
    value.inspect(|value| document::json::value_to_json(*value, out)).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_determine_their_values() {
        for (key, expected) in [
            (&b"AToyota"[..], Some("\"Toyota\"")),
            (b"A", Some("\"\"")),
            (b"Aa\"\n", Some("\"a\\\"\\n\"")),
            (b"K\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c", Some("{\"$oid\":\"0102030405060708090a0b0c\"}")),
            (b"L1", Some("true")),
            (b"L0", Some("false")),
            (b"M52024-02-29T12:00:00.250", Some("{\"$date\":\"2024-02-29T12:00:00.250Z\"}")),
            (b"M1\x7f\xff\xff\xff\xff\xff\xff\xff", None),
            (b"2", None),
            (b"35\x80\0\0\0\0\0\0\x01", None),
            (b"F", None),
            (b"K\x01", None),
            (b"", None),
        ] {
            let mut out = Vec::new();
            assert_eq!(write(key, &mut out).then(|| String::from_utf8(out).expect("UTF-8")).as_deref(), expected);
        }
    }
}
