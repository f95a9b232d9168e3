//! A query, as far as planning reads it.

use crate::plan::element_condition::{self, ElementCondition};
use document::path::Path;
use query::ReadFields;
use query::predicate::{Node, Test};
use store::{Hint, Query};

/// Whether a plan may rely on the order of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexOrder {
    Trusted,
    Untrusted,
}

/// A query, as far as planning reads it.
#[derive(Default)]
pub(crate) struct PlannerQuery<'q> {
    /// Conditions that must all hold.
    pub conditions: Vec<(&'q str, &'q Test)>,
    /// Conditions of `$elemMatch` on single elements.
    pub elements: Vec<ElementCondition<'q>>,
    /// `min` and `max`: the key range of the hinted index.
    pub range: Option<&'q query::sort::KeyRange>,
    /// The filter has further conditions.
    pub incomplete: bool,
    pub sort: Option<&'q query::Sort>,
    /// The direction of a sort by `$natural`.
    pub natural: Option<bool>,
    /// A plan may rely on an index for the order.
    pub trusts_order: bool,
    /// The only fields of documents that are read.
    pub fields: Option<&'q ReadFields>,
}

impl<'q> PlannerQuery<'q> {
    pub fn of(query: &Query<'q>, order: IndexOrder) -> PlannerQuery<'q> {
        let sort = query.sort.filter(|sort| !sort.is_empty());
        let natural = sort.and_then(query::Sort::natural).or_else(|| Hint::of(query.hint)?.natural());
        let sort = sort.filter(|sort| sort.natural().is_none());
        let (ordered, fields) = (order == IndexOrder::Trusted, query.fields);
        let mut wanted = PlannerQuery { sort, natural, trusts_order: ordered, fields, ..PlannerQuery::default() };
        wanted.read(query.predicate.root());
        wanted
    }

    /// Returns the query of one branch of a disjunction.
    pub fn of_branch(branch: &'q Node) -> PlannerQuery<'q> {
        let mut wanted = PlannerQuery::default();
        wanted.read(branch);
        wanted
    }

    /// Returns whether an index whose first field is this may serve the query.
    pub fn is_about(&self, first: &str) -> bool {
        self.conditions.iter().any(|(path, _)| *path == first)
            || self.elements.iter().any(|condition| condition.is_at(first))
            || self.sort.and_then(|sort| sort.parts().first()).is_some_and(|part| part.path == first)
    }

    pub fn read(&mut self, node: &'q Node) {
        match node {
            Node::And(all) => all.iter().for_each(|node| self.read(node)),
            Node::Path { path, test } => self.read_test(path, test),
            Node::Expression(expression) => {
                self.incomplete = true;
                expression.implied().iter().for_each(|(path, test)| self.read_test(path, test));
            }
            Node::KeyRange(range) => (self.range, self.incomplete) = (Some(&**range), true),
            _ => self.incomplete = true,
        }
    }

    fn read_test(&mut self, path: &'q Path, test: &'q Test) {
        element_condition::read(path.as_str(), test, &mut self.elements);
        self.conditions.push((path.as_str(), test));
    }
}
