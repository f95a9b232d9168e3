//! Reading the wrappers of Extended JSON: objects that represent one value, such as `{"$oid":"…"}`.
//!
//! An object is first scanned without writing anything: its fields' names, and the positions of
//! their values. If they form a well-formed wrapper, the value is written; if not, the object is a
//! document, and is read again as one.

use super::read::{Number, NumberValue, Reader};
use super::scan::plain_length;
use super::{JsonError, date};
use crate::decimal::Decimal128;
use crate::validate;
use crate::value::Kind;
use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use smallvec::SmallVec;

/// Reads base64 with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Reads the object behind a brace if it is a well-formed wrapper: writes its value and returns its
/// type. Returns `None`, with nothing consumed or written, if it is not. `depth` counts the
/// documents around it.
pub(super) fn read(reader: &mut Reader<'_>, depth: usize) -> Result<Option<Kind>, JsonError> {
    let text = reader.text;
    if let Some(kind) = read_object_id(reader).or_else(|| read_date(reader)) {
        return Ok(Some(kind));
    }
    let Some((fields, end)) = Fields::scan(text, reader.at) else {
        return Ok(None);
    };
    if let Some((code, scope)) = code_with_scope(&fields) {
        return read_code_with_scope(reader, code, scope, end, depth).map(Some);
    }
    let length = reader.out.len();
    let kind = write_value(&fields, reader.out, depth);
    match kind {
        Some(_) => reader.at = end,
        None => reader.out.truncate(length),
    }
    Ok(kind)
}

/// Reads the wrapper of ObjectIds, in its usual form: `"$oid":"0123456789abcdef01234567"}`.
#[inline]
fn read_object_id(reader: &mut Reader<'_>) -> Option<Kind> {
    let rest = reader.text.get(reader.at..)?.strip_prefix(b"\"$oid\":\"")?;
    let (digits, rest) = rest.split_first_chunk::<24>()?;
    if !rest.starts_with(b"\"}") {
        return None;
    }
    reader.out.extend_from_slice(&hex_bytes(digits)?);
    reader.at += 8 + 24 + 2;
    Some(Kind::ObjectId)
}

/// Reads the wrapper of dates, in its usual form: `"$date":"2020-02-29T12:00:00Z"}`.
#[inline]
fn read_date(reader: &mut Reader<'_>) -> Option<Kind> {
    let rest = reader.text.get(reader.at..)?.strip_prefix(b"\"$date\":\"")?;
    let length = plain_length(rest);
    let (text, rest) = rest.split_at_checked(length)?;
    if !rest.starts_with(b"\"}") {
        return None;
    }
    reader.out.extend_from_slice(&date::read_iso(text)?.to_le_bytes());
    reader.at += 9 + length + 2;
    Some(Kind::DateTime)
}

/// Reads twelve bytes from 24 hexadecimal digits.
#[inline]
fn hex_bytes(digits: &[u8; 24]) -> Option<[u8; 12]> {
    let mut bytes = [0; 12];
    let mut invalid = 0;
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let (high, low) = (HEX_VALUES[usize::from(pair[0])], HEX_VALUES[usize::from(pair[1])]);
        invalid |= high | low;
        *byte = high << 4 | low & 15;
    }
    (invalid & 0xF0 == 0).then_some(bytes)
}

/// The value of a hexadecimal digit; 0xFF for other characters.
const HEX_VALUES: [u8; 256] = {
    let mut values = [0xFF; 256];
    let mut value = 0;
    while value < 16 {
        values[b"0123456789abcdef"[value] as usize] = value as u8;
        values[b"0123456789ABCDEF"[value] as usize] = value as u8;
        value += 1;
    }
    values
};

/// The fields of an object that may be a wrapper: names without escapes, and the text of the
/// values.
struct Fields<'r> {
    fields: SmallVec<[(&'r [u8], &'r [u8]); 3]>,
}

/// No wrapper has more.
const FIELDS_MAX: usize = 2;

impl<'r> Fields<'r> {
    /// Scans an object of one or two fields, from behind its brace. Also returns the position
    /// behind it.
    fn scan(text: &'r [u8], at: usize) -> Option<(Fields<'r>, usize)> {
        let mut scanner = Scanner { text, at };
        let mut fields = SmallVec::new();
        loop {
            scanner.expect(b'"')?;
            let name = scanner.plain_string()?;
            scanner.expect(b':')?;
            let value = scanner.value()?;
            if fields.len() == FIELDS_MAX {
                return None;
            }
            fields.push((name, value));
            match scanner.next()? {
                b',' => {}
                b'}' => return Some((Fields { fields }, scanner.at)),
                _ => return None,
            }
        }
    }

