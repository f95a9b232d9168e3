//! `$dateFromString`: dates from text.
//!
//! Without a format the server accepts nearly every way of writing a date; see [`free`].

mod fields;
mod forms;
mod free;
mod relative;
mod zones;

use super::zone::{UTC, Zone};
use crate::expression::arguments::{named, optional};
use crate::expression::evaluated::Evaluated;
use crate::expression::tree::Arity::Named;
use crate::expression::tree::{Expr, Operator, ParseExpr};
use document::{Value, ValueBuf};
use error::{Code, Error, Result};
use fields::DateFields;
use values::calendar;
use values::text::display;

pub(crate) static OPERATORS: &[Operator] = &[Operator::new("$dateFromString", Named(parse_arguments), from_string)];

/// Parses the arguments into: text, format and whether there is one, time zone and whether there is
/// one, whether there is a value for errors, that value, the value for null.
fn parse_arguments(parser: &mut dyn ParseExpr, name: &str, operand: Value<'_>) -> Result<Vec<Expr>> {
    let Value::Document(operand) = operand else {
        let found = operand.kind().alias();
        let message = format!("{name} only supports an object as an argument, found: {found}");
        return Err(Error::new(Code(40540), message));
    };
    let names = ["dateString", "format", "timezone", "onError", "onNull"];
    let [text, format, zone, on_error, on_null] = named(operand, names, |unknown| {
        Error::new(Code(40541), format!("Unrecognized argument to {name}: {unknown}"))
    })?;
    let text = text.ok_or_else(|| Error::new(Code(40542), "Missing 'dateString' parameter to $dateFromString"))?;
    let mut arguments = vec![parser.parse(text)?];
    arguments.extend(optional(parser, format)?);
    arguments.extend(optional(parser, zone)?);
    let [on_error, has_on_error] = optional(parser, on_error)?;
    arguments.extend([has_on_error, on_error]);
    let null = Expr::Literal(ValueBuf::from(Value::Null));
    arguments.push(on_null.map_or(Ok(null), |on_null| parser.parse(on_null))?);
    Ok(arguments)
}

fn from_string<'a>(_: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    let [text, format, has_format, zone, has_zone, has_on_error, on_error, on_null] = arguments else {
        return Ok(Evaluated::Missing);
    };
    text.mark_read();
    let pattern = match format.value() {
        None | Some(Value::Null | Value::Undefined) => None,
        Some(Value::String(pattern)) => Some(pattern),
        Some(value) => {
            let (kind, found) = (format.type_name(), display(value));
            let message =
                format!("$dateFromString requires that 'format' be a string, found: {kind} with value {found}");
            return Err(Error::new(Code(40684), message));
        }
    };
    pattern.map_or(Ok(()), check_format)?;
    let has_zone = has_zone.is_truthy();
    let zone = if has_zone { Zone::from_argument(zone, true)? } else { None };
    if text.is_nullish() {
        return Ok(on_null.take());
    }
    let parsed = match text.value() {
        Some(Value::String(_)) if has_zone && zone.is_none() => return Ok(Evaluated::NULL),
        Some(Value::String(_)) if pattern.is_none() && has_format.is_truthy() => return Ok(Evaluated::NULL),
        Some(Value::String(text)) => parse(text, pattern, zone),
        _ => {
            let (kind, found) = (text.type_name(), display(text.value_or_null()));
            Err(Error::new(
                Code::CONVERSION_FAILURE,
                format!("$dateFromString requires that 'dateString' be a string, found: {kind} with value {found}"),
            ))
        }
    };
    match parsed {
        Ok(milliseconds) => Ok(Value::DateTime(milliseconds).into()),
        Err(error) if has_on_error.is_truthy() && error.code() == Code::CONVERSION_FAILURE => Ok(on_error.take()),
        Err(error) => Err(error),
    }
}

/// Fails with 18535 and 18536 for an invalid format.
fn check_format(format: &str) -> Result<()> {
    let mut letters = format.chars();
    while letters.by_ref().any(|letter| letter == '%') {
        match letters.next() {
            None => return Err(Error::new(Code(18535), "Unmatched '%' at end of format string")),
            Some(directive) if "dGHLmMSuVYzZ%".contains(directive) => {}
            Some(directive) => {
                let message = format!("Invalid format character '%{directive}' in format string");
                return Err(Error::new(Code(18536), message));
            }
        }
    }
    Ok(())
}

/// Parses a date without a format. Fails with 241.
pub(crate) fn parse_text(text: &str) -> Result<i64> {
    parse(text, None, None)
}

