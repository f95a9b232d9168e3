//! Parts of dates, and dates from parts.

use super::moment::moment;
use super::zone::Zone;
use crate::expression::arguments::{named, optional};
use crate::expression::evaluated::Evaluated;
use crate::expression::second_engine::{ReplacedError, checked, differs};
use crate::expression::tree::Arity::Named;
use crate::expression::tree::{Expr, Operator, ParseExpr};
use document::{Value, ValueBuf};
use error::{Code, Error, Result};
use values::calendar::{self, Date, Time};
use values::integer::as_i64_exact;
use values::text;
use values::text::display;

pub(crate) static OPERATORS: &[Operator] = &[
    Operator::new("$year", Named(parse), |name, arguments| part(name, arguments, |date, _| date.year)),
    Operator::new("$month", Named(parse), |name, arguments| part(name, arguments, |date, _| date.month)),
    Operator::new("$dayOfMonth", Named(parse), |name, arguments| part(name, arguments, |date, _| date.day))
        .second_engine(checked(zone_before_date, DAYS)),
    Operator::new("$hour", Named(parse), |name, arguments| part(name, arguments, |_, time| time.hour)),
    Operator::new("$minute", Named(parse), |name, arguments| part(name, arguments, |_, time| time.minute)),
    Operator::new("$second", Named(parse), |name, arguments| part(name, arguments, |_, time| time.second)),
    Operator::new("$millisecond", Named(parse), |name, arguments| part(name, arguments, |_, time| time.millisecond)),
    Operator::new("$dayOfYear", Named(parse), |name, arguments| part(name, arguments, |date, _| date.day_of_year()))
        .second_engine(checked(zone_before_date, DAYS)),
    Operator::new("$dayOfWeek", Named(parse), |name, arguments| part(name, arguments, |date, _| date.day_of_week()))
        .second_engine(checked(zone_before_date, DAYS)),
    Operator::new("$week", Named(parse), |name, arguments| part(name, arguments, |date, _| date.week())),
    Operator::new("$isoWeek", Named(parse), |name, arguments| part(name, arguments, |date, _| date.iso_week())),
    Operator::new("$isoDayOfWeek", Named(parse), |name, arguments| {
        part(name, arguments, |date, _| date.iso_day_of_week())
    }),
    Operator::new("$isoWeekYear", Named(parse), |name, arguments| {
        let Some((date, _)) = local(name, arguments)? else { return Ok(Evaluated::NULL) };
        Ok(date.iso_year().into())
    }),
    Operator::new("$dateToParts", Named(parse_to_parts), to_parts).second_engine(differs(TO_PARTS)),
    Operator::new("$dateFromParts", Named(parse_from_parts), from_parts).second_engine(differs(FROM_PARTS)),
];

const DAYS: &[ReplacedError] = &[(16006, 4998202, "~ date must have a format of a date")];
const TO_PARTS: &[ReplacedError] = &[
    (40517, 4997701, "~ timezone must be a string"),
    (40521, 4997702, "~ iso8601 must be a boolean"),
    (16006, 4997703, "~ date must have the format of a date"),
    (40485, 4997704, "~ timezone must be a valid timezone"),
];
const FROM_PARTS: &[ReplacedError] = &[
    (31034, 4848972, "a part of a date must evaluate to a value in the range [-32768, 32767]"),
    (31095, 4848972, "isoWeekYear must evaluate to an integer in the range 1 to 9999"),
    (40523, 4848972, "year must evaluate to an integer in the range 1 to 9999"),
    (40515, 4848979, "a part of a date must evaluate to an integer"),
    (40517, 4848980, "timezone must evaluate to a string"),
];

/// Checks the time zone before the date.
fn zone_before_date<'a>(name: &str, arguments: &mut [Evaluated<'a>]) -> Result<Option<Evaluated<'a>>> {
    Evaluated::mark_all_read(arguments);
    let [_, zone, is_given] = arguments else { return Ok(None) };
    match Zone::from_argument_of_part(name, zone, is_given.is_truthy()) {
        Ok(Some(_)) => Ok(None),
        Ok(None) => Ok(Some(Evaluated::NULL)),
        Err(error) if error.code() == Code(40485) => {
            Err(Error::new(Code(4998201), format!("{name} timezone must be a valid timezone")))
        }
        Err(_) => Err(Error::new(Code(4998200), format!("{name} timezone must be a string"))),
    }
}

