//! Values that stand for a moment, and the texts of moments.

use crate::expression::evaluated::Evaluated;
use document::Value;
use error::{Code, Error, Result};
use values::calendar::{self, iso_text};

/// Like [`iso_text`], for operators. Fails with 18537 after the year 9999 and before the year 0.
pub(crate) fn checked_iso_text(milliseconds: i64) -> Result<String> {
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
pub(crate) fn timestamp_text(seconds: u32, increment: u32) -> String {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (date, time) = calendar::split(i64::from(seconds) * 1000);
    let month = usize::try_from(date.month - 1).ok().and_then(|index| MONTHS.get(index)).copied().unwrap_or_default();
    let (day, hour, minute, second) = (date.day, time.hour, time.minute, time.second);
    format!("{month} {day:>2} {hour:02}:{minute:02}:{second:02}:{increment:x}")
}

/// Returns the moment of a date, a timestamp or an ObjectId.
pub(super) fn moment(argument: &Evaluated<'_>) -> Result<i64> {
    moment_if_any(argument).ok_or_else(|| {
        let found = argument.type_name();
        Error::new(Code(16006), format!("can't convert from BSON type {found} to Date"))
    })
}

pub(super) fn moment_if_any(argument: &Evaluated<'_>) -> Option<i64> {
    match argument.value() {
        Some(Value::DateTime(milliseconds)) => Some(milliseconds),
        Some(Value::Timestamp { time, .. }) => Some(i64::from(time) * 1000),
        Some(Value::ObjectId(id)) => Some(i64::from(id.seconds()) * 1000),
        _ => None,
    }
}
