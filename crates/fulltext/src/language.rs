//! The languages of text indexes: their names, stop words and stemmers.

use super::{stem, stop_words};
use std::borrow::Cow;

/// A language whose stemmer is applied to words; [`Language::None`] has neither a stemmer nor stop
/// words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    None,
    Danish,
    Dutch,
    English,
    Finnish,
    French,
    German,
    Hungarian,
    Italian,
    Norwegian,
    Portuguese,
    Romanian,
    Russian,
    Spanish,
    Swedish,
    Turkish,
}

/// Name, short name, language.
const NAMES: [(&str, &str, Language); 16] = [
    ("none", "none", Language::None),
    ("danish", "da", Language::Danish),
    ("dutch", "nl", Language::Dutch),
    ("english", "en", Language::English),
    ("finnish", "fi", Language::Finnish),
    ("french", "fr", Language::French),
    ("german", "de", Language::German),
    ("hungarian", "hu", Language::Hungarian),
    ("italian", "it", Language::Italian),
    ("norwegian", "nb", Language::Norwegian),
    ("portuguese", "pt", Language::Portuguese),
    ("romanian", "ro", Language::Romanian),
    ("russian", "ru", Language::Russian),
    ("spanish", "es", Language::Spanish),
    ("swedish", "sv", Language::Swedish),
    ("turkish", "tr", Language::Turkish),
];

impl Language {
    /// Returns the language of that name, ignoring case.
    pub fn named(name: &str) -> Option<Language> {
        let matches = |candidate: &str| candidate.eq_ignore_ascii_case(name);
        NAMES.iter().find(|(long, short, _)| matches(long) || matches(short)).map(|&(_, _, language)| language)
    }

    /// Returns the language of that name, or [`Language::None`] if the name is unknown, as in
    /// indexes of version 1.
    pub fn named_or_none(name: &str) -> Language {
        Language::named(name).unwrap_or(Language::None)
    }

    /// Returns whether a word, in lower case, is a stop word.
    pub fn is_stop_word(self, word: &str) -> bool {
        stop_words::of(self).is_some_and(|words| words.contains(word))
    }

    /// Returns the stem of a word.
    pub fn stem(self, word: &str) -> Cow<'_, str> {
        stem::stem(self, word)
    }
}
