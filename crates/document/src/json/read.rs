//! JSON text to BSON. The rules are in the description of [`super`].
//!
//! One pass over the text: an element's type byte is written after its value has been read. Only
//! objects whose first name begins with `$` are scanned twice, to decide whether they are wrappers.

use super::first::Keep;
use super::scan::plain_length;
use super::wrapper;
use super::write::Counter;
use super::{JsonError, Reason};
use crate::DEPTH_MAX;
use crate::value::Kind;

type Result<T, E = JsonError> = std::result::Result<T, E>;

/// Appends the document of `text`. On failure `out` is unchanged.
pub fn json_to_bson(text: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    let result = read_whole(text, out);
    if result.is_err() {
        out.truncate(start);
    }
    result
}

/// As [`json_to_bson`], without the top-level fields that `keeps` rejects. Their values are
/// skipped, and not checked.
pub fn json_fields_to_bson(text: &[u8], out: &mut Vec<u8>, keeps: &dyn Fn(&[u8]) -> bool) -> Result<()> {
    let start = out.len();
    let result = read_text(text, out, |reader| reader.fields(1, |name| if keeps(name) { Keep::Yes } else { Keep::No }));
    if result.is_err() {
        out.truncate(start);
    }
    result
}

fn read_whole(text: &[u8], out: &mut Vec<u8>) -> Result<()> {
    read_text(text, out, |reader| reader.document(1))
}

fn read_text(text: &[u8], out: &mut Vec<u8>, read: impl FnOnce(&mut Reader<'_>) -> Result<()>) -> Result<()> {
    check_text(text)?;
    out.reserve(text.len() + 64);
    let mut reader = Reader::new(text, 0, out);
    if reader.token() != Some(b'{') {
        return Err(reader.error(Reason::NotAnObject));
    }
    reader.at += 1;
    read(&mut reader)?;
    match reader.token() {
        None => Ok(()),
        Some(_) => Err(reader.error(Reason::Syntax)),
    }
}

/// Checks that the text is UTF-8 and has no zero character, which can then only come from an
/// escape.
pub(super) fn check_text(text: &[u8]) -> Result<()> {
    if simdutf8::basic::from_utf8(text).is_err() {
        let position = std::str::from_utf8(text).map_or_else(|error| error.valid_up_to(), str::len);
        return Err(JsonError { reason: Reason::Utf8, position });
    }
    match memchr::memchr(0, text) {
        Some(position) => Err(JsonError { reason: Reason::Syntax, position }),
        None => Ok(()),
    }
}

/// Reads UTF-8 text from `at` on and appends BSON to `out`.
pub(super) struct Reader<'r> {
    pub(super) text: &'r [u8],
    pub(super) at: usize,
    pub(super) out: &'r mut Vec<u8>,
    /// Whether an escape has produced a zero character.
    zero_seen: bool,
}

