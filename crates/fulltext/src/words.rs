//! From a text to its terms: split at delimiters, drop stop words, fold, stem and remove
//! diacritics.

use super::Language;
use super::characters::{self, BYTE_ORDER_MARK, Folding};

/// Whether case and diacritics distinguish terms.
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

/// Rules for splitting a text into terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextRules {
    pub language: Language,
    /// Whether only ASCII has delimiters and case, and nothing has diacritics, as in indexes before
    /// version 3.
    pub is_ascii: bool,
    /// Whether the language has stop words: version 1 knows a language's stop words by its long
    /// name only.
    pub has_stop_words: bool,
}

impl TextRules {
    /// Returns the rules of an index version for a language of this name.
    pub fn for_version(version: i64, language: Language, name: &str) -> TextRules {
        TextRules { language, is_ascii: version < 3, has_stop_words: version > 1 || name.len() > 2 }
    }
}

/// An iterator over the terms of a text, in order.
pub struct Terms<'t> {
    rest: &'t str,
    rules: TextRules,
    sensitivity: Sensitivity,
    with_stop_words: bool,
}

/// Returns the words of a text like [`terms`], including stop words.
pub fn all_terms(text: &str, rules: TextRules, sensitivity: Sensitivity) -> Terms<'_> {
    Terms { rest: text, rules, sensitivity, with_stop_words: true }
}

/// Returns the terms of a text in that language.
pub fn terms(text: &str, rules: TextRules, sensitivity: Sensitivity) -> Terms<'_> {
    Terms { rest: text, rules, sensitivity, with_stop_words: false }
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
        let TextRules { language, is_ascii, .. } = self.rules;
        let apostrophes_join = language == Language::English;
        let ends = |character| match is_ascii {
            true => is_ascii_delimiter(character, apostrophes_join),
            false => characters::is_delimiter(character, apostrophes_join),
        };
        let rest = self.rest.trim_start_matches(ends);
        if rest.is_empty() {
            return None;
        }
        steps::step();
        let (word, rest) = rest.split_at(rest.find(ends).unwrap_or(rest.len()));
        self.rest = rest;
        Some(word)
    }

    /// Returns the term of a word, or `None` for a stop word.
    fn term(&self, word: &str) -> Option<String> {
        if self.rules.is_ascii {
            let folded = word.to_ascii_lowercase();
            if self.rules.has_stop_words && !self.with_stop_words && self.rules.language.is_stop_word(&folded) {
                return None;
            }
            let word = if self.sensitivity.case { word } else { &folded };
            return Some(self.rules.language.stem(word).into_owned());
        }
        if word.contains(BYTE_ORDER_MARK) {
            let word = word.replace(BYTE_ORDER_MARK, "");
            return if word.is_empty() { None } else { self.term(&word) };
        }
        steps::steps(word.len() / 8);
        let folded = characters::fold(word, folding_of(self.rules.language));
        // Stop words contain diacritics, and so do the endings that the stemmer removes.
        if !self.with_stop_words && self.rules.language.is_stop_word(&folded) {
            return None;
        }
        let stem = self.rules.language.stem(if self.sensitivity.case { word } else { &folded });
        Some(if self.sensitivity.diacritics {
            stem.into_owned()
        } else {
            characters::strip_diacritics(&stem).into_owned()
        })
    }
}

/// Returns a text in the form in which phrases are searched: whole, with its delimiters and stop
/// words.
pub fn phrase_form(text: &str, rules: TextRules, sensitivity: Sensitivity) -> String {
    if rules.is_ascii {
        return if sensitivity.case { text.to_owned() } else { text.to_ascii_lowercase() };
    }
    steps::steps(text.len() / 8);
    // Phrases in Turkish are compared without regard to case, because of its two letters i.
    let text = if sensitivity.case && rules.language != Language::Turkish {
        text.to_owned()
    } else {
        characters::fold(text, folding_of(rules.language))
    };
    if sensitivity.diacritics { text } else { characters::strip_diacritics(&text).into_owned() }
}

/// Returns whether a character is a delimiter in indexes before version 3.
fn is_ascii_delimiter(character: char, apostrophes_join: bool) -> bool {
    match character {
        '\'' => !apostrophes_join,
        '_' => false,
        '\t'..='\r' => true,
        character => character == ' ' || character.is_ascii_punctuation(),
    }
}

fn folding_of(language: Language) -> Folding {
    if language == Language::Turkish { Folding::Turkish } else { Folding::Usual }
}
