//! The forms that a piece of a date may have, as regular expressions over named parts.

use std::sync::LazyLock;

/// The form of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Yesterday,
    Now,
    Noon,
    Midnight,
    Tomorrow,
    Timestamp,
    FirstOrLastDay,
    BackOrFront,
    WeekdayOf,
    Time12,
    SqlTime,
    Time24,
    CompactShort,
    CompactTime,
    American,
    YearFirst,
    ShortYearFirst,
    YearMonth,
    DayMonthNameYear,
    DayMonthYear,
    MonthNameYear,
    YearMonthName,
    MonthNameDay,
    DayMonthName,
    CompactDate,
    DateAndTime,
    YearAndDay,
    IsoWeek,
    MonthNameDayYear,
    YearMonthNameDay,
    LogFormat,
    Year,
    Ago,
    Weekday,
    RelativeWord,
    RelativeWeek,
    MonthName,
    Zone,
    MonthNameDayTime12,
    MonthNameDayTime24,
    Relative,
}

/// Returns the longest form that a text begins with, and its length; the first of several with that
/// length.
pub(super) fn longest(text: &[u8]) -> Option<(Form, usize)> {
    let mut found: Option<(Form, usize)> = None;
    for (form, pattern) in FORMS.iter() {
        let length = pattern.find(text).ok().flatten().map_or(0, |whole| whole.end());
        if length > found.map_or(0, |(_, longest)| longest) {
            found = Some((*form, length));
        }
    }
    found
}

static FORMS: LazyLock<Vec<(Form, pcre2::bytes::Regex)>> = LazyLock::new(|| {
    let compiled = PATTERNS.iter().filter_map(|(form, pattern)| {
        let mut builder = pcre2::bytes::RegexBuilder::new();
        builder.jit_if_available(true);
        builder.build(&format!("\\A(?:{})", spelled(pattern))).ok().map(|pattern| (*form, pattern))
    });
    compiled.collect()
});

/// Replaces the names of parts, `<name>`, by the parts.
fn spelled(pattern: &str) -> String {
    let mut spelled = pattern.to_owned();
    // Parts consist of parts that follow them in the list.
    for (name, part) in PARTS {
        spelled = spelled.replace(&format!("<{name}>"), &format!("(?:{part})"));
    }
    spelled
}

/// Alternatives, one of which is a prefix of another, are sorted by length, the longest first.
#[rustfmt::skip]
const PARTS: [(&str, &str); 32] = [
    ("no-year", "<month-text>[ .\\t-]*<day>(?:[,.stndrh\\t ]+|\\x00)"),
    ("time12", "<hour12>(?:[:.]<minute2>|[:.]<minute>[:.]<second2>)<space>?<half>"),
    ("time24", "[tT]?<hour>[:.]<minute>(?:[:.]<second>)?"),
    ("time24-zone", "[tT]?<hour>[:.]<minute>[:.]<second2><space>?(?:<offset>|<zone>)"),
    ("unit", "(?i:weeks|ms|\u{b5}s|(?:millisecond|\u{b5}second|microsecond|forthnight|fortnight|second|\u{b5}sec|minute|month|msec|usec|hour|year|sec|min|day)s?)|<weekday>"),
    ("weekday", "(?i:weekdays|weekday|wednesday|saturday|thursday|tuesday|sunday|monday|friday|sun|mon|tue|wed|thu|fri|sat)"),
    ("plain-weekday", "(?i:wednesday|saturday|thursday|tuesday|sunday|monday|friday|sun|mon|tue|wed|thu|fri|sat)"),
    ("number-word", "(?i:first|second|third|fourth|fifth|sixth|seventh|eighth|eight|ninth|tenth|eleventh|twelfth)"),
    ("relative-word", "(?i:next|last|previous|this)"),
    ("month-text", "<month-name>|XII|XI|IX|IV|VIII|VII|VI|III|II|I|V|X"),
    ("month-name", "(?i:september|february|november|december|january|october|august|march|april|june|july|sept|may|jan|feb|mar|apr|jun|jul|aug|sep|oct|nov|dec)"),
    ("month-short", "(?i:sept|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"),
    ("offset", "(?:GMT)?[+-](?:<hour2>:<minute2>:<second2>|<hour2><minute2><second2>|<hour>:?<minute>?)"),
    ("zone", "[A-Z][a-z]+(?:[_/-][A-Za-z]+)+|\\(?[A-Za-z]{1,6}\\)?"),
    ("half", "[AaPp]\\.?[Mm]\\.?[\\x00\\t ]"),
    ("space", "[ \\t]+"),
    ("fraction", "\\.[0-9]+"),
    ("hour", "2[0-4]|[01]?[0-9]"),
    ("hour2", "[01][0-9]|2[0-4]"),
    ("hour12", "1[0-2]|0?[1-9]"),
    ("minute", "[0-5]?[0-9]"),
    ("minute2", "[0-5][0-9]"),
    ("second", "60|[0-5]?[0-9]"),
    ("second2", "[0-5][0-9]|60"),
    ("month", "1[0-2]|0?[0-9]"),
    ("month2", "0[0-9]|1[0-2]"),
    ("day", "(?:3[01]|[0-2]?[0-9])(?:st|nd|rd|th)?"),
    ("day2", "0[0-9]|[1-2][0-9]|3[01]"),
    ("year", "[0-9]{1,4}"),
    ("year4", "[0-9]{4}"),
    ("day-of-year", "00[1-9]|0[1-9][0-9]|[12][0-9][0-9]|3[0-5][0-9]|36[0-6]"),
    ("week", "0[1-9]|[1-4][0-9]|5[0-3]"),
];

