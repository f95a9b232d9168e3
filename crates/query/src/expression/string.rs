//! Strings. They are processed by their bytes, which need not be UTF-8; like MongoDB, letters are
//! separated by their first bytes.

pub(super) mod code_points;

use super::arguments;
use super::evaluated::Evaluated;
use super::second_engine::{ReplacedError, checked, differs, null_first};
use super::tree::Arity::{AliasOf, Any, Between, Exactly, Named};
use super::tree::{Algebra, Expr, Foldable, Operator, ParseExpr};
use crate::limits::check_value_size;
use document::{Kind, Value, ValueBuf};
use error::{Code, Error, Result};
use std::borrow::Cow;
use steps::Counted;
use values::integer::as_i64_exact;
use values::number::to_i64;
use values::text::display;

pub(super) static OPERATORS: &[Operator] = &[
    Operator::new("$concat", Any, concat)
        .algebra(Algebra::Associative)
        .second_engine(checked(null_first, &[(16702, 5073001, "~ supports only strings")])),
    Operator::new("$toLower", Exactly(1), |_, arguments| change_case(&arguments[0], <[u8]>::make_ascii_lowercase))
        .second_engine(differs(CASES)),
    Operator::new("$toUpper", Exactly(1), |_, arguments| change_case(&arguments[0], <[u8]>::make_ascii_uppercase))
        .second_engine(differs(CASES)),
    Operator::new("$substr", AliasOf("$substrBytes", 3), |_, arguments| substring_bytes(arguments)),
    Operator::new("$substrBytes", Exactly(3), |_, arguments| substring_bytes(arguments)),
    Operator::new("$substrCP", Exactly(3), |_, arguments| substring_code_points(arguments)),
    Operator::new("$strLenBytes", Exactly(1), |name, arguments| length(name, 34473, &arguments[0], <[u8]>::len)),
    Operator::new("$strLenCP", Exactly(1), |name, arguments| length(name, 34471, &arguments[0], code_points::count)),
    Operator::new("$strcasecmp", Exactly(2), compare_case_insensitively),
    Operator::new("$split", Exactly(2), split),
    Operator::new("$indexOfBytes", Between(2, 4), index_of_bytes)
        .second_engine(checked(index_of_in_second_engine, INDEX_OF)),
    Operator::new("$indexOfCP", Between(2, 4), index_of_code_point)
        .second_engine(checked(index_of_in_second_engine, INDEX_OF)),
    Operator::new("$binarySize", Exactly(1), binary_size),
    Operator::new("$trim", Named(parse_trim), |name, arguments| trim(name, arguments, true, true)),
    Operator::new("$ltrim", Named(parse_trim), |name, arguments| trim(name, arguments, true, false)),
    Operator::new("$rtrim", Named(parse_trim), |name, arguments| trim(name, arguments, false, true)),
    Operator::new("$replaceOne", Named(parse_replace), |name, arguments| replace(name, arguments, 1))
        .foldable(Foldable::Arguments)
        .second_engine(differs(REPLACING)),
    Operator::new("$replaceAll", Named(parse_replace), |name, arguments| replace(name, arguments, usize::MAX))
        .foldable(Foldable::Arguments),
];

const CASES: &[ReplacedError] = &[(16007, 5066300, "~ input type is not supported")];
const INDEX_OF: &[ReplacedError] = &[
    (40091, 5075300, "~ string must resolve to a string or null"),
    (40093, 5075300, "~ string must resolve to a string or null"),
    (40097, 5075304, "~ start index must be positive"),
    (40096, 5075303, "~ start index must resolve to a number"),
];
const REPLACING: &[ReplacedError] = &[
    (51746, 5154400, "~ requires that 'input' be a string"),
    (51745, 5154400, "~ requires that 'find' be a string"),
    (51744, 5154400, "~ requires that 'replacement' be a string"),
];

