//! The list of an `$in`: values in MongoDB's order for binary search, and regular expressions.

use document::compare::kind_rank;
use document::{Collation, Element, Kind, Value, ValueBuf};
use error::Result;
use std::sync::Arc;
use steps::Counted;
use values::regex::Regex;

/// Values one of which must be equal, and regular expressions one of which must match. Cheap to
/// clone.
#[derive(Clone, Debug, Default)]
pub struct InList {
    values: Arc<[ValueBuf]>,
    regexes: Arc<[Regex]>,
    /// One bit per [`kind_rank`], which rejects a value at once if the list has none of its type.
    ranks: u64,
    has_null: bool,
    collation: Collation,
}

impl InList {
    pub fn new(mut values: Vec<ValueBuf>, regexes: Vec<Regex>, collation: Collation) -> InList {
        values.sort_by(|a, b| {
            steps::step();
            collation.compare(a.as_value(), b.as_value())
        });
        values.dedup_by(|a, b| {
            steps::step();
            collation.equal(a.as_value(), b.as_value())
        });
        let ranks = values.iter().counted().fold(0, |ranks, value| ranks | rank_bit(value.kind()));
        let has_null = values.iter().counted().any(|value| value.kind() == Kind::Null);
        InList { values: values.into(), regexes: regexes.into(), ranks, has_null, collation }
    }

    /// Returns the values in the order of the list's collation, without duplicates.
    pub fn values(&self) -> &[ValueBuf] {
        &self.values
    }

    pub fn regexes(&self) -> &[Regex] {
        &self.regexes
    }

    pub(crate) fn contains(&self, element: Option<Element<'_>>) -> Result<bool> {
        let Some(element) = element else { return Ok(self.has_null) };
        if element.kind == Kind::Undefined && self.has_null {
            return Ok(true);
        }
        steps::step();
        if self.ranks & rank_bit(element.kind) != 0 && self.has_value(element.value()) {
            return Ok(true);
        }
        for regex in &*self.regexes {
            steps::step();
            if regex.matches(element)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn has_value(&self, value: Value<'_>) -> bool {
        self.values.binary_search_by(|candidate| self.collation.compare(candidate.as_value(), value)).is_ok()
    }
}

fn rank_bit(kind: Kind) -> u64 {
    1 << (kind_rank(kind) & 63)
}
