//! Wall-clock time, in the unit in which documents store it, and a steady clock for durations.

use std::time::{SystemTime, UNIX_EPOCH};
pub use steps::clock::steady_ms;

/// Returns the milliseconds since 1970-01-01 UTC.
pub fn now_ms() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => since.as_millis() as i64,
        Err(before) => -(before.duration().as_millis() as i64),
    }
}

/// Returns a moment of the steady clock as milliseconds since 1970-01-01 UTC, by the system's time
/// of now.
pub fn wall_ms(steady: i64) -> i64 {
    now_ms() - (steady_ms() - steady)
}

/// Returns the seconds since 1970-01-01 UTC, as ObjectIds and timestamps hold them.
pub fn now_seconds() -> u32 {
    (now_ms() / 1000) as u32
}

/// Returns a moment as `2026-11-20T19:03:06.857+00:00`.
pub fn rfc3339(moment_ms: i64) -> String {
    let (days, day_ms) = (moment_ms.div_euclid(86_400_000), moment_ms.rem_euclid(86_400_000));
    let (year, month, day) = civil(days);
    let (seconds, ms) = (day_ms / 1000, day_ms % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}+00:00")
}

/// Returns year, month and day of a day counted from 1970-01-01. Years begin in March here, so that
/// a leap day is the last day of its year.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    #[test]
    fn moments_are_formatted() {
        for (moment_ms, text) in [
            (0, "1970-01-01T00:00:00.000+00:00"),
            (-1, "1969-12-31T23:59:59.999+00:00"),
            (951_782_400_000, "2000-02-29T00:00:00.000+00:00"),
            (1_795_201_386_857, "2026-11-20T19:03:06.857+00:00"),
        ] {
            assert_eq!(super::rfc3339(moment_ms), text);
        }
    }
}
