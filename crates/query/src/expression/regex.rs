//! `$regexMatch`, `$regexFind`, `$regexFindAll`.

use super::arguments::named;
use super::evaluated::Evaluated;
use super::second_engine::{ReplacedError, checked};
use super::tree::Arity::Named;
use super::tree::{Expr, Foldable, Operator, ParseExpr};
use crate::limits::check_value_size;
use document::{ArrayWriter, DocWriter, Kind, Value};
use error::{Code, Error, Result};
use pcre2::bytes::Regex;
use values::regex;

pub(super) static OPERATORS: &[Operator] = &[
    Operator::new("$regexMatch", Named(parse), |name, arguments| {
        let Some((text, pattern)) = compile(name, arguments)? else { return Ok(false.into()) };
        regex::count_call(text.as_bytes());
        Ok(pattern.is_match(text.as_bytes()).map_err(|error| failed(name, &error))?.into())
    })
    .foldable(Foldable::Arguments)
    .check_constants(check_constants)
    .second_engine(checked(search_in_second_engine, SEARCHES)),
    Operator::new("$regexFind", Named(parse), |name, arguments| {
        let Some((text, pattern)) = compile(name, arguments)? else { return Ok(Evaluated::NULL) };
        regex::count_call(text.as_bytes());
        let captures = pattern.captures(text.as_bytes()).map_err(|error| failed(name, &error))?;
        Ok(captures.map_or(Evaluated::NULL, |captures| {
            let span = |index| captures.get(index).map(|found| (found.start(), found.end()));
            Evaluated::document(|writer| write_match(text, &pattern, &span, &mut CodePointCounter::default(), writer))
        }))
    })
    .foldable(Foldable::Arguments)
    .check_constants(check_constants)
    .second_engine(checked(search_in_second_engine, SEARCHES)),
    Operator::new("$regexFindAll", Named(parse), |name, arguments| {
        let Some((text, pattern)) = compile(name, arguments)? else { return Ok(Evaluated::array(|_| ())) };
        Evaluated::try_array(|writer| find_all(name, text, &pattern, writer))
    })
    .foldable(Foldable::Arguments)
    .check_constants(check_constants)
    .second_engine(checked(search_in_second_engine, SEARCHES)),
];

const SEARCHES: &[ReplacedError] = &[
    (51104, 5073401, "~: input must be of type string"),
    (51105, 5126601, "~: regex pattern must have either string or BSON RegEx type"),
    (51106, 5126603, "~: regex flags must have either string or null type"),
    (51156, 5073403, "~: error occurred while executing the regular expression"),
];

/// Checks the arguments of a search: with a null input the others are ignored, without a pattern
/// the result is missing. Options are checked before the pattern.
fn search_in_second_engine<'a>(name: &str, arguments: &mut [Evaluated<'a>]) -> Result<Option<Evaluated<'a>>> {
    Evaluated::mark_all_read(arguments);
    let [input, pattern, options] = arguments else { return Ok(None) };
    if input.is_nullish() {
        *pattern = Evaluated::NULL;
        *options = Evaluated::NULL;
        return Ok(None);
    }
    let Some(Value::String(_)) = input.value() else { return Ok(None) };
    let refuse = |code: i32, reason: &str| Err(Error::new(Code(code), format!("{name}: {reason}")));
    match options.value() {
        Some(Value::String(given)) if given.contains('\0') => {
            return refuse(5126604, "regex flags must not have embedded null bytes");
        }
        Some(Value::String(given)) if !given.is_empty() => {
            if matches!(pattern.value(), Some(Value::Regex { options, .. }) if !options.is_empty()) {
                return refuse(5126605, "regex options cannot be specified in both BSON RegEx and 'options' field");
            }
        }
        Some(Value::String(_) | Value::Null | Value::Undefined) | None => {}
        Some(_) => return refuse(5126603, "regex flags must have either string or null type"),
    }
    Ok(pattern.is_missing().then_some(Evaluated::Missing))
}

fn parse(parser: &mut dyn ParseExpr, name: &str, operand: Value<'_>) -> Result<Vec<Expr>> {
    let Value::Document(operand) = operand else {
        let found = operand.kind().alias();
        let message = format!("{name} expects an object of named arguments but found: {found}");
        return Err(Error::new(Code(51103), message));
    };
    let [input, pattern, options] = named(operand, ["input", "regex", "options"], |unknown| {
        Error::new(Code(31024), format!("{name} found an unknown argument: {unknown}"))
    })?;
    let input = input.ok_or_else(|| Error::new(Code(31022), format!("{name} requires 'input' parameter")))?;
    let pattern = pattern.ok_or_else(|| Error::new(Code(31023), format!("{name} requires 'regex' parameter")))?;
    let (input, pattern) = (parser.parse(input)?, parser.parse(pattern)?);
    let options = options.map_or(Ok(Expr::Missing), |options| parser.parse(options))?;
    Ok(vec![input, pattern, options])
}

/// Checks a constant pattern before there is a text to match.
fn check_constants(name: &'static str, arguments: &[Expr], folded: usize) -> Result<()> {
    if let [_, pattern, options] = arguments
        && folded == arguments.len()
        && let (Some(pattern), Some(options)) = (pattern.as_constant_argument(), options.as_constant_argument())
    {
        compile(name, &[Evaluated::string(""), pattern, options])?;
    }
    Ok(())
}

