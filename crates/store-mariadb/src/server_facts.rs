//! What was found out about the server at the start.

use error::Error;

/// What was found out at the start.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub version: String,
    pub ignores_case: bool,
    pub packet_bytes_max: u64,
    /// `auto_increment_increment` is 1, as it is unless several servers of a cluster take turns.
    pub counts_by_one: bool,
    /// JSON paths know ranges.
    pub has_ranges: bool,
    /// Why no documents can be written, if the server is used for something else.
    pub unsuitable: Option<Error>,
}
