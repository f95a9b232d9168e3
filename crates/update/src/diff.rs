//! The difference of two documents, in the format of MongoDB's oplog entries (`$v: 2`).
//!
//! A difference of documents has up to four sections, in this order: `d` (removed fields), `u`
//! (fields with new values), `i` (new fields, appended in this order), and `s<field>` with the
//! difference of a nested document or array. A difference of arrays has `a: true`, `l` if the array
//! was cut to a length, `u<index>` with new values, and `s<index>`.
//!
//! [`computed`] compares two documents, as MongoDB does for updates by a pipeline. [`by_operators`]
//! follows the paths of the operators, because MongoDB logs a path that an operator has changed as
//! a whole. [`applied`] is the inverse, and [`description`] is the form for change streams.

mod applied;
mod by_operators;
mod computed;
mod description;
#[cfg(test)]
mod tests;
mod tree;

use super::{Update, UpdateKind};
use document::{Doc, DocBuf};

pub use applied::apply;
pub use computed::{compare, compute};
pub use description::describe;

impl Update {
    /// Returns the difference that this update has made from `before` to `after`. Returns `None` if
    /// the new document must be logged as a whole: for a replacement, or if the difference is not
    /// smaller.
    pub fn difference(&self, before: Doc<'_>, after: Doc<'_>) -> Option<DocBuf> {
        match &self.kind {
            UpdateKind::Replacement(_) => None,
            UpdateKind::Pipeline(_) => compute(before, after),
            UpdateKind::Operators(operators) => by_operators::difference(operators, before, after),
        }
    }
}