impl<'r> Reader<'r> {
    pub(super) fn new(text: &'r [u8], at: usize, out: &'r mut Vec<u8>) -> Reader<'r> {
        Reader { text, at, out, zero_seen: false }
    }

    #[cold]
    pub(super) fn error(&self, reason: Reason) -> JsonError {
        JsonError { reason, position: self.at.min(self.text.len()) }
    }

    /// Returns the next byte that is not white space, without consuming it.
    #[inline]
    pub(super) fn token(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.get(self.at)?;
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    #[inline]
    pub(super) fn expect(&mut self, byte: u8) -> Result<()> {
        if self.token() != Some(byte) {
            return Err(self.error(Reason::Syntax));
        }
        self.at += 1;
        Ok(())
    }

    /// Reads an object as a document, from behind its brace. `depth` counts the documents, this one
    /// included.
    pub(super) fn document(&mut self, depth: usize) -> Result<()> {
        self.fields(depth, |_| Keep::Yes)
    }

    /// As [`Reader::document`], with some of the fields.
    #[inline]
    pub(super) fn fields(&mut self, depth: usize, mut keep: impl FnMut(&[u8]) -> Keep) -> Result<()> {
        let start = self.begin(depth)?;
        if self.token() == Some(b'}') {
            self.at += 1;
            return self.end(start);
        }
        loop {
            let mark = self.out.len();
            self.out.push(0);
            self.expect(b'"')?;
            self.name()?;
            self.expect(b':')?;
            let keep = keep(self.out.get(mark + 1..self.out.len() - 1).unwrap_or_default());
            if keep == Keep::No {
                self.out.truncate(mark);
                self.skip_value()?;
            } else {
                self.element(mark, depth)?;
            }
            if keep == Keep::AsTheLast {
                return self.end(start);
            }
            if self.is_last(b'}')? {
                return self.end(start);
            }
        }
    }

    /// Skips a value.
    fn skip_value(&mut self) -> Result<()> {
        let mut open = 0_usize;
        loop {
            let Some(byte) = self.token() else { return Err(self.error(Reason::Syntax)) };
            match byte {
                b'"' => {
                    self.at += 1;
                    self.skip_string()?;
                }
                b'{' | b'[' => {
                    open += 1;
                    self.at += 1;
                    continue;
                }
                b'}' | b']' if open == 0 => return Err(self.error(Reason::Syntax)),
                b'}' | b']' => {
                    open -= 1;
                    self.at += 1;
                }
                b',' | b':' if open > 0 => {
                    self.at += 1;
                    continue;
                }
                b',' | b':' => return Err(self.error(Reason::Syntax)),
                _ => {
                    let rest = self.text.get(self.at..).unwrap_or_default();
                    let ends =
                        |byte: &u8| matches!(byte, b',' | b':' | b'}' | b']' | b'"' | b' ' | b'\n' | b'\r' | b'\t');
                    self.at += rest.iter().position(ends).unwrap_or(rest.len()).max(1);
                }
            }
            if open == 0 {
                return Ok(());
            }
        }
    }

    /// Skips a string, from behind its quote.
    fn skip_string(&mut self) -> Result<()> {
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            match memchr::memchr2(b'"', b'\\', rest) {
                Some(offset) if rest.get(offset) == Some(&b'"') => {
                    self.at += offset + 1;
                    return Ok(());
                }
                Some(offset) => self.at += offset + 2,
                None => return Err(self.error(Reason::Syntax)),
            }
        }
    }

    /// Reads an array, from behind its bracket.
    fn array(&mut self, depth: usize) -> Result<()> {
        let start = self.begin(depth)?;
        if self.token() == Some(b']') {
            self.at += 1;
            return self.end(start);
        }
        let mut counter = Counter::default();
        loop {
            let mark = self.out.len();
            self.out.push(0);
            self.out.extend_from_slice(counter.digits());
            self.out.push(0);
            counter.increment();
            self.element(mark, depth)?;
            if self.is_last(b']')? {
                return self.end(start);
            }
        }
    }

    /// Reserves space for the length.
    fn begin(&mut self, depth: usize) -> Result<usize> {
        if depth > DEPTH_MAX {
            return Err(self.error(Reason::Depth));
        }
        let start = self.out.len();
        self.out.extend_from_slice(&[0; 4]);
        Ok(start)
    }

    fn end(&mut self, start: usize) -> Result<()> {
        self.out.push(0);
        self.fill_length(start, self.out.len() - start)
    }

    pub(super) fn fill_length(&mut self, at: usize, length: usize) -> Result<()> {
        let length = i32::try_from(length).map_err(|_| self.error(Reason::Size))?;
        if let Some(slot) = self.out.get_mut(at..at + 4) {
            slot.copy_from_slice(&length.to_le_bytes());
        }
        Ok(())
    }

    /// Consumes the separator after an element: a comma, or `close`.
    #[inline]
    fn is_last(&mut self, close: u8) -> Result<bool> {
        let byte = self.token();
        self.at += 1;
        match byte {
            Some(b',') => Ok(false),
            Some(byte) if byte == close => Ok(true),
            _ => {
                self.at -= 1;
                Err(self.error(Reason::Syntax))
            }
        }
    }

    /// Reads a value, and writes its type to `mark`.
    #[inline]
    fn element(&mut self, mark: usize, depth: usize) -> Result<()> {
        let kind = self.value(depth)?;
        if let Some(slot) = self.out.get_mut(mark) {
            *slot = kind as u8;
        }
        Ok(())
    }

    /// `depth` counts the documents around the value.
    #[inline]
    fn value(&mut self, depth: usize) -> Result<Kind> {
        match self.token() {
            Some(b'"') => {
                self.at += 1;
                self.string_value()?;
                Ok(Kind::String)
            }
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'{') => self.object(depth),
            Some(b'[') => {
                self.at += 1;
                self.array(depth + 1)?;
                Ok(Kind::Array)
            }
            Some(b't') => self.literal(b"true", Kind::Boolean, &[1]),
            Some(b'f') => self.literal(b"false", Kind::Boolean, &[0]),
            Some(b'n') => self.literal(b"null", Kind::Null, &[]),
            _ => Err(self.error(Reason::Syntax)),
        }
    }

    /// Reads a wrapper or a document, from its brace on.
    fn object(&mut self, depth: usize) -> Result<Kind> {
        self.at += 1;
        if self.text.get(self.at..).is_some_and(may_be_wrapper)
            && let Some(kind) = wrapper::read(self, depth)?
        {
            return Ok(kind);
        }
        self.document(depth + 1)?;
        Ok(Kind::Document)
    }

    fn literal(&mut self, word: &[u8], kind: Kind, raw: &[u8]) -> Result<Kind> {
        if !self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            return Err(self.error(Reason::Syntax));
        }
        self.at += word.len();
        self.out.extend_from_slice(raw);
        Ok(kind)
    }

    /// Reads a field's name from behind its quote, with the closing zero. One of two dollar signs
    /// in front is dropped.
    #[inline]
    fn name(&mut self) -> Result<()> {
        let start = self.out.len();
        self.zero_seen = false;
        self.string()?;
        if self.zero_seen {
            return Err(self.error(Reason::ZeroCharacter));
        }
        if self.out.get(start..).is_some_and(|name| name.starts_with(b"$$")) {
            self.out.remove(start);
        }
        self.out.push(0);
        Ok(())
    }

    /// Reads a string from behind its quote, as a BSON string: length, bytes, zero.
    #[inline]
    pub(super) fn string_value(&mut self) -> Result<()> {
        let start = self.out.len();
        self.out.extend_from_slice(&[0; 4]);
        self.string()?;
        self.out.push(0);
        self.fill_length(start, self.out.len() - start - 4)
    }

    /// Reads the characters of a string, from behind its quote.
    #[inline]
    pub(super) fn string(&mut self) -> Result<()> {
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let length = plain_length(rest);
            let (plain, rest) = rest.split_at(length);
            self.out.extend_from_slice(plain);
            self.at += length + 1;
            match rest.first() {
                Some(b'"') => return Ok(()),
                Some(_) => self.escape()?,
                None => return Err(self.error(Reason::Syntax)),
            }
        }
    }

    /// Reads an escape, from behind the backslash.
    fn escape(&mut self) -> Result<()> {
        let byte = match self.text.get(self.at) {
            Some(b'u') => return self.unicode_escape(),
            Some(&byte @ (b'"' | b'\\' | b'/')) => byte,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'b') => 0x08,
            Some(b'f') => 0x0C,
            _ => return Err(self.error(Reason::Syntax)),
        };
        self.at += 1;
        self.out.push(byte);
        Ok(())
    }

    /// Reads `u00e9`, or two of them for characters past U+FFFF. Half of such a pair becomes
    /// U+FFFD.
    fn unicode_escape(&mut self) -> Result<()> {
        let first = self.hex_unit(self.at + 1).ok_or_else(|| self.error(Reason::Syntax))?;
        self.at += 5;
        let mut code = first;
        if (0xD800..0xDC00).contains(&first)
            && self.text.get(self.at..self.at + 2) == Some(b"\\u")
            && let Some(second @ 0xDC00..0xE000) = self.hex_unit(self.at + 2)
        {
            self.at += 6;
            code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
        }
        self.zero_seen |= code == 0;
        let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        self.out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    fn hex_unit(&self, at: usize) -> Option<u32> {
        let digits = self.text.get(at..at + 4)?;
        digits.iter().try_fold(0, |unit, digit| Some(unit << 4 | (*digit as char).to_digit(16)?))
    }

    #[inline]
    fn number(&mut self) -> Result<Kind> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let number = Number::read(rest).ok_or_else(|| self.error(Reason::Syntax))?;
        self.at += number.length;
        Ok(match number.value {
            NumberValue::Int32(number) => {
                self.out.extend_from_slice(&number.to_le_bytes());
                Kind::Int32
            }
            NumberValue::Int64(number) => {
                self.out.extend_from_slice(&number.to_le_bytes());
                Kind::Int64
            }
            NumberValue::Double(number) => {
                self.out.extend_from_slice(&number.to_le_bytes());
                Kind::Double
            }
        })
    }
}