fn index_of_in_second_engine<'a>(name: &str, arguments: &mut [Evaluated<'a>]) -> Result<Option<Evaluated<'a>>> {
    let is_text = |argument: &Evaluated<'_>| matches!(argument.value(), Some(Value::String(_) | Value::Symbol(_)));
    match arguments {
        [text, part, ..] if is_text(text) && !is_text(part) => {
            let code = Code(if part.is_nullish() { 5075301 } else { 5075302 });
            Err(Error::new(code, format!("{name} substring must resolve to a string")))
        }
        _ => Ok(None),
    }
}

/// Returns the text of a value for string operators, which accept numbers and dates.
pub(super) fn coerced<'v>(value: &'v Evaluated<'_>) -> Result<Cow<'v, [u8]>> {
    let text = match value.value() {
        None | Some(Value::Null | Value::Undefined) => return Ok(Cow::Borrowed(b"")),
        Some(held) if matches!(held.kind(), Kind::String | Kind::Symbol | Kind::Code) => {
            return Ok(Cow::Borrowed(held.texts().map_or(b"", |texts| texts.text)));
        }
        Some(Value::Int32(number)) => number.to_string(),
        Some(Value::Int64(number)) => number.to_string(),
        Some(Value::Double(number)) if !number.is_finite() => number.to_string().to_ascii_lowercase(),
        Some(Value::Double(number)) => double_text(number),
        Some(Value::Decimal128(number)) => number.to_string(),
        Some(Value::DateTime(milliseconds)) => super::date::moment::checked_iso_text(milliseconds)?,
        Some(Value::Timestamp { time, increment }) => super::date::moment::timestamp_text(time, increment),
        Some(_) => {
            let found = value.type_name();
            return Err(Error::new(Code(16007), format!("can't convert from BSON type {found} to String")));
        }
    };
    Ok(Cow::Owned(text.into_bytes()))
}

/// Formats a double like `$toString` and string operators: six significant digits.
pub(super) fn double_text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    values::text::general(number, 6)
}

fn concat<'a>(_: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    let mut text = Vec::new();
    for argument in arguments.iter() {
        if argument.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        let Some(part) = argument.value().and_then(Value::string_bytes) else {
            let found = argument.type_name();
            return Err(Error::new(Code(16702), format!("$concat only supports strings, not {found}")));
        };
        steps::step();
        steps::bytes(part.len());
        text.extend_from_slice(part);
        check_value_size(text.len())?;
    }
    Ok(Evaluated::string_of_bytes(&text))
}

fn change_case<'a>(argument: &Evaluated<'_>, change: fn(&mut [u8])) -> Result<Evaluated<'a>> {
    let mut text = coerced(argument)?.into_owned();
    change(&mut text);
    Ok(Evaluated::string_of_bytes(&text))
}

fn length<'a>(name: &str, code: i32, argument: &Evaluated<'_>, count: fn(&[u8]) -> usize) -> Result<Evaluated<'a>> {
    match argument.value().and_then(Value::string_bytes) {
        Some(text) => Ok((count(text) as i32).into()),
        None => {
            let found = argument.type_name();
            Err(Error::new(Code(code), format!("{name} requires a string argument, found: {found}")))
        }
    }
}

fn substring_bytes<'a>(arguments: &[Evaluated<'_>]) -> Result<Evaluated<'a>> {
    Evaluated::mark_all_read(arguments);
    let text = coerced(&arguments[0])?;
    let check = |argument: &Evaluated<'_>, code, what: &str| {
        if argument.value_or_null().kind().is_number() {
            return Ok(());
        }
        let found = argument.type_name();
        Err(Error::new(Code(code), format!("$substrBytes:  {what} must be a numeric type (is BSON type {found})")))
    };
    check(&arguments[1], 16034, "starting index")?;
    check(&arguments[2], 16035, "length")?;
    let start = to_i64(arguments[1].value_or_null())?;
    let Ok(start) = usize::try_from(start) else {
        let message = format!("$substrBytes:  starting index must be non-negative (got: {start})");
        return Err(Error::new(Code(50752), message));
    };
    let length = to_i64(arguments[2].value_or_null())?;
    if start >= text.len() {
        return Ok(Evaluated::string(""));
    }
    // A negative length means: up to the end.
    let end = usize::try_from(length).map_or(text.len(), |length| start.saturating_add(length).min(text.len()));
    let is_inside = |at: usize| text.get(at).is_some_and(|byte| code_points::is_continuation(*byte));
    if is_inside(start) {
        let message = "$substrBytes:  Invalid range, starting index is a UTF-8 continuation byte.";
        return Err(Error::new(Code(28656), message));
    }
    if is_inside(end) {
        let message = "$substrBytes:  Invalid range, ending index is in the middle of a UTF-8 character.";
        return Err(Error::new(Code(28657), message));
    }
    Ok(Evaluated::string_of_bytes(text.get(start..end).unwrap_or_default()))
}

