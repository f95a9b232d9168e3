//! A query, as far as planning reads it.

use crate::plan::element_condition::{self, ElementCondition};
use document::Value;
use document::path::Path;
use query::ReadFields;
use query::predicate::{Node, Test};
use store::Query;

/// Whether an index's order may be counted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    ByIndex,
    ByNone,
}

/// A query, as far as planning reads it.
#[derive(Default)]
pub(crate) struct Wanted<'q> {
    /// Conditions that all must hold.
    pub conditions: Vec<(&'q str, &'q Test)>,
    /// Those on elements of arrays, which the conditions have as a whole.
    pub elements: Vec<ElementCondition<'q>>,
    /// `min` and `max`: the stretch of the hinted index that is read.
    pub stretch: Option<&'q query::sort::KeyRange>,
    /// There is more to the filter.
    pub incomplete: bool,
    pub sort: Option<&'q query::Sort>,
    /// The direction of a sort by `$natural`.
    pub natural: Option<bool>,
    /// An index may give the order.
    pub ordered: bool,
    /// The only fields of documents that are looked at.
    pub fields: Option<&'q ReadFields>,
}

impl<'q> Wanted<'q> {
    pub fn of(query: &Query<'q>, order: Order) -> Wanted<'q> {
        let sort = query.sort.filter(|sort| !sort.is_empty());
        let natural = sort.and_then(query::Sort::natural).or_else(|| hinted_direction(query.hint));
        let sort = sort.filter(|sort| sort.natural().is_none());
        let (ordered, fields) = (order == Order::ByIndex, query.fields);
        let mut wanted = Wanted { sort, natural, ordered, fields, ..Wanted::default() };
        wanted.read(query.predicate.root());
        wanted
    }

    /// What one branch of a disjunction wants, for itself.
    pub fn of_branch(branch: &'q Node) -> Wanted<'q> {
        let mut wanted = Wanted::default();
        wanted.read(branch);
        wanted
    }

    /// Whether an index that leads with this field can serve it.
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
            Node::KeyRange(range) => (self.stretch, self.incomplete) = (Some(&**range), true),
            _ => self.incomplete = true,
        }
    }

    fn read_test(&mut self, path: &'q Path, test: &'q Test) {
        element_condition::read(path.as_str(), test, &mut self.elements);
        self.conditions.push((path.as_str(), test));
    }
}

/// The direction of `{$natural: -1}` as a hint.
fn hinted_direction(hint: Option<Value<'_>>) -> Option<bool> {
    let direction = hint.and_then(Value::as_document)?.get("$natural")?;
    let backward = matches!(direction, Value::Int32(..0) | Value::Int64(..0))
        || matches!(direction, Value::Double(number) if number < 0.0);
    Some(!backward)
}
