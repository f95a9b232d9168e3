//! An event as one line of JSON.
//!
//! The form is that of MongoDB's audit log: Extended JSON v1 in strict mode, dates as ISO 8601 with
//! an offset.

use crate::event::{Endpoint, Event, Name, Subject};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use document::{Doc, Value};
use std::io::Write;

/// Documents nested deeper than this are shortened.
const LEVELS_MAX: usize = 100;

/// Appends the event's object without its closing brace, which the chain appends.
pub fn write_open(event: &Event, out: &mut Vec<u8>) {
    let Event { kind, ts_ms, subject, param, result } = event;
    out.extend_from_slice(b"{\"atype\":");
    string(kind, out);
    out.extend_from_slice(b",\"ts\":");
    date(*ts_ms, out);
    write_subject(subject, out);
    out.extend_from_slice(b",\"param\":");
    document(param.as_doc(), 0, out);
    append(out, format_args!(",\"result\":{result}"));
}

fn write_subject(subject: &Subject, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"uuid\":");
    binary(4, &subject.uuid, out);
    out.extend_from_slice(b",\"local\":");
    endpoint(&subject.local, out);
    out.extend_from_slice(b",\"remote\":");
    endpoint(&subject.remote, out);
    out.extend_from_slice(b",\"users\":");
    names("user", &subject.users, out);
    out.extend_from_slice(b",\"roles\":");
    names("role", &subject.roles, out);
}

fn endpoint(endpoint: &Endpoint, out: &mut Vec<u8>) {
    match endpoint {
        Endpoint::Ip(address) => {
            append(out, format_args!("{{\"ip\":\"{}\",\"port\":{}}}", address.ip(), address.port()))
        }
        Endpoint::Unix(path) => {
            out.extend_from_slice(b"{\"unix\":");
            string(path, out);
            out.push(b'}');
        }
        Endpoint::System => out.extend_from_slice(b"{\"isSystemUser\":true}"),
    }
}

fn names(key: &str, names: &[Name], out: &mut Vec<u8>) {
    out.push(b'[');
    for (position, name) in names.iter().enumerate() {
        append(out, format_args!("{}{{\"{key}\":", if position > 0 { "," } else { "" }));
        string(&name.name, out);
        out.extend_from_slice(b",\"db\":");
        string(&name.db, out);
        out.push(b'}');
    }
    out.push(b']');
}

pub(crate) fn document(document: Doc<'_>, level: usize, out: &mut Vec<u8>) {
    if level > LEVELS_MAX {
        return out.extend_from_slice(b"{\"$truncated\":true}");
    }
    out.push(b'{');
    for (position, element) in document.elements().enumerate() {
        if position > 0 {
            out.push(b',');
        }
        string(&String::from_utf8_lossy(element.key_bytes()), out);
        out.push(b':');
        value(element.value(), level, out);
    }
    out.push(b'}');
}

fn array(array: Doc<'_>, level: usize, out: &mut Vec<u8>) {
    if level > LEVELS_MAX {
        return out.extend_from_slice(b"[]");
    }
    out.push(b'[');
    for (position, each) in array.values().enumerate() {
        if position > 0 {
            out.push(b',');
        }
        value(each, level, out);
    }
    out.push(b']');
}

fn value(shown: Value<'_>, level: usize, out: &mut Vec<u8>) {
    match shown {
        Value::Double(number) if number.is_finite() => append(out, format_args!("{number:?}")),
        Value::Double(number) => append(out, format_args!("{{\"$numberDouble\":\"{number}\"}}")),
        Value::String(text) => string(text, out),
        Value::Document(inner) => document(inner, level + 1, out),
        Value::Array(inner) => array(inner, level + 1, out),
        Value::Binary { subtype, bytes } => binary(subtype, bytes, out),
        Value::Undefined => out.extend_from_slice(b"{\"$undefined\":true}"),
        Value::ObjectId(id) => append(out, format_args!("{{\"$oid\":\"{id}\"}}")),
        Value::Boolean(flag) => append(out, format_args!("{flag}")),
        Value::DateTime(milliseconds) => date(milliseconds, out),
        Value::Null => out.extend_from_slice(b"null"),
        Value::Regex { pattern, options } => wrapped(&[("$regex", pattern), ("$options", options)], out),
        Value::DbPointer { namespace, id } => {
            out.extend_from_slice(b"{\"$ref\":");
            string(namespace, out);
            append(out, format_args!(",\"$id\":\"{id}\"}}"));
        }
        Value::Code(code) => wrapped(&[("$code", code)], out),
        Value::Symbol(symbol) => wrapped(&[("$symbol", symbol)], out),
        Value::CodeWithScope { code, scope } => {
            out.extend_from_slice(b"{\"$code\":");
            string(code, out);
            out.extend_from_slice(b",\"$scope\":");
            document(scope, level + 1, out);
            out.push(b'}');
        }
        Value::Int32(number) => append(out, format_args!("{number}")),
        Value::Timestamp { time, increment } => {
            append(out, format_args!("{{\"$timestamp\":{{\"t\":{time},\"i\":{increment}}}}}"));
        }
        Value::Int64(number) => append(out, format_args!("{{\"$numberLong\":\"{number}\"}}")),
        Value::Decimal128(number) => append(out, format_args!("{{\"$numberDecimal\":\"{number}\"}}")),
        Value::MaxKey => out.extend_from_slice(b"{\"$maxKey\":1}"),
        Value::MinKey => out.extend_from_slice(b"{\"$minKey\":1}"),
        Value::IllFormed { raw, .. } => string(&String::from_utf8_lossy(raw), out),
    }
}

