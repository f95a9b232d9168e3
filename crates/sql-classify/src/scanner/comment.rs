//! White space and comments. The server executes the text of `/*! … */`.

use super::{Scanner, Unclear};
use crate::hint::Hint;

impl<'a> Scanner<'a> {
    /// Skips white space and comments. Returns whether there were any.
    pub(super) fn skip_space(&mut self) -> Result<bool, Unclear> {
        let start = self.at;
        while let Some(byte) = self.peek(0) {
            match byte {
                b' ' | b'\t' | b'\n' | 0x0B | 0x0C | b'\r' => self.at += 1,
                0..=0x1F | 0x7F => return Err(Unclear::ControlCharacter),
                b'#' => self.skip_line(1)?,
                b'-' if self.peek(1) == Some(b'-') && self.peek(2).is_none_or(|next| next <= b' ' || next == 0x7F) => {
                    self.skip_line(2)?;
                }
                b'/' if self.peek(1) == Some(b'*') => self.skip_comment()?,
                b'*' if self.is_in_executable_comment && self.peek(1) == Some(b'/') => {
                    self.is_in_executable_comment = false;
                    self.at += 2;
                }
                _ => break,
            }
        }
        Ok(self.at > start)
    }

    /// Skips to the end of the line. A zero byte would end the comment, too.
    fn skip_line(&mut self, marker: usize) -> Result<(), Unclear> {
        let rest = &self.text.as_bytes()[self.at..];
        let length = memchr::memchr2(b'\n', 0, rest).unwrap_or(rest.len());
        if rest.get(length) == Some(&0) {
            return Err(Unclear::ControlCharacter);
        }
        self.read_hint(self.at + marker, self.at + length);
        self.at += length;
        Ok(())
    }

    fn skip_comment(&mut self) -> Result<(), Unclear> {
        let rest = &self.text.as_bytes()[self.at + 2..];
        let (for_mariadb, marker) = match rest {
            [b'!', ..] => (false, 1),
            [b'M', b'!', ..] => (true, 2),
            _ => return self.skip_plain_comment(),
        };
        let digits = rest[marker..].iter().take(6).take_while(|byte| byte.is_ascii_digit()).count();
        self.at += 2 + marker;
        if digits < 5 {
            self.is_in_executable_comment = true;
            return Ok(());
        }
        let version = self.text[self.at..self.at + digits].parse().unwrap_or(u32::MAX);
        self.at += digits;
        if self.is_executed(version, for_mariadb)? {
            self.is_in_executable_comment = true;
            return Ok(());
        }
        self.skip_nested_comment()
    }

    /// Returns whether the server executes the text of a version comment. MariaDB does not execute
    /// comments for MySQL 5.7 to 9.
    fn is_executed(&self, version: u32, for_mariadb: bool) -> Result<bool, Unclear> {
        let is_for_mysql = !for_mariadb && (50700..=99999).contains(&version);
        match self.lexis.server_version {
            _ if is_for_mysql => Ok(false),
            0 if version >= 100_000 => Err(Unclear::VersionComment),
            0 => Ok(true),
            server => Ok(version <= server),
        }
    }

    fn skip_plain_comment(&mut self) -> Result<(), Unclear> {
        let start = self.at + 2;
        let end = memchr::memmem::find(&self.text.as_bytes()[start..], b"*/").ok_or(Unclear::Unterminated)?;
        self.read_hint(start, start + end);
        self.at = start + end + 2;
        Ok(())
    }

    /// Skips the rest of a version comment, which may contain a comment.
    fn skip_nested_comment(&mut self) -> Result<(), Unclear> {
        let mut is_nested = false;
        let bytes = self.text.as_bytes();
        while let Some(next) = memchr::memchr2(b'*', b'/', &bytes[self.at..]) {
            self.at += next;
            match (&bytes[self.at..], is_nested) {
                ([b'/', b'*', ..], false) => is_nested = true,
                ([b'*', b'/', ..], true) => is_nested = false,
                ([b'*', b'/', ..], false) => {
                    self.at += 2;
                    return Ok(());
                }
                _ => {
                    self.at += 1;
                    continue;
                }
            }
            self.at += 2;
        }
        Err(Unclear::Unterminated)
    }

    fn read_hint(&mut self, start: usize, end: usize) {
        if let Some(hint) = self.text.get(start..end).and_then(Hint::parse) {
            self.hint = Some(hint);
        }
    }
}
