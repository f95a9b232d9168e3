//! The bytes by which an index in MariaDB orders a field's values: what the server computes from a document, and what is looked up here.
//!
//! Keys compare byte by byte as their values do in MongoDB. The first byte tells the type:
//!
//! | byte | values | behind it |
//! |---|---|---|
//! | `1` `2` | undefined; null, and a missing field | |
//! | `3` | numbers | `0` NaN, `1` -Infinity, `9` Infinity; `5`, the whole part less 2^63 in 8 bytes, and as much of the fraction (7 or 14 bytes) as there is |
//! | `A` | strings | their bytes |
//! | `D` | documents | in a unique index, a hash |
//! | `E` | strings that are too long | their first bytes, a hash |
//! | `F` | arrays, and what lies in arrays | |
//! | `G` | whatever SQL does not place: numbers from 2^63 on or within 2^-56 of zero, decimals with an exponent, dates from the year 3000 on, timestamps, regular expressions, MinKey, hand-made spellings … | in a unique index, a hash |
//! | `J` `K` `L` `M` | binary data (length, subtype, bytes), ObjectIds, booleans, dates | |
//!
//! From `D` to `G` lies what has no place of its own ([`UNORDERED`]): such documents are found all the same, because every lookup reads what may
//! hide there ([`CATCH_ALL`], and strings among `E`); but an index with any of them is not in order.
//!
//! Numbers are equal across types, and so are their keys: doubles are exact to 112 binary places, decimals to 15 decimal ones.

pub(crate) mod decode;
mod number;

use crate::catalog::id_text;
use crate::encoding;
use document::{Kind, Value};

/// Keys of values whose place in the order is not their own.
pub(crate) const UNORDERED: (&[u8], &[u8]) = (b"D", b"H");
/// Keys that may stand for any value: arrays, and what SQL cannot tell.
pub(crate) const CATCH_ALL: (&[u8], &[u8]) = (b"F", b"H");
/// Keys that may stand for any value, but for arrays.
pub(crate) const CATCH_ALL_EXCEPT_ARRAYS: (&[u8], &[u8]) = (b"G", b"H");
/// Keys of documents.
pub(crate) const DOCUMENTS: (&[u8], &[u8]) = (b"D", b"E");
/// Keys of null, undefined and missing fields.
pub(crate) const NULLS: (&[u8], &[u8]) = (b"1", b"3");
/// Keys of null, undefined and missing fields; of booleans.
pub(crate) const FLAGS: [(&[u8], &[u8]); 2] = [NULLS, (b"L", b"M")];
/// Keys of strings, but for long ones.
pub(crate) const STRINGS: (&[u8], &[u8]) = (b"A", b"B");
/// Behind all keys.
pub(crate) const END: &[u8] = b"P";
/// The key of an array, as the server writes it.
pub(crate) const ARRAY: &str = "'F'";

/// Bytes of a hash.
const HASH_BYTES: usize = 32;

/// What a field's key is computed from, in SQL.
///
/// All generated columns of a table together may have 64 KiB of expressions, so these are kept short; that is also why types which are
/// rare in data have no place.
pub(crate) struct Source<'s> {
    /// The JSON text of the value.
    pub text: &'s str,
    /// A column with the value as DECIMAL(65,30), if it is a plain Decimal128: [`decimal_expression`]. Without one, decimals have no place.
    pub decimal: Option<&'s str>,
    /// Length of the column, less the byte in front.
    pub bytes: usize,
    /// Different values have different keys, even where they have no place.
    pub unique: bool,
}

/// A Decimal128 of so few digits that its key says all about it, as a decimal of MariaDB's; else NULL.
pub(crate) fn decimal_expression(text: &str) -> String {
    format!("if({text} regexp '^{DECIMAL}$',cast(json_value({text},'$.$numberDecimal') as decimal(65,30)),null)")
}

