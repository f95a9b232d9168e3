//! The `filter` of a command, parsed: which documents match.
//!
//! What comes in is a filter document; [`Predicate::parse`] turns it into a tree of [`Node`]s over [`Test`]s that planners
//! read and [`Predicate::matches`] runs over a document's bytes. A document that does not match costs no allocation.
//!
//! In reading order: `parse` (fields and logical operators), `operators` (what stands behind a field), `simplify` (the form that
//! trees have), `text` (where `$text` may stand), [`document::path`] (which values a dotted path reaches), [`test`] (conditions on a value).
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/operator/query/>; where it is silent, what a 6.0 server does.

pub mod bits;
mod describe;
pub mod in_list;
pub(crate) mod number;
mod operators;
mod parse;
pub mod regex;
pub mod schema;
mod shape;
pub(crate) mod simplify;
pub mod test;
pub mod text;
pub mod type_set;

#[cfg(test)]
mod tests;

use crate::expression::Expression;
use crate::fulltext::TextSearch;
use crate::geo::Near;
use crate::sort::KeyRange;
use crate::{Context, Sort};
use document::Doc;
use document::path::Path;
use error::{Error, Result};
use std::sync::Arc;

pub use bits::{BitCondition, Bits};
pub use in_list::InList;
pub(crate) use parse::check_texts;
pub use regex::{Beginning, Regex};
pub use schema::Schema;
pub use test::Test;
pub use type_set::TypeSet;

/// A parsed filter. Evaluation borrows it; sharing it between threads is fine.
#[derive(Clone, Debug)]
pub struct Predicate {
    root: Node,
    /// Whether `$expr` was written in it, be it where nothing could match anyway.
    has_expression: bool,
}

/// The tree that planners read. It is simplified: no `And` directly in an `And`, no `Or` directly in an `Or`, neither
/// with a single branch (except for the empty `And`).
#[derive(Clone, Debug)]
pub enum Node {
    /// All of them; the empty list is "every document".
    And(Vec<Node>),
    Or(Vec<Node>),
    Nor(Vec<Node>),
    /// A condition on the values a dotted path reaches.
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
    /// A key in a stretch of an index (`min`, `max`).
    KeyRange(Arc<KeyRange>),
    /// `$text`.
    Text(Arc<TextSearch>),
    /// No document.
    Never,
}

/// What a match leaves behind: for the positional operator `$`, and for `$meta`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MatchDetails {
    /// Index of the array element that made the document match; where arrays nest, in the outermost one.
    pub array_index: Option<usize>,
    /// How well a text search (`$text`) thinks that the document matches.
    pub text_score: Option<f64>,
}

impl Node {
    /// As [`Predicate::matches`], of one condition.
    pub fn matches(&self, document: Doc<'_>) -> Result<bool> {
        matches_node(self, document, None)
    }

    /// Whether testing a document may end in an error.
    pub fn may_fail(&self) -> bool {
        steps::step();
        match self {
            Node::And(branches) | Node::Or(branches) | Node::Nor(branches) => branches.iter().any(Node::may_fail),
            Node::Expression(expression) => !expression.never_fails(),
            Node::Path { .. } | Node::Schema(_) | Node::Near(_) | Node::KeyRange(_) | Node::Text(_) | Node::Never => {
                false
            }
        }
    }
}

pub(crate) fn has_expression(node: &Node) -> bool {
    steps::step();
    match node {
        Node::And(branches) | Node::Or(branches) | Node::Nor(branches) => branches.iter().any(has_expression),
        Node::Expression(_) => true,
        Node::Near(_) | Node::KeyRange(_) => false,
        Node::Path { .. } | Node::Schema(_) | Node::Text(_) | Node::Never => false,
    }
}

impl Predicate {
    /// Errors: as MongoDB's, most of them 2 (BadValue).
    pub fn parse(filter: Doc<'_>, context: &Context) -> Result<Predicate> {
        Ok(Self::parse_as_written(filter, context)?.arranged())
    }