/// Parses a date, or `{date: …, timezone: …}`, into: date, time zone and whether there is one.
fn parse(parser: &mut dyn ParseExpr, name: &str, operand: Value<'_>) -> Result<Vec<Expr>> {
    let (date, zone) = match operand {
        Value::Document(given) if given.first().is_none_or(|first| !first.key_bytes().starts_with(b"$")) => {
            let [date, zone] = named(given, ["date", "timezone"], |unknown| {
                Error::new(Code(40535), format!("unrecognized option to {name}: \"{unknown}\""))
            })?;
            let date = date.ok_or_else(|| {
                let found = text::element(name, operand);
                Error::new(Code(40539), format!("missing 'date' argument to {name}, provided: {found}"))
            })?;
            (parser.parse(date)?, zone)
        }
        Value::Array(array) => {
            let given = array.elements().count();
            let only = array.values().next().filter(|_| given == 1).ok_or_else(|| {
                let message = format!("{name} accepts exactly one argument if given an array, but was given {given}");
                Error::new(Code(40536), message)
            })?;
            (parser.parse(only)?, None)
        }
        date => (parser.parse(date)?, None),
    };
    let [zone, given] = optional(parser, zone)?;
    Ok(vec![date, zone, given])
}

/// Returns the date and time in its zone; `None` if an argument is null.
fn local(name: &str, arguments: &[Evaluated<'_>]) -> Result<Option<(Date, Time)>> {
    let [date, zone, given] = arguments else { return Ok(None) };
    if date.is_nullish() {
        return Ok(None);
    }
    let moment = moment(date)?;
    let zone = Zone::from_argument_of_part(name, zone, given.is_truthy())?;
    Ok(zone.map(|zone| calendar::split(zone.to_local(moment))))
}

fn part<'a>(name: &str, arguments: &[Evaluated<'_>], take: fn(Date, Time) -> i64) -> Result<Evaluated<'a>> {
    Ok(local(name, arguments)?.map_or(Evaluated::NULL, |(date, time)| (take(date, time) as i32).into()))
}

fn parse_to_parts(parser: &mut dyn ParseExpr, name: &str, operand: Value<'_>) -> Result<Vec<Expr>> {
    let Value::Document(operand) = operand else {
        return Err(Error::new(Code(40524), format!("{name} only supports an object as its argument")));
    };
    let [date, zone, iso] = named(operand, ["date", "timezone", "iso8601"], |unknown| {
        Error::new(Code(40520), format!("Unrecognized argument to {name}: {unknown}"))
    })?;
    let date = date.ok_or_else(|| Error::new(Code(40522), "Missing 'date' parameter to $dateToParts"))?;
    let date = parser.parse(date)?;
    let [zone, given] = optional(parser, zone)?;
    Ok(vec![date, zone, given, parser.parse(iso.unwrap_or(Value::Boolean(false)))?])
}

fn to_parts<'a>(_: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    let [date, zone, has_zone, is_iso] = &*arguments else { return Ok(Evaluated::Missing) };
    date.mark_read();
    let Some(zone) = Zone::from_argument(zone, has_zone.is_truthy())? else { return Ok(Evaluated::NULL) };
    let is_iso = match is_iso.value() {
        None | Some(Value::Null | Value::Undefined) => return Ok(Evaluated::NULL),
        Some(Value::Boolean(flag)) => flag,
        Some(_) => {
            let found = arguments[3].type_name();
            return Err(Error::new(Code(40521), format!("iso8601 must evaluate to a bool, found {found}")));
        }
    };
    if date.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let (date, time) = calendar::split(zone.to_local(moment(date)?));
    let day = if is_iso {
        [("isoWeekYear", date.iso_year()), ("isoWeek", date.iso_week()), ("isoDayOfWeek", date.iso_day_of_week())]
    } else {
        [("year", date.year), ("month", date.month), ("day", date.day)]
    };
    let time =
        [("hour", time.hour), ("minute", time.minute), ("second", time.second), ("millisecond", time.millisecond)];
    Ok(Evaluated::document(|writer| {
        day.into_iter().chain(time).for_each(|(name, value)| writer.append(name, value as i32));
    }))
}

const NATURAL: [&str; 3] = ["year", "month", "day"];
const ISO: [&str; 3] = ["isoWeekYear", "isoWeek", "isoDayOfWeek"];