fn wrapped(fields: &[(&str, &str)], out: &mut Vec<u8>) {
    for (position, (key, text)) in fields.iter().enumerate() {
        append(out, format_args!("{}\"{key}\":", if position > 0 { ',' } else { '{' }));
        string(text, out);
    }
    out.push(b'}');
}

fn binary(subtype: u8, bytes: &[u8], out: &mut Vec<u8>) {
    append(out, format_args!("{{\"$binary\":\"{}\",\"$type\":\"{subtype:02x}\"}}", BASE64.encode(bytes)));
}

/// Appends a string in quotes. Control characters are escaped, so that a line is one line.
fn string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for character in text.chars() {
        match character {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' => {
                append(out, format_args!("\\u{:04x}", u32::from(character)));
            }
            _ => append(out, format_args!("{character}")),
        }
    }
    out.push(b'"');
}

fn date(milliseconds: i64, out: &mut Vec<u8>) {
    match calendar(milliseconds) {
        Some([year, month, day, hour, minute, second, millisecond]) => append(
            out,
            format_args!(
                "{{\"$date\":\"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}+00:00\"}}"
            ),
        ),
        None => append(out, format_args!("{{\"$date\":{{\"$numberLong\":\"{milliseconds}\"}}}}")),
    }
}

/// Returns a time as year, month, day, hour, minute, second and millisecond in UTC; `None` before
/// 1970 and from the year 10000 on.
pub fn calendar(milliseconds: i64) -> Option<[i64; 7]> {
    const DAY: i64 = 86_400_000;
    const YEAR_10000: i64 = 253_402_300_800_000;
    if !(0..YEAR_10000).contains(&milliseconds) {
        return None;
    }
    // Days since 0000-03-01, with which the cycle of 400 years begins.
    let days = milliseconds / DAY + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let of_day = milliseconds % DAY;
    Some([year, month, day, of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1000 % 60, of_day % 1000])
}

fn append(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to a vector cannot fail.
    let _ = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::kind;
    use document::{DocBuf, doc};
    use std::sync::Arc;

    #[test]
    fn an_event_has_the_form_of_mongodb() {
        let subject = Subject {
            uuid: *b"0123456789abcdef",
            local: Endpoint::Ip(([127, 0, 0, 1], 27017).into()),
            remote: Endpoint::Unix("anonymous".to_owned()),
            users: Arc::new([Name { name: "jo\"e".to_owned(), db: "admin".to_owned() }]),
            roles: Arc::new([]),
        };
        let param = doc! { "ns": "a.b\n", "n": 5, "date": Value::DateTime(951_782_400_007), "long": 7i64 };
        let event = Event { kind: kind::DROP_COLLECTION, ts_ms: 1_740_658_549_013, subject, param, result: 26 };
        let mut line = Vec::new();
        write_open(&event, &mut line);
        let expected = r#"{"atype":"dropCollection","ts":{"$date":"2025-02-27T12:15:49.013+00:00"},"uuid":{"$binary":"MDEyMzQ1Njc4OWFiY2RlZg==","$type":"04"},"local":{"ip":"127.0.0.1","port":27017},"remote":{"unix":"anonymous"},"users":[{"user":"jo\"e","db":"admin"}],"roles":[],"param":{"ns":"a.b\u000a","n":5,"date":{"$date":"2000-02-29T00:00:00.007+00:00"},"long":{"$numberLong":"7"}},"result":26"#;
        assert_eq!(String::from_utf8(line).unwrap(), expected);
    }

    #[test]
    fn deep_documents_are_shortened() {
        let mut deep = doc! { "a": 1 };
        for _ in 0..150 {
            deep = doc! { "a": &deep };
        }
        let mut line = Vec::new();
        document(deep.as_doc(), 0, &mut line);
        assert!(String::from_utf8(line).unwrap().contains("$truncated"));
        let empty = DocBuf::new();
        assert!(empty.as_doc().is_empty());
    }
}
