//! Column keys: the bytes by which an index in MariaDB orders a field's values. The server computes
//! them from a document, and the gateway from the values of a query.
//!
//! Keys compare byte by byte as their values do in MongoDB. The first byte is the type:
//!
//! | byte | values | rest of the key |
//! |---|---|---|
//! | `1` `2` | undefined; null, and a missing field | |
//! | `3` | numbers | `0` NaN, `1` -Infinity, `9` Infinity; `5`, the whole part less 2^63 in 8 bytes, and as much of the fraction (7 or 14 bytes) as there is |
//! | `A` | strings | their bytes |
//! | `D` | documents | in a unique index, a hash |
//! | `E` | strings that are too long | their first bytes, a hash |
//! | `F` | arrays, and values within arrays | |
//! | `G` | values that SQL cannot order: numbers from 2^63 on or within 2^-56 of zero, decimals with an exponent, dates from the year 3000 on, timestamps, regular expressions, MinKey, hand-written encodings … | in a unique index, a hash |
//! | `J` `K` `L` `M` | binary data (length, subtype, bytes), ObjectIds, booleans, dates | |
//!
//! Keys from `D` to `G` are unordered ([`UNORDERED`]). Their documents are found nevertheless,
//! because every lookup reads the catch-all keys ([`CATCH_ALL`], and long strings in `E`). But an
//! index with any of them is not in order.
//!
//! Equal numbers of different types have equal keys: doubles are exact to 112 binary places,
//! decimals to 15 decimal ones.

pub(crate) mod decode;
mod number;

use crate::catalog::id_text;
use crate::encoding;
use document::{Kind, Value};

/// The range of unordered keys.
pub(crate) const UNORDERED: (&[u8], &[u8]) = (b"D", b"H");
/// Keys that any value may have: those of arrays, and of values that SQL cannot order.
pub(crate) const CATCH_ALL: (&[u8], &[u8]) = (b"F", b"H");
/// Keys that any value except an array may have.
pub(crate) const CATCH_ALL_EXCEPT_ARRAYS: (&[u8], &[u8]) = (b"G", b"H");
/// Keys of documents.
pub(crate) const DOCUMENTS: (&[u8], &[u8]) = (b"D", b"E");
/// Keys of null, undefined and missing fields.
pub(crate) const NULLS: (&[u8], &[u8]) = (b"1", b"3");
/// Keys of null, undefined and missing fields; of booleans.
pub(crate) const FLAGS: [(&[u8], &[u8]); 2] = [NULLS, (b"L", b"M")];
/// Keys of strings, except long ones.
pub(crate) const STRINGS: (&[u8], &[u8]) = (b"A", b"B");
/// Greater than all keys.
pub(crate) const END: &[u8] = b"P";
/// The key of an array, as the server writes it.
pub(crate) const ARRAY: &str = "'F'";

/// Bytes of a hash.
const HASH_BYTES: usize = 32;

/// The SQL expressions from which a field's key is computed.
///
/// The expressions of all generated columns of a table share 64 KiB, so these are short; for the
/// same reason rare types have unordered keys.
pub(crate) struct Source<'s> {
    /// The JSON text of the value.
    pub text: &'s str,
    /// A column with the value as DECIMAL(65,30), if it is a plain Decimal128:
    /// [`decimal_expression`]. Without it, decimals have unordered keys.
    pub decimal: Option<&'s str>,
    /// Length of the column without its first byte.
    pub bytes: usize,
    /// Different values have different keys, even unordered ones.
    pub unique: bool,
}

/// Returns the expression for a Decimal128 whose key is exact, as a decimal of MariaDB; otherwise
/// NULL.
pub(crate) fn decimal_expression(text: &str) -> String {
    format!("if({text} regexp '^{DECIMAL}$',cast(json_value({text},'$.$numberDecimal') as decimal(65,30)),null)")
}

