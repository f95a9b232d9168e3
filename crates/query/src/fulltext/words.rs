//! From a text to its terms: words are cut at delimiters, stop words left out, the rest folded, stemmed and stripped of diacritics.

use super::Language;
use super::characters::{self, BYTE_ORDER_MARK, Folding};

/// What makes a difference between two terms besides their letters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sensitivity {
    pub case: bool,
    pub diacritics: bool,
}

impl Sensitivity {
    pub fn any(self) -> bool {
        self.case || self.diacritics
    }
}

/// The terms of a text, in order.
pub struct Terms<'t> {
    rest: &'t str,
    language: Language,
    sensitivity: Sensitivity,
    with_stop_words: bool,
}

/// The words of a text as [`terms`] has them, stop words among them.
pub fn all_terms(text: &str, language: Language, sensitivity: Sensitivity) -> Terms<'_> {
    Terms { rest: text, language, sensitivity, with_stop_words: true }
}

/// The terms of a text in that language.
pub fn terms(text: &str, language: Language, sensitivity: Sensitivity) -> Terms<'_> {
    Terms { rest: text, language, sensitivity, with_stop_words: false }
}

impl Iterator for Terms<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        loop {
            let word = self.word()?;
            if let Some(term) = self.term(word) {
                return Some(term);
            }
        }
    }
}

impl<'t> Terms<'t> {
    fn word(&mut self) -> Option<&'t str> {
        let apostrophes_join = self.language == Language::English;
        let ends = |character| characters::is_delimiter(character, apostrophes_join);
        let rest = self.rest.trim_start_matches(ends);
        if rest.is_empty() {
            return None;
        }
        let (word, rest) = rest.split_at(rest.find(ends).unwrap_or(rest.len()));
        self.rest = rest;
        Some(word)
    }

    /// `None` for a stop word.
    fn term(&self, word: &str) -> Option<String> {
        if word.contains(BYTE_ORDER_MARK) {
            let word = word.replace(BYTE_ORDER_MARK, "");
            return if word.is_empty() { None } else { self.term(&word) };
        }
        let folded = characters::fold(word, folding(self.language));
        // Stop words have diacritics, and so have the endings that stemming looks for.
        if !self.with_stop_words && self.language.is_stop_word(&folded) {
            return None;
        }
        let stem = self.language.stem(if self.sensitivity.case { word } else { &folded });
        Some(if self.sensitivity.diacritics {
            stem.into_owned()
        } else {
            characters::strip_diacritics(&stem).into_owned()
        })
    }
}

/// The text as phrases are looked for in it: whole, with its delimiters and stop words.
pub fn phrase_form(text: &str, language: Language, sensitivity: Sensitivity) -> String {
    let text = if sensitivity.case { text.to_owned() } else { characters::fold(text, folding(language)) };
    if sensitivity.diacritics { text } else { characters::strip_diacritics(&text).into_owned() }
}

fn folding(language: Language) -> Folding {
    if language == Language::Turkish { Folding::Turkish } else { Folding::Usual }
}
