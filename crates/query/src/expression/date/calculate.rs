//! `$dateAdd`, `$dateSubtract`, `$dateDiff`, `$dateTrunc`.

use super::moment::moment_if_any;
use super::zone::Zone;
use crate::expression::arguments::{named, optional};
use crate::expression::evaluated::Evaluated;
use crate::expression::second_engine::{ReplacedError, differs};
use crate::expression::tree::Arity::Named;
use crate::expression::tree::{Expr, Operator, ParseExpr};
use document::Value;
use error::{Code, Error, Result};
use values::calendar::{self, DAY_MS};
use values::integer::as_i64_exact;
use values::text::display;

pub(crate) static OPERATORS: &[Operator] = &[
    Operator::new("$dateAdd", Named(parse_add), |name, arguments| add(name, arguments, 1))
        .second_engine(differs(SHIFTS)),
    Operator::new("$dateSubtract", Named(parse_add), |name, arguments| add(name, arguments, -1))
        .second_engine(differs(SHIFTS)),
    Operator::new("$dateDiff", Named(parse_difference), difference).second_engine(differs(DIFFERENCE)),
    Operator::new("$dateTrunc", Named(parse_truncation), truncate),
];

const SHIFTS: &[ReplacedError] = &[
    (40517, 5166601, "~ expects timezone argument of type string"),
    (40485, 5166602, "~ expects a valid timezone"),
    (5166403, 5166603, "~ must have startDate argument convertable to date"),
    (5166404, 5166604, "~ expects unit argument of type string"),
    (9, 5166605, "~ expects a valid time unit"),
    (5166405, 5166606, "~ has an invalid amount argument"),
];
const DIFFERENCE: &[ReplacedError] = &[
    (5166307, 5166500, "~ parameter 'startDate' must be coercible to date"),
    (5166307, 5166501, "~ parameter 'endDate' must be coercible to date"),
    (5439013, 5166502, "~ parameter 'unit' must be a string"),
    (5439014, 5166503, "~ parameter 'unit' must be a valid time unit"),
    (40517, 5166504, "~ parameter 'timezone' must be a string"),
    (40485, 5166505, "~ parameter 'timezone' must be a valid timezone"),
    (5439015, 5338801, "~ parameter 'startOfWeek' must be a string"),
    (5439016, 5338802, "~ parameter 'startOfWeek' must be a valid day of the week"),
];

const HOUR_MS: i64 = 3_600_000;

/// A unit of time, by its name in `$dateAdd`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Counted in months: 1, 3, 12.
    Months(i64),
    /// Counted in days: 1, 7.
    Days(i64),
    /// Counted in milliseconds.
    Milliseconds(i64),
}

impl TimeUnit {
    /// Returns its length in milliseconds; `None` for months and longer units, whose length varies.
    pub fn milliseconds(self) -> Option<i64> {
        match self {
            TimeUnit::Months(_) => None,
            TimeUnit::Days(days) => Some(days * DAY_MS),
            TimeUnit::Milliseconds(milliseconds) => Some(milliseconds),
        }
    }

    /// Returns the moment this many units later, in UTC; `None` if that is out of range.
    pub fn add(self, moment: i64, amount: i64) -> Option<i64> {
        let moment = self.begin(moment);
        match self {
            TimeUnit::Months(length) if amount.abs() < 4_000_000_000 => add_months(moment, amount * length),
            TimeUnit::Months(_) => None,
            unit => moment.checked_add(amount.checked_mul(unit.milliseconds()?)?),
        }
    }

    /// Returns the moment from which the server counts. Before 1970 it drops a second from moments
    /// with milliseconds, unless it counts these.
    fn begin(self, moment: i64) -> i64 {
        let loses = self != TimeUnit::Milliseconds(1) && moment < 0 && moment % 1000 != 0;
        if loses { moment.saturating_sub(1000) } else { moment }
    }

    pub fn parse(name: &str) -> Option<TimeUnit> {
        Some(match name {
            "year" => TimeUnit::Months(12),
            "quarter" => TimeUnit::Months(3),
            "month" => TimeUnit::Months(1),
            "week" => TimeUnit::Days(7),
            "day" => TimeUnit::Days(1),
            "hour" => TimeUnit::Milliseconds(HOUR_MS),
            "minute" => TimeUnit::Milliseconds(60_000),
            "second" => TimeUnit::Milliseconds(1000),
            "millisecond" => TimeUnit::Milliseconds(1),
            _ => return None,
        })
    }
}

