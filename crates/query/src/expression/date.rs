//! Dates.

/// `2020-02-29T12:34:56.789Z`
pub(super) fn iso_text(milliseconds: i64) -> String {
    let days = milliseconds.div_euclid(86_400_000);
    let rest = milliseconds.rem_euclid(86_400_000);
    let (year, month, day) = civil_from_days(days);
    let (hour, minute, second) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", rest % 1000)
}

/// Year, month and day of a day counted from 1970-01-01, in the Gregorian calendar extended to all times.
pub(super) fn civil_from_days(days: i64) -> (i64, i64, i64) {
    // Years are counted from March, so that the day that comes and goes is the last of a year; eras have 400 years.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}
