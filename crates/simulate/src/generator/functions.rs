//! The functions of expressions, by name.

use super::{Generator, Scope};
use document::{Value, ValueBuf};
use harness::random::Zipfian;
use std::ops::RangeInclusive;
use std::str::FromStr;
use toml::value::{Datetime, Offset};

/// A function of expressions.
pub struct Function {
    pub name: &'static str,
    /// As the documentation shows it.
    pub usage: &'static str,
    pub arguments: RangeInclusive<usize>,
    pub make: Make,
}

type Make = fn(Vec<Generator>, &mut Scope<'_>) -> Result<Generator, String>;

const fn function(name: &'static str, usage: &'static str, arguments: RangeInclusive<usize>, make: Make) -> Function {
    Function { name, usage, arguments, make }
}

pub const FUNCTIONS: [Function; 18] = [
    function("int", "int(LOW, HIGH)", 2..=2, |arguments, _| pair(arguments).map(Generator::Int)),
    function("long", "long(LOW, HIGH)", 2..=2, |arguments, _| pair(arguments).map(Generator::Long)),
    function("double", "double(LOW, HIGH)", 2..=2, |arguments, _| double(&arguments)),
    function("uniform", "uniform(N)", 1..=1, |arguments, _| one(arguments).map(Generator::Uniform)),
    function("zipf", "zipf(N)", 1..=1, |arguments, _| zipf(&arguments)),
    function("sequence", "sequence('NAME')", 1..=1, |arguments, scope| sequence(&arguments, scope)),
    function("string", "string(LENGTH) or string(LOW, HIGH)", 1..=2, string),
    function("text", "text(LENGTH)", 1..=1, |arguments, _| one(arguments).map(Generator::Words)),
    function("hex", "hex(LENGTH)", 1..=1, |arguments, _| one(arguments).map(Generator::Hex)),
    function("binary", "binary(LENGTH)", 1..=1, |arguments, _| one(arguments).map(Generator::Binary)),
    function("pick", "pick(A, B, …)", 1..=1000, |arguments, _| Ok(Generator::Pick(arguments))),
    function("chance", "chance(PERCENT)", 1..=1, |arguments, _| one(arguments).map(Generator::Chance)),
    function("date", "date('FIRST', 'LAST') or date('THIS')", 1..=2, |arguments, _| date(&arguments)),
    function("now", "now or now(SECONDS)", 0..=1, |arguments, _| now(arguments)),
    function("object_id", "object_id", 0..=0, |_, _| Ok(Generator::ObjectId)),
    function("uuid", "uuid", 0..=0, |_, _| Ok(Generator::Uuid)),
    function("as_long", "as_long(N)", 1..=1, as_long),
    function("done", "done('OPERATION')", 1..=1, |arguments, scope| done(&arguments, scope)),
];

fn one(arguments: Vec<Generator>) -> Result<Box<Generator>, String> {
    arguments.into_iter().next().map(Box::new).ok_or_else(|| "an argument is missing".to_owned())
}

fn pair(arguments: Vec<Generator>) -> Result<Box<[Generator; 2]>, String> {
    <[Generator; 2]>::try_from(arguments).map(Box::new).map_err(|_| "two arguments are needed".to_owned())
}

fn string(mut arguments: Vec<Generator>, _: &mut Scope<'_>) -> Result<Generator, String> {
    if let [Generator::Constant(length)] = arguments.as_slice() {
        arguments.push(Generator::Constant(length.clone()));
    }
    match pair(arguments) {
        Ok(bounds) => Ok(Generator::Letters(bounds)),
        Err(_) => Err("a length that is drawn has to be given as LOW, HIGH".to_owned()),
    }
}

fn as_long(arguments: Vec<Generator>, _: &mut Scope<'_>) -> Result<Generator, String> {
    match arguments.first().and_then(Generator::constant).and_then(|value| value.as_value().to_i64()) {
        Some(number) => Ok(Generator::Constant(ValueBuf::from(Value::Int64(number)))),
        None => Err("the number has to be a constant; long(LOW, HIGH) draws one".to_owned()),
    }
}

fn constant_text(argument: Option<&Generator>) -> Result<&str, String> {
    let text = argument.and_then(Generator::constant);
    text.and_then(|value| value.as_value().as_str()).ok_or_else(|| "a text in single quotes is needed".to_owned())
}

fn sequence(arguments: &[Generator], scope: &mut Scope<'_>) -> Result<Generator, String> {
    let name = constant_text(arguments.first())?;
    let index = scope.sequences.iter().position(|known| known == name);
    Ok(Generator::Sequence(index.unwrap_or_else(|| {
        scope.sequences.push(name.to_owned());
        scope.sequences.len() - 1
    })))
}

fn done(arguments: &[Generator], scope: &Scope<'_>) -> Result<Generator, String> {
    let name = constant_text(arguments.first())?;
    if scope.operations.is_empty() {
        return Err("done may be used in checks only".to_owned());
    }
    let index = scope.operations.iter().position(|operation| operation == name);
    index.map(Generator::Done).ok_or_else(|| format!("there is no operation {name:?}"))
}

fn double(arguments: &[Generator]) -> Result<Generator, String> {
    let bound = |argument: Option<&Generator>| match argument.and_then(Generator::constant)?.as_value() {
        Value::Double(number) => Some(number),
        value => value.to_i64().map(|number| number as f64),
    };
    match (bound(arguments.first()), bound(arguments.get(1))) {
        (Some(low), Some(high)) if low <= high => Ok(Generator::Double(low, high)),
        _ => Err("two constant numbers are needed, the lower one first".to_owned()),
    }
}

/// Building the zipfian distribution takes a step per number.
const ZIPF_MAX: i64 = 10_000_000;

fn zipf(arguments: &[Generator]) -> Result<Generator, String> {
    match arguments.first().and_then(Generator::constant).and_then(|bound| bound.as_value().to_i64()) {
        Some(bound @ 1..=ZIPF_MAX) => Ok(Generator::Zipf(Zipfian::below(bound as u64))),
        _ => Err(format!("a constant from 1 to {ZIPF_MAX} is needed")),
    }
}

fn now(arguments: Vec<Generator>) -> Result<Generator, String> {
    let none = Generator::Constant(ValueBuf::from(Value::Int32(0)));
    Ok(Generator::Now(Box::new(arguments.into_iter().next().unwrap_or(none))))
}

fn date(arguments: &[Generator]) -> Result<Generator, String> {
    let bound = |argument: Option<&Generator>| {
        let text = constant_text(argument)?;
        let date = Datetime::from_str(text).ok();
        date.and_then(milliseconds).ok_or_else(|| format!("{text:?} is not a date such as 2020-01-31"))
    };
    let first = bound(arguments.first())?;
    match arguments.len() {
        1 => Ok(Generator::Constant(ValueBuf::from(Value::DateTime(first)))),
        _ => bound(arguments.get(1)).map(|last| Generator::Date(first.min(last), last.max(first))),
    }
}

/// Returns milliseconds since 1970; `None` for a time without a date. Without a time zone, the date
/// is UTC.
pub fn milliseconds(date: Datetime) -> Option<i64> {
    let day = date.date?;
    let time = date.time.map_or(0, |time| {
        let seconds = i64::from(time.hour) * 3600 + i64::from(time.minute) * 60 + i64::from(time.second.unwrap_or(0));
        seconds * 1000 + i64::from(time.nanosecond.unwrap_or(0)) / 1_000_000
    });
    let offset = match date.offset {
        Some(Offset::Custom { minutes }) => i64::from(minutes) * 60_000,
        _ => 0,
    };
    Some(days(day.year.into(), day.month.into(), day.day.into()) * 86_400_000 + time - offset)
}

/// Returns days since 1970-01-01 in the Gregorian calendar.
/// Source: <https://howardhinnant.github.io/date_algorithms.html#days_from_civil>
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        for (text, expected) in [
            ("1970-01-01", 0),
            ("2000-02-29", 951_782_400_000),
            ("2020-01-01T00:00:00.5Z", 1_577_836_800_500),
            ("2020-01-01T01:00:00+01:00", 1_577_836_800_000),
        ] {
            assert_eq!(milliseconds(Datetime::from_str(text).unwrap()), Some(expected), "{text}");
        }
        assert_eq!(milliseconds(Datetime::from_str("07:00:00").unwrap()), None);
    }
}