/// Parses the arguments into: whether the date is an ISO one, its three parts, the four parts of
/// the time, the time zone and whether there is one.
fn parse_from_parts(parser: &mut dyn ParseExpr, name: &str, operand: Value<'_>) -> Result<Vec<Expr>> {
    let Value::Document(operand) = operand else {
        return Err(Error::new(Code(40519), format!("{name} only supports an object as its argument")));
    };
    let names = [
        "year",
        "month",
        "day",
        "isoWeekYear",
        "isoWeek",
        "isoDayOfWeek",
        "hour",
        "minute",
        "second",
        "millisecond",
        "timezone",
    ];
    let values = named(operand, names, |unknown| {
        Error::new(Code(40518), format!("Unrecognized argument to {name}: {unknown}"))
    })?;
    let [natural, iso] = [&values[..3], &values[3..6]];
    let is_iso = match (natural[0], iso[0]) {
        (None, None) => {
            let message = "$dateFromParts requires either 'year' or 'isoWeekYear' to be present";
            return Err(Error::new(Code(40516), message));
        }
        (Some(_), _) if iso.iter().any(Option::is_some) => {
            let message = "$dateFromParts does not allow mixing natural dates with ISO dates";
            return Err(Error::new(Code(40489), message));
        }
        (None, Some(_)) if natural.iter().any(Option::is_some) => {
            let message = "$dateFromParts does not allow mixing ISO dates with natural dates";
            return Err(Error::new(Code(40525), message));
        }
        (year, _) => year.is_none(),
    };
    let literal = |value: Value<'_>| Expr::Literal(ValueBuf::from(value));
    let mut arguments = vec![literal(Value::Boolean(is_iso))];
    for value in if is_iso { iso } else { natural } {
        arguments.push(value.map_or(Ok(literal(Value::Int32(1))), |value| parser.parse(value))?);
    }
    for value in &values[6..10] {
        arguments.push(value.map_or(Ok(literal(Value::Int32(0))), |value| parser.parse(value))?);
    }
    arguments.extend(optional(parser, values[10])?);
    Ok(arguments)
}

fn from_parts<'a>(_: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    let [is_iso, parts @ .., zone, given] = &*arguments else { return Ok(Evaluated::Missing) };
    let (day, time) = parts.split_at(3.min(parts.len()));
    let Some([hour, minute, second, millisecond]) = numbers(time, ["hour", "minute", "second", "millisecond"])? else {
        return Ok(Evaluated::NULL);
    };
    let Some(zone) = Zone::from_argument(zone, given.is_truthy())? else { return Ok(Evaluated::NULL) };
    let names = if is_iso.is_truthy() { ISO } else { NATURAL };
    let Some([year, month, day]) = numbers(day, names)? else { return Ok(Evaluated::NULL) };
    if !(1..=9999).contains(&year) {
        let (name, code) = if is_iso.is_truthy() { ("isoWeekYear", 31095) } else { ("year", 40523) };
        let message = format!("'{name}' must evaluate to an integer in the range 1 to 9999, found {year}");
        return Err(Error::new(Code(code), message));
    }
    let days = if is_iso.is_truthy() { calendar::iso_days(year, month, day) } else { calendar::days(year, month, day) };
    let local = days * calendar::DAY_MS + hour * 3_600_000 + minute * 60_000;
    // MongoDB counts milliseconds in microseconds on the way.
    let is_countable = millisecond.checked_mul(1000).is_some();
    let seconds = second.checked_mul(1000).filter(|_| is_countable).and_then(|seconds| local.checked_add(seconds));
    let local = seconds.and_then(|seconds| seconds.checked_add(millisecond)).ok_or_else(|| {
        let message = "Overflow casting from a lower-precision duration to a higher-precision duration";
        Error::new(Code::DURATION_OVERFLOW, message)
    })?;
    Ok(Value::DateTime(zone.to_moment(local)).into())
}

/// Returns the values of parts; `None` if one of them is null.
fn numbers<const N: usize>(parts: &[Evaluated<'_>], names: [&str; N]) -> Result<Option<[i64; N]>> {
    let mut numbers = [0; N];
    for ((part, name), number) in parts.iter().zip(names).zip(&mut numbers) {
        if part.is_nullish() {
            return Ok(None);
        }
        *number = part_number(name, part)?;
    }
    Ok(Some(numbers))
}

fn part_number(name: &str, part: &Evaluated<'_>) -> Result<i64> {
    let value = part.value_or_null();
    let number = as_i64_exact(value).ok_or_else(|| {
        let (kind, found) = (part.type_name(), display(value));
        Error::new(Code(40515), format!("'{name}' must evaluate to an integer, found {kind} with value {found}"))
    })?;
    if matches!(name, "year" | "isoWeekYear" | "second" | "millisecond") || i16::try_from(number).is_ok() {
        return Ok(number);
    }
    let message =
        format!("'{name}' must evaluate to a value in the range [-32768, 32767]; value {number} is not in range");
    Err(Error::new(Code(31034), message))
}
