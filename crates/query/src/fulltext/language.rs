//! The languages of text indexes: under which names they go, and what they do to words.

use super::{stem, stop_words};
use std::borrow::Cow;

/// A language that words are stemmed by; [`Language::None`] leaves them as they are and has no stop words.
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
    /// The language of that name, in whatever case.
    pub fn named(name: &str) -> Option<Language> {
        let matches = |candidate: &str| candidate.eq_ignore_ascii_case(name);
        NAMES.iter().find(|(long, short, _)| matches(long) || matches(short)).map(|&(_, _, language)| language)
    }

    /// The language of that name; none for a name that is not known, as in indexes of version 1.
    pub fn named_or_none(name: &str) -> Language {
        Language::named(name).unwrap_or(Language::None)
    }

    /// Whether a word, in lower case, is too common to be looked for.
    pub fn is_stop_word(self, word: &str) -> bool {
        stop_words::of(self).is_some_and(|words| words.contains(word))
    }

    /// The stem of a word.
    pub fn stem(self, word: &str) -> Cow<'_, str> {
        stem::stem(self, word)
    }
}