    /// Returns the fields of a value that is an object.
    fn of(value: &'r [u8]) -> Option<Fields<'r>> {
        let (first, rest) = value.split_first()?;
        let (fields, end) = (*first == b'{').then(|| Fields::scan(rest, 0))??;
        (end == rest.len()).then_some(fields)
    }

    /// Returns the value of the only field, if it has this name.
    fn only(&self, name: &str) -> Option<&'r [u8]> {
        match self.fields.as_slice() {
            [(first, value)] if *first == name.as_bytes() => Some(value),
            _ => None,
        }
    }

    /// Returns the values of the two fields, if they have these names, in any order.
    fn both(&self, one: &str, other: &str) -> Option<(&'r [u8], &'r [u8])> {
        match self.fields.as_slice() {
            [(a, a_value), (b, b_value)] if *a == one.as_bytes() && *b == other.as_bytes() => Some((a_value, b_value)),
            [(a, a_value), (b, b_value)] if *a == other.as_bytes() && *b == one.as_bytes() => Some((b_value, a_value)),
            _ => None,
        }
    }
}

/// Skips through text without reading it: only brackets, quotes and separators are checked.
struct Scanner<'r> {
    text: &'r [u8],
    at: usize,
}

impl<'r> Scanner<'r> {
    /// Consumes the next byte that is not white space.
    fn next(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.get(self.at)?;
            self.at += 1;
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(byte);
            }
        }
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then_some(())
    }

    /// Reads a string without escapes, from behind its quote.
    fn plain_string(&mut self) -> Option<&'r [u8]> {
        let rest = self.text.get(self.at..)?;
        let length = plain_length(rest);
        (rest.get(length)? == &b'"').then_some(())?;
        self.at += length + 1;
        rest.get(..length)
    }

    /// Skips a string, from behind its quote.
    fn skip_string(&mut self) -> Option<()> {
        loop {
            let rest = self.text.get(self.at..)?;
            let length = plain_length(rest);
            let is_end = rest.get(length)? == &b'"';
            self.at += length + if is_end { 1 } else { 2 };
            if is_end {
                return Some(());
            }
        }
    }

    /// Skips a value. Returns its text.
    fn value(&mut self) -> Option<&'r [u8]> {
        let first = self.next()?;
        let start = self.at - 1;
        match first {
            b'"' => self.skip_string()?,
            b'{' | b'[' => self.skip_brackets()?,
            _ => {
                let rest = self.text.get(self.at..)?;
                self.at +=
                    rest.iter().position(|byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t'))?;
            }
        }
        self.text.get(start..self.at)
    }

    /// Skips an object or array, from behind its bracket.
    fn skip_brackets(&mut self) -> Option<()> {
        let mut open = 1;
        while open > 0 {
            match self.next()? {
                b'"' => self.skip_string()?,
                b'{' | b'[' => open += 1,
                b'}' | b']' => open -= 1,
                _ => {}
            }
        }
        Some(())
    }
}

/// Returns the two values of `{"$code":"…","$scope":{…}}`.
fn code_with_scope<'r>(fields: &Fields<'r>) -> Option<(&'r [u8], &'r [u8])> {
    let (code, scope) = fields.both("$code", "$scope")?;
    (code.starts_with(b"\"") && scope.starts_with(b"{")).then_some((code, scope))
}

/// The scope is read like any document, so its errors are errors of the text.
fn read_code_with_scope(
    reader: &mut Reader<'_>,
    code: &[u8],
    scope: &[u8],
    end: usize,
    depth: usize,
) -> Result<Kind, JsonError> {
    let start = reader.out.len();
    reader.out.extend_from_slice(&[0; 4]);
    let mut inner = Reader::new(code, 1, reader.out);
    inner.string_value().map_err(|error| reader_error(reader.at, error))?;
    let mut inner = Reader::new(scope, 1, reader.out);
    if !read_raw_scope(&mut inner, depth) {
        inner.document(depth + 1).map_err(|error| reader_error(reader.at, error))?;
    }
    reader.at = end;
    let length = reader.out.len() - start;
    reader.fill_length(start, length)?;
    Ok(Kind::CodeWithScope)
}

