//! Free-form dates: a date, a time of day, a weekday, an offset and relative distances, in any
//! order.
//!
//! The longest form that the text begins with is read, then the longest that the rest begins with,
//! and so on. Pieces that contradict each other are an error, and so is text that belongs to no
//! piece.
//!
//! Source: <https://www.php.net/manual/en/datetime.formats.php>; where it is silent, the behavior
//! of a 6.0 server.

use super::fields::DateFields;
use super::forms::{self, Form};
use super::relative::{self, Relative};
use super::zones;
use values::calendar;

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
const ROMAN: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

const DOUBLE_TIME: &str = "Double time specification";
const DOUBLE_ZONE: &str = "Double timezone specification";
const DOUBLE_DATE: &str = "Double date specification";

/// Parses a date. Fails with the server's message.
pub(super) fn read(text: &str) -> Result<DateFields, String> {
    let trimmed = text.trim_matches(|letter: char| matches!(letter, ' ' | '\t'..='\r'));
    if trimmed.is_empty() {
        return Err("0: Empty string ' '".to_owned());
    }
    // Some forms end at the end of the text.
    let text = [trimmed.as_bytes(), b"\0\0"].concat();
    let mut scanner = Scanner::default();
    while let Some(letter) = text.get(scanner.at).copied().filter(|_| scanner.at < trimmed.len()) {
        scanner.letter = letter;
        match forms::longest(&text[scanner.at..]) {
            Some((form, length)) => {
                let token = &text[scanner.at..scanner.at + length];
                let token = token.strip_suffix(b"\0").unwrap_or(token);
                scanner.take(form, Token { text: token, at: 0 });
                scanner.at += length;
            }
            None => {
                if !matches!(letter, b' ' | b'.' | b',' | b'\t' | b'\n' | b'\0') {
                    scanner.error("Unexpected character");
                }
                scanner.at += 1;
            }
        }
    }
    scanner.finish(trimmed.len())
}

/// The text of one piece, from which numbers and words are read one after the other.
#[derive(Clone, Copy)]
pub(super) struct Token<'t> {
    text: &'t [u8],
    at: usize,
}

impl Token<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    pub(super) fn rest(&self) -> &[u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn skip(&mut self, skipped: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&skipped) {
            self.at += 1;
        }
    }

    /// Reads the next number, wherever it begins, of at most `most` digits; returns it with its
    /// number of digits.
    fn number_with_length(&mut self, most: usize) -> Option<(i64, usize)> {
        self.skip(|letter| !letter.is_ascii_digit());
        let length = self.rest().iter().take(most).take_while(|letter| letter.is_ascii_digit()).count();
        let digits = std::str::from_utf8(self.rest().get(..length)?).ok()?;
        let number = digits.parse().ok()?;
        self.at += length;
        Some((number, length))
    }

    pub(super) fn number(&mut self, most: usize) -> Option<i64> {
        self.number_with_length(most).map(|(number, _)| number)
    }

    /// Reads a year; with fewer than four digits, one from 1970 to 2069.
    fn year(&mut self, most: usize) -> Option<i64> {
        let (year, length) = self.number_with_length(most)?;
        Some(match year {
            0..70 if length < 4 => year + 2000,
            70..100 if length < 4 => year + 1900,
            year => year,
        })
    }

    /// Reads a number after any number of signs.
    pub(super) fn signed_number(&mut self, most: usize) -> Option<i64> {
        self.skip(|letter| !letter.is_ascii_digit() && !matches!(letter, b'+' | b'-'));
        let signs = self.rest().iter().take_while(|letter| matches!(letter, b'+' | b'-'));
        let minus = signs.filter(|sign| **sign == b'-').count();
        self.skip(|letter| matches!(letter, b'+' | b'-'));
        let number = self.number(most)?;
        Some(if minus % 2 == 1 { -number } else { number })
    }

    pub(super) fn word(&mut self) -> String {
        let begin = self.at;
        self.skip(|letter| letter.is_ascii_alphabetic());
        String::from_utf8_lossy(self.text.get(begin..self.at).unwrap_or_default()).into_owned()
    }

    fn month(&mut self) -> i64 {
        self.skip(|letter| matches!(letter, b' ' | b'\t' | b'-' | b'.' | b'/'));
        let word = self.word();
        let name = word.to_ascii_lowercase();
        let is_month = |month: &str| {
            month == name || name.len() == 3 && month.starts_with(&*name) || name == "sept" && month.starts_with("sept")
        };
        let found = MONTHS.iter().position(|month| is_month(month));
        let found = found.or_else(|| ROMAN.iter().position(|month| month.eq_ignore_ascii_case(&word)));
        found.map_or(0, |month| month as i64 + 1)
    }

    /// Skips `th` after a day.
    fn skip_day_suffix(&mut self) {
        let suffix = self.rest().get(..2).map(|suffix| suffix.to_ascii_lowercase());
        if matches!(suffix.as_deref(), Some(b"nd" | b"rd" | b"st" | b"th")) {
            self.at += 2;
        }
    }

    /// Reads microseconds, after a point or colon.
    fn fraction(&mut self) -> i64 {
        self.at += 1;
        let digits = self.rest().iter().take_while(|letter| letter.is_ascii_digit()).count();
        let six = self.rest().iter().take(digits.min(6)).fold(0, |number, digit| number * 10 + i64::from(digit - b'0'));
        self.at += digits;
        six * 10_i64.pow(6 - digits.min(6) as u32)
    }

    fn is_at(&self, letters: &[u8]) -> bool {
        self.peek().is_some_and(|letter| letters.contains(&letter))
    }
}

