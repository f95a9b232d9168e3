//! Characters: delimiters, case folding, and removal of diacritics.

mod tables;

use icu_normalizer::{ComposingNormalizer, DecomposingNormalizer};
use std::borrow::Cow;

/// How case folding treats the letter i.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folding {
    Usual,
    /// I and ı are one letter, İ and i another.
    Turkish,
}

/// The byte order mark, which is not part of a text.
pub const BYTE_ORDER_MARK: char = '\u{feff}';

/// Ranges of code points that got a lower case after version 3 of text indexes was made. Their
/// letters do not fold.
const LATER_LETTERS: [(u32, u32); 12] = [
    (0x1c80, 0x1cbf),
    (0x2c2f, 0x2c2f),
    (0x2c5f, 0x2c5f),
    (0xa7ae, 0xa7ae),
    (0xa7b8, 0xa7f6),
    (0x104b0, 0x104fb),
    (0x10570, 0x105bc),
    (0x10d50, 0x10d85),
    (0x16e40, 0x16e7f),
    (0x16ea0, 0x16eff),
    (0x1df00, 0x1dfff),
    (0x1e900, 0x1e943),
];

/// Letters that got a decomposition in Unicode since then.
const LATER_COMPOSITIONS: [char; 2] = ['\u{105c9}', '\u{105e4}'];

/// Lower-case letters that fold to others.
const VARIANTS: [(char, char); 14] = [
    ('µ', 'μ'),
    ('ſ', 's'),
    ('\u{345}', 'ι'),
    ('ς', 'σ'),
    ('ϐ', 'β'),
    ('ϑ', 'θ'),
    ('ϕ', 'φ'),
    ('ϖ', 'π'),
    ('ϰ', 'κ'),
    ('ϱ', 'ρ'),
    ('ϵ', 'ε'),
    ('ẛ', 'ṡ'),
    ('\u{1fbe}', 'ι'),
    ('ẞ', 'ß'),
];

/// Returns whether a character is a delimiter. In English texts an apostrophe is part of its word.
pub fn is_delimiter(character: char, apostrophes_join: bool) -> bool {
    match character {
        '\'' => !apostrophes_join,
        'a'..='z' | 'A'..='Z' | '0'..='9' => false,
        _ => is_in_ranges(&tables::DELIMITERS, character),
    }
}

/// Folds the letters of a text to one case.
pub fn fold(text: &str, folding: Folding) -> String {
    text.chars().map(|character| folded(character, folding)).collect()
}

fn folded(character: char, folding: Folding) -> char {
    match character {
        'I' if folding == Folding::Turkish => 'ı',
        'İ' if folding == Folding::Turkish => 'i',
        '\0'..='\x7f' => character.to_ascii_lowercase(),
        // Cherokee letters fold to those that existed first, which are upper case now.
        '\u{13a0}'..='\u{13f5}' => character,
        '\u{13f8}'..='\u{13fd}' => shifted(character, 0x13f8, 0x13f0),
        '\u{ab70}'..='\u{abbf}' => shifted(character, 0xab70, 0x13a0),
        _ if is_in_ranges(&LATER_LETTERS, character) => character,
        _ => match VARIANTS.iter().find(|(variant, _)| *variant == character) {
            Some(&(_, letter)) => letter,
            None => lower(character),
        },
    }
}

fn shifted(character: char, from: u32, to: u32) -> char {
    char::from_u32(u32::from(character) - from + to).unwrap_or(character)
}

fn lower(character: char) -> char {
    let mut lower = character.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(letter), None) => letter,
        _ => character,
    }
}

/// Removes the diacritics of a text: marks are dropped, letters replaced by their base letter.
pub fn strip_diacritics(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().filter_map(stripped).collect())
}

/// Returns the base letter of a letter with diacritics, if it is a single one; `None` for a
/// combining mark.
fn stripped(character: char) -> Option<char> {
    if character.is_ascii() || LATER_COMPOSITIONS.contains(&character) {
        return Some(character);
    }
    if is_in_ranges(&tables::DIACRITICS, character) {
        return None;
    }
    let decomposed = DecomposingNormalizer::new_nfd().normalize_iter(std::iter::once(character));
    let remaining = decomposed.filter(|&part| !is_in_ranges(&tables::DIACRITICS, part));
    let composer = ComposingNormalizer::new_nfc();
    let mut composed = composer.normalize_iter(remaining);
    match (composed.next(), composed.next()) {
        (Some(letter), None) => Some(letter),
        _ => Some(character),
    }
}

fn is_in_ranges(ranges: &[(u32, u32)], character: char) -> bool {
    let code = u32::from(character);
    let at = ranges.partition_point(|&(_, last)| last < code);
    ranges.get(at).is_some_and(|&(first, _)| first <= code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_and_stripping_do_not_change() {
        let (mut folds, mut strips, mut delimiters) = (0, 0, 0);
        let mut checksum = 0_u64;
        for character in ('\x01'..=char::MAX).filter(|&character| character != BYTE_ORDER_MARK) {
            let fold = folded(character, Folding::Usual);
            folds += usize::from(fold != character);
            let strip = (!is_delimiter(character, false)).then(|| stripped(character));
            strips += usize::from(strip.is_some_and(|strip| strip != Some(character)));
            delimiters += usize::from(strip.is_none());
            let result = strip.map_or(1, |strip| strip.map_or(2, u64::from));
            checksum = (checksum ^ u64::from(fold) << 32 ^ result).wrapping_mul(0x0100_0000_01b3);
        }
        assert_eq!((folds, strips, delimiters, checksum), (1245, 2683, 3030, 12_342_063_833_699_475_430));
    }
}