/// Returns whether an object, from behind its brace, begins with a name that begins with one dollar
/// sign.
#[inline]
fn may_be_wrapper(text: &[u8]) -> bool {
    let start = text.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(0);
    matches!(text.get(start..), Some([b'"', b'$', second, ..]) if *second != b'$')
}

/// A number in the text: its type by its notation, and how many bytes it takes.
pub(super) struct Number {
    pub(super) value: NumberValue,
    pub(super) length: usize,
}

#[derive(Clone, Copy)]
pub(super) enum NumberValue {
    Int32(i32),
    Int64(i64),
    Double(f64),
}

impl Number {
    /// Reads the number at the front of `text`; `None` if JSON does not allow it.
    #[inline]
    pub(super) fn read(text: &[u8]) -> Option<Number> {
        let negative = text.first() == Some(&b'-');
        let start = usize::from(negative);
        let mut digits = Digits::default();
        let mut at = digits.read(text, start);
        let whole_length = at - start;
        if whole_length == 0 || whole_length > 1 && text.get(start) == Some(&b'0') {
            return None;
        }
        match text.get(at) {
            Some(b'.' | b'e' | b'E') => {}
            _ => return Some(Number { value: digits.integer(negative, text, at)?, length: at }),
        }
        if text.get(at) == Some(&b'.') {
            let point = at + 1;
            at = digits.read(text, point);
            digits.exponent = -((at - point) as i32);
            if at == point {
                return None;
            }
        }
        if let Some(b'e' | b'E') = text.get(at) {
            return digits.read_exponent(negative, text, at);
        }
        Some(Number { value: digits.double(negative, text, at)?, length: at })
    }
}

