//! Values back from keys, as far as a key has but one value.

use super::{lead, number, split};
use crate::ObjectId;
use crate::value::{Kind, Value};

/// What a key says of its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Told<'k> {
    Value(Value<'k>),
    /// A string or a symbol.
    Text(&'k str),
    /// A whole number of any type.
    Whole(i64),
    /// Several values have this key, or it is not worth reading.
    Nothing,
}

/// The value behind the first key of a row of keys, and what is behind it. `inverted`: it is one of a descending field. `scratch` holds
/// the value's bytes where they are not in the key as they are. `None` for bytes that no value has.
pub fn read<'s, 'k: 's>(keys: &'k [u8], inverted: bool, scratch: &'s mut Vec<u8>) -> Option<(Told<'s>, &'k [u8])> {
    let (key, rest) = split(keys, inverted)?;
    let key = match inverted {
        false => key,
        true => {
            scratch.clear();
            scratch.extend(key.iter().map(|byte| !byte));
            &**scratch
        }
    };
    Some((told(key)?, rest))
}

/// Whether [`read`] gives values of a kind as what they are.
pub fn tells(kind: Kind) -> bool {
    matches!(kind, Kind::ObjectId | Kind::Boolean | Kind::DateTime | Kind::Timestamp | Kind::MinKey | Kind::MaxKey)
}

fn told(key: &[u8]) -> Option<Told<'_>> {
    let (first, behind) = key.split_first()?;
    let number = || Some(u64::from_be_bytes(*behind.first_chunk()?));
    Some(Told::Value(match *first {
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
            // Texts with bytes that keys spell in another way are rare.
            return Some(match memchr::memchr(1, text) {
                None => std::str::from_utf8(text).map_or(Told::Nothing, Told::Text),
                Some(_) => Told::Nothing,
            });
        }
        lead::NUMBER_FIRST..=lead::NUMBER_LAST => return Some(number::whole(key).map_or(Told::Nothing, Told::Whole)),
        _ => return Some(Told::Nothing),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{encode, encode_descending};

    #[test]
    fn keys_tell_what_but_one_value_has() {
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
            let expected = if let Value::String(text) = value { Told::Text(text) } else { Told::Value(value) };
            for (inverted, write) in [(false, encode as fn(Value<'_>, &mut Vec<u8>)), (true, encode_descending)] {
                let (mut keys, mut scratch) = (Vec::new(), Vec::new());
                write(value, &mut keys);
                keys.push(9);
                assert_eq!(read(&keys, inverted, &mut scratch), Some((expected, &[9][..])), "{value:?}");
            }
        }
    }

    #[test]
    fn whole_numbers_are_told_without_their_type() {
        for number in [0, 1, -1, 127, 128, -128, 65_535, i64::from(i32::MAX), i64::from(i32::MIN), i64::MAX, -i64::MAX]
        {
            for (inverted, write) in [(false, encode as fn(Value<'_>, &mut Vec<u8>)), (true, encode_descending)] {
                let (mut keys, mut scratch) = (Vec::new(), Vec::new());
                write(Value::Int64(number), &mut keys);
                assert_eq!(read(&keys, inverted, &mut scratch), Some((Told::Whole(number), &[][..])), "{number}");
            }
        }
    }

    #[test]
    fn keys_of_several_values_tell_nothing() {
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
            assert_eq!(read(&keys, false, &mut scratch), Some((Told::Nothing, &[][..])), "{value:?}");
        }
        assert_eq!(read(&[lead::OBJECT_ID, 1], false, &mut Vec::new()), None);
    }
}
