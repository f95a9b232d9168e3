//! Random sampling for stores that number their rows: row numbers are drawn at random, so that few
//! rows are read.
//!
//! A number without a row is discarded, so each document is equally likely, however the rows are
//! spread among the numbers.

use hashbrown::HashSet;
use rand::RngExt;
use rand::seq::SliceRandom;
use std::ops::RangeInclusive;

/// A larger part of a collection, or a part of a small one, is sampled by reading all of it, as in
/// MongoDB.
const PART_MAX: u64 = 20;
const DOCUMENTS_MIN: u64 = 100;

/// The same holds for samples larger than this, and for collections with more numbers per document
/// than this.
const SIZE_MAX: usize = 10_000;
const NUMBERS_PER_DOCUMENT_MAX: u64 = 32;

/// Numbers drawn in one call.
const DRAWN_AT_ONCE: usize = 1_024;

/// Draws row numbers until enough of them have a document.
#[derive(Debug)]
pub struct RowSampler<D> {
    numbers: RangeInclusive<i64>,
    /// Numbers per document, on average.
    numbers_per_document: u64,
    size: usize,
    drawn: HashSet<i64>,
    found: Vec<D>,
}

impl<D> RowSampler<D> {
    /// `numbers`: from the first row's number to the last one's. `documents`: their estimated
    /// count. Returns `None` if reading all documents is better.
    pub fn new(size: usize, numbers: RangeInclusive<i64>, documents: u64) -> Option<RowSampler<D>> {
        let is_small_part = documents > DOCUMENTS_MIN && size as u64 <= documents / PART_MAX && size <= SIZE_MAX;
        let span = numbers.end().abs_diff(*numbers.start()).checked_add(1)?;
        let numbers_per_document = (span / documents.max(1)).max(1);
        let suits = is_small_part && !numbers.is_empty() && numbers_per_document <= NUMBERS_PER_DOCUMENT_MAX;
        suits.then(|| RowSampler { numbers, numbers_per_document, size, drawn: HashSet::new(), found: Vec::new() })
    }

    pub fn is_done(&self) -> bool {
        self.found.len() >= self.size
    }

    /// Returns numbers that have not been drawn yet; `None` once so many had no document that
    /// reading all is better.
    pub fn draw(&mut self) -> Option<Vec<i64>> {
        let allowed = 4 * self.numbers_per_document as usize * (self.size + 100);
        let missing = self.size.saturating_sub(self.found.len());
        let wanted = (missing * self.numbers_per_document as usize).clamp(1, DRAWN_AT_ONCE);
        let mut next = Vec::with_capacity(wanted);
        let mut random = rand::rng();
        // Nearly all numbers of a small range may have been drawn.
        for _ in 0..4 * wanted {
            let number = random.random_range(self.numbers.clone());
            if self.drawn.insert(number) {
                next.push(number);
            }
            if next.len() == wanted {
                break;
            }
        }
        (self.drawn.len() <= allowed && !next.is_empty()).then_some(next)
    }

    /// Adds the document of a drawn number.
    pub fn add(&mut self, document: D) {
        self.found.push(document);
    }

    /// Returns `size` documents, in no order.
    pub fn finish(mut self) -> Vec<D> {
        // The last draw may have found too many, in the order of their rows.
        self.found.shuffle(&mut rand::rng());
        self.found.truncate(self.size);
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples from numbers of which every third has a document.
    fn sample(size: usize, documents: u64) -> Option<Vec<i64>> {
        let last = 3 * documents as i64;
        let mut draws = RowSampler::new(size, 1..=last, documents)?;
        while !draws.is_done() {
            draws.draw()?.into_iter().filter(|number| number % 3 == 0).for_each(|number| draws.add(number));
        }
        Some(draws.finish())
    }

    #[test]
    fn every_document_is_equally_likely() {
        let mut times = vec![0; 1_000];
        for _ in 0..2_000 {
            let mut found = sample(20, 1_000).expect("a small part of it");
            found.sort_unstable();
            found.dedup();
            assert_eq!(found.len(), 20);
            found.iter().for_each(|number| times[*number as usize / 3 - 1] += 1);
        }
        // The average is 40; the chance of exceeding these limits is one in 10^12.
        assert!(times.iter().all(|times| (5..100).contains(times)), "{times:?}");
        let first_half: u64 = times[..500].iter().sum();
        assert!((19_000..21_000).contains(&first_half), "{first_half}");
    }

    #[test]
    fn nothing_is_drawn_if_reading_all_is_better() {
        assert_eq!(sample(5, 100), None);
        assert_eq!(sample(51, 1_000), None);
        assert!(RowSampler::<()>::new(10, 1..=33_000, 1_000).is_none(), "rows far apart");
        assert!(RowSampler::<()>::new(10, i64::MIN..=i64::MAX, 1_000).is_none());
        assert_eq!(sample(0, 1_000), Some(Vec::new()));
    }

    #[test]
    fn drawing_ends_if_there_are_fewer_documents_than_estimated() {
        let mut draws = RowSampler::<()>::new(10, 1..=2_000, 1_000).expect("as far as is known");
        assert!(std::iter::from_fn(|| draws.draw()).map(|drawn| drawn.len()).sum::<usize>() < 2_001);
    }
}
