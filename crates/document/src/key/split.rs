//! Splitting a row of keys: keys are prefix-free, so each key's end is known.

use super::{END, lead};
use crate::DEPTH_MAX;

/// Returns the first of a row of keys and the rest. `inverted`: it is a descending field's. Returns
/// `None` for malformed bytes.
pub fn split(keys: &[u8], inverted: bool) -> Option<(&[u8], &[u8])> {
    let mut walk = Walk { bytes: keys, at: 0, flip: if inverted { 0xFF } else { 0 } };
    walk.value(0)?;
    keys.split_at_checked(walk.at)
}

struct Walk<'k> {
    bytes: &'k [u8],
    at: usize,
    /// The mask that inverts bytes.
    flip: u8,
}

impl Walk<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)? ^ self.flip;
        self.at += 1;
        Some(byte)
    }

    fn skip(&mut self, count: usize) -> Option<()> {
        self.at = self.at.checked_add(count).filter(|at| *at <= self.bytes.len())?;
        Some(())
    }

    /// Skips to behind the next end mark.
    fn text(&mut self) -> Option<()> {
        let end = END ^ self.flip;
        let length = memchr::memchr(end, self.bytes.get(self.at..)?)?;
        self.skip(length + 1)
    }

    fn length(&mut self) -> Option<usize> {
        let mut length = 0;
        for _ in 0..4 {
            length = length << 8 | usize::from(self.byte()?);
        }
        Some(length)
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        match self.byte()? {
            lead::MIN_KEY | lead::UNDEFINED | lead::NULL | lead::NAN | lead::FALSE | lead::TRUE | lead::MAX_KEY => {
                Some(())
            }
            number @ lead::NUMBER_FIRST..=lead::NUMBER_LAST => self.number(number),
            lead::STRING | lead::CODE => self.text(),
            lead::DOCUMENT => self.fields(depth + 1),
            lead::ARRAY => self.items(depth + 1),
            lead::BINARY => {
                let length = self.length()?;
                self.skip(length + 1)
            }
            lead::OBJECT_ID => self.skip(12),
            lead::DATE | lead::TIMESTAMP => self.skip(8),
            lead::REGEX => self.text().and_then(|()| self.text()),
            lead::DB_POINTER => {
                let length = self.length()?;
                self.skip(length + 12)
            }
            lead::CODE_WITH_SCOPE => self.text().and_then(|()| self.fields(depth + 1)),
            _ => None,
        }
    }

    /// Skips the bytes behind a number's class; see `number.rs`.
    fn number(&mut self, first: u8) -> Option<()> {
        /// A scale of 2 bytes and a coefficient of 15.
        const TAIL: usize = 17;
        const COEFFICIENT: usize = 15;
        let negative = first < lead::ZERO;
        let goes_on = |last: u8| (last ^ if negative { 0xFF } else { 0 }) & 1 == 1;
        match first.abs_diff(lead::ZERO) {
            0 | 11 => Some(()),
            1 | 10 => {
                self.skip(7)?;
                if goes_on(self.byte()?) { self.skip(TAIL) } else { Some(()) }
            }
            class => {
                self.skip(usize::from(class) - 2)?;
                if !goes_on(self.byte()?) {
                    return Some(());
                }
                self.skip(6)?;
                if goes_on(self.byte()?) { self.skip(COEFFICIENT) } else { Some(()) }
            }
        }
    }

    fn fields(&mut self, depth: usize) -> Option<()> {
        if depth > DEPTH_MAX {
            return self.text();
        }
        while self.byte()? != END {
            self.text()?;
            self.value(depth)?;
        }
        Some(())
    }

    fn items(&mut self, depth: usize) -> Option<()> {
        if depth > DEPTH_MAX {
            return self.text();
        }
        while self.byte()? != END {
            self.at -= 1;
            self.value(depth)?;
        }
        Some(())
    }
}
