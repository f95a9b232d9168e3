//! The bytes by which an index in MariaDB orders a field's values: what the server computes from a document, and what is looked up here.
//!
//! Keys compare byte by byte as their values do in MongoDB. The first byte tells the type:
//!
//! | byte | values | behind it |
//! |---|---|---|
//! | `0` `1` `2` | MinKey; undefined; null, and a missing field | |
//! | `3` | numbers | `0` NaN, `1` -Infinity, `9` Infinity; `5`, the whole part less 2^63 in 8 bytes, and as much of the fraction (7 or 14 bytes) as there is |
//! | `A` | strings | their bytes |
//! | `D` | documents | a hash |
//! | `E` | strings that are too long | their first bytes, a hash |
//! | `F` | arrays, and what lies in arrays | |
//! | `G` | whatever SQL cannot place: numbers from 2^63 on or within 2^-56 of zero, decimals with an exponent, hand-made spellings, regular expressions … | a hash |
//! | `J` `K` `L` `M` `N` | binary data (length, subtype, bytes), ObjectIds, booleans, dates, timestamps | |
//! | `Z` | MaxKey | |
//!
//! From `D` to `G` lies what has no place of its own ([`ODD`]): such documents are found all the same, because every lookup reads what may
//! hide there ([`HIDING`], and strings among `E`); but an index with any of them is not in order.
//!
//! Numbers are equal across types, and so are their keys: doubles are exact to 112 binary places, decimals to 15 decimal ones.

mod number;

use crate::id_text;
use crate::spelling;
use document::Value;

/// Keys of values whose place in the order is not their own.
pub(crate) const ODD: (&[u8], &[u8]) = (b"D", b"H");
/// Keys that may stand for any value: arrays, and what SQL cannot tell.
pub(crate) const HIDING: (&[u8], &[u8]) = (b"F", b"H");
/// Keys of documents.
pub(crate) const DOCUMENTS: (&[u8], &[u8]) = (b"D", b"E");
/// Keys of null, undefined and missing fields.
pub(crate) const NULLS: (&[u8], &[u8]) = (b"1", b"3");
/// Keys of strings, but for long ones.
pub(crate) const STRINGS: (&[u8], &[u8]) = (b"A", b"B");
/// The key of an array, as the server writes it.
pub(crate) const ARRAY: &str = "'F'";

/// Bytes of a hash.
const HASH_BYTES: usize = 32;

/// The expression for the key of the JSON text that the expression `text` gives, in a column of `bytes` + 1 bytes; NULL for NULL.
pub(crate) fn expression(text: &str, bytes: usize) -> String {
    let odd = odd_expression(text);
    format!(
        "case when {text} is null then null else coalesce(case left({text},1) when '\"' then {string} when '{{' then {object} \
         when '[' then {ARRAY} when 't' then 'L1' when 'f' then 'L0' when 'n' then '2' else {number} end,{odd}) end",
        string = string_expression(text, bytes),
        object = object_expression(text, bytes),
        number = number::expression(text, &odd),
    )
}

/// As [`expression`] for an `_id`, whose canonical text (see [`id_text`]) the expression `id` gives: what is common is read off that.
pub(crate) fn id_expression(id: &str, text: &str, bytes: usize) -> String {
    format!(
        "case when {id} regexp '\\\\A-?[0-9]{{1,18}}\\\\z' then concat('35',{integer}) \
         when left({id},1)='\"' and char_length({id}) < {chars} then concat('A',cast(substr({id},2,char_length({id})-2) as binary)) \
         when {id} regexp '{OBJECT_ID}' then concat('K',unhex(substr({id},10,24))) else {general} end",
        integer = number::integer_bytes(&format!("cast({id} as signed)")),
        chars = id_text::ID_CHARS_MAX,
        general = expression(text, bytes),
    )
}

fn odd_expression(text: &str) -> String {
    format!("concat('G',unhex(sha2(json_compact({text}),256)))")
}

fn string_expression(text: &str, bytes: usize) -> String {
    let plain = format!("substr({text},2,char_length({text})-2)");
    let unescaped = format!("json_unquote({text})");
    format!(
        "if(locate('\\\\',{text})=0,{},{})",
        bounded_expression(&plain, bytes),
        bounded_expression(&unescaped, bytes)
    )
}

fn bounded_expression(text: &str, bytes: usize) -> String {
    let kept = bytes - HASH_BYTES;
    format!(
        "if(octet_length({text})<={bytes},concat('A',cast({text} as binary)),\
         concat('E',left(cast({text} as binary),{kept}),unhex(sha2({text},256))))"
    )
}

const OBJECT_ID: &str = r#"\\A\\{"[$]oid":"[0-9a-fA-F]{24}"\\}\\z"#;

/// A date from 1970 on in the spelling of the gateway. Of a day that is none, such as February 30, the 31st is the most that gets through.
const DATE: &str = concat!(
    r#"\\A\\{"[$]date":"(?:19[789]|[2-9][0-9]{2})[0-9]-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|"#,
    r#"(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31|02-29)"#,
    r#"T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:[.](?!000)[0-9]{3})?Z"\\}\\z"#
);

/// The first date that is not spelled with a year, in milliseconds.
const YEAR_10000: i64 = 253_402_300_800_000;

