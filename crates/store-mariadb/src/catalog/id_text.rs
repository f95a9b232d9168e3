//! The id text: the value of the column `id`, computed here and by the server from the same
//! document.
//!
//! It is the `_id` as compact JSON, normalized so that values that are equal in MongoDB have one
//! text. Whole numbers within int64 are plain digits whatever their type. Other doubles are
//! formatted as MariaDB formats a double; other decimals by their digits and magnitude. Strings
//! have their escapes resolved. A text longer than 255 characters keeps its first 190 and gets a
//! hash.
//!
//! Known limits: a double and a decimal that are equal but have more than ten binary places are two
//! ids (lookups find either). So are unusual encodings inside `_id` documents and dates, which only
//! hand-written JSON has.

use crate::encoding;
use document::decimal::Parts;
use document::{Decimal128, Kind, Value};
use sha2::{Digest, Sha256};

/// Length of the column, in characters.
pub(crate) const ID_CHARS_MAX: usize = 255;
/// `~` and 64 hexadecimal digits, at the end of a text that was too long.
const HASH_CHARS: usize = 65;

/// A decimal with at most this many digits, below the limit, that is a multiple of 1/1024 is
/// exactly a double and shares its text: 0.5, 1.25. (Both have at most 15 digits then, and doubles
/// distinguish all such numbers.)
const BINARY_DIGITS_MAX: usize = 15;
const BINARY_LIMIT: f64 = 65_536.0;
const BINARY_PARTS: f64 = 1024.0;

/// The expression of a table's `id` column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdForm {
    /// By [`expression`].
    Canonical,
    /// `JSON_COMPACT(JSON_EXTRACT(doc, '$._id'))`: the encoding in the document.
    Plain,
}

/// The id texts that documents with an equal `_id` may have; `exact` if no other documents have
/// them.
pub(crate) struct Candidates {
    pub texts: Vec<Vec<u8>>,
    pub exact: bool,
}

/// Returns the id texts of a value; `None` for values that are no `_id`, or for which equality is
/// special (arrays, regular expressions, undefined).
pub(crate) fn candidates(value: Value<'_>, form: IdForm) -> Option<Candidates> {
    candidates_within(value, form, ID_CHARS_MAX)
}

/// As [`candidates`], for a column of `chars` characters.
pub(crate) fn candidates_within(value: Value<'_>, form: IdForm, chars: usize) -> Option<Candidates> {
    if matches!(value.kind(), Kind::Array | Kind::Regex | Kind::Undefined) {
        return None;
    }
    let mut texts = match form {
        IdForm::Canonical => vec![text_within(value, chars)],
        IdForm::Plain => plain_encodings(value),
    };
    match value {
        Value::Symbol(text) => texts.push(text_within(Value::String(text), chars)),
        Value::IllFormed { kind: kind @ (Kind::String | Kind::Symbol), raw } => {
            // Strings and symbols are equal.
            let other = if kind == Kind::String { Kind::Symbol } else { Kind::String };
            texts.push(text_within(Value::IllFormed { kind: other, raw }, chars));
        }
        Value::Double(number) if number.is_finite() && whole(number).is_none() => {
            texts.extend(decimal_of(number).map(decimal_text));
        }
        Value::Double(number) if !number.is_finite() => texts.push(wrapped("$numberDecimal", special_name(number))),
        Value::Decimal128(decimal) => match decimal.parts() {
            Parts::Finite { .. } => texts.push(text_within(Value::Double(decimal.to_f64()), chars)),
            _ => texts.push(wrapped("$numberDouble", special_name(decimal.to_f64()))),
        },
        _ => {}
    }
    if let Some(integer) = as_integer(value) {
        // Beyond 18 digits a decimal keeps a text of its own.
        texts.push(decimal_text_of(integer < 0, u128::from(integer.unsigned_abs()), 0));
    }
    texts.sort_unstable();
    texts.dedup();
    let simple = matches!(value.kind(), Kind::ObjectId | Kind::Boolean | Kind::Int32 | Kind::Int64)
        || matches!(value, Value::String(text) if text.chars().count() <= chars - 2);
    Some(Candidates { texts, exact: simple && form == IdForm::Canonical })
}

