//! Matching documents against a search, and scoring them.

use super::TextSearch;
use super::fields::CoveredText;
use super::score::add_scores;
use super::words::{Sensitivity, all_terms, phrase_form, terms};
use document::Doc;
use std::collections::{BTreeMap, BTreeSet};
use steps::Counted;

impl TextSearch {
    /// Returns whether the document has one of the terms, all of the phrases and no negated term or
    /// phrase. A document that the index cannot contain (its language is unknown) does not match.
    pub fn matches(&self, document: Doc<'_>) -> bool {
        self.has_term(document)
            && !self.has_one_of(&self.negated_terms, document)
            && self.phrases.iter().counted().all(|phrase| self.has_phrase(document, phrase))
            && !self.negated_phrases.iter().counted().any(|phrase| self.has_phrase(document, phrase))
    }

    /// Returns `$meta: "textScore"`: the sum of the scores of the search's terms in the document.
    pub fn score(&self, document: Doc<'_>) -> f64 {
        let mut scores: BTreeMap<&str, f64> = BTreeMap::new();
        let walked = self.index.any_text(document, &mut |field| {
            add_scores(field, &mut |term, score| {
                if let Some(term) = self.terms.get(&term) {
                    *scores.entry(term).or_default() += score;
                }
            });
            false
        });
        // In the order of the terms, since sums of doubles depend on it.
        if walked.is_ok() { scores.values().sum() } else { 0.0 }
    }

    /// Returns whether the index has one of the terms for the document, and the document has it in
    /// the case and diacritics that the search requires.
    fn has_term(&self, document: Doc<'_>) -> bool {
        let indexed = |field: CoveredText<'_>| {
            terms(field.text, field.rules, Sensitivity::default()).any(|term| self.terms.contains(&term))
        };
        !self.terms.is_empty()
            && self.any(document, indexed)
            && (!self.sensitivity.any() || self.has_one_of(&self.exact_terms, document))
    }

    /// Returns whether the document contains one of these words, even as a stop word.
    fn has_one_of(&self, words: &BTreeSet<String>, document: Doc<'_>) -> bool {
        !words.is_empty()
            && self.any(document, |field| {
                all_terms(field.text, field.rules, self.sensitivity).any(|term| words.contains(&term))
            })
    }

    fn has_phrase(&self, document: Doc<'_>, phrase: &str) -> bool {
        self.any(document, |field| {
            let phrase = phrase_form(phrase, field.rules, self.sensitivity);
            phrase_form(field.text, field.rules, self.sensitivity).contains(&phrase)
        })
    }

    fn any<'d>(&self, document: Doc<'d>, mut test: impl FnMut(CoveredText<'d>) -> bool) -> bool {
        self.index.any_text(document, &mut |field| test(field)).unwrap_or(false)
    }
}
