//! Decoding keys, if a key has only one value.

use super::{lead, number, split};
use crate::ObjectId;
use crate::value::{Kind, Value};

/// A decoded key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DecodedKey<'k> {
    Value(Value<'k>),
    /// A string or a symbol.
    Text(&'k str),
    /// An integer of any type.
    Integer(i64),
    /// Several values have this key, or it is not worth decoding.
    Ambiguous,
}

/// Decodes the first of a row of keys. Returns its value and the rest. `inverted`: it is a
/// descending field's. `scratch` receives the value's bytes if the key does not contain them
/// unchanged. Returns `None` for malformed bytes.
pub fn read<'s, 'k: 's>(
    keys: &'k [u8],
    inverted: bool,
    scratch: &'s mut Vec<u8>,
) -> Option<(DecodedKey<'s>, &'k [u8])> {
    let (key, rest) = split(keys, inverted)?;
    let key = match inverted {
        false => key,
        true => {
            scratch.clear();
            scratch.extend(key.iter().map(|byte| !byte));
            &**scratch
        }
    };
    Some((decode(key)?, rest))
}

/// Returns whether [`read`] returns values of a type exactly.
pub fn is_decodable(kind: Kind) -> bool {
    matches!(kind, Kind::ObjectId | Kind::Boolean | Kind::DateTime | Kind::Timestamp | Kind::MinKey | Kind::MaxKey)
}

fn decode(key: &[u8]) -> Option<DecodedKey<'_>> {
    let (first, behind) = key.split_first()?;
    let number = || Some(u64::from_be_bytes(*behind.first_chunk()?));
    Some(DecodedKey::Value(match *first {
        lead::MIN_KEY => Value::MinKey,
        lead::MAX_KEY => Value::MaxKey,
        lead::FALSE => Value::Boolean(false),
        lead::TRUE => Value::Boolean(true),
        lead::OBJECT_ID => Value::ObjectId(ObjectId(*behind.first_chunk()?)),
        lead::DATE => Value::DateTime((number()? ^ 1 << 63) as i64),
        lead::TIMESTAMP => {
            let number = number()?;
            Value::Timestamp { time: (number >> 32) as u32, increment: number as u32 }
        }
        lead::STRING => {
            let (_, text) = behind.split_last()?;
            // Texts with bytes that keys escape are rare.
            return Some(match memchr::memchr(1, text) {
                None => std::str::from_utf8(text).map_or(DecodedKey::Ambiguous, DecodedKey::Text),
                Some(_) => DecodedKey::Ambiguous,
            });
        }
        lead::NUMBER_FIRST..=lead::NUMBER_LAST => {
            return Some(number::whole(key).map_or(DecodedKey::Ambiguous, DecodedKey::Integer));
        }
        _ => return Some(DecodedKey::Ambiguous),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{encode, encode_descending};

    #[test]
    fn keys_of_one_value_are_decoded() {
        let id = ObjectId([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0]);
        for value in [
            Value::MinKey,
            Value::MaxKey,
            Value::Boolean(false),
            Value::Boolean(true),
            Value::ObjectId(id),
            Value::DateTime(-1),
            Value::DateTime(i64::MAX),
            Value::Timestamp { time: 7, increment: u32::MAX },
            Value::String(""),
            Value::String("été"),
        ] {
            let expected =
                if let Value::String(text) = value { DecodedKey::Text(text) } else { DecodedKey::Value(value) };
            for (inverted, write) in [(false, encode as fn(Value<'_>, &mut Vec<u8>)), (true, encode_descending)] {
                let (mut keys, mut scratch) = (Vec::new(), Vec::new());
                write(value, &mut keys);
                keys.push(9);
                assert_eq!(read(&keys, inverted, &mut scratch), Some((expected, &[9][..])), "{value:?}");
            }
        }
    }

    #[test]
    fn integers_are_decoded_without_their_type() {
        for number in [0, 1, -1, 127, 128, -128, 65_535, i64::from(i32::MAX), i64::from(i32::MIN), i64::MAX, -i64::MAX]
        {
            for (inverted, write) in [(false, encode as fn(Value<'_>, &mut Vec<u8>)), (true, encode_descending)] {
                let (mut keys, mut scratch) = (Vec::new(), Vec::new());
                write(Value::Int64(number), &mut keys);
                assert_eq!(
                    read(&keys, inverted, &mut scratch),
                    Some((DecodedKey::Integer(number), &[][..])),
                    "{number}"
                );
            }
        }
    }

    #[test]
    fn keys_of_several_values_are_ambiguous() {
        for value in [
            Value::Double(1.5),
            Value::Double(0.5),
            Value::Double(1e300),
            Value::Double(f64::INFINITY),
            Value::Null,
            Value::Undefined,
            Value::Double(f64::NAN),
            Value::String("a\u{1}b"),
        ] {
            let (mut keys, mut scratch) = (Vec::new(), Vec::new());
            encode(value, &mut keys);
            assert_eq!(read(&keys, false, &mut scratch), Some((DecodedKey::Ambiguous, &[][..])), "{value:?}");
        }
        assert_eq!(read(&[lead::OBJECT_ID, 1], false, &mut Vec::new()), None);
    }
}
