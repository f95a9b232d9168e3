//! Strings, quoted names and numbers.

use super::{Charset, DoubleQuotes, Scanner, TokenKind, Unclear, is_name_byte};

impl Scanner<'_> {
    /// Scans a string. A quote in it is doubled, or follows a backslash.
    pub(super) fn scan_string(&mut self, quote: u8) -> Result<TokenKind, Unclear> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        self.at += 1;
        loop {
            let rest = &bytes[self.at..];
            let next = match self.lexis.plain_backslashes {
                true => memchr::memchr(quote, rest),
                false => memchr::memchr2(quote, b'\\', rest),
            };
            self.at += next.ok_or(Unclear::Unterminated)?;
            if bytes[self.at] == b'\\' {
                self.at += 2;
                if self.at >= bytes.len() {
                    return Err(Unclear::Unterminated);
                }
            } else if bytes.get(self.at + 1) == Some(&quote) {
                self.at += 2;
            } else {
                self.at += 1;
                break;
            }
        }
        if self.lexis.charset == Charset::Other && !bytes[start..self.at].is_ascii() {
            return Err(Unclear::Charset);
        }
        Ok(TokenKind::String)
    }

    pub(super) fn scan_double_quoted(&mut self) -> Result<TokenKind, Unclear> {
        match self.lexis.double_quotes {
            DoubleQuotes::Strings => self.scan_string(b'"'),
            DoubleQuotes::Names => self.scan_name(b'"'),
            DoubleQuotes::Unknown => {
                let start = self.at;
                self.scan_name(b'"')?;
                match self.lexis.plain_backslashes || !self.text[start..self.at].contains('\\') {
                    true => Ok(TokenKind::NameOrString),
                    false => Err(Unclear::DoubleQuotes),
                }
            }
        }
    }

    /// Scans a quoted name. A quote in it is doubled.
    pub(super) fn scan_name(&mut self, quote: u8) -> Result<TokenKind, Unclear> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        self.at += 1;
        loop {
            self.at += memchr::memchr(quote, &bytes[self.at..]).ok_or(Unclear::Unterminated)?;
            if bytes.get(self.at + 1) != Some(&quote) {
                break;
            }
            self.at += 2;
        }
        self.at += 1;
        let name = &bytes[start..self.at];
        if self.lexis.charset != Charset::Utf8 && !name.is_ascii() {
            return Err(Unclear::Charset);
        }
        if name.contains(&0) { Err(Unclear::ControlCharacter) } else { Ok(TokenKind::Name) }
    }

    /// Scans `N'…'`, `X'…'` or `B'…'`.
    pub(super) fn scan_prefixed_string(&mut self, prefix: u8) -> Result<TokenKind, Unclear> {
        self.at += 1;
        let start = self.at + 1;
        self.scan_string(b'\'')?;
        let digits = &self.text.as_bytes()[start..self.at - 1];
        let is_valid = match prefix {
            b'n' | b'N' => return Ok(TokenKind::String),
            b'x' | b'X' => digits.len().is_multiple_of(2) && digits.iter().all(u8::is_ascii_hexdigit),
            _ => digits.iter().all(|digit| matches!(digit, b'0' | b'1')),
        };
        if is_valid { Ok(TokenKind::Number) } else { Err(Unclear::Literal) }
    }

    /// Scans a number, or a name that begins with a digit.
    pub(super) fn scan_number_or_word(&mut self) -> Result<TokenKind, Unclear> {
        let rest = &self.text.as_bytes()[self.at..];
        let count =
            |from: usize, is_part: fn(&u8) -> bool| rest[from..].iter().take_while(|byte| is_part(byte)).count();
        let radix_digits = match rest {
            [b'0', b'x', ..] => count(2, u8::is_ascii_hexdigit),
            [b'0', b'b', ..] => count(2, |byte| matches!(byte, b'0' | b'1')),
            _ => 0,
        };
        if matches!(rest, [b'0', b'x' | b'b', ..]) {
            let end = 2 + radix_digits;
            if radix_digits == 0 || rest.get(end).is_some_and(|&byte| is_name_byte(byte)) {
                return self.scan_word();
            }
            self.at += end;
            return Ok(TokenKind::Number);
        }
        let digits = count(0, u8::is_ascii_digit);
        match rest.get(digits) {
            Some(b'.') => {
                self.at += digits;
                self.scan_fraction();
                Ok(TokenKind::Number)
            }
            Some(b'e' | b'E') => {
                let sign = usize::from(matches!(rest.get(digits + 1), Some(b'+' | b'-')));
                let exponent = count((digits + 1 + sign).min(rest.len()), u8::is_ascii_digit);
                if exponent == 0 {
                    return self.scan_word();
                }
                self.at += digits + 1 + sign + exponent;
                Ok(TokenKind::Number)
            }
            Some(&byte) if is_name_byte(byte) => self.scan_word(),
            _ => {
                self.at += digits;
                Ok(TokenKind::Number)
            }
        }
    }

    /// Scans a period, digits after it, and an exponent.
    pub(super) fn scan_fraction(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        let digits =
            |from: usize| rest.get(from..).unwrap_or_default().iter().take_while(|b| b.is_ascii_digit()).count();
        let mut end = 1 + digits(1);
        if matches!(rest.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(rest.get(end + 1), Some(b'+' | b'-')));
            let exponent = digits(end + 1 + sign);
            if exponent > 0 {
                end += 1 + sign + exponent;
            }
        }
        self.at += end;
    }
}
