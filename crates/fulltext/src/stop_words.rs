//! The stop words of each language. The lists are part of version 3 of text indexes, so they do not
//! follow lists published elsewhere.

use super::Language;
use hashbrown::HashSet;
use std::sync::OnceLock;

type Words = HashSet<&'static str, ahash::RandomState>;

macro_rules! list {
    ($name:literal) => {{
        static WORDS: OnceLock<Words> = OnceLock::new();
        Some(WORDS.get_or_init(|| include_str!(concat!("stop_words/", $name, ".txt")).split_whitespace().collect()))
    }};
}

pub(super) fn of(language: Language) -> Option<&'static Words> {
    match language {
        Language::None => None,
        Language::Danish => list!("danish"),
        Language::Dutch => list!("dutch"),
        Language::English => list!("english"),
        Language::Finnish => list!("finnish"),
        Language::French => list!("french"),
        Language::German => list!("german"),
        Language::Hungarian => list!("hungarian"),
        Language::Italian => list!("italian"),
        Language::Norwegian => list!("norwegian"),
        Language::Portuguese => list!("portuguese"),
        Language::Romanian => list!("romanian"),
        Language::Russian => list!("russian"),
        Language::Spanish => list!("spanish"),
        Language::Swedish => list!("swedish"),
        Language::Turkish => list!("turkish"),
    }
}