/// Reads a scope that is nested so deep that it is itself wrapped, as raw BSON.
fn read_raw_scope(inner: &mut Reader<'_>, depth: usize) -> bool {
    let length = inner.out.len();
    let kind = Fields::of(inner.text).and_then(|fields| write_raw(&fields, inner.out, depth));
    if kind != Some(Kind::Document) {
        inner.out.truncate(length);
    }
    kind == Some(Kind::Document)
}

/// Converts an error in a part of the text to a position in the whole.
fn reader_error(base: usize, error: JsonError) -> JsonError {
    JsonError { position: base + error.position, ..error }
}

/// Writes a wrapper's value. Returns `None` if it is malformed; something may have been written
/// then.
fn write_value(fields: &Fields<'_>, out: &mut Vec<u8>, depth: usize) -> Option<Kind> {
    let (name, value) = *fields.fields.first()?;
    if fields.fields.len() == 2 {
        return write_binary_legacy(fields, out)
            .or_else(|| write_regex(fields.both("$regex", "$options")?, out))
            .or_else(|| write_raw(fields, out, depth));
    }
    match name {
        b"$date" => write_date(value, out),
        b"$oid" => {
            out.extend_from_slice(&hex_bytes(plain(value)?.try_into().ok()?)?);
            Some(Kind::ObjectId)
        }
        b"$numberInt" => {
            out.extend_from_slice(&i32::try_from(integer(value)?).ok()?.to_le_bytes());
            Some(Kind::Int32)
        }
        b"$numberLong" => {
            out.extend_from_slice(&integer(value)?.to_le_bytes());
            Some(Kind::Int64)
        }
        b"$numberDouble" => {
            out.extend_from_slice(&double(value)?.to_le_bytes());
            Some(Kind::Double)
        }
        b"$numberDecimal" => {
            out.extend_from_slice(&Decimal128::parse(text(plain(value)?)?)?.0);
            Some(Kind::Decimal128)
        }
        b"$binary" => {
            let (base64, subtype) = Fields::of(value)?.both("base64", "subType")?;
            write_binary(base64, subtype, out)
        }
        b"$uuid" => write_uuid(plain(value)?, out),
        b"$regularExpression" => write_regex(Fields::of(value)?.both("pattern", "options")?, out),
        b"$timestamp" => {
            let (time, increment) = Fields::of(value)?.both("t", "i")?;
            let (time, increment) = (u32::try_from(integer(time)?).ok()?, u32::try_from(integer(increment)?).ok()?);
            out.extend_from_slice(&increment.to_le_bytes());
            out.extend_from_slice(&time.to_le_bytes());
            Some(Kind::Timestamp)
        }
        b"$symbol" => write_string(value, Kind::Symbol, out),
        b"$code" => write_string(value, Kind::Code, out),
        b"$dbPointer" => {
            let (namespace, id) = Fields::of(value)?.both("$ref", "$id")?;
            write_string(namespace, Kind::DbPointer, out)?;
            let id = plain(Fields::of(id)?.only("$oid")?)?;
            out.extend_from_slice(&hex_bytes(id.try_into().ok()?)?);
            Some(Kind::DbPointer)
        }
        b"$minKey" => (value == b"1").then_some(Kind::MinKey),
        b"$maxKey" => (value == b"1").then_some(Kind::MaxKey),
        b"$undefined" => (value == b"true").then_some(Kind::Undefined),
        _ => None,
    }
}

/// Writes an ISO date, `{"$numberLong":"…"}`, or a number of milliseconds.
fn write_date(value: &[u8], out: &mut Vec<u8>) -> Option<Kind> {
    let milliseconds = match value.first()? {
        b'"' => date::read_iso(plain(value)?)?,
        b'{' => integer(Fields::of(value)?.only("$numberLong")?)?,
        _ => integer(value)?,
    };
    out.extend_from_slice(&milliseconds.to_le_bytes());
    Some(Kind::DateTime)
}

/// Writes `{"$binary":"…","$type":"00"}`.
fn write_binary_legacy(fields: &Fields<'_>, out: &mut Vec<u8>) -> Option<Kind> {
    let (base64, subtype) = fields.both("$binary", "$type")?;
    write_binary(base64, subtype, out)
}

fn write_binary(base64: &[u8], subtype: &[u8], out: &mut Vec<u8>) -> Option<Kind> {
    let subtype = match subtype.first()? {
        b'"' => hex_byte(plain(subtype)?)?,
        _ => u8::try_from(integer(subtype)?).ok()?,
    };
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.push(subtype);
    write_base64(base64, out)?;
    let length = i32::try_from(out.len() - start - 5).ok()?;
    out.get_mut(start..start + 4)?.copy_from_slice(&length.to_le_bytes());
    Some(Kind::Binary)
}

