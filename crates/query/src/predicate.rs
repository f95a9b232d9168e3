//! The `filter` of a command, parsed: which documents match.
//!
//! Input is a filter document. [`Predicate::parse`] turns it into a tree of [`Node`]s over
//! [`Test`]s, which planners read and [`Predicate::matches`] evaluates on a document's bytes. A
//! document that does not match costs no allocation.
//!
//! In reading order: `parse` (fields and logical operators), `operators` (the operators of a
//! field), `simplify` (the form that trees have), `text` (where `$text` is allowed),
//! [`document::path`] (the values at a dotted path), [`test`] (conditions on a value).
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/operator/query/>; where it is silent, the
//! behavior of a 6.0 server.

pub mod bits;
mod describe;
pub mod in_list;
mod operators;
mod parse;
pub mod schema;
mod shape;
pub mod simplify;
pub mod test;
pub mod text;
pub mod type_set;

#[cfg(test)]
mod tests;

use crate::expression::Expression;
use crate::sort::KeyRange;
use crate::{Context, Sort};
use document::Doc;
use document::path::Path;
use error::{Error, Result};
use fulltext::TextSearch;
use geo::Near;
use std::sync::Arc;

pub use bits::{BitCondition, Bits};
pub use in_list::InList;
pub use schema::Schema;
pub use test::Test;
pub use type_set::TypeSet;

/// A parsed filter. Evaluation borrows it, so threads may share it.
#[derive(Clone, Debug)]
pub struct Predicate {
    root: Node,
    /// Whether the filter contained `$expr`, even in a part that was simplified away.
    has_expression: bool,
}

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
    Expression(Arc<Expression>),
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
        partial: Option<Arc<Predicate>>,
    },
    /// No document.
    Never,
}

/// Details of a match: for the positional operator `$`, and for `$meta`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MatchDetails {
    /// Index of the array element that made the document match; with nested arrays, in the
    /// outermost one.
    pub array_index: Option<usize>,
    /// The score of a text search (`$text`).
    pub text_score: Option<f64>,
}

