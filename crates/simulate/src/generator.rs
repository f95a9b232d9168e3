//! Generators of values, which expressions of a scenario are compiled to.

mod compile;
mod functions;

pub use compile::compile;
pub use functions::milliseconds;

use super::expression::Operator;
use document::{Kind, ObjectId, Value, ValueBuf};
use harness::random::{SplitMix, Zipfian};
use std::time::{SystemTime, UNIX_EPOCH};

/// Generates a value at each call.
pub enum Generator {
    Constant(ValueBuf),
    /// A variable of the operation, by its index.
    Variable(usize),
    Index,
    Element,
    Process,
    Int(Box<[Generator; 2]>),
    Long(Box<[Generator; 2]>),
    Double(f64, f64),
    Uniform(Box<Generator>),
    Zipf(Zipfian),
    /// By its index among the scenario's sequences.
    Sequence(usize),
    Letters(Box<[Generator; 2]>),
    Words(Box<Generator>),
    Hex(Box<Generator>),
    Binary(Box<Generator>),
    Pick(Vec<Generator>),
    Chance(Box<Generator>),
    Date(i64, i64),
    Now(Box<Generator>),
    ObjectId,
    Uuid,
    /// The number of users that have completed an operation, by its index.
    Done(usize),
    Arithmetic(Operator, Box<[Generator; 2]>),
    Join(Vec<Generator>),
}

/// The meanings of names in an expression.
pub struct Scope<'s> {
    pub constants: &'s [(String, ValueBuf)],
    pub sequences: &'s mut Vec<String>,
    /// Names of the operation's variables so far.
    pub variables: Vec<String>,
    /// Names of the operations, in checks; empty elsewhere.
    pub operations: &'s [String],
    pub in_array: bool,
}

/// The source of random values; each process has one.
pub struct Source {
    pub random: SplitMix,
    /// The next number of each sequence.
    pub sequences: Vec<i64>,
    pub process: i64,
    /// The increment of sequences; other processes have the numbers in between.
    pub step: i64,
    object_ids: ObjectIds,
}

/// The context of a generated value.
pub struct Draw<'d> {
    pub source: &'d mut Source,
    pub variables: &'d [ValueBuf],
    pub index: i64,
    pub element: i64,
    pub done: &'d [u64],
}

struct ObjectIds {
    process: [u8; 5],
    counter: u32,
}

impl Source {
    /// Creates the source of one of several processes. Numbers of sequences are distributed over
    /// the processes.
    pub fn new(seed: u64, sequences: &[i64], process: u32, processes: u32) -> Source {
        let mut random = SplitMix(seed.wrapping_mul(1_000_003).wrapping_add(u64::from(process)));
        let [a, b, c, d, e, ..] = random.next().to_le_bytes();
        let sequences = sequences.iter().map(|next| next + i64::from(process)).collect();
        let object_ids = ObjectIds { process: [a, b, c, d, e], counter: 0 };
        Source { random, sequences, process: process.into(), step: processes.into(), object_ids }
    }
}

impl Draw<'_> {
    /// Creates a context without variables.
    pub fn from(source: &mut Source) -> Draw<'_> {
        Draw { source, variables: &[], index: 0, element: 0, done: &[] }
    }
}

/// Returns an int32 if the number fits, else an int64.
pub fn integer(number: i64) -> ValueBuf {
    ValueBuf::from(i32::try_from(number).map_or(Value::Int64(number), Value::Int32))
}

impl Generator {
    /// Returns the value of a constant.
    pub fn constant(&self) -> Option<&ValueBuf> {
        if let Generator::Constant(value) = self { Some(value) } else { None }
    }

    /// Generates a value. Fails if a value from a reply has the wrong type or is out of range.
    pub fn draw(&self, draw: &mut Draw<'_>) -> Result<ValueBuf, String> {
        Ok(match self {
            Generator::Constant(value) => value.clone(),
            Generator::Variable(index) => {
                draw.variables.get(*index).cloned().ok_or("a variable is used before it has a value")?
            }
            Generator::Index => integer(draw.index),
            Generator::Element => integer(draw.element),
            Generator::Process => integer(draw.source.process),
            Generator::Int(bounds) => integer(between(bounds, draw)?),
            Generator::Long(bounds) => ValueBuf::from(Value::Int64(between(bounds, draw)?)),
            Generator::Double(low, high) => {
                let part = (draw.source.random.next() >> 11) as f64 / (1u64 << 53) as f64;
                ValueBuf::from(Value::Double(low + part * (high - low)))
            }
            Generator::Uniform(bound) => {
                let bound = bound.count(draw)?;
                integer(draw.source.random.below(bound) as i64)
            }
            Generator::Zipf(zipfian) => integer(zipfian.next(&mut draw.source.random) as i64),
            Generator::Sequence(index) => integer(next_of(draw.source, *index)?),
            Generator::Letters(bounds) => {
                let length = count_of(between(bounds, draw)?)?;
                text(&letters(length, &mut draw.source.random))
            }
            Generator::Words(length) => {
                let length = length.count(draw)?;
                text(&words(length as usize, &mut draw.source.random))
            }
            Generator::Hex(length) => {
                let length = length.count(draw)?;
                text(&(0..length).map(|_| hex_digit(draw.source.random.below(16))).collect::<String>())
            }
            Generator::Binary(length) => {
                let length = length.count(draw)?;
                let bytes: Vec<u8> = (0..length).map(|_| draw.source.random.next() as u8).collect();
                ValueBuf::from(Value::Binary { subtype: 0, bytes: &bytes })
            }
            Generator::Pick(choices) => {
                let index = draw.source.random.below(choices.len() as u64) as usize;
                choices[index].draw(draw)?
            }
            Generator::Chance(percent) => {
                let percent = percent.count(draw)?;
                ValueBuf::from(Value::Boolean(draw.source.random.below(100) < percent))
            }
            Generator::Date(first, last) => {
                let span = last.abs_diff(*first).max(1);
                ValueBuf::from(Value::DateTime(first + draw.source.random.below(span) as i64))
            }
            Generator::Now(seconds) => {
                let later = seconds.integer(draw)?.saturating_mul(1000);
                ValueBuf::from(Value::DateTime(now_ms().saturating_add(later)))
            }
            Generator::ObjectId => ValueBuf::from(Value::ObjectId(draw.source.object_ids.next())),
            Generator::Uuid => uuid(&mut draw.source.random),
            Generator::Done(operation) => integer(draw.done.get(*operation).map_or(0, |count| *count as i64)),
            Generator::Arithmetic(operator, both) => arithmetic(*operator, &both[0].draw(draw)?, &both[1].draw(draw)?)?,
            Generator::Join(parts) => {
                let mut joined = String::new();
                for part in parts {
                    append_text(part.draw(draw)?.as_value(), &mut joined);
                }
                text(&joined)
            }
        })
    }

