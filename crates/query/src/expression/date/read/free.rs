//! Dates as people write them: a date, a time of day, a weekday and an offset, in any order.
//!
//! Each piece is tried where the last one ended, in the forms that the server knows; which were seen says what may still come.

use super::{Parts, Reader};
use crate::expression::date::calendar;

const HOUR_MS: i64 = 3_600_000;
const MINUTE_MS: i64 = 60_000;

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// From Monday, and with them the ways to cut them short.
const WEEKDAYS: [&[&str]; 7] = [
    &["monday", "mon"],
    &["tuesday", "tue", "tues"],
    &["wednesday", "wed"],
    &["thursday", "thu", "thur", "thurs"],
    &["friday", "fri"],
    &["saturday", "sat"],
    &["sunday", "sun"],
];

/// Time zones that go by letters, and their hours east of UTC.
const ZONES: [(&str, i64); 22] = [
    ("utc", 0),
    ("gmt", 0),
    ("wet", 0),
    ("west", 1),
    ("bst", 1),
    ("cet", 1),
    ("cest", 2),
    ("eet", 2),
    ("eest", 3),
    ("msk", 3),
    ("jst", 9),
    ("est", -5),
    ("edt", -4),
    ("cst", -6),
    ("cdt", -5),
    ("mst", -7),
    ("mdt", -6),
    ("pst", -8),
    ("pdt", -7),
    ("akst", -9),
    ("akdt", -8),
    ("hst", -10),
];

type Form<'t> = fn(&mut Reader<'t>) -> Option<()>;