/// The parts read from the pieces so far.
#[derive(Default)]
struct Scanner {
    at: usize,
    /// The letter that errors name.
    letter: u8,
    errors: Vec<String>,
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    /// `None`: a tenth of a second early, like the server, which starts below zero there.
    microseconds: Option<i64>,
    has_date: bool,
    times: u8,
    /// Seconds east of UTC.
    offset: Option<i64>,
    zone_at: usize,
    relative: Relative,
}

impl Scanner {
    fn error(&mut self, what: &str) {
        self.errors.push(format!("{}: {what} '{}'", self.at, char::from(self.letter)));
    }

    /// Discards the time of day.
    fn no_time(&mut self) {
        (self.times, self.hour, self.minute, self.second) = (0, 0, 0, 0);
        self.microseconds = Some(0);
    }

    /// Returns whether a time of day may follow.
    fn begin_time(&mut self) -> bool {
        if self.times > 0 {
            self.error(DOUBLE_TIME);
            return false;
        }
        self.no_time();
        self.times = 1;
        true
    }

    fn begin_date(&mut self) -> bool {
        if self.has_date {
            self.error(DOUBLE_DATE);
            return false;
        }
        self.has_date = true;
        true
    }

    fn set_date(&mut self, year: Option<i64>, month: Option<i64>, day: Option<i64>) {
        (self.year, self.month, self.day) = (year, month, day);
    }

    fn take(&mut self, form: Form, mut token: Token<'_>) {
        match form {
            Form::Now => {}
            Form::Yesterday | Form::Tomorrow => {
                self.no_time();
                self.relative.days = if form == Form::Yesterday { -1 } else { 1 };
            }
            Form::Midnight => self.no_time(),
            Form::Noon => {
                self.no_time();
                (self.times, self.hour) = (1, 12);
            }
            Form::Timestamp => self.timestamp(token),
            Form::FirstOrLastDay => {
                self.no_time();
                self.relative.day_of_month = Some(token.is_at(b"fF"));
            }
            Form::BackOrFront => self.around_hour(token),
            Form::Time12 | Form::SqlTime | Form::Time24 | Form::CompactTime => {
                if self.begin_time() {
                    self.time(form, &mut token);
                }
            }
            Form::CompactShort => self.compact_short(token),
            Form::Year => self.year = token.number(4),
            Form::Ago => self.relative.turn_around(),
            Form::Weekday | Form::RelativeWord | Form::RelativeWeek | Form::WeekdayOf | Form::Relative => {
                self.relative(form, token);
            }
            Form::Zone => self.zone(&mut token),
            Form::DateAndTime | Form::LogFormat => {
                if self.begin_time() && self.begin_date() {
                    self.date_and_time(form, &mut token);
                }
            }
            Form::MonthNameDayTime12 | Form::MonthNameDayTime24 => {
                if self.begin_date() {
                    self.month = Some(token.month());
                    self.day = token.number(2);
                    if self.begin_time() {
                        let time = if form == Form::MonthNameDayTime12 { Form::Time12 } else { Form::Time24 };
                        self.time(time, &mut token);
                    }
                }
            }
            _ => {
                if self.begin_date() {
                    self.date(form, &mut token);
                }
            }
        }
    }

