//! `$dateToString`.

use super::moment::moment;
use super::zone::Zone;
use crate::expression::arguments::{named, optional};
use crate::expression::evaluated::Evaluated;
use crate::expression::tree::Arity::Named;
use crate::expression::tree::{Expr, Operator, ParseExpr};
use document::{Value, ValueBuf};
use error::{Code, Error, Result};
use std::fmt::Write;
use values::calendar;
use values::text::display;

pub(crate) static OPERATORS: &[Operator] = &[Operator::new("$dateToString", Named(parse), to_string)];

/// Parses the arguments into: date, format and whether there is one, time zone and whether there is
/// one, the value for null.
fn parse(parser: &mut dyn ParseExpr, name: &str, operand: Value<'_>) -> Result<Vec<Expr>> {
    let Value::Document(operand) = operand else {
        return Err(Error::new(Code(18629), format!("{name} only supports an object as its argument")));
    };
    let [date, format, zone, on_null] = named(operand, ["date", "format", "timezone", "onNull"], |unknown| {
        Error::new(Code(18534), format!("Unrecognized argument to {name}: {unknown}"))
    })?;
    let date = date.ok_or_else(|| Error::new(Code(18628), "Missing 'date' parameter to $dateToString"))?;
    let mut arguments = vec![parser.parse(date)?];
    arguments.extend(optional(parser, format)?);
    arguments.extend(optional(parser, zone)?);
    let null = Expr::Literal(ValueBuf::from(Value::Null));
    arguments.push(on_null.map_or(Ok(null), |on_null| parser.parse(on_null))?);
    Ok(arguments)
}

fn to_string<'a>(_: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    let [date, format, has_format, zone, has_zone, on_null] = arguments else { return Ok(Evaluated::Missing) };
    date.mark_read();
    let pattern = match format.value() {
        None | Some(Value::Null | Value::Undefined) => None,
        Some(Value::String(pattern)) => Some(pattern),
        Some(value) => {
            let (kind, found) = (format.type_name(), display(value));
            let message = format!("$dateToString requires that 'format' be a string, found: {kind} with value {found}");
            return Err(Error::new(Code(18533), message));
        }
    };
    if let Some(pattern) = pattern {
        check(pattern)?;
    }
    let named_zone = Zone::from_argument(zone, has_zone.is_truthy())?;
    if date.is_nullish() {
        return Ok(on_null.take());
    }
    let Some(named_zone) = named_zone.filter(|_| pattern.is_some() || !has_format.is_truthy()) else {
        return Ok(Evaluated::NULL);
    };
    // The server writes the Z of UTC whatever the zone.
    let default = "%Y-%m-%dT%H:%M:%S.%LZ";
    Ok(Evaluated::string(&write(pattern.unwrap_or(default), moment(date)?, &named_zone)?))
}

/// Fails with 18535 and 18536 for an invalid format.
fn check(pattern: &str) -> Result<()> {
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match (letter, if letter == '%' { letters.next() } else { Some('%') }) {
            (_, None) => return Err(Error::new(Code(18535), "Unmatched '%' at end of format string")),
            (_, Some(directive)) if "dGHjLmMSuUVwYzZ%".contains(directive) => {}
            (_, Some(directive)) => {
                let message = format!("Invalid format character '%{directive}' in format string");
                return Err(Error::new(Code(18536), message));
            }
        }
    }
    Ok(())
}

fn write(pattern: &str, moment: i64, zone: &Zone) -> Result<String> {
    let offset_minutes = zone.offset_ms(moment) / 60_000;
    let (date, time) = calendar::split(zone.to_local(moment));
    let year = |year: i64| match year {
        0..=9999 => Ok(year),
        _ => Err(Error::new(
            Code(18537),
            format!("$dateToString is only defined on year 0-9999, tried to use year {year}"),
        )),
    };
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            out.push(letter);
            continue;
        }
        // Writing to a string does not fail.
        let _ = match letters.next() {
            Some('d') => write!(out, "{:02}", date.day),
            Some('G') => write!(out, "{:04}", year(date.iso_year())?),
            Some('H') => write!(out, "{:02}", time.hour),
            Some('j') => write!(out, "{:03}", date.day_of_year()),
            Some('L') => write!(out, "{:03}", time.millisecond),
            Some('m') => write!(out, "{:02}", date.month),
            Some('M') => write!(out, "{:02}", time.minute),
            Some('S') => write!(out, "{:02}", time.second),
            Some('u') => write!(out, "{}", date.iso_day_of_week()),
            Some('U') => write!(out, "{:02}", date.week()),
            Some('V') => write!(out, "{:02}", date.iso_week()),
            Some('w') => write!(out, "{}", date.day_of_week()),
            Some('Y') => write!(out, "{:04}", year(date.year)?),
            Some('z') => {
                let (sign, minutes) = (if offset_minutes < 0 { '-' } else { '+' }, offset_minutes.abs());
                write!(out, "{sign}{:02}{:02}", minutes / 60, minutes % 60)
            }
            Some('Z') => write!(out, "{offset_minutes}"),
            _ => write!(out, "%"),
        };
    }
    Ok(out)
}
