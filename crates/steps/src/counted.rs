//! Steps of whole iterations and of long texts.

/// Iterators that count a step for each item.
pub trait Counted: Iterator + Sized {
    fn counted(self) -> std::iter::Inspect<Self, fn(&Self::Item)> {
        self.inspect(|_| crate::step())
    }
}

impl<I: Iterator> Counted for I {}

/// Bytes that are copied, compared or searched in the time of a step.
const BYTES_PER_STEP: usize = 64;

/// Counts the steps of work on this many bytes. Few bytes take none.
#[inline]
pub fn bytes(count: usize) {
    if count >= 4 * BYTES_PER_STEP {
        crate::steps(count / BYTES_PER_STEP);
    }
}
