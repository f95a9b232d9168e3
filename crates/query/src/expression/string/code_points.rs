//! Code points of text that need not be UTF-8: the first byte determines the length of one,
//! whatever follows.

use error::{Code, Error, Result};

/// Long texts are processed in parts of this size.
const PART_BYTES: usize = 64 << 10;

/// Returns whether a byte continues a code point.
pub(super) fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// Returns the number of code points: bytes that begin one.
pub(crate) fn count(text: &[u8]) -> usize {
    let count = |part: &[u8]| {
        steps::bytes(part.len());
        part.iter().filter(|byte| !is_continuation(**byte)).count()
    };
    text.chunks(PART_BYTES).map(count).sum()
}

/// Returns the length of a code point by its first byte; `None` for a byte that begins none.
fn length(first: u8) -> Option<usize> {
    match first.leading_ones() {
        0 => Some(1),
        ones @ 2..=4 => Some(ones as usize),
        _ => None,
    }
}

/// Returns the position `count` code points after `at`, at most the end of the text. `codes`: for a
/// continuation byte where a code point must begin, and for a byte that begins none.
fn advance(text: &[u8], mut at: usize, count: usize, codes: [i32; 2]) -> Result<usize> {
    let invalid = |code| Error::new(Code(code), "$substrCP: invalid UTF-8 string");
    for _ in 0..count {
        steps::step();
        let Some(&first) = text.get(at) else { break };
        if is_continuation(first) {
            return Err(invalid(codes[0]));
        }
        at += length(first).ok_or_else(|| invalid(codes[1]))?;
    }
    Ok(at.min(text.len()))
}

/// Returns a number of code points after `start` others. Fails with 34456 to 34459 for bytes that
/// cannot begin a code point there.
pub(super) fn part(text: &[u8], start: usize, letters: usize) -> Result<&[u8]> {
    let from = advance(text, 0, start, [34456, 34457])?;
    let to = advance(text, from, letters, [34458, 34459])?;
    Ok(text.get(from..to).unwrap_or_default())
}

/// Returns the position of each code point, for `$indexOfCP`. Fails with 40095 for a continuation
/// byte where a code point must begin.
pub(super) fn starts(text: &[u8]) -> Result<Vec<usize>> {
    let mut starts = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&first) = text.get(at) {
        if is_continuation(first) {
            return Err(Error::new(Code(40095), "$indexOfCP found bad UTF-8 in the input"));
        }
        steps::step();
        starts.push(at);
        at += length(first).unwrap_or(1);
    }
    Ok(starts)
}

/// Returns the code points that `$trim` removes. Fails with 50697 and 50698 for text that is not
/// UTF-8.
pub(super) fn all<'t>(name: &str, mut text: &'t [u8]) -> Result<Vec<&'t [u8]>> {
    let invalid = |code, what: &str| {
        let message = format!("Failed to parse \"chars\" argument to {name}: Detected invalid UTF-8. {what}");
        Err(Error::new(Code(code), message))
    };
    let mut letters = Vec::with_capacity(text.len());
    while let Some(&first) = text.first() {
        if is_continuation(first) {
            return invalid(50698, "Got continuation byte when expecting the start of a new code point.");
        }
        let Some((letter, rest)) = text.split_at_checked(length(first).unwrap_or(1)) else {
            return invalid(50697, "Missing expected continuation byte at end of string.");
        };
        steps::step();
        letters.push(letter);
        text = rest;
    }
    Ok(letters)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn letters_of_what_is_not_utf8() {
        assert_eq!(count(b"a\xE9b"), 3);
        assert_eq!(part(b"a\xE9b", 1, 2).unwrap(), b"\xE9b");
        assert_eq!(part(b"a\xE9b", 2, 1).unwrap(), b"");
        assert_eq!(part(b"\x80", 0, 1).unwrap_err().code(), Code(34458));
        assert_eq!(part(b"\x80a", 1, 1).unwrap_err().code(), Code(34456));
        assert_eq!(part(b"\xFF", 0, 1).unwrap_err().code(), Code(34459));
        assert_eq!(part(b"\xFFa", 1, 1).unwrap_err().code(), Code(34457));
        assert_eq!(starts(b"a\xE9b").unwrap(), [0, 1]);
        assert_eq!(starts(b"a\x80").unwrap_err().code(), Code(40095));
        assert_eq!(all("$trim", b"a\xE9b").unwrap_err().code(), Code(50697));
        assert_eq!(all("$trim", b"a\x80").unwrap_err().code(), Code(50698));
    }

    proptest! {
        /// Agrees with the code points of valid UTF-8.
        #[test]
        fn letters_of_utf8(text in "[a\0é€😀]{0,8}", start in 0usize..10, length in 0usize..10) {
            prop_assert_eq!(count(text.as_bytes()), text.chars().count());
            let expected: String = text.chars().skip(start).take(length).collect();
            prop_assert_eq!(part(text.as_bytes(), start, length).unwrap(), expected.as_bytes());
            let expected: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            prop_assert_eq!(starts(text.as_bytes()).unwrap(), expected);
            let expected: Vec<String> = text.chars().map(String::from).collect();
            let found: Vec<&[u8]> = all("$trim", text.as_bytes()).unwrap();
            prop_assert!(found.into_iter().eq(expected.iter().map(String::as_bytes)));
        }

        #[test]
        fn no_bytes_break_it(text in prop::collection::vec(any::<u8>(), 0..12), start in 0usize..10, length in 0usize..10) {
            let _ = (count(&text), part(&text, start, length), starts(&text), all("$trim", &text));
        }
    }
}