fn object_expression(text: &str, bytes: usize) -> String {
    let odd = odd_expression(text);
    let member = |path: &str| format!("json_value({text},'{path}')");
    let unified = id_text::unified_expression(&format!("json_compact({text})"));
    let long_date = format!("cast({} as signed)", member("$.\"$date\".\"$numberLong\""));
    let binary = format!("from_base64({})", member("$.\"$binary\".base64"));
    let word = |path: &str| format!("cast({} as unsigned)", member(path));
    let (time, increment) = (word("$.\"$timestamp\".t"), word("$.\"$timestamp\".i"));
    format!(
        "case when {text} regexp '{OBJECT_ID}' then concat('K',unhex(substr({text},10,24))) \
         when left({text},10)='{{\"$date\":\"' then if({text} regexp '{DATE}',\
         concat('M5',cast(substr({text},11,char_length({text})-13) as binary)),{odd}) \
         when {text} regexp '\\\\A\\\\{{\"[$]date\":\\\\{{\"[$]numberLong\":\"-?[1-9][0-9]{{0,17}}\"\\\\}}\\\\}}\\\\z' then \
         case when {long_date} < 0 then concat('M1',{date_bytes}) when {long_date} >= {YEAR_10000} then concat('M9',{date_bytes}) else {odd} end \
         when left({text},19)='{{\"$numberDecimal\":\"' then {decimal} \
         when left({text},18)='{{\"$numberDouble\":\"' then {special} \
         when {text} regexp '\\\\A\\\\{{\"[$]binary\":\\\\{{\"base64\":\"[A-Za-z0-9+/]*={{0,2}}\",\"subType\":\"[0-9a-f]{{2}}\"\\\\}}\\\\}}\\\\z' then \
         if(octet_length({binary}) <= {binary_bytes},\
         concat('J',unhex(lpad(hex(octet_length({binary})),8,'0')),unhex({subtype}),{binary}),{odd}) \
         when {text} regexp '\\\\A\\\\{{\"[$]timestamp\":\\\\{{\"t\":[0-9]{{1,10}},\"i\":[0-9]{{1,10}}\\\\}}\\\\}}\\\\z' \
         and {time} <= 4294967295 and {increment} <= 4294967295 \
         then concat('N',unhex(lpad(hex({time}),8,'0')),unhex(lpad(hex({increment}),8,'0'))) \
         when {text}='{{\"$minKey\":1}}' then '0' when {text}='{{\"$maxKey\":1}}' then 'Z' when {text}='{{\"$undefined\":true}}' then '1' \
         when {text} regexp '\\\\A\\\\{{[[:space:]]*(?:\"[^$\\\\\\\\]|\\\\}})' then concat('D',unhex(sha2({unified},256))) \
         else {odd} end",
        date_bytes = number::integer_bytes(&long_date),
        decimal = number::decimal_expression(&member("$.\"$numberDecimal\""), &odd),
        special = number::special_expression(&member("$.\"$numberDouble\""), &odd),
        binary_bytes = bytes - 5,
        subtype = member("$.\"$binary\".subType"),
    )
}

/// The key of a value that has a place of its own, and whether keys are equal only if values are; for other values, the place that
/// they would have: no key of a lesser value lies behind it, none of a greater one before it. `None` for values without any order here
/// (documents, arrays, regular expressions …).
pub(crate) fn place(value: Value<'_>) -> Option<(Vec<u8>, bool)> {
    let mut key = Vec::with_capacity(24);
    let mut exact = true;
    match value {
        Value::Int32(_) | Value::Int64(_) | Value::Double(_) | Value::Decimal128(_) => {
            exact = number::append(value, &mut key);
        }
        Value::String(text) | Value::Symbol(text) => {
            key.push(b'A');
            key.extend_from_slice(text.as_bytes());
        }
        Value::Binary { subtype, bytes } => {
            key.push(b'J');
            key.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
            key.push(subtype);
            key.extend_from_slice(bytes);
        }
        Value::ObjectId(id) => {
            key.push(b'K');
            key.extend_from_slice(&id.0);
        }
        Value::Boolean(flag) => key.extend_from_slice(if flag { b"L1" } else { b"L0" }),
        Value::DateTime(milliseconds) => append_date(milliseconds, &mut key),
        Value::Timestamp { time, increment } => {
            key.push(b'N');
            key.extend_from_slice(&time.to_be_bytes());
            key.extend_from_slice(&increment.to_be_bytes());
        }
        _ => return None,
    }
    Some((key, exact))
}

fn append_date(milliseconds: i64, key: &mut Vec<u8>) {
    key.push(b'M');
    if !(0..YEAR_10000).contains(&milliseconds) {
        key.push(if milliseconds < 0 { b'1' } else { b'9' });
        key.extend_from_slice(&number::signed_bytes(milliseconds));
        return;
    }
    let text = spelling::value(Value::DateTime(milliseconds));
    key.push(b'5');
    // Between the wrapper's front and `Z"}`.
    key.extend_from_slice(text.get(10..text.len() - 3).unwrap_or_default());
}

/// The first key behind all keys that begin with this one.
pub(crate) fn behind_prefix(mut key: Vec<u8>) -> Vec<u8> {
    while let Some(last) = key.pop() {
        if last < 0xFF {
            key.push(last + 1);
            return key;
        }
    }
    vec![0xFF]
}

/// The first key behind this one.
pub(crate) fn behind(mut key: Vec<u8>) -> Vec<u8> {
    key.push(0);
    key
}

/// The front of the key of a long string that begins with `text`, in a column of `bytes` + 1 bytes.
pub(crate) fn long_string(text: &[u8], bytes: usize) -> Vec<u8> {
    let mut key = vec![b'E'];
    key.extend_from_slice(&text[..text.len().min(bytes - HASH_BYTES)]);
    key
}
