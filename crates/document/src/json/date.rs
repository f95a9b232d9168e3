//! Dates as ISO 8601 text, in both directions.

/// Milliseconds since 1970 from which on the year has five digits.
const YEAR_10000: i64 = 253_402_300_800_000;

const DAY_MILLISECONDS: i64 = 86_400_000;

/// Days from 0000-03-01, where the years of this calculation begin, to 1970-01-01.
const EPOCH_DAYS: i64 = 719_468;
const DAYS_PER_400_YEARS: i64 = 146_097;

const PAIRS: &[u8; 200] = b"00010203040506070809101112131415161718192021222324\
    25262728293031323334353637383940414243444546474849\
    50515253545556575859606162636465666768697071727374\
    75767778798081828384858687888990919293949596979899";

/// Appends `2020-02-29T12:00:00Z`, with milliseconds if they are not zero. Returns false, and
/// writes nothing, for dates before 1970 and from the year 10000 on.
pub(super) fn write_iso(milliseconds: i64, out: &mut Vec<u8>) -> bool {
    if !(0..YEAR_10000).contains(&milliseconds) {
        return false;
    }
    let (days, time) = (milliseconds / DAY_MILLISECONDS, (milliseconds % DAY_MILLISECONDS) as u32);
    let (year, month, day) = civil_from_days(days);
    let seconds = time / 1000;
    let mut text = *b"0000-00-00T00:00:00.000Z";
    for (at, number) in [
        (0, year / 100),
        (2, year % 100),
        (5, month),
        (8, day),
        (11, seconds / 3600),
        (14, seconds / 60 % 60),
        (17, seconds % 60),
        (21, time % 100),
    ] {
        let pair = number as usize % 100 * 2;
        text[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    }
    text[20] = b'0' + (time % 1000 / 100) as u8;
    if time % 1000 == 0 {
        text[19] = b'Z';
        out.extend_from_slice(&text[..20]);
    } else {
        out.extend_from_slice(&text);
    }
    true
}

/// Reads an ISO 8601 date with time: `2020-02-29T12:00[:00[.123…]]` and `Z` or an offset (`+01:00`,
/// `+0100`, `+01`). Digits past milliseconds are dropped.
pub(super) fn read_iso(text: &[u8]) -> Option<i64> {
    let year = number(text, 0, 4)?;
    let (month, day) = (number(text, 5, 2)?, number(text, 8, 2)?);
    let (hour, minute) = (number(text, 11, 2)?, number(text, 14, 2)?);
    let separators = text[4] == b'-' && text[7] == b'-' && matches!(text[10], b'T' | b't' | b' ') && text[13] == b':';
    if !separators || !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
        return None;
    }
    let mut at = 16;
    let mut second = 0;
    let mut millisecond = 0;
    if text.get(at) == Some(&b':') {
        second = number(text, at + 1, 2)?;
        at += 3;
        if text.get(at) == Some(&b'.') {
            at += 1;
            let digits = text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits == 0 {
                return None;
            }
            let scale = [100, 10, 1];
            millisecond = text[at..].iter().take(digits).zip(scale).map(|(b, s)| i64::from(b - b'0') * s).sum();
            at += digits;
        }
    }
    // A leap second's 60 is accepted, and counts as the second before it.
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let offset = offset_minutes(text.get(at..)?)?;
    let minutes = days_from_civil(year, month, day) * 1440 + hour * 60 + minute - offset;
    Some((minutes * 60 + second.min(59)) * 1000 + millisecond)
}

/// Returns the minutes by which local time is ahead of UTC.
fn offset_minutes(text: &[u8]) -> Option<i64> {
    let sign = match text {
        [b'Z' | b'z'] => return Some(0),
        [b'+', ..] => 1,
        [b'-', ..] => -1,
        _ => return None,
    };
    let minutes = match text.len() {
        3 => 0,
        5 => number(text, 3, 2)?,
        6 if text[3] == b':' => number(text, 4, 2)?,
        _ => return None,
    };
    let hours = number(text, 1, 2)?;
    (hours <= 23 && minutes <= 59).then_some(sign * (hours * 60 + minutes))
}

fn number(text: &[u8], at: usize, length: usize) -> Option<i64> {
    text.get(at..at + length)?
        .iter()
        .try_fold(0, |number, byte| byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0')))
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns year, month and day of a day since 1970-01-01. The year is taken to begin in March, so
/// that the leap day comes last.
fn civil_from_days(days: i64) -> (u32, u32, u32) {
    let shifted = days + EPOCH_DAYS;
    let (era, day_of_era) = (shifted / DAYS_PER_400_YEARS, (shifted % DAYS_PER_400_YEARS) as u32);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // From March on, five months have 153 days.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era as u32 * 400 + year_of_era + u32::from(month <= 2), month, day)
}

/// Returns the days since 1970-01-01 of a date in the years 0 to 9999.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * DAYS_PER_400_YEARS + day_of_era - EPOCH_DAYS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_written(milliseconds: i64, expected: &str) {
        let mut out = Vec::new();
        assert!(write_iso(milliseconds, &mut out));
        assert_eq!(String::from_utf8_lossy(&out), expected);
        assert_eq!(read_iso(&out), Some(milliseconds), "{expected}");
    }

    #[test]
    fn both_directions() {
        check_written(0, "1970-01-01T00:00:00Z");
        check_written(1, "1970-01-01T00:00:00.001Z");
        check_written(951_782_400_120, "2000-02-29T00:00:00.120Z");
        check_written(951_868_799_999, "2000-02-29T23:59:59.999Z");
        check_written(1_582_934_400_000, "2020-02-29T00:00:00Z");
        check_written(YEAR_10000 - 1, "9999-12-31T23:59:59.999Z");
        assert!(!write_iso(-1, &mut Vec::new()) && !write_iso(YEAR_10000, &mut Vec::new()));
        for day in 0..YEAR_10000 / DAY_MILLISECONDS {
            let (year, month, day_of_month) = civil_from_days(day);
            assert_eq!(days_from_civil(year.into(), month.into(), day_of_month.into()), day);
        }
    }

    fn check_read(text: &str, expected: Option<i64>) {
        assert_eq!(read_iso(text.as_bytes()), expected, "{text}");
    }

    #[test]
    fn reading() {
        check_read("1970-01-01T01:00:00+01:00", Some(0));
        check_read("1970-01-01T01:00:00+0100", Some(0));
        check_read("1970-01-01T01:00:00.0+01", Some(0));
        check_read("1969-12-31T23:00-01:00", Some(0));
        check_read("1970-01-01 00:00:00.1234567Z", Some(123));
        check_read("1969-12-31T23:59:59.999Z", Some(-1));
        check_read("0000-01-01T00:00:00Z", Some(-62_167_219_200_000));
        for text in [
            "",
            "1970",
            "1970-01-01",
            "1970-01-01T00:00:00",
            "1970-13-01T00:00:00Z",
            "1970-02-29T00:00:00Z",
            "1970-01-01T24:00:00Z",
            "1970-01-01T00:60:00Z",
            "1970-01-01T00:00:00.Z",
            "1970-01-01T00:00:00ZZ",
            "1970-01-01T00:00:00+1",
            "1970-01-00T00:00:00Z",
            "197a-01-01T00:00:00Z",
            "1970-01-01T00:00:00+24:00",
        ] {
            check_read(text, None);
        }
    }
}
