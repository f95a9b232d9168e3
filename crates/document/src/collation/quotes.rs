//! Quotation marks as in ICU 57.
//!
//! Newer root orders treat marks of one kind as equal: `’` and `'`, `“` and `"`. In a 6.0 server
//! each has a position of its own behind the ASCII mark, so that a search for `O'Brien` with
//! strength 1 does not find `O’Brien`.

use std::borrow::Cow;

/// The character with the highest weight of all: a number of them behind a mark distinguishes and
/// orders it.
const HIGHEST: char = '\u{FFFF}';

/// Marks in their order behind `'`, and behind `"`.
const SINGLE: [char; 4] = ['‘', '’', '‚', '‛'];
const DOUBLE: [char; 8] = ['“', '”', '„', '‟', '⹂', '〝', '〞', '〟'];

/// Returns a text that compares in today's root order as `text` does in that of ICU 57.
pub(super) fn apart(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || !text.contains(|character| position(character).is_some()) {
        return Cow::Borrowed(text);
    }
    let mut apart = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match position(character) {
            Some((mark, behind)) => {
                apart.push(mark);
                apart.extend(std::iter::repeat_n(HIGHEST, behind));
            }
            None => apart.push(character),
        }
    }
    Cow::Owned(apart)
}

/// Returns the ASCII mark that a mark follows, and its position there.
fn position(character: char) -> Option<(char, usize)> {
    if !('‘'..='〟').contains(&character) {
        return None;
    }
    let behind = |mark, marks: &[char]| marks.iter().position(|other| *other == character).map(|at| (mark, at + 1));
    behind('\'', &SINGLE).or_else(|| behind('"', &DOUBLE))
}
