//! Time zones: offsets such as `+05:30` and names of the IANA database, which is compiled in.

use crate::expression::evaluated::Evaluated;
use document::Value;
use error::{Code, Error, Result};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use values::text::display;

/// A time zone.
#[derive(Clone, Debug)]
pub(super) enum Zone {
    /// Milliseconds east of UTC.
    Offset(i64),
    Named(TimeZone),
}

pub(super) const UTC: Zone = Zone::Offset(0);

impl Zone {
    /// Parses a time zone. Fails with 40485 for an unknown one.
    pub fn parse(name: &str) -> Result<Zone> {
        let unrecognized = || Error::new(Code(40485), format!("unrecognized time zone identifier: \"{name}\""));
        if matches!(name, "UTC" | "GMT") {
            return Ok(UTC);
        }
        if name.starts_with(['+', '-']) {
            return parse_offset(name).map(Zone::Offset).ok_or_else(unrecognized);
        }
        // Names of a single letter are military zones, which the server does not know.
        let known = name.len() > 1;
        let spelled = |zone: &TimeZone| zone.iana_name() == Some(name);
        TimeZone::get(name).ok().filter(|zone| known && spelled(zone)).map(Zone::Named).ok_or_else(unrecognized)
    }

    /// Returns the zone of an operator's argument; `None` if it is null. Fails with 40485 for an
    /// unknown zone, and with 40517 for another type.
    pub fn from_argument(argument: &Evaluated<'_>, is_given: bool) -> Result<Option<Zone>> {
        Zone::from_value(argument, is_given, |_| {
            let message = format!("timezone must evaluate to a string, found {}", argument.type_name());
            Error::new(Code(40517), message)
        })
    }

    /// Like [`Zone::from_argument`], for an operator that extracts a part of a date: fails with
    /// 40533 for another type.
    pub fn from_argument_of_part(operator: &str, argument: &Evaluated<'_>, is_given: bool) -> Result<Option<Zone>> {
        Zone::from_value(argument, is_given, |value| {
            let (found, value) = (argument.type_name(), display(value));
            let message =
                format!("{operator} requires a string for the timezone argument, but was given a {found} ({value})");
            Error::new(Code(40533), message)
        })
    }

    fn from_value(
        argument: &Evaluated<'_>,
        is_given: bool,
        refuse: impl Fn(Value<'_>) -> Error,
    ) -> Result<Option<Zone>> {
        match argument.value() {
            _ if !is_given => Ok(Some(UTC)),
            None | Some(Value::Null | Value::Undefined) => Ok(None),
            Some(Value::String(name)) => Zone::parse(name).map(Some),
            Some(value) => Err(refuse(value)),
        }
    }

    /// Returns the milliseconds east of UTC at a moment.
    pub fn offset_ms(&self, milliseconds: i64) -> i64 {
        match self {
            Zone::Offset(offset) => *offset,
            Zone::Named(zone) => Timestamp::from_millisecond(within_known_years(milliseconds))
                .map_or(0, |moment| i64::from(zone.to_offset(moment).seconds()) * 1000),
        }
    }

    pub fn to_local(&self, milliseconds: i64) -> i64 {
        milliseconds.saturating_add(self.offset_ms(milliseconds))
    }

    /// Like [`Zone::to_moment`], for a moment moved to a local time. Of two moments with that local
    /// time, it returns the one with the offset at `start`.
    pub fn to_moment_from(&self, start: i64, local: i64) -> i64 {
        let unchanged = local.saturating_sub(self.offset_ms(start));
        if self.to_local(unchanged) == local { unchanged } else { self.to_moment(local) }
    }

    /// Returns the moment at which clocks show a local time: the second one if they show it twice.
    /// If they skip it, the offset before the change applies.
    pub fn to_moment(&self, local: i64) -> i64 {
        let after = local.saturating_sub(self.offset_ms(local.saturating_add(values::calendar::DAY_MS)));
        if self.to_local(after) == local {
            return after;
        }
        local.saturating_sub(self.offset_ms(local.saturating_sub(values::calendar::DAY_MS)))
    }
}

/// Returns the moment itself or, beyond the years that the library covers, one a multiple of 400
/// years away, after which calendars repeat.
fn within_known_years(milliseconds: i64) -> i64 {
    const ERA_MS: i64 = 146_097 * values::calendar::DAY_MS;
    /// The years 0 and 9900.
    const KNOWN: std::ops::Range<i64> = -62_167_219_200_000..250_246_368_000_000;
    match milliseconds {
        late if late >= KNOWN.end => KNOWN.end - ERA_MS + (late - KNOWN.end).rem_euclid(ERA_MS),
        early if early < KNOWN.start => KNOWN.start + (early.wrapping_sub(KNOWN.start)).rem_euclid(ERA_MS),
        known => known,
    }
}

/// Parses `+hh`, `+hhmm` or `+hh:mm`; returns milliseconds.
fn parse_offset(text: &str) -> Option<i64> {
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let digits = text.get(1..)?;
    let (hours, minutes) = match digits.len() {
        2 => (digits, "00"),
        4 => digits.split_at_checked(2)?,
        5 => digits.split_once(':').filter(|(hours, _)| hours.len() == 2)?,
        _ => return None,
    };
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<i64>().ok())?;
    Some(sign * (number(hours)? * 60 + number(minutes)?) * 60_000)
}
