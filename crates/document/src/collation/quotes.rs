//! Quotation marks as ICU 57 has them.
//!
//! Since then the root order takes marks of one kind for one another: `’` for `'`, `“` for `"`. In a 6.0 server each has a
//! place of its own behind the ASCII mark, so that a search for `O'Brien` with strength 1 does not find `O’Brien`.

use std::borrow::Cow;

/// The character with the highest weight of all: as many as come behind a mark keep it apart, and in this order.
const HIGHEST: char = '\u{FFFF}';

/// Marks in their order behind `'`, and behind `"`.
const SINGLE: [char; 4] = ['‘', '’', '‚', '‛'];
const DOUBLE: [char; 8] = ['“', '”', '„', '‟', '⹂', '〝', '〞', '〟'];

/// Returns a text that compares in the root order of today as `text` does in that of ICU 57.
pub(super) fn apart(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || !text.contains(|character| place(character).is_some()) {
        return Cow::Borrowed(text);
    }
    let mut apart = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match place(character) {
            Some((mark, behind)) => {
                apart.push(mark);
                apart.extend(std::iter::repeat_n(HIGHEST, behind));
            }
            None => apart.push(character),
        }
    }
    Cow::Owned(apart)
}

/// The ASCII mark that a mark comes behind, and its place there.
fn place(character: char) -> Option<(char, usize)> {
    if !('‘'..='〟').contains(&character) {
        return None;
    }
    let behind = |mark, marks: &[char]| marks.iter().position(|other| *other == character).map(|at| (mark, at + 1));
    behind('\'', &SINGLE).or_else(|| behind('"', &DOUBLE))
}