fn substring_code_points<'a>(arguments: &[Evaluated<'_>]) -> Result<Evaluated<'a>> {
    Evaluated::mark_all_read(arguments);
    let text = coerced(&arguments[0])?;
    let whole = |argument: &Evaluated<'_>, codes: [i32; 2], what: &str| {
        let value = argument.value_or_null();
        if !value.kind().is_number() {
            let found = argument.type_name();
            let message = format!("$substrCP: {what} must be a numeric type (is BSON type {found})");
            return Err(Error::new(Code(codes[0]), message));
        }
        as_i64_exact(value).and_then(|number| i32::try_from(number).ok()).ok_or_else(|| {
            let found = display(value);
            let message = format!("$substrCP: {what} cannot be represented as a 32-bit integral value: {found}");
            Error::new(Code(codes[1]), message)
        })
    };
    let start = whole(&arguments[1], [34450, 34451], "starting index")?;
    let length = whole(&arguments[2], [34452, 34453], "length")?;
    let Ok(length) = usize::try_from(length) else {
        return Err(Error::new(Code(34454), "$substrCP: length must be a nonnegative integer."));
    };
    let Ok(start) = usize::try_from(start) else {
        return Err(Error::new(Code(34455), "$substrCP: the starting index must be nonnegative integer."));
    };
    Ok(Evaluated::string_of_bytes(code_points::part(&text, start, length)?))
}

fn compare_case_insensitively<'a>(_: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    Evaluated::mark_all_read(arguments);
    let (a, b) = (coerced(&arguments[0])?.to_ascii_uppercase(), coerced(&arguments[1])?.to_ascii_uppercase());
    Ok((a.cmp(&b) as i32).into())
}

fn split<'a>(_: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    Evaluated::mark_all_read(arguments);
    if arguments.iter().any(Evaluated::is_nullish) {
        return Ok(Evaluated::NULL);
    }
    let text = |argument: &Evaluated<'_>, code, position: &str| match argument.value() {
        Some(value) if value.kind() == Kind::String => Ok(()),
        _ => {
            let found = argument.type_name();
            let message = format!(
                "$split requires an expression that evaluates to a string as a {position} argument, found: {found}"
            );
            Err(Error::new(Code(code), message))
        }
    };
    text(&arguments[0], 40085, "first")?;
    text(&arguments[1], 40086, "second")?;
    let whole = arguments[0].value_or_null().string_bytes().unwrap_or_default();
    let separator = arguments[1].value_or_null().string_bytes().unwrap_or_default();
    if separator.is_empty() {
        return Err(Error::new(Code(40087), "$split requires a non-empty separator"));
    }
    Ok(Evaluated::array(|writer| {
        let mut push = |part: &[u8]| {
            steps::step();
            writer.push(&ValueBuf::from_string_bytes(part));
        };
        let mut start = 0;
        for found in memchr::memmem::find_iter(whole, separator) {
            push(whole.get(start..found).unwrap_or_default());
            start = found + separator.len();
        }
        push(whole.get(start..).unwrap_or_default());
    }))
}

fn string_argument<'v>(name: &str, argument: &'v Evaluated<'_>, code: i32, position: &str) -> Result<&'v [u8]> {
    match argument.value().and_then(Value::string_bytes) {
        Some(text) => Ok(text),
        None => {
            let found = argument.type_name();
            let message = format!("{name} requires a string as the {position} argument, found: {found}");
            Err(Error::new(Code(code), message))
        }
    }
}

