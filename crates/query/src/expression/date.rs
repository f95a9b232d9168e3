//! Dates.
//!
//! In reading order: `calendar` (days, weeks, years), `zone` (time zones), `parts` (`$year` and its
//! siblings, `$dateToParts`, `$dateFromParts`), `format` (`$dateToString`), `read`
//! (`$dateFromString`), `calculate` (`$dateAdd`, `$dateDiff`, `$dateTrunc`).

pub mod calculate;
mod format;
mod parts;
mod read;
mod zone;

use super::Evaluated;
use super::functions::Arity::Exactly;
use super::functions::{Function, function};
use document::Value;
use error::{Code, Error, Result};
use values::calendar::{self, iso_text};

pub(super) use read::parse_text;

pub(super) static TABLES: &[&[Function]] =
    &[parts::FUNCTIONS, format::FUNCTIONS, read::FUNCTIONS, calculate::FUNCTIONS, TIMESTAMPS];

static TIMESTAMPS: &[Function] = &[
    function("$tsSecond", Exactly(1), |name, arguments| timestamp(name, 5687301, &arguments[0], |time, _| time)),
    function("$tsIncrement", Exactly(1), |name, arguments| {
        timestamp(name, 5687302, &arguments[0], |_, increment| increment)
    }),
];

fn timestamp<'a>(name: &str, code: i32, argument: &Evaluated<'_>, part: fn(u32, u32) -> u32) -> Result<Evaluated<'a>> {
    match argument.value() {
        None | Some(Value::Null | Value::Undefined) => Ok(Evaluated::NULL),
        Some(Value::Timestamp { time, increment }) => Ok(i64::from(part(time, increment)).into()),
        Some(_) => {
            let found = argument.type_name();
            Err(Error::new(Code(code), format!(" Argument to {name} must be a timestamp, but is {found}")))
        }
    }
}

/// Checks an operator's time zone; returns false if it is null. Fails with 40485 for an unknown
/// zone, and with 40533 or 40517 for another type.
pub(super) fn check_zone(operator: &str, zone: &Evaluated<'_>, is_given: bool) -> Result<bool> {
    Ok(zone::Zone::from_argument(operator, zone, is_given)?.is_some())
}

/// Like [`iso_text`], for operators. Fails with 18537 after the year 9999 and before the year 0.
pub(super) fn checked_iso_text(milliseconds: i64) -> Result<String> {
    match calendar::split(milliseconds).0.year {
        0..=9999 => Ok(iso_text(milliseconds)),
        year => {
            let message = format!(
                "Could not convert date to string: date component was outside the supported range of 0-9999: {year}"
            );
            Err(Error::new(Code(18537), message))
        }
    }
}

/// Formats a timestamp like string operators: `Jan  1 00:00:05:1`, without the year, the increment
/// in base 16.
pub(super) fn timestamp_text(seconds: u32, increment: u32) -> String {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (date, time) = calendar::split(i64::from(seconds) * 1000);
    let month = usize::try_from(date.month - 1).ok().and_then(|index| MONTHS.get(index)).copied().unwrap_or_default();
    let (day, hour, minute, second) = (date.day, time.hour, time.minute, time.second);
    format!("{month} {day:>2} {hour:02}:{minute:02}:{second:02}:{increment:x}")
}

/// Returns the moment of a date, a timestamp or an ObjectId.
fn moment(argument: &Evaluated<'_>) -> Result<i64> {
    moment_if_any(argument).ok_or_else(|| {
        let found = argument.type_name();
        Error::new(Code(16006), format!("can't convert from BSON type {found} to Date"))
    })
}

fn moment_if_any(argument: &Evaluated<'_>) -> Option<i64> {
    match argument.value() {
        Some(Value::DateTime(milliseconds)) => Some(milliseconds),
        Some(Value::Timestamp { time, .. }) => Some(i64::from(time) * 1000),
        Some(Value::ObjectId(id)) => Some(i64::from(id.seconds()) * 1000),
        _ => None,
    }
}