/// The digits of a number read so far: `mantissa × 10^exponent`, if there are at most 19.
#[derive(Default)]
struct Digits {
    mantissa: u64,
    count: usize,
    exponent: i32,
}

/// This many digits always fit a `u64`.
const EXACT_DIGITS_MAX: usize = 19;

impl Digits {
    /// Reads digits from `at` on. Returns the position behind them.
    #[inline]
    fn read(&mut self, text: &[u8], mut at: usize) -> usize {
        let start = at;
        while let Some(digit) = text.get(at).map(|byte| byte.wrapping_sub(b'0'))
            && digit < 10
        {
            self.mantissa = self.mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
            at += 1;
        }
        self.count += at - start;
        at
    }

    #[inline]
    fn integer(&self, negative: bool, text: &[u8], end: usize) -> Option<NumberValue> {
        Some(match self.int64(negative) {
            Some(number) => match i32::try_from(number) {
                Ok(number) => NumberValue::Int32(number),
                Err(_) => NumberValue::Int64(number),
            },
            None => NumberValue::Double(parse_double(text, end)?),
        })
    }

    #[inline]
    fn int64(&self, negative: bool) -> Option<i64> {
        if self.count > EXACT_DIGITS_MAX || self.exponent != 0 {
            return None;
        }
        let magnitude = i128::from(self.mantissa);
        i64::try_from(if negative { -magnitude } else { magnitude }).ok()
    }

    /// Reads the number's end from its `e` on. `5e0` is an int64, other numbers with exponents are
    /// doubles.
    fn read_exponent(mut self, negative: bool, text: &[u8], at: usize) -> Option<Number> {
        let has_point = self.exponent != 0;
        let sign = text.get(at + 1).copied();
        let start = at + 1 + usize::from(matches!(sign, Some(b'-' | b'+')));
        let mut power = Digits::default();
        let length = power.read(text, start);
        if length == start {
            return None;
        }
        if !has_point
            && &text[start..length] == b"0"
            && let Some(number) = self.int64(negative)
        {
            return Some(Number { value: NumberValue::Int64(number), length });
        }
        let magnitude = if power.count < 8 { power.mantissa as i32 } else { i32::MAX / 2 };
        self.exponent += if sign == Some(b'-') { -magnitude } else { magnitude };
        Some(Number { value: self.double(negative, text, length)?, length })
    }

    /// For most numbers, mantissa and power of ten are exact doubles, and so one operation gives
    /// the exact result; the standard library reads the others.
    #[inline]
    fn double(&self, negative: bool, text: &[u8], end: usize) -> Option<NumberValue> {
        let exact = self.count <= EXACT_DIGITS_MAX && self.mantissa <= 1 << 53;
        let number = match usize::try_from(self.exponent.unsigned_abs()).ok().and_then(|power| POWERS_OF_TEN.get(power))
        {
            Some(power) if exact => {
                let mantissa = self.mantissa as f64;
                let magnitude = if self.exponent < 0 { mantissa / power } else { mantissa * power };
                if negative { -magnitude } else { magnitude }
            }
            _ => parse_double(text, end)?,
        };
        Some(NumberValue::Double(number))
    }
}

/// The powers of ten that are exact doubles.
const POWERS_OF_TEN: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

#[cold]
fn parse_double(text: &[u8], end: usize) -> Option<f64> {
    std::str::from_utf8(text.get(..end)?).ok()?.parse().ok()
}