/// Returns the start and the end of the part that `$indexOf…` searches, given the whole length.
pub(super) fn search_range(name: &str, bounds: &[Evaluated<'_>], length: usize) -> Result<(usize, usize)> {
    let bound = |argument: &Evaluated<'_>, what: &str| {
        let value = argument.value_or_null();
        let whole = as_i64_exact(value).and_then(|number| i32::try_from(number).ok()).ok_or_else(|| {
            let message = format!(
                "{name}requires an integral {what} index, found a value of type: {}, with value: {}",
                argument.type_name(),
                display(value)
            );
            Error::new(Code(40096), message)
        })?;
        usize::try_from(whole)
            .map_err(|_| Error::new(Code(40097), format!("{name} requires a nonnegative {what} index, found: {whole}")))
    };
    let start = bounds.first().map_or(Ok(0), |start| bound(start, "starting"))?;
    let end = bounds.get(1).map_or(Ok(length), |end| bound(end, "ending"))?;
    Ok((start, end.min(length)))
}

fn index_of_bytes<'a>(name: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    if arguments[0].is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let text = string_argument(name, &arguments[0], 40091, "first")?;
    let token = string_argument(name, &arguments[1], 40092, "second")?;
    let (start, end) = search_range(name, &arguments[2..], text.len())?;
    let found = text.get(start..end).and_then(|part| memchr::memmem::find(part, token));
    Ok(found.map_or(-1, |position| (start + position) as i32).into())
}

fn index_of_code_point<'a>(name: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    if arguments[0].is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let text = string_argument(name, &arguments[0], 40093, "first")?;
    let token = string_argument(name, &arguments[1], 40094, "second")?;
    let starts = code_points::starts(text)?;
    let (start, end) = search_range(name, &arguments[2..], starts.len())?;
    // The end bounds the position where the token begins.
    let found = (start..end).counted().find(|letter| {
        let here = starts.get(*letter).and_then(|start| text.get(*start..));
        here.is_some_and(|here| here.starts_with(token))
    });
    let in_empty = text.is_empty() && token.is_empty() && start == 0;
    Ok(found.map_or(if in_empty { 0 } else { -1 }, |letter| letter as i32).into())
}

fn binary_size<'a>(_: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    match arguments[0].value() {
        None | Some(Value::Null | Value::Undefined) => Ok(Evaluated::NULL),
        Some(value) if value.kind() == Kind::String => {
            Ok((value.string_bytes().unwrap_or_default().len() as i32).into())
        }
        Some(Value::Binary { bytes, .. }) => Ok((bytes.len() as i32).into()),
        Some(_) => {
            let found = arguments[0].type_name();
            Err(Error::new(Code(51276), format!("$binarySize requires a string or BinData argument, found: {found}")))
        }
    }
}

fn parse_trim(parser: &mut dyn ParseExpr, name: &str, operand: Value<'_>) -> Result<Vec<Expr>> {
    let Value::Document(operand) = operand else {
        let found = operand.kind().alias();
        return Err(Error::new(Code(50696), format!("{name} only supports an object as an argument, found {found}")));
    };
    let [input, letters] = arguments::named(operand, ["input", "chars"], |unknown| {
        Error::new(Code(50694), format!("{name} found an unknown argument: {unknown}"))
    })?;
    let input = input.ok_or_else(|| Error::new(Code(50695), format!("{name} requires an 'input' field")))?;
    let given = letters.is_some();
    let letters = parser.parse(letters.unwrap_or(Value::Boolean(false)))?;
    let given = Expr::Literal(Value::Boolean(given).to_owned());
    Ok(vec![parser.parse(input)?, letters, given])
}

/// The default characters of `$trim`.
const WHITE_SPACE: &str = "\0 \t\n\u{0b}\u{0c}\r\u{a0}\u{1680}\u{2000}\u{2001}\u{2002}\u{2003}\u{2004}\u{2005}\u{2006}\u{2007}\u{2008}\u{2009}\u{200a}";