    pub fn integer(&self, draw: &mut Draw<'_>) -> Result<i64, String> {
        let value = self.draw(draw)?;
        value.as_value().to_i64().ok_or_else(|| format!("a whole number is needed, not {value:?}"))
    }

    /// Generates a number that is neither negative nor implausibly large.
    pub fn count(&self, draw: &mut Draw<'_>) -> Result<u64, String> {
        count_of(self.integer(draw)?)
    }
}

/// The largest length or bound.
const COUNT_MAX: i64 = 1 << 40;

fn count_of(number: i64) -> Result<u64, String> {
    match number {
        0..=COUNT_MAX => Ok(number as u64),
        _ => Err(format!("{number} is out of range")),
    }
}

fn between(bounds: &[Generator; 2], draw: &mut Draw<'_>) -> Result<i64, String> {
    let (low, high) = (bounds[0].integer(draw)?, bounds[1].integer(draw)?);
    let span = high.checked_sub(low).filter(|span| *span >= 0);
    let span = span.ok_or_else(|| format!("there is nothing between {low} and {high}"))? as u64;
    Ok(low + draw.source.random.below(span.saturating_add(1)) as i64)
}

fn next_of(source: &mut Source, index: usize) -> Result<i64, String> {
    let next = source.sequences.get_mut(index).ok_or("an unknown sequence")?;
    let value = *next;
    *next += source.step;
    Ok(value)
}

fn arithmetic(operator: Operator, left: &ValueBuf, right: &ValueBuf) -> Result<ValueBuf, String> {
    let number = |value: &ValueBuf| match value.as_value() {
        Value::Double(number) => Some(number),
        other => other.to_i64().map(|number| number as f64),
    };
    let refuse = || format!("{left:?} and {right:?} cannot be computed with");
    if left.kind() == Kind::Double || right.kind() == Kind::Double {
        let (Some(left), Some(right)) = (number(left), number(right)) else { return Err(refuse()) };
        return Ok(ValueBuf::from(Value::Double(match operator {
            Operator::Add => left + right,
            Operator::Subtract => left - right,
            Operator::Multiply => left * right,
            Operator::Divide => left / right,
            Operator::Remainder => left % right,
        })));
    }
    let (Some(a), Some(b)) = (left.as_value().to_i64(), right.as_value().to_i64()) else { return Err(refuse()) };
    let result = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide => a.checked_div(b),
        Operator::Remainder => a.checked_rem(b),
    };
    result.map(integer).ok_or_else(refuse)
}

fn text(text: &str) -> ValueBuf {
    ValueBuf::from(Value::String(text))
}

fn append_text(value: Value<'_>, out: &mut String) {
    match (value, value.to_i64()) {
        (Value::String(text), _) => *out += text,
        (Value::ObjectId(id), _) => *out += &id.to_string(),
        (Value::Double(number), _) => *out += &number.to_string(),
        (Value::Boolean(flag), _) => *out += if flag { "true" } else { "false" },
        (_, Some(number)) => *out += &number.to_string(),
        _ => *out += &format!("{value:?}"),
    }
}

fn letters(length: u64, random: &mut SplitMix) -> String {
    (0..length).map(|_| (b'a' + random.below(26) as u8) as char).collect()
}

fn hex_digit(number: u64) -> char {
    char::from_digit(number as u32, 16).unwrap_or('0')
}

/// Returns words of two to nine letters with blanks between them, `length` bytes in total.
fn words(length: usize, random: &mut SplitMix) -> String {
    let mut text = String::with_capacity(length + 10);
    while text.len() < length {
        let letters_of_word = 2 + random.below(8);
        text += &letters(letters_of_word, random);
        text.push(' ');
    }
    text.truncate(length);
    text
}

/// Returns a random UUID (version 4).
pub fn uuid(random: &mut SplitMix) -> ValueBuf {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&random.next().to_le_bytes());
    bytes[8..].copy_from_slice(&random.next().to_le_bytes());
    bytes[6] = bytes[6] & 0x0F | 0x40;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    ValueBuf::from(Value::Binary { subtype: 4, bytes: &bytes })
}

impl ObjectIds {
    fn next(&mut self) -> ObjectId {
        self.counter = self.counter.wrapping_add(1);
        ObjectId::from_parts((now_ms() / 1000) as u32, self.process, self.counter)
    }
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

#[cfg(test)]
mod tests;
