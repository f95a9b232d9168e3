//! The tree that a filter is parsed into: nodes over tests.

use super::bits::Bits;
use super::in_list::InList;
use super::schema::Schema;
use super::type_set::TypeSet;
use crate::expression::Expression;
use crate::sort::KeyRange;
use document::path::Path;
use document::{Collation, ValueBuf};
use fulltext::TextSearch;
use geo::{Near, Region};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use values::regex::Regex;

/// The tree that planners read. It is simplified: no `And` directly in an `And`, no `Or` directly
/// in an `Or`, neither with a single branch (except for the empty `And`).
#[derive(Clone, Debug)]
pub enum Node {
    /// All of them; the empty list matches every document.
    And(Vec<Node>),
    Or(Vec<Node>),
    Nor(Vec<Node>),
    /// A condition on the values at a dotted path.
    Path {
        path: Path,
        test: Test,
    },
    /// `$expr`.
    Expression(Arc<ExpressionCondition>),
    /// `$jsonSchema`.
    Schema(Arc<Schema>),
    /// `$near` and the like; at the root, or one of the conditions there.
    Near(Arc<Near>),
    /// A key in a range of an index (`min`, `max`).
    KeyRange(Arc<KeyRange>),
    /// `$text`.
    Text {
        search: Arc<TextSearch>,
        /// The index's `partialFilterExpression`: a document that is not in the index does not
        /// match.
        partial: Option<Arc<Node>>,
    },
    /// No document.
    Never,
}

/// A condition on the values at a path, with MongoDB's array semantics: it holds if it holds for
/// one of the values, and [`Test::Not`] if its operand holds for none.
#[derive(Clone, Debug)]
pub enum Test {
    /// MongoDB's equality: numbers by value; null equals a missing field too.
    Equal(ValueBuf),
    /// The four orderings hold between values of one type only (except for MinKey and MaxKey).
    Less(ValueBuf),
    LessOrEqual(ValueBuf),
    Greater(ValueBuf),
    GreaterOrEqual(ValueBuf),
    In(InList),
    /// One of the six above with strings compared by a collation. A comparison of bytes cannot
    /// evaluate it.
    Collated(Box<Test>, Collation),
    Regex(Regex),
    /// `$geoWithin` and `$geoIntersects`.
    Geometry(Box<Region>),
    /// `$exists: true`; false is `Not(Exists)`.
    Exists,
    Type(TypeSet),
    Mod {
        divisor: i64,
        remainder: i64,
    },
    Bits(Bits),
    /// An array of this many elements.
    Size(i64),
    /// `$elemMatch` with a filter: one element, a document or an array, matches it.
    ElementMatches(Box<Node>),
    /// `$elemMatch` with operators: one element satisfies all of them.
    ElementSatisfies(Vec<Test>),
    Not(Box<Test>),
    /// All hold, each perhaps for another of the values. Occurs inside `Not`.
    And(Vec<Test>),
    /// No value matches (`$all: []`).
    Never,
}

/// The expression of an `$expr`, with the conditions on fields that it implies.
#[derive(Debug)]
pub struct ExpressionCondition {
    expression: Expression,
    /// Computed when first needed.
    implied: OnceLock<Box<[(Path, Test)]>>,
}

impl Deref for ExpressionCondition {
    type Target = Expression;

    fn deref(&self) -> &Expression {
        &self.expression
    }
}

impl ExpressionCondition {
    /// Returns conditions that hold for every document for which the expression is true. An index
    /// can find the documents by them; see [`Expression::implied_equalities`].
    pub fn implied(&self) -> &[(Path, Test)] {
        if let Some(implied) = self.implied.get() {
            return implied;
        }
        // Computed outside the lock, because it may be suspended while other threads wait.
        let equalities = self.expression.implied_equalities().into_iter();
        let implied = equalities.map(|(path, value)| (Path::new(&path), Test::Equal(value))).collect();
        self.implied.get_or_init(|| implied)
    }
}

impl Node {
    /// Returns the condition that an expression is true.
    pub fn expression(expression: Expression) -> Node {
        Node::Expression(Arc::new(ExpressionCondition { expression, implied: OnceLock::new() }))
    }

    /// Returns whether it contains `$expr`.
    pub fn has_expression(&self) -> bool {
        steps::step();
        match self {
            Node::And(branches) | Node::Or(branches) | Node::Nor(branches) => branches.iter().any(Node::has_expression),
            Node::Expression(_) => true,
            Node::Near(_) | Node::KeyRange(_) => false,
            Node::Path { .. } | Node::Schema(_) | Node::Text { .. } | Node::Never => false,
        }
    }

    /// Returns whether evaluation may fail.
    pub fn may_fail(&self) -> bool {
        steps::step();
        match self {
            Node::And(branches) | Node::Or(branches) | Node::Nor(branches) => branches.iter().any(Node::may_fail),
            Node::Expression(expression) => !expression.never_fails(),
            Node::Path { .. }
            | Node::Schema(_)
            | Node::Near(_)
            | Node::KeyRange(_)
            | Node::Text { .. }
            | Node::Never => false,
        }
    }
}