/// Parses the arguments into: date, unit, amount, time zone and whether there is one.
fn parse_add(parser: &mut dyn ParseExpr, name: &str, operand: Value<'_>) -> Result<Vec<Expr>> {
    let Value::Document(operand) = operand else {
        return Err(Error::new(Code(5166400), format!("{name} expects an object as its argument")));
    };
    let [start, unit, amount, zone] = named(operand, ["startDate", "unit", "amount", "timezone"], |unknown| {
        let message = format!(
            "Unrecognized argument to {name}: {unknown}. Expected arguments are startDate, unit, amount, and optionally \
             timezone."
        );
        Error::new(Code(5166401), message)
    })?;
    let (Some(start), Some(unit), Some(amount)) = (start, unit, amount) else {
        let message = format!("{name} requires startDate, unit, and amount to be present");
        return Err(Error::new(Code(5166402), message));
    };
    let mut arguments = vec![parser.parse(start)?, parser.parse(unit)?, parser.parse(amount)?];
    arguments.extend(optional(parser, zone)?);
    Ok(arguments)
}

fn add<'a>(name: &'static str, arguments: &[Evaluated<'_>], sign: i64) -> Result<Evaluated<'a>> {
    let [start, unit, amount, zone, has_zone] = arguments else { return Ok(Evaluated::Missing) };
    if start.is_nullish() || unit.is_nullish() || amount.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let Some(zone) = Zone::from_argument(zone, has_zone.is_truthy())? else { return Ok(Evaluated::NULL) };
    let moment = moment_if_any(start)
        .ok_or_else(|| Error::new(Code(5166403), format!("{name} requires startDate to be convertible to a date")))?;
    let Some(Value::String(unit_name)) = unit.value() else {
        return Err(Error::new(Code(5166404), format!("{name} expects string defining the time unit")));
    };
    let unit = TimeUnit::parse(unit_name)
        .ok_or_else(|| Error::failed_to_parse(format!("unknown time unit value: {unit_name}")))?;
    let number = as_i64_exact(amount.value_or_null())
        .ok_or_else(|| Error::new(Code(5166405), format!("{name} expects integer amount of time units")))?;
    let moved_by = number.checked_mul(sign).ok_or_else(|| {
        let found = display(amount.value_or_null());
        Error::new(Code(6045000), format!("invalid {name} 'amount' parameter value: {found}"))
    })?;
    if moved_by.unsigned_abs() > amount_max(unit_name) {
        let message = format!("invalid dateAdd 'amount' parameter value: {moved_by} {unit_name}");
        return Err(Error::new(Code(5976500), message));
    }
    let moment = unit.begin(moment);
    let back = |local| zone.to_moment_from(moment, local);
    let moved = match unit {
        TimeUnit::Milliseconds(length) => shifted(moment, moved_by, length),
        TimeUnit::Days(length) => shifted(zone.to_local(moment), moved_by, length * DAY_MS).map(back),
        TimeUnit::Months(length) => add_months(zone.to_local(moment), moved_by * length).map(back),
    };
    moved.map(|moved| Value::DateTime(moved).into()).ok_or_else(|| match unit {
        TimeUnit::Milliseconds(1) => Error::new(Code(159), format!("Overflow while adding {moved_by}ms to {moment}ms")),
        _ => Error::new(Code(5166406), "dateAdd overflowed"),
    })
}

/// Returns `None` beyond the range of dates.
fn shifted(moment: i64, count: i64, unit_ms: i64) -> Option<i64> {
    i64::try_from(i128::from(moment) + i128::from(count) * i128::from(unit_ms)).ok()
}

/// Returns the maximal number of units by which a date is moved: the span of 64 bits of
/// milliseconds.
fn amount_max(unit_name: &str) -> u64 {
    const WEEKS: u64 = 30_500_568_904;
    const DAYS: u64 = WEEKS * 7 + 6;
    const HOURS: u64 = DAYS * 24 + 23;
    const MINUTES: u64 = HOURS * 60 + 59;
    const YEARS: u64 = 584_942_417;
    match unit_name {
        "year" => YEARS,
        "quarter" => YEARS * 4 + 3,
        "month" => YEARS * 12 + 11,
        "week" => WEEKS,
        "day" => DAYS,
        "hour" => HOURS,
        "minute" => MINUTES,
        "second" => MINUTES * 60 + 59,
        _ => u64::MAX,
    }
}

/// Returns `None` beyond the range of dates.
fn add_months(local: i64, months: i64) -> Option<i64> {
    let (date, _) = calendar::split(local);
    let first = calendar::date(calendar::days(date.year, date.month + months, 1));
    let day = date.day.min(calendar::days_in_month(first.year, first.month));
    let days = calendar::days(first.year, first.month, day);
    days.checked_mul(DAY_MS)?.checked_add(local.rem_euclid(DAY_MS))
}

fn named_arguments<const N: usize>(
    parser: &mut dyn ParseExpr,
    name: &str,
    operand: Value<'_>,
    names: [&str; N],
    required: [(usize, i32); 3],
    codes: [i32; 2],
) -> Result<Vec<Expr>> {
    let Value::Document(operand) = operand else {
        return Err(Error::new(Code(codes[0]), format!("{name} only supports an object as its argument")));
    };
    let values = named(operand, names, |unknown| {
        Error::new(Code(codes[1]), format!("Unrecognized argument to {name}: {unknown}"))
    })?;
    for (index, code) in required {
        if values.get(index).copied().flatten().is_none() {
            let missing = names.get(index).copied().unwrap_or_default();
            return Err(Error::new(Code(code), format!("Missing '{missing}' parameter to {name}")));
        }
    }
    let mut arguments = Vec::with_capacity(2 * N);
    for value in values {
        arguments.extend(optional(parser, value)?);
    }
    Ok(arguments)
}

/// Parses the arguments into: startDate, endDate, unit, timezone, startOfWeek, each followed by
/// whether it was given.
fn parse_difference(parser: &mut dyn ParseExpr, name: &str, operand: Value<'_>) -> Result<Vec<Expr>> {
    let names = ["startDate", "endDate", "unit", "timezone", "startOfWeek"];
    named_arguments(parser, name, operand, names, [(0, 5166303), (1, 5166304), (2, 5166305)], [5166301, 5166302])
}

fn unit(name: &str, argument: &Evaluated<'_>) -> Result<TimeUnit> {
    match argument.value() {
        Some(Value::String(unit)) => TimeUnit::parse(unit).ok_or_else(|| {
            let message = format!("{name} parameter 'unit' value cannot be recognized as a time unit: {unit}");
            Error::new(Code(5439014), message)
        }),
        _ => {
            let found = argument.type_name();
            Err(Error::new(Code(5439013), format!("{name} requires 'unit' to be a string, but got {found}")))
        }
    }
}

/// Returns whether the first day of the week matters.
fn is_week(unit: &Evaluated<'_>) -> bool {
    unit.value().and_then(Value::as_str) == Some("week")
}

/// Returns the days from Monday to the first day of the week; Sunday is the default.
fn start_of_week(name: &str, argument: &Evaluated<'_>, given: bool) -> Result<i64> {
    const DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    match argument.value() {
        _ if !given => Ok(6),
        Some(Value::String(day)) => {
            let lower = day.to_ascii_lowercase();
            let known =
                DAYS.iter().position(|known| *known == lower || (lower.len() == 3 && known.starts_with(&lower)));
            known.map(|index| index as i64).ok_or_else(|| {
                let message =
                    format!("{name} parameter 'startOfWeek' value cannot be recognized as a day of a week: {day}");
                Error::new(Code(5439016), message)
            })
        }
        _ => {
            let found = argument.type_name();
            Err(Error::new(Code(5439015), format!("{name} requires 'startOfWeek' to be a string, but got {found}")))
        }
    }
}

fn difference<'a>(name: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    let [start, _, end, _, unit_argument, _, zone, has_zone, week, has_week] = &*arguments else {
        return Ok(Evaluated::Missing);
    };
    let any_null = [start, end, unit_argument].into_iter().any(Evaluated::is_nullish);
    if any_null || (is_week(unit_argument) && has_week.is_truthy() && week.is_nullish()) {
        return Ok(Evaluated::NULL);
    }
    let Some(zone) = Zone::from_argument(zone, has_zone.is_truthy())? else { return Ok(Evaluated::NULL) };
    let date = |argument: &Evaluated<'_>, what: &str| {
        moment_if_any(argument).ok_or_else(|| {
            let found = argument.type_name();
            Error::new(Code(5166307), format!("{name} requires '{what}' to be a date, but got {found}"))
        })
    };
    let (start, end) = (date(start, "startDate")?, date(end, "endDate")?);
    let unit = unit(name, unit_argument)?;
    let first_day = if unit == TimeUnit::Days(7) { start_of_week(name, week, has_week.is_truthy())? } else { 0 };
    let count = |moment: i64| count_units(unit, zone.to_local(moment), first_day);
    let counted = count(end) - count(start);
    Ok(match unit {
        // By local time if zones differ by parts of an hour. Whole units by which clocks were moved
        // do not count.
        TimeUnit::Milliseconds(length) => counted - (zone.offset_ms(end) - zone.offset_ms(start)) / length,
        _ => counted,
    }
    .into())
}