    fn date(&mut self, form: Form, token: &mut Token<'_>) {
        match form {
            Form::American => {
                (self.month, self.day) = (token.number(2), token.number(2));
                if token.is_at(b"/") {
                    self.year = token.year(4);
                }
            }
            Form::YearFirst => {
                let year = token.signed_number(4);
                self.set_date(year, token.number(2), token.number(2));
            }
            Form::ShortYearFirst => {
                let year = token.year(4);
                self.set_date(year, token.number(2), token.number(2));
            }
            Form::YearMonth => {
                let year = token.year(4);
                self.set_date(year, token.number(2), Some(1));
            }
            Form::DayMonthNameYear | Form::DayMonthName => {
                self.day = token.number(2);
                token.skip_day_suffix();
                self.month = Some(token.month());
                if form == Form::DayMonthNameYear {
                    self.year = token.year(4);
                }
            }
            Form::DayMonthYear => {
                (self.day, self.month) = (token.number(2), token.number(2));
                self.year = token.year(4);
            }
            Form::MonthNameYear => {
                self.month = Some(token.month());
                (self.year, self.day) = (token.year(4), Some(1));
            }
            Form::YearMonthName => {
                self.year = token.year(4);
                (self.month, self.day) = (Some(token.month()), Some(1));
            }
            Form::MonthNameDay | Form::MonthNameDayYear => {
                self.month = Some(token.month());
                self.day = token.number(2);
                self.year = token.year(4);
            }
            Form::YearMonthNameDay => {
                self.year = token.year(4);
                self.month = Some(token.month());
                self.day = token.number(2);
            }
            Form::CompactDate => {
                let year = token.number(4);
                self.set_date(year, token.number(2), token.number(2));
            }
            Form::YearAndDay => {
                let year = token.year(4);
                self.set_date(year, Some(1), token.number(3));
            }
            Form::IsoWeek => {
                let (year, week) = (token.number(4), token.number(2));
                self.set_date(year, Some(1), Some(1));
                if let (Some(year), Some(week)) = (year, week) {
                    let day = token.number(1).unwrap_or(1);
                    self.relative.days = calendar::iso_days(year, week, day) - calendar::days(year, 1, 1);
                }
            }
            Form::MonthName => self.month = Some(token.month()),
            _ => {}
        }
    }

    fn time(&mut self, form: Form, token: &mut Token<'_>) {
        self.hour = token.number(2).unwrap_or(0);
        if form == Form::CompactTime || token.is_at(b":.") {
            self.minute = token.number(2).unwrap_or(0);
        }
        if form == Form::CompactTime || token.is_at(b":.") {
            self.second = token.number(2).unwrap_or(0);
        }
        let point: &[u8] = if form == Form::SqlTime { b":." } else { b"." };
        if form != Form::Time12 && token.is_at(point) {
            self.microseconds = Some(token.fraction());
        }
        if matches!(form, Form::Time12 | Form::SqlTime) {
            self.half_of_day(token);
        } else if token.peek().is_some() {
            self.offset_of(token);
        }
    }

    fn half_of_day(&mut self, token: &mut Token<'_>) {
        token.skip(|letter| !letter.is_ascii_alphabetic());
        let afternoon = token.is_at(b"pP");
        self.hour = if self.hour == 12 { 0 } else { self.hour } + if afternoon { 12 } else { 0 };
    }

    /// Four digits are a time of day, and the second time a year.
    fn compact_short(&mut self, mut token: Token<'_>) {
        match self.times {
            0 => {
                (self.hour, self.minute) = (token.number(2).unwrap_or(0), token.number(2).unwrap_or(0));
                self.second = 0;
            }
            1 => self.year = token.number(4),
            _ => return self.error(DOUBLE_TIME),
        }
        self.times += 1;
    }

    fn date_and_time(&mut self, form: Form, token: &mut Token<'_>) {
        if form == Form::LogFormat {
            let (day, month) = (token.number(2), token.month());
            self.set_date(token.number(4), Some(month), day);
        } else {
            let year = token.number(4);
            self.set_date(year, token.number(2), token.number(2));
        }
        let mut number = || token.number(2).unwrap_or(0);
        (self.hour, self.minute, self.second) = (number(), number(), number());
        if token.is_at(b".") {
            self.microseconds = Some(token.fraction());
        }
        if token.peek().is_some() {
            self.offset_of(token);
        }
    }

    fn timestamp(&mut self, mut token: Token<'_>) {
        self.no_time();
        if self.offset.is_some() {
            return self.error(DOUBLE_ZONE);
        }
        self.zone_at = self.at;
        let is_before = token.rest().starts_with(b"@-");
        let seconds = token.signed_number(24).unwrap_or(0);
        self.set_date(Some(1970), Some(1), Some(1));
        (self.has_date, self.offset) = (false, Some(0));
        self.relative.seconds += seconds;
        if token.is_at(b".") {
            if token.rest().len() == 1 {
                return self.error("Found unexpected data");
            }
            self.relative.microseconds = token.fraction() * if is_before { -1 } else { 1 };
        }
    }

    /// Reads a quarter past an hour, or a quarter to it.
    fn around_hour(&mut self, mut token: Token<'_>) {
        self.no_time();
        self.times = 1;
        let is_back = token.is_at(b"b");
        let hour = token.number(2).unwrap_or(0);
        (self.hour, self.minute) = if is_back { (hour, 15) } else { (hour - 1, 45) };
        if token.peek().is_some() {
            self.half_of_day(&mut token);
        }
    }

