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
mod details;
mod evaluate;
pub mod in_list;
mod level;
mod operands;
mod operators;
mod parse;
pub mod schema;
mod shape;
mod simplify;
mod test;
pub mod text;
mod tree;
pub mod type_set;

#[cfg(test)]
mod tests;

use crate::sort::KeyRange;
use crate::{Context, Sort};
use document::Doc;
use error::{Error, Result};
use fulltext::TextSearch;
use geo::Near;
use std::sync::Arc;

pub use bits::{BitCondition, Bits};
pub use details::MatchDetails;
pub use in_list::InList;
pub use schema::Schema;
pub use simplify::is_conjunction;
pub use tree::{ExpressionCondition, Node, Test};
pub use type_set::TypeSet;

/// A parsed filter. Evaluation borrows it, so threads may share it.
#[derive(Clone, Debug)]
pub struct Predicate {
    root: Node,
    /// Whether the filter contained `$expr`, even in a part that was simplified away.
    has_expression: bool,
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
        let has_expression = node.has_expression();
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

    /// Returns the filter's `$text`, at any depth.
    pub fn text_search(&self) -> Option<&Arc<TextSearch>> {
        text::find(&self.root)
    }

    /// Fails with 2 if a `$text` is combined with a hint or natural order.
    pub fn check_text_order(&self, hint: bool, natural: bool) -> Result<()> {
        if !(hint || natural) || self.text_search().is_none() {
            return Ok(());
        }
        Err(Error::bad_value(match hint {
            true => "text and hint not allowed in same query",
            false => "text expression not allowed with $natural sort order",
        }))
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
        self.root.matches(document)
    }

    /// Like [`Predicate::matches`]. Records the matching array element in `details`, for positional
    /// updates and projections.
    pub fn matches_with(&self, document: Doc<'_>, details: &mut MatchDetails) -> Result<bool> {
        *details = MatchDetails::default();
        self.root.matches_with(document, Some(details))
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
