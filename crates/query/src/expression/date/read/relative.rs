//! Distances from a date: `+1 day`, `next month`, `Saturday`, `first day of`.

use super::fields::DateFields;
use values::calendar;

/// The distance of a text from the date that it names.
#[derive(Clone, Debug, Default)]
pub(super) struct Relative {
    years: i64,
    months: i64,
    pub days: i64,
    hours: i64,
    minutes: i64,
    pub seconds: i64,
    pub microseconds: i64,
    weekday: Option<i64>,
    behavior: i64,
    /// Whether to move to the first day of the month, or to the last.
    pub day_of_month: Option<bool>,
    /// Whether the weekday is counted from the beginning of the month, or from its end.
    from_beginning: Option<bool>,
    working_days: Option<i64>,
}

const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Returns the number that a word denotes, and how a weekday is counted from there: 1 if the day
/// itself counts.
pub(super) fn amount(word: &str) -> (i64, i64) {
    let word = word.to_ascii_lowercase();
    let ordinals = [
        "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh",
        "twelfth",
    ];
    match &*word {
        "next" => (1, 0),
        "last" | "previous" => (-1, 0),
        "this" => (0, 1),
        "eight" => (8, 0),
        word => (ordinals.iter().position(|ordinal| *ordinal == word).map_or(0, |at| at as i64 + 1), 0),
    }
}

impl Relative {
    /// Sets `Saturday`.
    pub fn weekday(&mut self, word: &str) {
        // The first working day counts.
        self.weekday = weekday(word).or(Some(1));
        if self.behavior != 2 {
            self.behavior = 1;
        }
    }

    /// Sets `first Monday of`, `last Friday of`.
    pub fn weekday_of_month(&mut self, (amount, behavior): (i64, i64), word: &str) {
        self.from_beginning = Some(amount > 0);
        self.add((amount, if amount > 0 { 1 } else { behavior }), word.as_bytes());
    }

    /// Adds `next week`.
    pub fn week(&mut self, (amount, _): (i64, i64)) {
        self.days += amount * 7;
        self.behavior = 2;
        self.weekday.get_or_insert(1);
    }

    /// Adds an amount of a unit. Returns whether the unit is a weekday.
    pub fn add(&mut self, (amount, behavior): (i64, i64), unit: &[u8]) -> bool {
        let unit = String::from_utf8_lossy(unit).to_lowercase();
        if let Some(weekday) = weekday(&unit) {
            let weeks = if amount > 0 { amount - 1 } else { amount };
            self.days = self.days.saturating_add(weeks.saturating_mul(7));
            (self.weekday, self.behavior) = (Some(weekday), behavior);
            return true;
        }
        let (to, times) = match unit.strip_suffix('s').unwrap_or(&unit) {
            "m" | "msec" | "millisecond" => (&mut self.microseconds, 1000),
            "\u{b5}" | "\u{b5}sec" | "\u{b5}second" | "microsecond" | "usec" => (&mut self.microseconds, 1),
            "sec" | "second" => (&mut self.seconds, 1),
            "min" | "minute" => (&mut self.minutes, 1),
            "hour" => (&mut self.hours, 1),
            "day" => (&mut self.days, 1),
            "week" => (&mut self.days, 7),
            "fortnight" | "forthnight" => (&mut self.days, 14),
            "month" => (&mut self.months, 1),
            "year" => (&mut self.years, 1),
            "weekday" => {
                self.working_days = Some(amount);
                return true;
            }
            _ => return false,
        };
        *to = to.saturating_add(amount.saturating_mul(times));
        false
    }

    /// Negates the distance, for `ago`.
    pub fn turn_around(&mut self) {
        for field in [&mut self.years, &mut self.months, &mut self.days] {
            *field = -*field;
        }
        for field in [&mut self.hours, &mut self.minutes, &mut self.seconds] {
            *field = -*field;
        }
        self.working_days = self.working_days.map(|days| -days);
        self.weekday = self.weekday.map(|weekday| if weekday == 0 { -7 } else { -weekday });
    }