/// Returns the text of a value in a canonical column of `chars` characters; for an `_id`,
/// [`ID_CHARS_MAX`].
pub(crate) fn text_within(value: Value<'_>, chars: usize) -> Vec<u8> {
    match value {
        Value::Int32(number) => number.to_string().into_bytes(),
        Value::Int64(number) => number.to_string().into_bytes(),
        Value::Double(number) if number.is_finite() => double_text(number).into_bytes(),
        Value::Decimal128(decimal) if matches!(decimal.parts(), Parts::Finite { .. }) => decimal_text(decimal),
        Value::Boolean(flag) => flag.to_string().into_bytes(),
        Value::Null => b"null".to_vec(),
        Value::String(text) => bounded(quoted(text.as_bytes()), chars),
        Value::ObjectId(_) => encoding::encode_value(value),
        other => bounded(unify_numbers(&encoding::encode_value(other)), chars),
    }
}

fn quoted(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    out.push(b'"');
    out.extend_from_slice(text);
    out.push(b'"');
    out
}

fn bounded(text: Vec<u8>, chars: usize) -> Vec<u8> {
    // Fewer bytes than characters allowed: no count needed.
    if text.len() <= chars {
        return text;
    }
    let shown = String::from_utf8_lossy(&text);
    if shown.chars().count() <= chars {
        return text;
    }
    let kept: String = shown.chars().take(chars - HASH_CHARS).collect();
    let mut out = kept.into_bytes();
    out.push(b'~');
    for byte in Sha256::digest(&text) {
        out.extend_from_slice(format!("{byte:02x}").as_bytes());
    }
    out
}

/// Returns the int64 equal to this double, if there is one.
fn whole(number: f64) -> Option<i64> {
    (number.abs() < 9_223_372_036_854_775_808.0 && number == number.floor()).then_some(number as i64)
}

fn as_integer(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Int32(number) => Some(number.into()),
        Value::Int64(number) => Some(number),
        Value::Double(number) => whole(number),
        Value::Decimal128(decimal) => decimal.to_i64_exact(),
        _ => None,
    }
}

fn double_text(number: f64) -> String {
    match whole(number) {
        Some(integer) => integer.to_string(),
        None => mariadb_spelling(number),
    }
}

/// A double as MariaDB turns it into text: the shortest digits that read back the same, without an
/// exponent where at most 14 zeros follow the point.
fn mariadb_spelling(number: f64) -> String {
    let scientific = format!("{number:e}");
    let exponent: i32 = scientific.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    if exponent < -15 || number.abs() >= 9_223_372_036_854_775_808.0 { scientific } else { format!("{number}") }
}

fn decimal_text(decimal: Decimal128) -> Vec<u8> {
    match decimal.parts() {
        Parts::Finite { negative, coefficient, exponent } => decimal_text_of(negative, coefficient, exponent),
        _ => encoding::encode_value(Value::Decimal128(decimal)),
    }
}

fn decimal_text_of(negative: bool, coefficient: u128, exponent: i32) -> Vec<u8> {
    if coefficient == 0 {
        return b"0".to_vec();
    }
    let all = coefficient.to_string();
    let digits = all.trim_end_matches('0');
    let magnitude = all.len() as i32 + exponent;
    let sign = if negative { "-" } else { "" };
    if digits.len() as i32 <= magnitude && magnitude <= 18 {
        return format!("{sign}{digits:0<width$}", width = magnitude as usize).into_bytes();
    }
    if digits.len() <= BINARY_DIGITS_MAX {
        let number: f64 = format!("{sign}0.{digits}e{magnitude}").parse().unwrap_or(f64::NAN);
        let is_binary = number * BINARY_PARTS == (number * BINARY_PARTS).floor();
        // (Zero has had its text: this is too near to it for a double.)
        if number.abs() < BINARY_LIMIT && is_binary && number != 0.0 {
            return double_text(number).into_bytes();
        }
    }
    format!("{{\"$numberDecimal\":\"{sign}0.{digits}E{magnitude}\"}}").into_bytes()
}