fn parse(text: &str, format: Option<&str>, zone: Option<Zone>) -> Result<i64> {
    steps::steps(16 + text.len() / 64);
    let mut reader = Reader { text, at: 0, parts: DateFields::default() };
    let read = match format {
        Some(format) => reader.by_format(format),
        None if reader.iso().is_some() => Some(()),
        None => {
            // Many forms are tried.
            steps::steps(200 + text.len() / 2);
            reader.parts =
                free::read(text).map_err(|wrong| failure(format!("Error parsing date string '{text}'; {wrong}")))?;
            reader.at = text.len();
            Some(())
        }
    };
    if read.is_none() || reader.at < text.len() {
        let found = text[reader.at..].chars().next().unwrap_or('\0');
        let what = if read.is_some() { "Trailing data" } else { "Unexpected character" };
        return Err(failure(format!("Error parsing date string '{text}'; {}: {what} '{found}'", reader.at)));
    }
    let parts = reader.parts;
    if !parts.exist() {
        return Err(failure(format!(
            "Error parsing date string '{text}'; {}: The parsed date was invalid ' '",
            text.len() + 1
        )));
    }
    let days = parts.days().ok_or_else(|| {
        failure(format!("an incomplete date/time string has been found, with elements missing: \"{text}\""))
    })?;
    let local = days * calendar::DAY_MS + parts.time_ms;
    match (parts.offset_ms, zone) {
        (Some(_), Some(_)) => {
            let found = parts.zone_text(text);
            Err(failure(format!(
                "you cannot pass in a date/time string with time zone information ('{found}') together with a timezone \
                 argument"
            )))
        }
        (Some(offset), None) => Ok(parts.cut(local - offset)),
        (None, zone) => Ok(parts.cut(zone.unwrap_or(UTC).to_moment(local))),
    }
}