impl Source<'_> {
    /// The expression for the key; it means nothing where the text is NULL.
    pub fn expression(&self) -> String {
        let Source { text, .. } = self;
        let odd = if self.unique { format!("concat('G',unhex(sha2(json_compact({text}),256)))") } else { "'G'".into() };
        format!(
            "coalesce(case left({text},1) when '\"' then {string} when '{{' then {object} when '[' then {ARRAY} \
             when 't' then 'L1' when 'f' then 'L0' when 'n' then '2' else {number} end,{odd})",
            string = self.string(),
            object = self.object(),
            number = number::expression(text),
        )
    }

    /// As [`Source::expression`] for an `_id`, whose canonical text (see [`id_text`]) the expression `id` gives: what is common is read
    /// off that.
    pub fn id_expression(&self, id: &str) -> String {
        format!(
            "case when {id} regexp '^-?[0-9]{{1,18}}$' then concat('35',{integer}) \
             when left({id},1)='\"' and char_length({id}) < {chars} then concat(_binary'A',substr({id},2,char_length({id})-2)) \
             when {id} regexp '^{OBJECT_ID}$' then concat('K',unhex(substr({id},10,24))) else {general} end",
            integer = number::integer_bytes(id),
            chars = id_text::ID_CHARS_MAX,
            general = self.expression(),
        )
    }

    /// Whether any of these fields may have a key without a place ([`UNORDERED`]): true or NULL, and true of few that do have one (numbers
    /// that nobody but hands would spell so). Told by the texts alone: who asks MariaDB for a generated column has its expression walked
    /// through, in each statement, with those of all columns that it is computed from, and those of keys are long.
    pub fn any_unordered(fields: &[Source<'_>]) -> String {
        let (mut texts, mut shortest) = (Vec::new(), usize::MAX);
        for Source { text, bytes, .. } in fields {
            texts.push(format!("if(left({text},1)='\"' and octet_length(json_unquote({text}))<={bytes},null,{text})"));
            shortest = shortest.min(*bytes);
        }
        // Four characters for three bytes, the last of them padded.
        let quads = (shortest - BINARY_FRAME) / 4 - 1;
        format!(
            "if(concat_ws(';',{texts}) regexp '^(({NUMBER_PLACED}|{DECIMAL}|true|false|null|{OBJECT_ID}|{DATE}\
             |{EARLY_DATE}\
             |{{\"[$]binary\":{{\"base64\":\"([A-Za-z0-9+/]{{4}}){{0,{quads}}}([A-Za-z0-9+/]{{2}}==|[A-Za-z0-9+/]{{3}}=)?\",\"subType\":\"[0-9a-f]{{2}}\"}}}})\
             (;|$))*$',null,true)",
            texts = texts.join(","),
        )
    }

    /// Whether the value is of the kinds that most are, whose keys [`Source::plain_expression`] gives: none, null, a string without escapes that is
    /// not too long, a whole number of up to 18 digits, an ObjectId.
    pub fn plain_condition(&self) -> String {
        let Source { text, bytes, .. } = self;
        format!(
            "({text} is null or (left({text},1)='\"' and octet_length({text})<={} and locate('\\\\',{text})=0) \
             or {text} regexp '^(-?[0-9]{{1,18}}|{OBJECT_ID}|null)$')",
            bytes + 2,
        )
    }

    /// The key of a plain value. A trigger works out anew what it computes each time, so it pays to be brief.
    pub fn plain_expression(&self) -> String {
        let text = self.text;
        format!(
            "case when {text} is null or {text}='null' then '2' \
             when left({text},1)='\"' then concat('A',cast(substr({text},2,char_length({text})-2) as binary)) \
             when left({text},1)='{{' then concat('K',unhex(substr({text},10,24))) else concat('35',{}) end",
            number::integer_bytes(text),
        )
    }

    fn string(&self) -> String {
        let (bytes, kept) = (self.bytes, self.bytes - HASH_BYTES);
        let text = format!("json_unquote({})", self.text);
        format!(
            "if(octet_length({text})<={bytes},concat(_binary'A',{text}),\
             concat('E',left(cast({text} as binary),{kept}),unhex(sha2({text},256))))"
        )
    }

    fn object(&self) -> String {
        let Source { text, decimal, bytes, unique } = self;
        let binary = format!("from_base64(json_value({text},'$.$binary.base64'))");
        let document = match unique {
            true => {
                format!(
                    "concat('D',unhex(sha2({},256)))",
                    id_text::unified_expression(&format!("json_compact({text})"))
                )
            }
            false => "'D'".into(),
        };
        let decimal = decimal.map_or(String::new(), |decimal| {
            format!("when {decimal} is not null then {} ", number::decimal_expression(decimal))
        });
        format!(
            "case when {text} regexp '^{OBJECT_ID}$' then concat('K',unhex(substr({text},10,24))) \
             when {text} regexp '^{DATE}$' then concat('M5',cast(substr({text},11,char_length({text})-13) as binary)) \
             when {text} regexp '^{EARLY_DATE}$' then concat('M1',{date}) \
             {decimal}when left({text},9)='{{\"$number' then case substring_index({text},':',-1) \
             when '\"NaN\"}}' then '30' when '\"Infinity\"}}' then '39' when '\"-Infinity\"}}' then '31' end \
             when octet_length({text})<={bytes} and {text} regexp '{BINARY}' \
             then concat('J',unhex(concat(lpad(hex(octet_length({binary})),8,0),substr({text},-5,2))),{binary}) \
             when {text} regexp '{DOCUMENT}' then {document} end",
            date = number::integer_bytes(&format!("json_value({text},'$.$date.$numberLong')")),
        )
    }
}