    /// Moves a date that is complete.
    pub fn apply(&self, parts: &mut DateFields) {
        let (Some(year), Some(month), Some(day)) = (parts.year, parts.month, parts.day) else { return };
        let (month, day, months) = match self.from_beginning {
            Some(from_beginning) => (month + self.months + i64::from(!from_beginning), 1, 0),
            None => (month, day, self.months),
        };
        let (year, month) = (year + (month - 1).div_euclid(12), (month - 1).rem_euclid(12) + 1);
        let day = day + self.weekday.map_or(0, |weekday| self.to_weekday(weekday, calendar::days(year, month, day)));
        let of_day = calendar::date(calendar::days(year, month, day));
        let months =
            (of_day.year + self.years).saturating_mul(12).saturating_add(of_day.month - 1).saturating_add(months);
        let (year, mut month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
        let mut day = of_day.day + self.days;
        match self.day_of_month {
            Some(true) => day = 1,
            Some(false) => (day, month) = (0, month + 1),
            None => {}
        }
        let (year, month) = if month > 12 { (year + 1, 1) } else { (year, month) };
        let seconds = self.hours.saturating_mul(3600).saturating_add(self.minutes.saturating_mul(60));
        let moved = seconds.saturating_add(self.seconds).saturating_mul(1000);
        let microseconds = parts.microseconds.saturating_add(self.microseconds);
        let time = parts.time_ms.saturating_add(moved).saturating_add(microseconds.div_euclid(1000));
        parts.microseconds = microseconds.rem_euclid(1000);
        let mut days = calendar::days(year, month, 1).saturating_add(day - 1);
        if let Some(amount) = self.working_days {
            days = days.saturating_add(working_days(amount, days));
        }
        let date = calendar::date(days.saturating_add(time.div_euclid(calendar::DAY_MS)));
        (parts.year, parts.month, parts.day) = (Some(date.year), Some(date.month), Some(date.day));
        parts.time_ms = time.rem_euclid(calendar::DAY_MS);
    }

    /// Returns the days to a weekday: the first on or after the date, unless words require another.
    fn to_weekday(&self, weekday: i64, days: i64) -> i64 {
        // The first of January 1970 was a Thursday.
        let current = (days + 4).rem_euclid(7);
        if self.behavior == 2 {
            let weekday = match (current, weekday) {
                (0, weekday) if weekday != 0 => weekday - 7,
                (current, 0) if current != 0 => 7,
                (_, weekday) => weekday,
            };
            return weekday - current;
        }
        let mut difference = weekday - current;
        if self.days < 0 && difference < 0 || self.days >= 0 && difference <= -self.behavior {
            difference += 7;
        }
        if weekday >= 0 { difference } else { -(7 - (weekday.abs() - current)) }
    }
}

/// Returns the number of days until `amount` working days (Monday to Friday) later.
fn working_days(amount: i64, days: i64) -> i64 {
    // Days from Monday; a weekend counts as the Friday before it, or as the Monday after it.
    let today = (days + 3).rem_euclid(7);
    let begin = match (today, amount > 0) {
        (0..5, _) => today,
        (_, true) => 4,
        (_, false) => 7,
    };
    let end = begin.saturating_add(amount);
    let (weeks, day) = match begin {
        7 => ((end - 7).div_euclid(5) + 1, (end - 7).rem_euclid(5)),
        _ => (end.div_euclid(5), end.rem_euclid(5)),
    };
    weeks.saturating_mul(7) + day - today
}

/// Returns the days from Sunday to a weekday, given by a name or an abbreviation.
fn weekday(word: &str) -> Option<i64> {
    let word = word.to_ascii_lowercase();
    let at = WEEKDAYS.iter().position(|short| word.starts_with(short) && (word.len() == 3 || word.ends_with("day")))?;
    Some(at as i64)
}