    fn relative(&mut self, form: Form, mut token: Token<'_>) {
        let blank = |letter: u8| matches!(letter, b' ' | b'\t');
        match form {
            Form::Weekday => {
                self.no_time();
                self.relative.weekday(&token.word());
            }
            Form::RelativeWeek => self.relative.week(relative::amount(&token.word())),
            Form::Relative => {
                let amount = token.signed_number(24).unwrap_or(0);
                token.skip(blank);
                self.relative.add((amount, 1), token.rest());
            }
            Form::WeekdayOf => {
                self.no_time();
                let amount = relative::amount(&token.word());
                token.skip(blank);
                self.relative.weekday_of_month(amount, &token.word());
            }
            _ => {
                let amount = relative::amount(&token.word());
                token.skip(blank);
                if self.relative.add(amount, token.rest()) {
                    self.no_time();
                }
            }
        }
    }

    fn zone(&mut self, token: &mut Token<'_>) {
        if self.offset.is_some() {
            return self.error(DOUBLE_ZONE);
        }
        self.zone_at = self.at;
        self.offset_of(token);
    }

    /// Reads `+02:00`, `Z`, `(EST)`, `GMT+2`.
    fn offset_of(&mut self, token: &mut Token<'_>) {
        if self.zone_at == 0 {
            self.zone_at = self.at;
        }
        token.skip(|letter| matches!(letter, b' ' | b'\t' | b'('));
        let rest = token.rest();
        let signed = match rest {
            [b'G', b'M', b'T', rest @ ..] if rest.starts_with(b"+") || rest.starts_with(b"-") => rest,
            rest => rest,
        };
        self.offset = Some(match signed {
            [sign @ (b'+' | b'-'), digits @ ..] => numeric_offset(digits) * if *sign == b'-' { -1 } else { 1 },
            name => {
                let name = name.split(|letter| matches!(letter, b')' | b' ')).next().unwrap_or_default();
                let name = String::from_utf8_lossy(name);
                match zones::seconds(&name) {
                    Some(seconds) => seconds,
                    None if jiff::tz::TimeZone::get(&name).is_ok() => {
                        self.error("passing a time zone identifier as part of the string is not allowed");
                        return;
                    }
                    None => {
                        self.error("The timezone could not be found in the database");
                        return;
                    }
                }
            }
        });
    }

    fn finish(mut self, length: usize) -> Result<DateFields, String> {
        (self.at, self.letter) = (length + 1, b' ');
        if self.times > 0 && !((0..24).contains(&self.hour) && self.second < 60) {
            self.error("The parsed time was invalid");
        }
        if self.has_date && !self.is_date() {
            self.error("The parsed date was invalid");
        }
        if !self.errors.is_empty() {
            return Err(self.errors.join("; "));
        }
        let mut parts = DateFields { year: self.year, month: self.month, day: self.day, ..DateFields::default() };
        (parts.offset_ms, parts.zone_at) = (self.offset.map(|seconds| seconds * 1000), self.zone_at);
        let time = (self.hour * 3600 + self.minute * 60 + self.second) * 1000;
        let microseconds = if self.times > 0 { self.microseconds.unwrap_or(-99_999) } else { 0 };
        (parts.time_ms, parts.microseconds) = (time + microseconds.div_euclid(1000), microseconds.rem_euclid(1000));
        self.relative.apply(&mut parts);
        Ok(parts)
    }

    /// Returns whether the month has that day. Missing parts are reported later.
    fn is_date(&self) -> bool {
        let days = self.year.zip(self.month).map_or(31, |(year, month)| match month {
            1..=12 => calendar::days_in_month(year, month),
            _ => 0,
        });
        self.day.is_none_or(|day| (1..=days).contains(&day)) && self.month.is_none_or(|month| (1..=12).contains(&month))
    }
}

/// Parses `2`, `0230`, `02:30`, as seconds.
fn numeric_offset(digits: &[u8]) -> i64 {
    let length = digits.iter().take_while(|letter| letter.is_ascii_digit() || **letter == b':').count();
    let digits = std::str::from_utf8(digits.get(..length).unwrap_or_default()).unwrap_or_default();
    let number = |digits: &str| digits.parse::<i64>().unwrap_or(0);
    if digits.contains(':') {
        let units = [3600, 60, 1];
        return digits.split(':').zip(units).map(|(digits, unit)| number(digits) * unit).sum();
    }
    match (length, number(digits)) {
        (1 | 2, hours) => hours * 3600,
        (3 | 4, both) => both / 100 * 3600 + both % 100 * 60,
        (6, all) => all / 10_000 * 3600 + all / 100 % 100 * 60 + all % 100,
        _ => 0,
    }
}