impl Node {
    /// Like [`Predicate::matches`], for one condition.
    pub fn matches(&self, document: Doc<'_>) -> Result<bool> {
        matches_node(self, document, None)
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

pub fn has_expression(node: &Node) -> bool {
    steps::step();
    match node {
        Node::And(branches) | Node::Or(branches) | Node::Nor(branches) => branches.iter().any(has_expression),
        Node::Expression(_) => true,
        Node::Near(_) | Node::KeyRange(_) => false,
        Node::Path { .. } | Node::Schema(_) | Node::Text { .. } | Node::Never => false,
    }
}

impl Predicate {
    /// Parses a filter. Fails with MongoDB's errors, most of them 2 (BadValue).
    pub fn parse(filter: Doc<'_>, context: &Context) -> Result<Predicate> {
        Ok(Self::parse_as_written(filter, context)?.arranged())
    }

    /// Like [`Predicate::parse`], with conditions in the order of the filter. MongoDB tests them in
    /// this order in a `$match` that is not executed by a collection.
    pub fn parse_as_written(filter: Doc<'_>, context: &Context) -> Result<Predicate> {
        let root = parse::parse(filter, context)?;
        text::check(&root, context)?;
        Ok(Predicate { root, has_expression: parse::has_expression(filter) })
    }

    /// Sorts the conditions into the order in which a collection tests them.
    pub fn arranged(mut self) -> Predicate {
        simplify::arrange(&mut self.root);
        self
    }

    /// Sorts the conditions into the order in which documents are tested that are found by an index
    /// on these paths.
    #[must_use]
    pub fn arranged_beside(mut self, indexed: &[&str]) -> Predicate {
        simplify::arrange_beside(&mut self.root, indexed);
        self
    }

    /// Returns a part of another predicate as a predicate.
    pub fn of(node: Node) -> Predicate {
        let has_expression = has_expression(&node);
        Predicate { root: node, has_expression }
    }

    /// Like [`Predicate::parse`], for the filter of a command, which may sort documents by
    /// distance. Elsewhere that fails with 5626500.
    pub fn parse_query(filter: Doc<'_>, context: &Context) -> Result<Predicate> {
        let root = parse::parse_query(filter, context)?;
        check_near(&root)?;
        text::check(&root, context)?;
        Ok(Predicate { root, has_expression: parse::has_expression(filter) }.arranged())
    }

    /// Returns the condition by distance, if there is one.
    pub fn near(&self) -> Option<&Arc<Near>> {
        match &self.root {
            Node::Near(near) => Some(near),
            Node::And(all) => all.iter().find_map(|node| match node {
                Node::Near(near) => Some(near),
                _ => None,
            }),
            _ => None,
        }
    }

    /// Returns the order that the condition by distance implies.
    pub fn own_order(&self) -> Option<Sort> {
        self.near().cloned().map(Sort::by_distance)
    }

    /// Adds a condition by distance.
    pub fn and_near(self, near: Near) -> Predicate {
        self.and(Predicate::of(Node::Near(Arc::new(near))))
    }

    /// Returns the predicate that every document matches.
    pub fn everything() -> Predicate {
        Predicate { root: Node::And(Vec::new()), has_expression: false }
    }

    pub fn matches_everything(&self) -> bool {
        matches!(&self.root, Node::And(all) if all.is_empty())
    }

    /// Returns whether it is an `$or`, other than one that became an `$in`.
    pub fn is_disjunction(&self) -> bool {
        matches!(&self.root, Node::Or(_))
    }

    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Returns whether it contains `$expr`.
    pub fn has_expression(&self) -> bool {
        self.has_expression
    }

    /// Returns the predicate of documents with a key in a range of an index.
    pub fn within(range: KeyRange) -> Predicate {
        Predicate::of(Node::KeyRange(Arc::new(range)))
    }

    /// Returns the conjunction of the conditions.
    pub fn all_of(conditions: Vec<Node>) -> Predicate {
        Predicate::of(simplify::and(conditions))
    }

    /// Returns the conjunction with another predicate.
    pub fn and(self, other: Predicate) -> Predicate {
        let has_expression = self.has_expression || other.has_expression;
        Predicate { root: simplify::and(vec![self.root, other.root]), has_expression }.arranged()
    }

    /// Returns whether the document matches. Fails only if an expression (`$expr`) fails or a
    /// regular expression takes too long.
    #[inline]
    pub fn matches(&self, document: Doc<'_>) -> Result<bool> {
        matches_node(&self.root, document, None)
    }

    /// Like [`Predicate::matches`]. Records the matching array element in `details`, for positional
    /// updates and projections.
    pub fn matches_with(&self, document: Doc<'_>, details: &mut MatchDetails) -> Result<bool> {
        *details = MatchDetails::default();
        matches_node(&self.root, document, Some(details))
    }
}

/// Fails with 2 if there are several conditions by distance, or one that does not apply to all
/// documents.
fn check_near(root: &Node) -> Result<()> {
    fn count(node: &Node) -> usize {
        steps::step();
        match node {
            Node::Near(_) => 1,
            Node::And(branches) | Node::Or(branches) | Node::Nor(branches) => branches.iter().map(count).sum(),
            Node::Path { .. } | Node::Expression(_) | Node::Schema(_) => 0,
            Node::KeyRange(_) | Node::Text { .. } | Node::Never => 0,
        }
    }
    let top = match root {
        Node::Near(_) => 1,
        Node::And(all) => all.iter().filter(|node| matches!(node, Node::Near(_))).count(),
        _ => 0,
    };
    match count(root) {
        found if found > 1 => Err(Error::bad_value("Too many geoNear expressions")),
        found if found > top => Err(Error::bad_value("geo $near must be top-level expr")),
        _ => Ok(()),
    }
}

pub(crate) fn matches_node(node: &Node, document: Doc<'_>, mut details: Option<&mut MatchDetails>) -> Result<bool> {
    match node {
        Node::Path { path, test } => test.holds_at(path, document, details),
        Node::And(branches) => {
            for branch in branches {
                steps::step();
                if !matches_node(branch, document, details.as_deref_mut())? {
                    if let Some(details) = details {
                        *details = MatchDetails::default();
                    }
                    return Ok(false);
                }
            }
            Ok(true)
        }
        Node::Or(branches) => {
            // MongoDB does not record the position of a match inside a branch.
            for branch in branches {
                steps::step();
                if matches_node(branch, document, None)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Node::Nor(branches) => {
            for branch in branches {
                steps::step();
                if matches_node(branch, document, None)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        Node::Expression(expression) => Ok(expression.evaluate(document)?.is_truthy()),
        Node::Schema(schema) => schema.matches(document),
        Node::Near(near) => Ok(near.nearest(document).is_some()),
        Node::KeyRange(range) => range.contains(document),
        Node::Text { search, partial } => {
            let found =
                search.matches(document) && partial.as_ref().map_or(Ok(true), |partial| partial.matches(document))?;
            if let Some(details) = details.filter(|_| found) {
                details.text_score = Some(search.score(document));
            }
            Ok(found)
        }
        Node::Never => Ok(false),
    }
}