/// The decimal that is exactly this double, if 34 digits are enough.
fn decimal_of(number: f64) -> Option<Decimal128> {
    // A double has at most 1,074 places; printed with that many it is exact.
    let exact = format!("{:.1074}", number.abs());
    let (integer, fraction) = exact.split_once('.')?;
    let fraction = fraction.trim_end_matches('0');
    let digits = format!("{integer}{fraction}");
    let digits = digits.trim_start_matches('0');
    let mut exponent = -(fraction.len() as i32);
    let trimmed = digits.trim_end_matches('0');
    exponent += (digits.len() - trimmed.len()) as i32;
    Decimal128::from_parts(number < 0.0, trimmed.parse().ok()?, exponent)
}

fn special_name(number: f64) -> &'static str {
    match number {
        number if number.is_nan() => "NaN",
        number if number < 0.0 => "-Infinity",
        _ => "Infinity",
    }
}

fn wrapped(key: &str, text: &str) -> Vec<u8> {
    format!("{{\"{key}\":\"{text}\"}}").into_bytes()
}

/// The text with whole doubles and small int64 as plain integers (`5.0` and `5e0` as `5`), outside
/// of strings.
fn unify_numbers(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len());
    let mut rest = json;
    while let Some(&byte) = rest.first() {
        let length = match byte {
            b'"' => string_length(rest),
            b'-' | b'0'..=b'9' => {
                let length = rest
                    .iter()
                    .take_while(|byte| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9'))
                    .count();
                out.extend_from_slice(without_zero_fraction(&rest[..length]));
                rest = &rest[length..];
                continue;
            }
            _ => 1,
        };
        let (taken, left) = rest.split_at(length);
        out.extend_from_slice(taken);
        rest = left;
    }
    out
}

/// The length of the string literal at the front, quotes included.
fn string_length(json: &[u8]) -> usize {
    let mut escaped = false;
    for (at, &byte) in json.iter().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    json.len()
}

fn without_zero_fraction(number: &[u8]) -> &[u8] {
    let integer = number.strip_suffix(b".0").or_else(|| number.strip_suffix(b"e0"));
    integer.filter(|integer| integer.iter().all(|byte| matches!(byte, b'-' | b'0'..=b'9'))).unwrap_or(number)
}

/// Returns the encodings of a value that a table with plain `id` texts may hold.
fn plain_encodings(value: Value<'_>) -> Vec<Vec<u8>> {
    let mut texts = vec![encoding::encode_value(value)];
    if let Some(integer) = as_integer(value) {
        texts.extend([format!("{integer}"), format!("{integer}.0"), format!("{integer}e0")].map(String::into_bytes));
    }
    if let Value::String(text) = value {
        // MaxScale also treats a string of 24 hexadecimal digits as an ObjectId, which the document
        // is not.
        let escaped = text.contains(['/']).then(|| quoted(text.replace('/', "\\/").as_bytes()));
        texts.extend(escaped);
    }
    texts
}

/// Returns the expression of the canonical `id` column. It consists of constants; a test against a
/// server checks that it agrees with [`text_within`].
///
/// An integer, a short string or an ObjectId at the start of the document, where Selkie writes it,
/// is matched by a pattern. That takes half a microsecond instead of the four or five of JSON
/// functions, which is half of an insert. A value that the pattern accepts has only one encoding,
/// so the match is the id text; all others use the general expression. Another test has a server
/// compare the two.
pub(crate) fn expression() -> String {
    format!(
        "coalesce(nullif(regexp_substr(left(`doc`,{FRONT_CHARS}),'{FRONT_PATTERN}'),''),{general})",
        general = expression_of("$._id", ID_CHARS_MAX)
    )
}

/// Characters of a document's text that the pattern reads: an ObjectId's wrapper ends at 42, a UUID
/// as a string at 45.
const FRONT_CHARS: usize = 48;