fn trim<'a>(name: &str, arguments: &[Evaluated<'_>], front: bool, back: bool) -> Result<Evaluated<'a>> {
    let [input, letters, given] = arguments else { return Ok(Evaluated::Missing) };
    let given = given.is_truthy();
    if input.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let Some(text) = input.value().and_then(Value::string_bytes) else {
        let (value, found) = (display(input.value_or_null()), input.type_name());
        let message = format!("{name} requires its input to be a string, got {value} (of type {found}) instead.");
        return Err(Error::new(Code(50699), message));
    };
    let letters = match letters.value() {
        _ if !given => code_points::all(name, WHITE_SPACE.as_bytes())?,
        None | Some(Value::Null | Value::Undefined) => return Ok(Evaluated::NULL),
        Some(held) if held.kind() == Kind::String => code_points::all(name, held.string_bytes().unwrap_or_default())?,
        Some(value) => {
            let (value, found) = (display(value), letters.type_name());
            let message = format!("{name} requires 'chars' to be a string, got {value} (of type {found}) instead.");
            return Err(Error::new(Code(50700), message));
        }
    };
    let mut text = text;
    while front && let Some(rest) = letters.iter().counted().find_map(|letter| text.strip_prefix(*letter)) {
        text = rest;
    }
    while back && let Some(rest) = letters.iter().counted().find_map(|letter| text.strip_suffix(*letter)) {
        text = rest;
    }
    Ok(Evaluated::string_of_bytes(text))
}

fn parse_replace(parser: &mut dyn ParseExpr, name: &str, operand: Value<'_>) -> Result<Vec<Expr>> {
    let Value::Document(operand) = operand else {
        let found = operand.kind().alias();
        return Err(Error::new(Code(51751), format!("{name} requires an object as an argument, found: {found}")));
    };
    let names = ["input", "find", "replacement"];
    let given = arguments::named(operand, names, |unknown| {
        Error::new(Code(51750), format!("{name} found an unknown argument: {unknown}"))
    })?;
    let mut parsed = Vec::new();
    for ((value, what), code) in given.into_iter().zip(names).zip([51749, 51748, 51747]) {
        let value = value.ok_or_else(|| Error::new(Code(code), format!("{name} requires '{what}' to be specified")))?;
        parsed.push(parser.parse(value)?);
    }
    Ok(parsed)
}

fn replace<'a>(name: &str, arguments: &[Evaluated<'_>], count: usize) -> Result<Evaluated<'a>> {
    Evaluated::mark_all_read(arguments);
    let mut texts: [&[u8]; 3] = [b""; 3];
    let names = [("input", 51746), ("find", 51745), ("replacement", 51744)];
    for ((argument, (what, code)), text) in arguments.iter().zip(names).zip(&mut texts) {
        *text = match argument.value() {
            None | Some(Value::Null | Value::Undefined) => b"",
            Some(held) if held.kind() == Kind::String => held.string_bytes().unwrap_or_default(),
            Some(value) => {
                let found = display(value);
                let message = format!("{name} requires that '{what}' be a string, found: {found}");
                return Err(Error::new(Code(code), message));
            }
        };
    }
    if arguments.iter().any(Evaluated::is_nullish) {
        return Ok(Evaluated::NULL);
    }
    let [input, find, replacement] = texts;
    Ok(Evaluated::string_of_bytes(&replaced(input, find, replacement, count)?))
}

/// Returns the text with the first `count` occurrences of `find` replaced. An empty text is found
/// in front of each byte, and at the end.
fn replaced(input: &[u8], find: &[u8], replacement: &[u8], count: usize) -> Result<Vec<u8>> {
    let mut text = Vec::with_capacity(input.len());
    let mut start = 0;
    for found in memchr::memmem::find_iter(input, find).take(count) {
        steps::step();
        steps::bytes(replacement.len());
        text.extend_from_slice(input.get(start..found).unwrap_or_default());
        text.extend_from_slice(replacement);
        check_value_size(text.len())?;
        start = found + find.len();
    }
    text.extend_from_slice(input.get(start..).unwrap_or_default());
    Ok(text)
}