/// Returns how many units have begun up to a moment, counted from a fixed one.
fn count_units(unit: TimeUnit, local: i64, first_day: i64) -> i64 {
    let (date, _) = calendar::split(local);
    match unit {
        TimeUnit::Months(length) => (date.year * 12 + date.month - 1).div_euclid(length),
        // 1970-01-01 was a Thursday, three days from Monday.
        TimeUnit::Days(7) => (date.days + 3 - first_day).div_euclid(7),
        TimeUnit::Days(_) => date.days,
        TimeUnit::Milliseconds(length) => local.div_euclid(length),
    }
}

/// Parses the arguments into: date, unit, binSize, timezone, startOfWeek, each followed by whether
/// it was given.
fn parse_truncation(parser: &mut dyn ParseExpr, name: &str, operand: Value<'_>) -> Result<Vec<Expr>> {
    let names = ["date", "unit", "binSize", "timezone", "startOfWeek"];
    named_arguments(parser, name, operand, names, [(0, 5439009), (1, 5439010), (1, 5439010)], [5439007, 5439008])
}

fn truncate<'a>(name: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    let [date, _, unit_argument, _, size, has_size, zone, has_zone, week, has_week] = &*arguments else {
        return Ok(Evaluated::Missing);
    };
    let missing = |value: &Evaluated<'_>, given: &Evaluated<'_>| given.is_truthy() && value.is_nullish();
    if date.is_nullish() || unit_argument.is_nullish() || missing(size, has_size) {
        return Ok(Evaluated::NULL);
    }
    if is_week(unit_argument) && missing(week, has_week) {
        return Ok(Evaluated::NULL);
    }
    let Some(zone) = Zone::from_argument(zone, has_zone.is_truthy())? else { return Ok(Evaluated::NULL) };
    let moment = moment_if_any(date).ok_or_else(|| {
        let found = date.type_name();
        Error::new(Code(5439012), format!("{name} requires 'date' to be a date, but got {found}"))
    })?;
    let unit = unit(name, unit_argument)?;
    let size = if has_size.is_truthy() { bin_size(name, size)? } else { 1 };
    let first_day = if unit == TimeUnit::Days(7) { start_of_week(name, week, has_week.is_truthy())? } else { 0 };
    if size > 100_000_000_000 && !matches!(unit, TimeUnit::Milliseconds(_)) {
        return Err(Error::new(Code(5439006), format!("{name} unsupported binSize value")));
    }
    let out_of_range = || Error::new(Code(5439005), format!("{name} 'binSize' parameter is out of range: {size}"));
    let truncated = match unit {
        // Hours and shorter units have a constant length; the zone determines where they begin.
        TimeUnit::Milliseconds(length) => {
            let reference = zone.to_moment(REFERENCE_DAYS * DAY_MS);
            let overflow = || Error::new(Code(5439002), "dateTrunc overflowed");
            let bin = length.checked_mul(size).ok_or_else(overflow)?;
            let since = moment.checked_sub(reference).ok_or_else(out_of_range)?;
            moment.checked_sub(since.rem_euclid(bin))
        }
        unit => truncated(unit, size, zone.to_local(moment), first_day)
            .map(|local| Some(zone.to_moment(local)))
            .ok_or_else(out_of_range)?,
    };
    Ok(truncated.map_or(Evaluated::NULL, |truncated| Value::DateTime(truncated).into()))
}