/// Writes `{"$bson":"…","$type":"03"}`: any value, by its bytes in BSON.
fn write_raw(fields: &Fields<'_>, out: &mut Vec<u8>, depth: usize) -> Option<Kind> {
    let (base64, kind) = fields.both("$bson", "$type")?;
    let kind = Kind::from_byte(hex_byte(plain(kind)?)?)?;
    let start = out.len();
    write_base64(base64, out)?;
    validate::check_value(kind, out.get(start..)?, depth).ok()?;
    Some(kind)
}

fn write_base64(value: &[u8], out: &mut Vec<u8>) -> Option<()> {
    // JSON of MariaDB and other writers may have the slash as `\/`; nothing else in base64 can be
    // escaped.
    let mut unescaped;
    let mut text = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if text.contains(&b'\\') {
        unescaped = text.to_vec();
        unescaped.retain(|byte| *byte != b'\\');
        text = &unescaped;
    }
    BASE64.decode_vec(text, out).ok()
}

/// Writes `{"$uuid":"00112233-4455-6677-8899-aabbccddeeff"}`.
fn write_uuid(text: &[u8], out: &mut Vec<u8>) -> Option<Kind> {
    let hyphens = [8, 13, 18, 23];
    if text.len() != 36 || hyphens.iter().any(|at| text[*at] != b'-') {
        return None;
    }
    out.extend_from_slice(&[16, 0, 0, 0, 4]);
    let digits: SmallVec<[u8; 36]> = text.iter().copied().filter(|byte| *byte != b'-').collect();
    if digits.len() != 32 {
        return None;
    }
    for pair in digits.chunks_exact(2) {
        out.push(hex_byte(pair)?);
    }
    Some(Kind::Binary)
}

fn write_regex((pattern, options): (&[u8], &[u8]), out: &mut Vec<u8>) -> Option<Kind> {
    for part in [pattern, options] {
        let start = out.len();
        let text = part.strip_prefix(b"\"").map(|_| part)?;
        Reader::new(text, 1, out).string().ok()?;
        if out.get(start..)?.contains(&0) {
            return None;
        }
        out.push(0);
    }
    Some(Kind::Regex)
}

fn write_string(value: &[u8], kind: Kind, out: &mut Vec<u8>) -> Option<Kind> {
    if value.first() != Some(&b'"') {
        return None;
    }
    Reader::new(value, 1, out).string_value().ok()?;
    Some(kind)
}

/// Returns the characters of a string without escapes.
fn plain(value: &[u8]) -> Option<&[u8]> {
    let text = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    (!text.contains(&b'\\')).then_some(text)
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// Reads one or two hexadecimal digits.
fn hex_byte(digits: &[u8]) -> Option<u8> {
    if digits.is_empty() || digits.len() > 2 {
        return None;
    }
    digits.iter().try_fold(0, |byte, digit| Some(byte << 4 | (*digit as char).to_digit(16)? as u8))
}

/// Reads an integer as a number or as a string of digits.
fn integer(value: &[u8]) -> Option<i64> {
    if let Some(digits) = plain(value) {
        return text(digits)?.parse().ok();
    }
    let number = Number::read(value).filter(|number| number.length == value.len())?;
    match number.value {
        NumberValue::Int32(number) => Some(number.into()),
        NumberValue::Int64(number) => Some(number),
        NumberValue::Double(number) => {
            let whole = number as i64;
            (whole as f64 == number && whole != i64::MAX).then_some(whole)
        }
    }
}

/// Reads a double as a string: digits, `NaN`, `Infinity` or `-Infinity`. A number is accepted too.
fn double(value: &[u8]) -> Option<f64> {
    let Some(number) = plain(value) else {
        let number = Number::read(value).filter(|number| number.length == value.len())?;
        return Some(match number.value {
            NumberValue::Int32(number) => number.into(),
            NumberValue::Int64(number) => number as f64,
            NumberValue::Double(number) => number,
        });
    };
    match number {
        b"NaN" => Some(f64::NAN),
        b"Infinity" => Some(f64::INFINITY),
        b"-Infinity" => Some(f64::NEG_INFINITY),
        // The standard library would accept other forms of these, too.
        _ if number.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')) => {
            text(number)?.parse().ok()
        }
        _ => None,
    }
}