/// In the order of precedence among forms of equal length.
const PATTERNS: [(Form, &str); 56] = [
    (Form::Yesterday, "(?i:yesterday)"),
    (Form::Now, "(?i:now)"),
    (Form::Noon, "(?i:noon)"),
    (Form::Midnight, "(?i:midnight|today)"),
    (Form::Tomorrow, "(?i:tomorrow)"),
    (Form::Timestamp, "@-?[0-9]+(?:\\.[0-9]{0,6})?"),
    (Form::FirstOrLastDay, "(?i:first day of|last day of)"),
    (Form::BackOrFront, "(?i:back of |front of )<hour>(?:<space>?<half>)?"),
    (Form::WeekdayOf, "(?:<number-word>|<relative-word>)<space><plain-weekday><space>(?i:of)"),
    (Form::Time12, "<hour12><space>?<half>"),
    (Form::Time12, "<time12>"),
    (Form::SqlTime, "<hour12>:<minute2>:<second2>[:.][0-9]+<half>"),
    (Form::Time24, "[tT]<hour>"),
    (Form::Time24, "<time24>"),
    (Form::Time24, "[tT]?<hour>[:.]<minute>[:.]<second><fraction>"),
    (Form::CompactShort, "[tT]?<hour2><minute2>"),
    (Form::CompactTime, "[tT]?<hour2><minute2><second2>"),
    (Form::American, "<month>/<day>(?:/<year>)?"),
    (Form::YearFirst, "[+-]?<year4>-<month2>-<day2>"),
    (Form::YearFirst, "<year4>/<month2>/<day2>/?"),
    (Form::YearFirst, "<year4>/<month>/<day>"),
    (Form::ShortYearFirst, "[0-9]{2}-<month2>-<day2>"),
    (Form::YearMonth, "<year4>-<month>"),
    (Form::ShortYearFirst, "<year>-<month>-<day>"),
    (Form::DayMonthNameYear, "<day>[ \\t.-]*<month-text>[ \\t.-]*<year>"),
    (Form::DayMonthYear, "<day>[.\\t-]<month>[.-]<year4>"),
    (Form::DayMonthYear, "<day>[.\\t]<month>\\.[0-9]{2}"),
    (Form::MonthNameYear, "<month-text>[ .\\t-]*<year4>"),
    (Form::YearMonthName, "<year4>[ .\\t-]*<month-text>"),
    (Form::MonthNameDay, "<month-text>[ .\\t-]*<day>[,.stndrh\\t ]+<year>"),
    (Form::MonthNameDay, "<no-year>"),
    (Form::DayMonthName, "<day>[ .\\t-]*<month-text>"),
    (Form::CompactDate, "<year4><month2><day2>"),
    (Form::DateAndTime, "<year4><month2><day2>T<hour>:<minute2>:<second2>"),
    (Form::DateAndTime, "<year4><month2><day2>[tT]<hour><minute2><second2>"),
    (Form::DateAndTime, "<year4>-<month2>-<day2>T<hour2>:<minute2>:<second2><fraction><offset>?"),
    (Form::DateAndTime, "<year4>-<month>-<day>T<hour>:<minute>:<second>"),
    (Form::DateAndTime, "<year4>:<month2>:<day2> <hour2>:<minute2>:<second2>"),
    (Form::YearAndDay, "<year4>\\.?<day-of-year>"),
    (Form::IsoWeek, "<year4>-?W<week>-?[0-7]"),
    (Form::IsoWeek, "<year4>-?W<week>"),
    (Form::MonthNameDayYear, "<month-short>-<day2>-<year>"),
    (Form::YearMonthNameDay, "<year>-<month-short>-<day2>"),
    (Form::LogFormat, "<day>/<month-short>/<year4>:<hour2>:<minute2>:<second2><space><offset>"),
    (Form::Year, "<year4>"),
    (Form::Ago, "(?i:ago)"),
    (Form::Weekday, "<weekday>"),
    (Form::RelativeWeek, "<relative-word><space>(?i:week)"),
    (Form::RelativeWord, "(?:<number-word>|<relative-word>)<space><unit>"),
    (Form::MonthName, "<month-name>"),
    (Form::Zone, "<offset>"),
    (Form::Zone, "<zone>"),
    (Form::MonthNameDayTime12, "<no-year><time12>"),
    (Form::MonthNameDayTime24, "<no-year><time24>"),
    (Form::MonthNameDayTime24, "<no-year><time24-zone>"),
    (Form::Relative, "[+-]*[ \\t]*[0-9]+<space>?(?:<unit>|(?i:week))"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_compile() {
        assert_eq!(FORMS.len(), PATTERNS.len());
    }

    #[test]
    fn the_longest_form_counts() {
        let check = |text: &str, form, length| assert_eq!(longest(text.as_bytes()), Some((form, length)), "{text}");
        check("2015-04-25T16:11:41", Form::DateAndTime, 19);
        check("25/Apr/2015:16:11:41 +0200", Form::LogFormat, 26);
        check("25.04.15 16:11", Form::DayMonthYear, 8);
        check("10.04.15 16:11", Form::Time24, 8);
        check("5-4-15", Form::ShortYearFirst, 6);
        check("5 pm\0", Form::Time12, 5);
    }
}