/// Digits that certainly fit an int64, a string without escapes, an ObjectId in lower case. Their
/// end must match too, since the text may have been cut. (Backslashes are doubled for SQL; a
/// session's `default_regex_flags` do not affect it.)
const FRONT_PATTERN: &str =
    r#"\\A\\{"_id":\\K(?:(?:0|-?[1-9][0-9]{0,17}+)(?=[,}])|"[^"\\\\]*+"|\\{"[$]oid":"[0-9a-f]{24}"\\})"#;

/// Returns the expression for the value at a JSON path, at most `chars` long. The path becomes part
/// of a statement: it must not contain quotes or backslashes.
pub(crate) fn expression_of(path: &str, chars: usize) -> String {
    let value = format!("json_extract(`doc`,'{path}')");
    let compact = format!("json_compact({value})");
    let text = format!("concat('\"',json_value(`doc`,'{path}'),'\"')");
    format!(
        "case left({value},1) when '{{' then {object} \
         when '\"' then if(char_length({value}) <= {chars} and locate('\\\\',{value}) = 0,{value},{bounded_text}) \
         when 't' then 'true' when 'f' then 'false' when 'n' then 'null' when '[' then {bounded_array} else {number} end",
        object = object_expression(path, &value, &compact, chars),
        bounded_text = bounded_expression(&text, chars),
        bounded_array = bounded_expression(&compact, chars),
        number = number_expression(&value),
    )
}

fn bounded_expression(text: &str, chars: usize) -> String {
    let kept = chars - HASH_CHARS;
    format!("if(char_length({text}) <= {chars},{text},concat(left({text},{kept}),'~',sha2({text},256)))")
}

fn number_expression(id: &str) -> String {
    format!(
        "case when char_length({id}) <= 18 and {id} not regexp '[.eE]' then if({id} = '-0','0',{id}) \
         when char_length({id}) <= 20 and {id} not regexp '[.eE]' \
         and cast({id} as decimal(65,0)) between -9223372036854775808 and 9223372036854775807 then {id} else {double} end",
        double = double_expression(id)
    )
}

fn double_expression(text: &str) -> String {
    let double = format!("cast({text} as double)");
    format!(
        "if(abs({double}) < 9223372036854775807e0 and {double} = floor({double}),concat(cast({double} as signed),''),concat({double},''))"
    )
}

/// Returns the expression for a document's compact text with `5.0` and `5e0` as `5`, outside of
/// strings.
pub(crate) fn unified_expression(compact: &str) -> String {
    format!(
        "regexp_replace({compact},'\"(?:[^\"\\\\\\\\]|\\\\\\\\.)*+\"(*SKIP)(*F)|(-?[0-9]++)(?:\\\\.0|e0)(?![0-9.eE])','\\\\1')"
    )
}

/// Returns the expression for documents and wrapped values. In documents `5.0` and `5e0` become
/// `5`, outside of strings.
fn object_expression(path: &str, id: &str, compact: &str, chars: usize) -> String {
    let unified = unified_expression(compact);
    let member = |name: &str| format!("json_value(`doc`,'{path}.{name}')");
    let decimal = format!("upper({})", member("$numberDecimal"));
    let double = member("$numberDouble");
    format!(
        "case when {id} like '{{\"$oid\"%' then lower({compact}) when {id} like '{{\"$number%' then \
         case when {decimal} is not null then {decimal_text} when {double} regexp '^-?[0-9]' then {double_text} \
         else coalesce({int},{long},{compact}) end \
         else {bounded} end",
        decimal_text = decimal_expression(&decimal, compact),
        double_text = double_expression(&double),
        int = member("$numberInt"),
        long = member("$numberLong"),
        bounded = bounded_expression(&unified, chars),
    )
}

