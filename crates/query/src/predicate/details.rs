//! What a match records beside its result.

/// Details of a match: for the positional operator `$`, and for `$meta`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MatchDetails {
    /// Index of the array element that made the document match; with nested arrays, in the
    /// outermost one.
    pub array_index: Option<usize>,
    /// The score of a text search (`$text`).
    pub text_score: Option<f64>,
}
