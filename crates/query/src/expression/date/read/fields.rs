//! The fields of a date that a text contains.

use values::calendar;

/// The parts of a date that have been parsed so far.
#[derive(Clone, Copy, Default)]
pub(super) struct DateFields {
    pub year: Option<i64>,
    pub month: Option<i64>,
    pub day: Option<i64>,
    pub day_of_year: Option<i64>,
    pub iso_week: Option<i64>,
    pub iso_day: Option<i64>,
    pub time_ms: i64,
    /// The part below a millisecond.
    pub microseconds: i64,
    pub offset_ms: Option<i64>,
    pub zone_at: usize,
}

impl DateFields {
    pub fn days(&self) -> Option<i64> {
        let year = self.year?;
        if let Some(week) = self.iso_week {
            return Some(calendar::iso_days(year, week, self.iso_day.unwrap_or(1)));
        }
        if let Some(day) = self.day_of_year {
            return Some(calendar::days(year, 1, day));
        }
        Some(calendar::days(year, self.month?, self.day?))
    }

    /// Returns whether the month has that day, and the day that hour.
    pub fn exist(&self) -> bool {
        let days = self.year.zip(self.month).map_or(31, |(year, month)| calendar::days_in_month(year, month));
        self.day.is_none_or(|day| day <= days) && self.time_ms < calendar::DAY_MS
    }

    /// Truncates the microseconds of a moment, towards 1970.
    pub fn cut(&self, moment: i64) -> i64 {
        moment + i64::from(moment < 0 && self.microseconds > 0)
    }

    pub fn zone_text<'t>(&self, text: &'t str) -> &'t str {
        text.get(self.zone_at..).unwrap_or_default().trim()
    }
}