/// Returns the expression for a decimal: its digits, without zeros at either end, and its magnitude
/// (`0.DIGITS × 10^MAGNITUDE`). Whole numbers of up to 18 digits become integers: MariaDB's
/// decimals hold all places of numbers from 1 on, and show that others are not whole.
fn decimal_expression(text: &str, compact: &str) -> String {
    let mantissa = format!("replace(substring_index({text},'E',1),'-','')");
    let exponent = format!("if(locate('E',{text}),cast(substring_index({text},'E',-1) as signed),0)");
    let all = format!("replace({mantissa},'.','')");
    let without_front = format!("trim(leading '0' from {all})");
    let digits = format!("trim(trailing '0' from {without_front})");
    let magnitude = format!(
        "({exponent} + char_length(substring_index({mantissa},'.',1)) - char_length({all}) + char_length({without_front}))"
    );
    // A cast of a number that is too large would fail.
    let castable = format!("{text} not regexp 'E.?[0-9]{{3}}'");
    let double = format!("cast({text} as double)");
    let decimal = format!("cast({text} as decimal(65,38))");
    format!(
        "case when {text} regexp '[AF]' then {compact} when {text} regexp '^-?[0.]+(E|$)' then '0' \
         when {castable} and abs({double}) <= 1e18 and abs({decimal}) < 1000000000000000000 and {decimal} = floor({decimal}) and {decimal} <> 0 \
         then concat(floor({decimal}),'') \
         when {castable} and char_length({digits}) <= {BINARY_DIGITS_MAX} and abs({double}) < {BINARY_LIMIT} \
         and {double} * {BINARY_PARTS} = floor({double} * {BINARY_PARTS}) then concat({double},'') \
         else concat('{{\"$numberDecimal\":\"',if({text} like '-%','-',''),'0.',{digits},'E',{magnitude},'\"}}') end"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::doc;

    fn check(value: Value<'_>, expected: &str) {
        assert_eq!(String::from_utf8_lossy(&text_within(value, ID_CHARS_MAX)), expected);
    }

    #[test]
    fn equal_numbers_have_one_text() {
        check(Value::Int32(1), "1");
        check(Value::Int64(1), "1");
        check(Value::Double(1.0), "1");
        check(Value::Double(-0.0), "0");
        check(Value::Decimal128(Decimal128::from_parts(false, 100, -2).unwrap()), "1");
        check(Value::Decimal128(Decimal128::from_parts(true, 1, 3).unwrap()), "-1000");
        check(Value::Decimal128(Decimal128::from_parts(false, 150, -2).unwrap()), "1.5");
        check(Value::Decimal128(Decimal128::from_parts(true, 50, -2).unwrap()), "-0.5");
        check(Value::Decimal128(Decimal128::from_parts(false, 10, -2).unwrap()), "{\"$numberDecimal\":\"0.1E0\"}");
        check(Value::Decimal128(Decimal128::from_parts(false, 1, -400).unwrap()), "{\"$numberDecimal\":\"0.1E-399\"}");
        check(Value::Decimal128(Decimal128::from_parts(true, 1, 400).unwrap()), "{\"$numberDecimal\":\"-0.1E401\"}");
        check(Value::Double(1_152_921_504_606_846_976.0), "1152921504606846976");
        check(Value::Double(0.1), "0.1");
        check(Value::Double(1.5e-15), "0.0000000000000015");
        check(Value::Double(1.5e-16), "1.5e-16");
        check(Value::Double(1e300), "1e300");
        assert_eq!(decimal_of(0.5), Decimal128::from_parts(false, 5, -1));
        assert_eq!(decimal_of(1e300), None);
    }

    #[test]
    fn other_ids_are_their_compact_json() {
        check(Value::String("a \"b"), "\"a \"b\"");
        check(Value::Boolean(true), "true");
        check(Value::Null, "null");
        check(
            Value::Document(doc! { "a": 5.0, "b": "x:1.0,", "c": 7i64 }.as_doc()),
            "{\"a\":5,\"b\":\"x:1.0,\",\"c\":7}",
        );
        let long = "é".repeat(300);
        assert_eq!(
            String::from_utf8(text_within(Value::String(&long), ID_CHARS_MAX)).unwrap().chars().count(),
            ID_CHARS_MAX
        );
    }
}