/// An ObjectId.
const OBJECT_ID: &str = r#"{"[$]oid":"[0-9a-fA-F]{24}"}"#;

/// A Decimal128 of so few digits that its key says all about it.
const DECIMAL: &str = r#"{"[$]numberDecimal":"-?[0-9]{1,18}([.][0-9]{1,15})?"}"#;

/// A date before 1970.
const EARLY_DATE: &str = r#"{"[$]date":{"[$]numberLong":"-[1-9][0-9]{0,17}"}}"#;

/// A date from 1970 to 2999 that there is, as the gateway spells it.
const DATE: &str = concat!(
    r#"{"[$]date":"((19[789]|2[0-9]{2})[0-9]-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)"#,
    r#"|(?!2[1235679]00|19[0-6])(19|2[0-9])([02468][048]|[13579][26])-02-29)"#,
    r#"T([01][0-9]|2[0-3])(:[0-5][0-9]){2}([.](?!000)[0-9]{3})?Z"}"#
);

/// Binary data.
const BINARY: &str = r#"^{"[$]binary":{"base64":"[A-Za-z0-9+/=]*","subType":"[0-9a-f]{2}"}}$"#;
/// Characters of [`BINARY`] besides the data's.
const BINARY_FRAME: usize = 41;

/// Numbers that have a place, by their JSON text: whole ones, those without an exponent, those with one, NaN and the infinities. Less than what
/// [`number::expression`] takes, so that the text alone tells. Decimals are in [`DECIMAL`].
const NUMBER_PLACED: &str = concat!(
    r#"-?([0-9]{1,18}|([1-8][0-9]|9[01])[0-9]{17})([.]0)?|-?[1-9][0-9]{0,17}[.][0-9]{1,60}|-?0([.]0{1,60}|[.]0{0,15}[1-9][0-9]{0,40}|e0)"#,
    r#"|-?[1-9]([.][0-9]{1,40})?e(-?0?[1-9]|-?1[0-6]|0|17)|-?[1-8]([.][0-9]{1,40})?e18"#,
    r#"|{"[$]number(Double|Decimal)":"(NaN|-?Infinity)"}"#,
);

/// What is certainly no wrapper: a document without fields, or whose first name begins with neither an escape nor a single dollar.
const DOCUMENT: &str = r#"^{[[:space:]]*("([^$\\\\]|[$][$])|})"#;

/// The first date that the gateway spells in another way, in milliseconds.
const YEAR_10000: i64 = 253_402_300_800_000;

/// The key of a value that has a place of its own, and whether keys are equal only if values are; for other values, the place that
/// they would have: no key of a lesser value lies behind it, none of a greater one before it. `None` for values without any order here
/// (documents, arrays, regular expressions …).
pub(crate) fn key_of(value: Value<'_>) -> Option<(Vec<u8>, bool)> {
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
        // Lies in a blob, among what SQL does not place.
        Value::IllFormed { kind: Kind::String | Kind::Symbol, .. } => {
            key.push(b'A');
            key.extend_from_slice(value.texts()?.text);
            exact = false;
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
    let text = encoding::encode_value(Value::DateTime(milliseconds));
    key.push(b'5');
    // Between the wrapper's front and `Z"}`.
    key.extend_from_slice(text.get(10..text.len() - 3).unwrap_or_default());
}

/// The first key behind all keys that begin with this one.
pub(crate) fn after_prefix(mut key: Vec<u8>) -> Vec<u8> {
    while let Some(last) = key.pop() {
        if last < 0xFF {
            key.push(last + 1);
            return key;
        }
    }
    vec![0xFF]
}

/// The first key behind this one.
pub(crate) fn after(mut key: Vec<u8>) -> Vec<u8> {
    key.push(0);
    key
}

/// The front of the key of a long string that begins with `text`, in a column of `bytes` + 1 bytes.
pub(crate) fn long_string(text: &[u8], bytes: usize) -> Vec<u8> {
    let mut key = vec![b'E'];
    key.extend_from_slice(&text[..text.len().min(bytes - HASH_BYTES)]);
    key
}