fn failure(message: String) -> Error {
    Error::new(Code::CONVERSION_FAILURE, message)
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    parts: DateFields,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn eat(&mut self, letter: char) -> Option<()> {
        self.rest().starts_with(letter).then(|| self.at += letter.len_utf8())
    }

    /// Reads between `least` and `most` digits.
    fn digits(&mut self, least: usize, most: usize) -> Option<i64> {
        let count = self.rest().bytes().take(most).take_while(u8::is_ascii_digit).count();
        let number = self.rest().get(..count).filter(|_| count >= least)?.parse().ok()?;
        self.at += count;
        Some(number)
    }

    fn ranged(&mut self, least: usize, most: usize, range: std::ops::RangeInclusive<i64>) -> Option<i64> {
        let start = self.at;
        let number = self.digits(least, most).filter(|number| range.contains(number));
        if number.is_none() {
            self.at = start;
        }
        number
    }

    /// Reads at most `most` digits of a second's fraction; those past the third are dropped.
    fn fraction(&mut self, most: usize) -> Option<()> {
        let count = self.rest().bytes().take_while(u8::is_ascii_digit).count().min(most);
        let digits = self.rest().get(..count.min(3)).filter(|digits| !digits.is_empty())?;
        let scale = 10_i64.pow(3 - digits.len() as u32);
        self.parts.time_ms += digits.parse::<i64>().ok()? * scale;
        let rest = self.rest().get(3..count.min(6)).unwrap_or_default();
        self.parts.microseconds = rest.bytes().map(|digit| i64::from(digit - b'0')).sum();
        self.at += count;
        Some(())
    }

    fn offset(&mut self) -> Option<()> {
        let _ = self.eat(' ');
        self.parts.zone_at = self.at;
        if self.rest().is_empty() {
            return Some(());
        }
        if self.rest().eq_ignore_ascii_case("z") || matches!(self.rest(), "UTC" | "GMT") {
            self.at = self.text.len();
            self.parts.offset_ms = Some(0);
            return Some(());
        }
        let zone = Zone::parse(self.rest()).ok()?;
        let Zone::Offset(offset) = zone else { return None };
        self.at = self.text.len();
        self.parts.offset_ms = Some(offset);
        Some(())
    }

    /// Like [`Self::offset`], in any of the forms that a format's `%z` accepts: `+1`, `+130`,
    /// `+1:30`, `GMT+1`.
    fn loose_offset(&mut self) -> Option<()> {
        let rest = self.rest().trim_start_matches(' ');
        let rest = rest.strip_prefix("GMT").filter(|rest| !rest.is_empty()).unwrap_or(rest);
        let Some(minutes) = loose_minutes(rest) else { return self.offset() };
        self.parts.zone_at = self.text.len() - rest.len();
        self.at = self.text.len();
        self.parts.offset_ms = Some(minutes * 60_000);
        Some(())
    }

    /// Reads an offset in minutes: `+120`.
    fn offset_in_minutes(&mut self) -> Option<()> {
        let _ = self.eat(' ');
        self.parts.zone_at = self.at;
        let (sign, digits) = signed(self.rest())?;
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        let minutes = is_number.then(|| if digits.is_empty() { Some(0) } else { digits.parse::<i64>().ok() })??;
        self.at = self.text.len();
        self.parts.offset_ms = Some(sign * minutes.checked_mul(60_000)?);
        Some(())
    }

    /// Reads `2020-02-29T12:34:56.789Z`, the most frequent form, or nothing at all.
    fn iso(&mut self) -> Option<()> {
        let read = self.iso_date_and_time();
        if read.is_none() {
            (self.at, self.parts) = (0, DateFields::default());
        }
        read
    }

    fn iso_date_and_time(&mut self) -> Option<()> {
        self.parts.year = Some(self.digits(4, 4)?);
        self.eat('-')?;
        self.parts.month = Some(self.ranged(2, 2, 1..=12)?);
        self.eat('-')?;
        self.parts.day = Some(self.ranged(2, 2, 1..=31)?);
        if !self.rest().is_empty() {
            self.eat('T')?;
            let hour = self.ranged(2, 2, 0..=23)?;
            self.eat(':')?;
            let minute = self.ranged(2, 2, 0..=59)?;
            self.eat(':')?;
            let second = self.ranged(2, 2, 0..=59)?;
            self.parts.time_ms = ((hour * 60 + minute) * 60 + second) * 1000;
            if self.eat('.').is_some() {
                self.fraction(usize::MAX)?;
            }
            self.parts.zone_at = self.at;
            if self.eat('Z').is_some() {
                self.parts.offset_ms = Some(0);
            }
        }
        (self.rest().is_empty() && self.parts.exist()).then_some(())
    }

    fn by_format(&mut self, format: &str) -> Option<()> {
        let mut letters = format.chars();
        while let Some(letter) = letters.next() {
            if letter != '%' {
                self.eat(letter)?;
                continue;
            }
            match letters.next()? {
                'Y' => self.parts.year = Some(self.digits(1, 4)?),
                'G' => {
                    self.parts.year = Some(self.digits(1, 4)?);
                    self.parts.iso_week = self.parts.iso_week.or(Some(1));
                }
                'm' => self.parts.month = Some(self.ranged(1, 2, 1..=12)?),
                'd' => self.parts.day = Some(self.ranged(1, 2, 1..=31)?),
                'V' => self.parts.iso_week = Some(self.ranged(1, 2, 1..=53)?),
                'u' => self.parts.iso_day = Some(self.ranged(1, 1, 1..=7)?),
                'H' => self.parts.time_ms += self.ranged(1, 2, 0..=24)? * 3_600_000,
                'M' => self.parts.time_ms += self.ranged(1, 2, 0..=59)? * 60_000,
                'S' => self.parts.time_ms += self.ranged(1, 2, 0..=59)? * 1000,
                'L' => self.fraction(3)?,
                'z' => self.loose_offset()?,
                'Z' => self.offset_in_minutes()?,
                '%' => self.eat('%')?,
                _ => return None,
            }
        }
        Some(())
    }
}

fn signed(text: &str) -> Option<(i64, &str)> {
    text.strip_prefix('+').map(|rest| (1, rest)).or_else(|| text.strip_prefix('-').map(|rest| (-1, rest)))
}

/// Parses hours and minutes, separated by a colon or by the number of digits.
fn loose_minutes(text: &str) -> Option<i64> {
    let (sign, rest) = signed(text)?;
    if rest.is_empty() || rest.len() > 5 || !rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b':') {
        return None;
    }
    // Only the prefix counts, as in C.
    let number = |text: &str| {
        let digits = text.split(|letter: char| !letter.is_ascii_digit()).next().unwrap_or_default();
        digits.parse::<i64>().unwrap_or(0)
    };
    let minutes = match (rest.len(), rest.find(':')) {
        (1 | 2, _) => number(rest) * 60,
        (3 | 4, Some(1)) | (4 | 5, Some(2)) => {
            let (hours, minutes) = rest.split_once(':')?;
            number(hours) * 60 + number(minutes)
        }
        (3 | 4, _) => number(rest) / 100 * 60 + number(rest) % 100,
        _ => return None,
    };
    Some(sign * minutes)
}
