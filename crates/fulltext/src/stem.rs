//! Stems by Snowball, in the edition that text indexes of version 3 use.
//!
//! The available library implements a later edition, which differs for two languages. In Hungarian
//! the older edition has õ and û (as in Latin-1) for the long vowels ő and ű. In Portuguese it has
//! four Spanish endings in place of Portuguese ones. A word is converted to the letters of the
//! later edition before stemming, and back afterwards.

use super::Language;
use rust_stemmers::{Algorithm, Stemmer};
use std::borrow::Cow;

/// Letters that occur in no ending: every algorithm takes them for consonants.
const MASKS: [char; 2] = ['\u{e000}', '\u{e001}'];

pub(super) fn stem(language: Language, word: &str) -> Cow<'_, str> {
    match language {
        Language::Hungarian => hungarian(word),
        Language::Portuguese => portuguese(word),
        _ => match algorithm(language) {
            Some(algorithm) => Stemmer::create(algorithm).stem(word),
            None => Cow::Borrowed(word),
        },
    }
}

fn algorithm(language: Language) -> Option<Algorithm> {
    Some(match language {
        Language::None => return None,
        Language::Danish => Algorithm::Danish,
        Language::Dutch => Algorithm::Dutch,
        Language::English => Algorithm::English,
        Language::Finnish => Algorithm::Finnish,
        Language::French => Algorithm::French,
        Language::German => Algorithm::German,
        Language::Hungarian => Algorithm::Hungarian,
        Language::Italian => Algorithm::Italian,
        Language::Norwegian => Algorithm::Norwegian,
        Language::Portuguese => Algorithm::Portuguese,
        Language::Romanian => Algorithm::Romanian,
        Language::Russian => Algorithm::Russian,
        Language::Spanish => Algorithm::Spanish,
        Language::Swedish => Algorithm::Swedish,
        Language::Turkish => Algorithm::Turkish,
    })
}

fn hungarian(word: &str) -> Cow<'_, str> {
    const OLDER: [char; 4] = ['õ', 'û', 'ő', 'ű'];
    const LATER: [char; 4] = ['ő', 'ű', MASKS[0], MASKS[1]];
    let stemmer = Stemmer::create(Algorithm::Hungarian);
    if !word.contains(OLDER) {
        return stemmer.stem(word);
    }
    let later = exchange_letters(word, OLDER, LATER);
    Cow::Owned(exchange_letters(&stemmer.stem(&later), LATER, OLDER))
}

fn exchange_letters(word: &str, from: [char; 4], to: [char; 4]) -> String {
    word.chars().map(|letter| from.iter().position(|&other| other == letter).map_or(letter, |at| to[at])).collect()
}

fn portuguese(word: &str) -> Cow<'_, str> {
    /// Endings of the older edition, and their replacements.
    const OLDER: [(&str, &str); 4] = [("logía", "log"), ("logías", "log"), ("ución", "u"), ("uciones", "u")];
    /// Endings of the later edition that the older one does not have, each masked by a letter of
    /// [`ASIDE`].
    const LATER_ONLY: [(&str, &str, char); 4] = [
        ("logia", "\u{e000}ogia", 'l'),
        ("logias", "\u{e000}ogias", 'l'),
        ("ução", "u\u{e000}ão", 'ç'),
        ("uções", "u\u{e000}ões", 'ç'),
    ];
    let stemmer = Stemmer::create(Algorithm::Portuguese);
    for (ending, remaining) in OLDER {
        if let Some(start) = word.strip_suffix(ending).filter(|start| is_in_r2(start)) {
            return Cow::Owned(format!("{start}{remaining}"));
        }
    }
    for (ending, hidden, letter) in LATER_ONLY {
        if let Some(start) = word.strip_suffix(ending) {
            let stem = stemmer.stem(&format!("{start}{hidden}")).replace(MASKS[0], letter.encode_utf8(&mut [0; 4]));
            return Cow::Owned(stem);
        }
    }
    stemmer.stem(word)
}

/// Returns whether the text after `start` is in the region that Snowball calls R2: after the second
/// pair of a vowel and a consonant.
fn is_in_r2(start: &str) -> bool {
    // A nasal vowel counts as a vowel and a consonant.
    let is_vowel = |letter| "aeiouáéíóúâêôãõ".contains(letter);
    let mut regions = 0;
    let mut behind_vowel = false;
    for letter in start.chars() {
        let nasal = matches!(letter, 'ã' | 'õ');
        if nasal || behind_vowel && !is_vowel(letter) {
            regions += 1;
            behind_vowel = false;
        } else {
            behind_vowel = is_vowel(letter);
        }
    }
    regions >= 2
}
