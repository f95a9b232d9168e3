//! Dates.
//!
//! In reading order: `moment` (values that stand for a moment, and their texts), `zone` (time
//! zones), `parts` (`$year` and its siblings, `$dateToParts`, `$dateFromParts`), `format`
//! (`$dateToString`), `read` (`$dateFromString`), `calculate` (`$dateAdd`, `$dateDiff`,
//! `$dateTrunc`), `timestamp` (`$tsSecond`, `$tsIncrement`).

pub mod calculate;
pub(super) mod format;
pub(super) mod moment;
pub(super) mod parts;
pub(super) mod read;
pub(super) mod timestamp;
mod zone;