impl Source<'_> {
    /// Returns the expression for the key; undefined if the text is NULL.
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

    /// As [`Source::expression`] for an `_id`. The expression `id` is its canonical text (see
    /// [`id_text`]), from which common keys are computed faster.
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

    /// Returns the expression whether any of these fields may have an unordered key
    /// ([`UNORDERED`]): true or NULL. It is also true for a few ordered ones (unusual hand-written
    /// numbers). It reads only the texts: MariaDB walks the expression of a generated column in
    /// each statement, with those of all columns it depends on, and expressions of keys are long.
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

    /// Returns the condition that a value is of a common kind, whose key
    /// [`Source::plain_expression`] computes: missing, null, a short string without escapes, a
    /// whole number of up to 18 digits, an ObjectId.
    pub fn plain_condition(&self) -> String {
        let Source { text, bytes, .. } = self;
        format!(
            "({text} is null or (left({text},1)='\"' and octet_length({text})<={} and locate('\\\\',{text})=0) \
             or {text} regexp '^(-?[0-9]{{1,18}}|{OBJECT_ID}|null)$')",
            bytes + 2,
        )
    }

    /// Returns the expression for the key of a common value. A trigger parses its expressions each
    /// time it runs, so this one is short.
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

/// A Decimal128 whose key is exact.
const DECIMAL: &str = r#"{"[$]numberDecimal":"-?[0-9]{1,18}([.][0-9]{1,15})?"}"#;

/// A date before 1970.
const EARLY_DATE: &str = r#"{"[$]date":{"[$]numberLong":"-[1-9][0-9]{0,17}"}}"#;

/// A valid date from 1970 to 2999, as the gateway encodes it.
const DATE: &str = concat!(
    r#"{"[$]date":"((19[789]|2[0-9]{2})[0-9]-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)"#,
    r#"|(?!2[1235679]00|19[0-6])(19|2[0-9])([02468][048]|[13579][26])-02-29)"#,
    r#"T([01][0-9]|2[0-3])(:[0-5][0-9]){2}([.](?!000)[0-9]{3})?Z"}"#
);

/// Binary data.
const BINARY: &str = r#"^{"[$]binary":{"base64":"[A-Za-z0-9+/=]*","subType":"[0-9a-f]{2}"}}$"#;
/// Characters of [`BINARY`] besides the data's.
const BINARY_FRAME: usize = 41;

/// Numbers with ordered keys, by their JSON text: whole ones, with a fraction, with an exponent,
/// NaN and the infinities. A subset of what [`number::expression`] accepts, decidable by the text
/// alone. Decimals are in [`DECIMAL`].
const NUMBER_PLACED: &str = concat!(
    r#"-?([0-9]{1,18}|([1-8][0-9]|9[01])[0-9]{17})([.]0)?|-?[1-9][0-9]{0,17}[.][0-9]{1,60}|-?0([.]0{1,60}|[.]0{0,15}[1-9][0-9]{0,40}|e0)"#,
    r#"|-?[1-9]([.][0-9]{1,40})?e(-?0?[1-9]|-?1[0-6]|0|17)|-?[1-8]([.][0-9]{1,40})?e18"#,
    r#"|{"[$]number(Double|Decimal)":"(NaN|-?Infinity)"}"#,
);

/// A document that is no wrapper: without fields, or with a first name that begins with neither an
/// escape nor a single dollar.
const DOCUMENT: &str = r#"^{[[:space:]]*("([^$\\\\]|[$][$])|})"#;

/// The first date that the gateway encodes differently, in milliseconds.
const YEAR_10000: i64 = 253_402_300_800_000;

/// Returns the key of a value, and whether it is exact: equal only for equal values. For values
/// with unordered keys, returns the key they would have in the order: no key of a lesser value is
/// after it, none of a greater one before. Returns `None` for values without an order here
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
        // Stored in a blob, which SQL cannot order.
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
    // The text between the wrapper's start and `Z"}`.
    key.extend_from_slice(text.get(10..text.len() - 3).unwrap_or_default());
}

/// Returns the first key after all keys that begin with this one.
pub(crate) fn after_prefix(mut key: Vec<u8>) -> Vec<u8> {
    while let Some(last) = key.pop() {
        if last < 0xFF {
            key.push(last + 1);
            return key;
        }
    }
    vec![0xFF]
}

/// Returns the first key after this one.
pub(crate) fn after(mut key: Vec<u8>) -> Vec<u8> {
    key.push(0);
    key
}

/// Returns the start of the key of a long string that begins with `text`, in a column of `bytes` +
/// 1 bytes.
pub(crate) fn long_string(text: &[u8], bytes: usize) -> Vec<u8> {
    let mut key = vec![b'E'];
    key.extend_from_slice(&text[..text.len().min(bytes - HASH_BYTES)]);
    key
}
