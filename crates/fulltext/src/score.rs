//! The score of each term in a document.

use super::TextIndex;
use super::fields::CoveredText;
use super::words::{Sensitivity, terms};
use document::Doc;
use error::Result;
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// A term's occurrences in one text.
#[derive(Clone, Copy, Default)]
struct Occurrences {
    count: f64,
    /// Weighted count: every occurrence counts half as much as the one before.
    frequency: f64,
    divisor: f64,
}

/// Bonus of a term that is the whole text.
const WHOLE_TEXT_BONUS: f64 = 0.1;

impl TextIndex {
    /// Returns the terms of a document and their scores, in order. Fails like
    /// [`TextIndex::any_text`].
    pub fn scores(&self, document: Doc<'_>) -> Result<BTreeMap<String, f64>> {
        let mut scores = BTreeMap::new();
        self.any_text(document, &mut |field| {
            add_scores(field, &mut |term, score| *scores.entry(term).or_default() += score);
            false
        })?;
        Ok(scores)
    }
}

/// Passes the score of each of a text's terms to `add`.
pub(super) fn add_scores(field: CoveredText<'_>, add: &mut dyn FnMut(String, f64)) {
    let mut found: HashMap<String, Occurrences, ahash::RandomState> = HashMap::default();
    let mut words = 0_u32;
    for term in terms(field.text, field.rules, Sensitivity::default()) {
        let occurrences = found.entry(term).or_default();
        occurrences.divisor = if occurrences.divisor == 0.0 { 1.0 } else { occurrences.divisor * 2.0 };
        occurrences.count += 1.0;
        occurrences.frequency += 1.0 / occurrences.divisor;
        words += 1;
    }
    for (term, occurrences) in found {
        steps::step();
        let share = 0.5 * occurrences.count / f64::from(words) + 0.5;
        let whole = if term.eq_ignore_ascii_case(field.text) { 1.0 + WHOLE_TEXT_BONUS } else { 1.0 };
        let score = field.weight * occurrences.frequency * share * whole;
        add(term, score);
    }
}