impl<'t> Reader<'t> {
    /// Tried in this order, so what begins like another form comes before it.
    const DATES: [Form<'t>; 9] = [
        Reader::iso_week,
        Reader::year_first,
        Reader::compact_date,
        Reader::month_of_year,
        Reader::american_date,
        Reader::day_first,
        Reader::short_year_first,
        Reader::spelled_day_first,
        Reader::spelled_month_first,
    ];
    const TIMES: [Form<'t>; 5] =
        [Reader::clock, Reader::twelve_hours, Reader::compact_time, Reader::hour_after_t, Reader::spelled_time];

    pub(super) fn free(&mut self) -> Option<()> {
        self.skip(&[' ', '\t']);
        if self.eat('@').is_some() {
            return self.seconds();
        }
        let mut weekday = None;
        loop {
            self.skip(&[' ', '\t', ',']);
            if self.rest().is_empty() {
                break;
            }
            if !self.piece(&mut weekday) {
                return None;
            }
        }
        if let (Some(weekday), Some(days)) = (weekday, self.parts.days()) {
            self.move_to_weekday(weekday, days);
        }
        Some(())
    }

    fn piece(&mut self, weekday: &mut Option<i64>) -> bool {
        let has_date = self.parts.month.is_some() || self.parts.iso_week.is_some();
        (!has_date && Self::DATES.iter().any(|form| self.attempt(*form)))
            || (has_date && self.parts.year.is_none() && self.attempt(Reader::late_year))
            || (!self.parts.has_time && Self::TIMES.iter().any(|form| self.attempt(*form)))
            || (self.parts.offset_ms.is_none() && self.attempt(Reader::zone))
            || (weekday.is_none() && {
                *weekday = self.word(|word| WEEKDAYS.iter().position(|names| names.contains(&word)));
                weekday.is_some()
            })
            || (!has_date && self.attempt(Reader::lonely_year))
    }

    /// Reads a form, or nothing at all.
    fn attempt(&mut self, form: Form<'t>) -> bool {
        let (at, parts) = (self.at, self.parts);
        let read = form(self).is_some();
        if !read {
            (self.at, self.parts) = (at, parts);
        }
        read
    }

    fn skip(&mut self, letters: &[char]) {
        self.at = self.text.len() - self.rest().trim_start_matches(letters).len();
    }

    /// The letters that follow, if they mean something.
    fn word(&mut self, meaning: impl Fn(&str) -> Option<usize>) -> Option<i64> {
        let length = self.rest().bytes().take_while(u8::is_ascii_alphabetic).count();
        let found = meaning(&self.rest()[..length].to_ascii_lowercase())?;
        self.at += length;
        i64::try_from(found).ok()
    }

    fn one_of(&mut self, letters: &[char]) -> Option<char> {
        let letter = self.rest().chars().next().filter(|letter| letters.contains(letter))?;
        self.eat(letter)?;
        Some(letter)
    }

    /// What has been read ends here: no further digit belongs to it.
    fn ends(&self) -> Option<()> {
        (!self.rest().starts_with(|letter: char| letter.is_ascii_digit())).then_some(())
    }

    fn set_date(&mut self, year: i64, month: i64, day: i64) -> Option<()> {
        self.ends()?;
        (self.parts.year, self.parts.month, self.parts.day) = (Some(year), Some(month), Some(day));
        Some(())
    }

    fn month(&mut self) -> Option<i64> {
        self.ranged(1, 2, 1..=12)
    }

    fn day(&mut self) -> Option<i64> {
        self.ranged(1, 2, 1..=31)
    }

    /// Four digits, or two, which stand for a year from 1970 to 2069.
    fn year(&mut self) -> Option<i64> {
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        match digits {
            4 => self.digits(4, 4),
            2 => self.digits(2, 2).map(|year| if year < 70 { 2000 + year } else { 1900 + year }),
            _ => None,
        }
    }

    fn month_name(&mut self) -> Option<i64> {
        let month = self.word(|word| {
            let short = |month: &&str| word.len() == 3 && month.starts_with(word);
            MONTHS.iter().position(|month| *month == word || short(month) || (word == "sept" && *month == "september"))
        })?;
        Some(month + 1)
    }

    /// `1st`, `2nd`, `3rd`, `4th`, or just the number.
    fn ordinal(&mut self) -> Option<i64> {
        let day = self.day()?;
        let _ = self.word(|word| matches!(word, "st" | "nd" | "rd" | "th").then_some(0));
        self.ends()?;
        Some(day)
    }

    /// `2020-W09-6`, `2020W09`.
    fn iso_week(&mut self) -> Option<()> {
        let year = self.digits(4, 4)?;
        let _ = self.eat('-');
        self.eat('W')?;
        self.parts.iso_week = Some(self.ranged(2, 2, 1..=53)?);
        if self.eat('-').is_some() || self.ends().is_none() {
            self.parts.iso_day = Some(self.ranged(1, 1, 1..=7)?);
        }
        self.parts.year = Some(year);
        self.ends()
    }

    /// `2020-02-29`, `2020/2/29`, `2020-Feb-29`.
    fn year_first(&mut self) -> Option<()> {
        let negative = self.one_of(&['+', '-']) == Some('-');
        let year = self.digits(4, 4)?;
        let separator = self.one_of(&['-', '/'])?;
        let month = self.month().or_else(|| self.month_name())?;
        self.eat(separator)?;
        let day = self.day()?;
        if separator == '/' {
            let _ = self.eat('/');
        }
        self.set_date(if negative { -year } else { year }, month, day)
    }

    /// `20200229`
    fn compact_date(&mut self) -> Option<()> {
        let year = self.digits(4, 4)?;
        let month = self.ranged(2, 2, 1..=12)?;
        let day = self.ranged(2, 2, 1..=31)?;
        // Six more digits are a time of day.
        let more = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        (self.parts.year, self.parts.month, self.parts.day) = (Some(year), Some(month), Some(day));
        matches!(more, 0 | 6).then_some(())
    }

    /// `2020-02`, `2020 Feb`: its first day.
    fn month_of_year(&mut self) -> Option<()> {
        let year = self.digits(4, 4)?;
        let month = match self.one_of(&['-', ' '])? {
            '-' => self.month()?,
            _ => self.month_name()?,
        };
        if self.rest().starts_with('-') {
            return None;
        }
        self.set_date(year, month, 1)
    }

    /// `2/29/2020`
    fn american_date(&mut self) -> Option<()> {
        let month = self.month()?;
        self.eat('/')?;
        let day = self.day()?;
        self.eat('/')?;
        let year = self.year()?;
        self.set_date(year, month, day)
    }

    /// `29-2-2020`, `29.02.2020`
    fn day_first(&mut self) -> Option<()> {
        let day = self.day()?;
        let separator = self.one_of(&['-', '.'])?;
        let month = self.month()?;
        self.eat(separator)?;
        let year = self.digits(4, 4)?;
        self.set_date(year, month, day)
    }

    /// `20-02-29`
    fn short_year_first(&mut self) -> Option<()> {
        let year = self.digits(2, 2)?;
        self.eat('-')?;
        let month = self.ranged(2, 2, 1..=12)?;
        self.eat('-')?;
        let day = self.ranged(2, 2, 1..=31)?;
        self.set_date(if year < 70 { 2000 + year } else { 1900 + year }, month, day)
    }

    /// `29 February 2020`, `29-Feb-20`, `5. September 2017`
    fn spelled_day_first(&mut self) -> Option<()> {
        let day = self.ordinal()?;
        self.skip(&[' ', '\t', '.', '-']);
        let month = self.month_name()?;
        self.skip(&[' ', '\t', '.', '-']);
        self.with_late_year(month, day)
    }

    /// `February 29, 2020`, `Feb 29`, `February 2020`
    fn spelled_month_first(&mut self) -> Option<()> {
        let month = self.month_name()?;
        self.skip(&[' ', '\t', '.', '-']);
        if self.rest().bytes().take_while(u8::is_ascii_digit).count() == 4 {
            let year = self.digits(4, 4)?;
            return self.set_date(year, month, 1);
        }
        let day = self.ordinal()?;
        self.skip(&[' ', '\t', '.', ',', '-']);
        self.with_late_year(month, day)
    }

    /// The year follows at once, or behind the time, or never.
    fn with_late_year(&mut self, month: i64, day: i64) -> Option<()> {
        (self.parts.month, self.parts.day) = (Some(month), Some(day));
        // Two digits and a colon are an hour.
        let (at, year) = (self.at, self.year());
        if year.is_some() && !self.rest().starts_with([':', '.']) {
            self.parts.year = year;
        } else {
            self.at = at;
        }
        Some(())
    }

    fn late_year(&mut self) -> Option<()> {
        self.parts.year = Some(self.digits(4, 4)?);
        self.ends()
    }

    /// A year on its own is no date; it is told that something is missing.
    fn lonely_year(&mut self) -> Option<()> {
        self.parts.year = Some(self.digits(4, 4)?);
        self.rest().is_empty().then_some(())
    }

    fn set_time(&mut self, milliseconds: i64) -> Option<()> {
        self.ends()?;
        self.parts.time_ms += milliseconds;
        self.parts.has_time = true;
        Some(())
    }

    /// `T` between a date and its time.
    fn time_marker(&mut self) -> bool {
        self.one_of(&['T', 't']).is_some()
    }

    /// `12:34`, `12:34:56.789`, `12.34.56`, `5:30 pm`
    fn clock(&mut self) -> Option<()> {
        self.time_marker();
        let hour = self.ranged(1, 2, 0..=24)?;
        let separator = self.one_of(&[':', '.'])?;
        let mut time = self.ranged(2, 2, 0..=59)? * MINUTE_MS;
        if self.rest().starts_with(separator) {
            self.eat(separator)?;
            time += self.ranged(2, 2, 0..=59)? * 1000;
            if self.eat('.').is_some() {
                self.fraction(usize::MAX)?;
            }
        }
        let before = self.at;
        self.skip(&[' ']);
        let hour = self.half_of_day(hour).unwrap_or_else(|| {
            self.at = before;
            hour
        });
        self.set_time(hour * HOUR_MS + time)
    }

    /// The hour, if `am` or `pm` follows.
    fn half_of_day(&mut self, hour: i64) -> Option<i64> {
        let half = self.word(|word| match word {
            "am" => Some(0),
            "pm" => Some(12),
            _ => None,
        })?;
        (1..=12).contains(&hour).then_some(hour % 12 + half)
    }

    /// `5pm`, `5 pm`
    fn twelve_hours(&mut self) -> Option<()> {
        let hour = self.ranged(1, 2, 1..=12)?;
        self.skip(&[' ']);
        let hour = self.half_of_day(hour)?;
        self.set_time(hour * HOUR_MS)
    }

    /// `T123456`, `123456`, `-123456`, `T1234`
    fn compact_time(&mut self) -> Option<()> {
        self.parts.month?;
        let _ = self.one_of(&['T', 't', '-']);
        let hour = self.ranged(2, 2, 0..=24)?;
        let minute = self.ranged(2, 2, 0..=59)?;
        let time = hour * HOUR_MS + minute * MINUTE_MS;
        if self.ends().is_some() {
            // A tenth of a second early, as with the server, which takes no seconds for less than none.
            return self.set_time(time - 100);
        }
        let second = self.ranged(2, 2, 0..=59)?;
        self.set_time(time + second * 1000)
    }

    /// `T12`
    fn hour_after_t(&mut self) -> Option<()> {
        if !self.time_marker() {
            return None;
        }
        let hour = self.ranged(2, 2, 0..=24)?;
        self.set_time(hour * HOUR_MS)
    }

    fn spelled_time(&mut self) -> Option<()> {
        let hour = self.word(|word| match word {
            "noon" => Some(12),
            "midnight" => Some(0),
            _ => None,
        })?;
        self.set_time(hour * HOUR_MS)
    }

    /// `+02:00`, `Z`, `EST`, `GMT+2`, and the letters that navies use.
    fn zone(&mut self) -> Option<()> {
        self.parts.zone_at = self.at;
        let length = self.rest().bytes().take_while(u8::is_ascii_alphabetic).count();
        let word = self.rest()[..length].to_ascii_lowercase();
        let named = ZONES.iter().find(|(name, _)| *name == word).map(|(_, hours)| *hours);
        let hours = named.or_else(|| military(&word));
        if hours.is_none() && length > 0 {
            return None;
        }
        self.at += length;
        let signed = self.rest().starts_with(['+', '-']);
        let more = if signed && (length == 0 || word == "gmt") { self.signed_offset()? } else { 0 };
        (hours.is_some() || signed).then(|| self.parts.offset_ms = Some(hours.unwrap_or(0) * HOUR_MS + more))
    }

    /// `+2`, `+0230`, `-02:30`
    fn signed_offset(&mut self) -> Option<i64> {
        let sign = if self.one_of(&['+', '-'])? == '-' { -1 } else { 1 };
        let hours = self.digits(1, 2)?;
        let minutes = match self.eat(':') {
            Some(()) => self.digits(2, 2)?,
            None => self.digits(2, 2).unwrap_or(0),
        };
        self.ends()?;
        Some(sign * (hours * HOUR_MS + minutes * MINUTE_MS))
    }

    /// `@1582979696`: seconds since 1970, in UTC whatever the zone.
    fn seconds(&mut self) -> Option<()> {
        let sign = if self.eat('-').is_some() { -1 } else { 1 };
        let seconds = sign * self.digits(1, 11)?;
        let date = calendar::date(seconds.div_euclid(86_400));
        self.parts = Parts { offset_ms: Some(0), ..Parts::default() };
        (self.parts.year, self.parts.month, self.parts.day) = (Some(date.year), Some(date.month), Some(date.day));
        self.parts.time_ms = seconds.rem_euclid(86_400) * 1000;
        if self.eat('.').is_some() {
            self.fraction(usize::MAX)?;
        }
        Some(())
    }

    /// The first such day on or after the date.
    fn move_to_weekday(&mut self, weekday: i64, days: i64) {
        // The first of January 1970 was a Thursday.
        let ahead = (weekday - (days + 3)).rem_euclid(7);
        let date = calendar::date(days + ahead);
        if self.parts.exist() {
            (self.parts.year, self.parts.month, self.parts.day) = (Some(date.year), Some(date.month), Some(date.day));
        }
    }
}

/// Hours east of UTC: A to M without J eastwards, N to Y westwards, Z for none.
fn military(word: &str) -> Option<i64> {
    let [letter @ b'a'..=b'z'] = word.as_bytes() else { return None };
    match letter {
        b'z' => Some(0),
        b'a'..=b'i' => Some(i64::from(letter - b'a') + 1),
        b'k'..=b'm' => Some(i64::from(letter - b'k') + 10),
        b'n'..=b'y' => Some(-(i64::from(letter - b'n') + 1)),
        _ => None,
    }
}