/// Returns the text and the compiled pattern; `None` if one of them is null.
fn compile<'v>(name: &str, arguments: &'v [Evaluated<'_>]) -> Result<Option<(&'v str, Regex)>> {
    let [input, pattern, options] = arguments else { return Ok(None) };
    Evaluated::mark_all_read(arguments);
    let text = match input.value() {
        None | Some(Value::Null | Value::Undefined) => None,
        Some(Value::String(text)) => Some(text),
        // Fails below, after errors of the pattern.
        Some(Value::IllFormed { kind: Kind::String, .. }) => Some(""),
        Some(_) => return Err(Error::new(Code(51104), format!("{name} needs 'input' to be of type string"))),
    };
    let (pattern, inner) = match pattern.value() {
        None | Some(Value::Null | Value::Undefined) => (None, ""),
        Some(Value::String(pattern)) => (Some(pattern), ""),
        Some(Value::Regex { pattern, options }) => (Some(pattern), options),
        Some(Value::IllFormed { kind: Kind::String | Kind::Regex, .. }) => {
            return Err(Error::new(Code(51111), format!("Invalid Regex in {name}: invalid UTF-8 string")));
        }
        Some(_) => {
            return Err(Error::new(Code(51105), format!("{name} needs 'regex' to be of type string or regex")));
        }
    };
    let given = match options.value() {
        None | Some(Value::Null | Value::Undefined) => "",
        Some(Value::String(given)) => given,
        Some(_) => return Err(Error::new(Code(51106), format!("{name} needs 'options' to be of type string"))),
    };
    if !inner.is_empty() && !given.is_empty() {
        let message = format!("{name}: found regex option(s) specified in both 'regex' and 'option' fields");
        return Err(Error::new(Code(51107), message));
    }
    let options = if given.is_empty() { inner } else { given };
    if let Some(unknown) = options.chars().find(|option| !"imsxu".contains(*option)) {
        return Err(Error::new(Code(51108), format!("{name} invalid flag in regex options: {unknown}")));
    }
    let (Some(text), Some(pattern)) = (text, pattern) else { return Ok(None) };
    if pattern.contains('\0') {
        let message = format!("{name}: regular expression cannot contain an embedded null byte");
        return Err(Error::new(Code(51109), message));
    }
    let compiled = regex::compile(pattern, options).map_err(|error| {
        let reason = error.message().rsplit_once(": ").map_or(error.message(), |(_, reason)| reason).to_owned();
        Error::new(Code(51111), format!("Invalid Regex in {name}: {reason}"))
    })?;
    match input.value() {
        Some(Value::IllFormed { .. }) => {
            let message = format!("Error occurred while executing the regular expression in {name}. Result code: -10");
            Err(Error::new(Code(51156), message))
        }
        _ => Ok(Some((text, compiled))),
    }
}

fn failed(name: &str, error: &pcre2::Error) -> Error {
    Error::new(Code(51156), format!("Error occurred while executing the regular expression in {name}: {error}"))
}

fn find_all(name: &str, text: &str, pattern: &Regex, writer: &mut ArrayWriter<'_>) -> Result<()> {
    let mut locations = pattern.capture_locations();
    let (mut start, mut counter) = (0, CodePointCounter::default());
    loop {
        // The engine checks the rest of the text each time.
        regex::count_call(text.as_bytes().get(start..).unwrap_or_default());
        let found = pattern.captures_read_at(&mut locations, text.as_bytes(), start);
        let Some(found) = found.map_err(|error| failed(name, &error))? else { return Ok(()) };
        let part = |index| locations.get(index);
        write_match(text, pattern, &part, &mut counter, &mut writer.document());
        check_value_size(writer.size())?;
        // After an empty match the search continues one letter further.
        steps::step();
        let letter = text.get(found.end()..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
        start = if found.start() == found.end() { found.end() + letter } else { found.end() };
        // An empty match after the last code point is not reported.
        if start >= text.len() {
            return Ok(());
        }
    }
}

/// Number of code points up to a position in a text; those of later positions are counted from
/// there.
#[derive(Default)]
struct CodePointCounter {
    at: usize,
    count: usize,
}

impl CodePointCounter {
    /// Returns the number of code points before a position, which must not be before the previous
    /// one.
    fn before(&mut self, text: &str, position: usize) -> usize {
        self.count += text.get(self.at..position).map_or(0, |text| super::count_code_points(text.as_bytes()));
        self.at = position;
        self.count
    }
}

/// Writes the result of a match. `span` returns the position of a group; group 0 is the whole.
fn write_match(
    text: &str,
    pattern: &Regex,
    span: &dyn Fn(usize) -> Option<(usize, usize)>,
    counter: &mut CodePointCounter,
    writer: &mut DocWriter<'_>,
) {
    let part = |index| span(index).and_then(|(start, end)| text.get(start..end));
    let index = span(0).map_or(0, |(start, _)| counter.before(text, start));
    writer.append("match", part(0).unwrap_or_default());
    writer.append("idx", index as i32);
    let mut groups = writer.array("captures");
    for index in 1..pattern.captures_len() {
        steps::step();
        match part(index) {
            Some(text) => groups.push(text),
            None => groups.push(Value::Null),
        }
    }
}
