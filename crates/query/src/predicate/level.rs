//! The parser's position in a filter.

use super::tree::{Node, Test};
use crate::Context;
use document::Doc;
use error::{Code, Error, Result};
use geo::near::Near;
use std::cell::RefCell;
use steps::Counted;

/// Maximal number of levels of operators in a filter, as in MongoDB.
const DEPTH_MAX: usize = 100;

pub(super) type ParseFilter = for<'f, 'c> fn(Doc<'f>, Level<'c>) -> Result<Node>;

/// The parser's position in a filter.
#[derive(Clone, Copy)]
pub(crate) struct Level<'c> {
    pub context: &'c Context,
    /// The first failure of a constant expression. Errors of the filter itself are reported first.
    pub failure: &'c RefCell<Option<Error>>,
    pub depth: usize,
    /// False inside `$elemMatch`, where operators on the whole document are not allowed.
    pub whole_document: bool,
    /// The parser of nested filters.
    pub parse_filter: ParseFilter,
    /// Whether it is the filter of a command; only those may sort by distance or use JavaScript.
    pub of_command: bool,
}

impl<'c> Level<'c> {
    pub fn top(context: &'c Context, failure: &'c RefCell<Option<Error>>, parse_filter: ParseFilter) -> Self {
        Level { context, failure, depth: 0, whole_document: true, parse_filter, of_command: false }
    }

    /// Returns the error for a condition by distance that is not the only one of its field.
    pub fn refuse_near(self, field: &str, operators: Doc<'_>) -> Error {
        if self.of_command {
            return Error::bad_value("geo $near must be top-level expr");
        }
        // Errors of the condition are reported before its wrong position.
        let message = "$geoNear, $near, and $nearSphere are not allowed in this context";
        Near::parse(field, operators).err().unwrap_or_else(|| Error::new(Code(5626500), message))
    }

    pub fn deeper(self, operator: &str) -> Result<Self> {
        if self.depth >= DEPTH_MAX {
            return Err(Error::bad_value(format!("exceeded maximum query tree depth of {DEPTH_MAX} at {operator}")));
        }
        Ok(Level { depth: self.depth + 1, ..self })
    }

    /// Returns the test, using the command's collation if that makes a difference.
    pub fn collated(self, test: Test) -> Test {
        let collation = &self.context.collation;
        if collation.is_simple() {
            return test;
        }
        let concerned = match &test {
            Test::Equal(operand)
            | Test::Less(operand)
            | Test::LessOrEqual(operand)
            | Test::Greater(operand)
            | Test::GreaterOrEqual(operand) => collation.concerns(operand.kind()),
            Test::In(list) => list.values().iter().counted().any(|value| collation.concerns(value.kind())),
            _ => false,
        };
        if concerned { Test::Collated(Box::new(test), collation.clone()) } else { test }
    }

    /// Reports a failure in `parse` as one of an expression within another.
    pub fn within_expression<T>(
        self,
        parse: impl FnOnce() -> Result<T>,
        is_within: impl FnOnce(&T) -> bool,
    ) -> Result<T> {
        let is_first = self.failure.borrow().is_none();
        let parsed = parse()?;
        if is_first && is_within(&parsed) {
            let failure = self.failure.take();
            self.failure.replace(failure.map(not_optimized));
        }
        Ok(parsed)
    }

    /// Parses a filter nested in an operator.
    pub fn parse_filter(self, filter: Doc<'_>) -> Result<Node> {
        (self.parse_filter)(filter, self)
    }

    pub fn inside_element(self) -> Result<Self> {
        Ok(Level { whole_document: false, ..self.deeper("$elemMatch")? })
    }
}

pub(super) fn not_optimized(failure: Error) -> Error {
    failure.context("Failed to optimize expression :: caused by :: ")
}