    /// As [`Predicate::parse`], the conditions in the order of the filter: so MongoDB tests them in a `$match` that a
    /// collection is not asked for.
    pub fn parse_as_written(filter: Doc<'_>, context: &Context) -> Result<Predicate> {
        let root = parse::parse(filter, context)?;
        text::check(&root, context)?;
        Ok(Predicate { root, has_expression: parse::has_expression(filter) })
    }

    /// The conditions in the order in which a collection is asked for them.
    pub(crate) fn arranged(mut self) -> Predicate {
        simplify::arrange(&mut self.root);
        self
    }

    /// The conditions in the order in which documents are asked for them that an index over these paths gives.
    #[must_use]
    pub fn arranged_beside(mut self, indexed: &[&str]) -> Predicate {
        simplify::arrange_beside(&mut self.root, indexed);
        self
    }

    /// The predicate that is a part of another one.
    pub fn of(node: Node) -> Predicate {
        let has_expression = has_expression(&node);
        Predicate { root: node, has_expression }
    }

    /// As [`Predicate::parse`], for the filter of a command, which may ask for documents by their distance. Elsewhere that is error 5626500.
    pub fn parse_query(filter: Doc<'_>, context: &Context) -> Result<Predicate> {
        let root = parse::parse_query(filter, context)?;
        check_near(&root)?;
        text::check(&root, context)?;
        Ok(Predicate { root, has_expression: parse::has_expression(filter) }.arranged())
    }

    /// The condition by distance, if there is one.
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

    /// The order that the condition by distance brings with it.
    pub fn own_order(&self) -> Option<Sort> {
        self.near().cloned().map(Sort::by_distance)
    }

    /// Documents that this distance is asked of, too.
    pub fn and_near(self, near: Near) -> Predicate {
        self.and(Predicate::of(Node::Near(Arc::new(near))))
    }

    /// The predicate that every document matches.
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

    /// Whether `$expr` occurs in it.
    pub fn has_expression(&self) -> bool {
        self.has_expression
    }

    /// The documents with a key in a stretch of an index.
    pub fn within(range: KeyRange) -> Predicate {
        Predicate::of(Node::KeyRange(Arc::new(range)))
    }

    /// All conditions at once.
    pub(crate) fn all_of(conditions: Vec<Node>) -> Predicate {
        Predicate::of(simplify::and(conditions))
    }

    /// Both conditions at once.
    pub fn and(self, other: Predicate) -> Predicate {
        let has_expression = self.has_expression || other.has_expression;
        Predicate { root: simplify::and(vec![self.root, other.root]), has_expression }.arranged()
    }

    /// Whether the document matches. Fails only where an expression (`$expr`) fails or a regular expression takes too
    /// long.
    #[inline]
    pub fn matches(&self, document: Doc<'_>) -> Result<bool> {
        matches_node(&self.root, document, None)
    }

    /// As [`Predicate::matches`], and which array element it was, for positional updates and projections.
    pub fn matches_with(&self, document: Doc<'_>, details: &mut MatchDetails) -> Result<bool> {
        *details = MatchDetails::default();
        matches_node(&self.root, document, Some(details))
    }
}

/// Error 2 for conditions by distance that are several, or not on all documents.
fn check_near(root: &Node) -> Result<()> {
    fn count(node: &Node) -> usize {
        steps::step();
        match node {
            Node::Near(_) => 1,
            Node::And(branches) | Node::Or(branches) | Node::Nor(branches) => branches.iter().map(count).sum(),
            Node::Path { .. } | Node::Expression(_) | Node::Schema(_) => 0,
            Node::KeyRange(_) | Node::Text(_) | Node::Never => 0,
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
            // MongoDB does not remember where in a branch the document matched.
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
        Node::Text(search) => {
            let found = search.matches(document)?;
            if let Some(details) = details.filter(|_| found) {
                details.text_score = Some(search.score(document));
            }
            Ok(found)
        }
        Node::Never => Ok(false),
    }
}
