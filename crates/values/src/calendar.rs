//! The Gregorian calendar, extended to all times.

/// A day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    pub year: i64,
    /// 1 to 12.
    pub month: i64,
    /// 1 to 31.
    pub day: i64,
    /// Days since 1970-01-01.
    pub days: i64,
}

/// A time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time {
    pub hour: i64,
    pub minute: i64,
    pub second: i64,
    pub millisecond: i64,
}

pub const DAY_MS: i64 = 86_400_000;

/// Returns the day and time of a moment in milliseconds since 1970.
pub fn split(milliseconds: i64) -> (Date, Time) {
    let (days, rest) = (milliseconds.div_euclid(DAY_MS), milliseconds.rem_euclid(DAY_MS));
    let time =
        Time { hour: rest / 3_600_000, minute: rest / 60_000 % 60, second: rest / 1000 % 60, millisecond: rest % 1000 };
    (date(days), time)
}

/// Returns the date of a day counted from 1970-01-01.
pub fn date(days: i64) -> Date {
    // Years are counted from March, so that the leap day is the last of a year; eras have 400
    // years.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    Date { year: year_of_era + era * 400 + i64::from(month <= 2), month, day, days }
}

/// Returns the days from 1970-01-01 to a date; months past December and days past the month's end
/// carry over.
pub fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = (year + (month - 1).div_euclid(12), (month - 1).rem_euclid(12) + 1);
    let from_march = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (from_march.div_euclid(400), from_march.rem_euclid(400));
    let day_of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468 + day - 1
}

pub fn days_in_month(year: i64, month: i64) -> i64 {
    days(year, month + 1, 1) - days(year, month, 1)
}

impl Date {
    /// Returns 1 to 366.
    pub fn day_of_year(self) -> i64 {
        self.days - days(self.year, 1, 1) + 1
    }

    /// Returns 1 (Sunday) to 7.
    pub fn day_of_week(self) -> i64 {
        (self.days + 4).rem_euclid(7) + 1
    }

    /// Returns 1 (Monday) to 7.
    pub fn iso_day_of_week(self) -> i64 {
        (self.days + 3).rem_euclid(7) + 1
    }

    /// Returns 0 to 53; weeks begin on Sunday, days before the first one are in week 0.
    pub fn week(self) -> i64 {
        (self.day_of_year() + 7 - self.day_of_week()) / 7
    }

    /// Returns the year that the ISO week belongs to: that of its Thursday.
    pub fn iso_year(self) -> i64 {
        date(self.days - self.iso_day_of_week() + 4).year
    }

    /// Returns 1 to 53.
    pub fn iso_week(self) -> i64 {
        let thursday = date(self.days - self.iso_day_of_week() + 4);
        (thursday.day_of_year() - 1) / 7 + 1
    }
}

/// Returns the days from 1970-01-01 to a day of an ISO week; weeks and days past the end carry
/// over.
pub fn iso_days(year: i64, week: i64, day: i64) -> i64 {
    let january_4 = date(days(year, 1, 4));
    january_4.days - january_4.iso_day_of_week() + 1 + (week - 1) * 7 + day - 1
}
/// Formats a moment: `2020-02-29T12:34:56.789Z`.
pub fn iso_text(milliseconds: i64) -> String {
    let (date, time) = split(milliseconds);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        date.year, date.month, date.day, time.hour, time.minute, time.second, time.millisecond
    )
}