fn bin_size(name: &str, size: &Evaluated<'_>) -> Result<i64> {
    let value = size.value_or_null();
    let whole = as_i64_exact(value).ok_or_else(|| {
        let (found, kind) = (display(value), size.type_name());
        let message =
            format!("{name} requires 'binSize' to be a 64-bit integer, but got value '{found}' of type {kind}");
        Error::new(Code(5439017), message)
    })?;
    if whole <= 0 {
        let message = format!("{name} requires 'binSize' to be greater than 0, but got value {whole}");
        return Err(Error::new(Code(5439018), message));
    }
    Ok(whole)
}

/// 2000-01-01, from which bins are counted.
const REFERENCE_DAYS: i64 = 10_957;

/// Truncates to days and longer units. Their bins are counted from 2000-01-01, or from the first
/// day of a week on or after it.
fn truncated(unit: TimeUnit, size: i64, local: i64, first_day: i64) -> Option<i64> {
    let floor = |value: i64, bin: i64| value.checked_sub(value.rem_euclid(bin));
    match unit {
        TimeUnit::Months(length) => {
            let (date, _) = calendar::split(local);
            let months = floor((date.year - 2000) * 12 + date.month - 1, length.checked_mul(size)?)?;
            calendar::days(2000, 1 + months, 1).checked_mul(DAY_MS)
        }
        TimeUnit::Days(length) => {
            // 2000-01-01 was a Saturday.
            let reference = if length == 7 { REFERENCE_DAYS + (first_day - 5).rem_euclid(7) } else { REFERENCE_DAYS };
            let days = floor(local.div_euclid(DAY_MS) - reference, length.checked_mul(size)?)?;
            (days + reference).checked_mul(DAY_MS)
        }
        TimeUnit::Milliseconds(_) => None,
    }
}
