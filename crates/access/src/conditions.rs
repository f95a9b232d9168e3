//! A query, as far as planning reads it.

use fulltext::TextSearch;
use query::ReadFields;
use query::Sort;
use query::predicate::{Node, Test};
use query::sort::KeyRange;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::sync::Arc;
use store::Query;

/// A condition that every matching document meets.
#[derive(Clone, Debug)]
pub struct Condition<'q> {
    pub path: Cow<'q, str>,
    pub test: &'q Test,
    pub scope: Scope,
}

/// The subject of a condition: a whole document, or one element of an array (`$elemMatch`), the
/// same for all conditions of the scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// 0: the document; otherwise the number of the `$elemMatch`.
    pub id: u32,
    /// The number of components of the path to the array.
    pub depth: u32,
}

impl Scope {
    pub const DOCUMENT: Scope = Scope { id: 0, depth: 0 };
}

#[derive(Clone, Debug)]
pub struct PlannerQuery<'q> {
    pub conditions: SmallVec<[Condition<'q>; 4]>,
    /// A text search that must match.
    pub text: Option<&'q Arc<TextSearch>>,
    /// The predicate has other conditions.
    pub has_others: bool,
    /// The predicate consists of the conditions and disjunctions.
    complete: bool,
    /// Disjunctions that must all hold.
    pub disjunctions: SmallVec<[&'q [Node]; 1]>,
    pub sort: Option<&'q Sort>,
    /// The direction of a sort by `$natural`.
    pub natural: Option<bool>,
    /// The number of documents after which no more are needed.
    pub limit: Option<u64>,
    /// The only fields that are read.
    pub fields: Option<&'q ReadFields>,
    /// The range of the hinted index between `min` and `max`.
    pub range: Option<&'q KeyRange>,
    /// An index filter excludes the index on `_id`, except for a lookup of one `_id`.
    pub without_id: bool,
    /// A plan may rely on an index for the order.
    pub trusts_order: bool,
    scopes: u32,
}

impl Default for PlannerQuery<'_> {
    /// Returns the query for all documents.
    fn default() -> Self {
        PlannerQuery {
            conditions: SmallVec::new(),
            text: None,
            has_others: false,
            complete: true,
            disjunctions: SmallVec::new(),
            sort: None,
            natural: None,
            limit: None,
            fields: None,
            range: None,
            without_id: false,
            trusts_order: true,
            scopes: 0,
        }
    }
}

impl<'q> PlannerQuery<'q> {
    pub fn of(query: &Query<'q>) -> PlannerQuery<'q> {
        let sort = query.sort.filter(|sort| !sort.parts().is_empty());
        let natural = sort.and_then(Sort::natural);
        let mut wanted =
            PlannerQuery { sort, natural, limit: query.limit, fields: query.fields, ..PlannerQuery::default() };
        wanted.read(query.predicate.root());
        wanted
    }

    /// Returns the query for all documents that match a part of a predicate.
    pub fn of_node(node: &'q Node) -> PlannerQuery<'q> {
        let mut wanted = PlannerQuery::default();
        wanted.read(node);
        wanted
    }

    /// Returns the conditions that concern whole documents, with their paths.
    pub fn document_conditions(&self) -> impl Iterator<Item = (&str, &'q Test)> {
        let own = self.conditions.iter().filter(|condition| condition.scope == Scope::DOCUMENT);
        own.map(|condition| (&*condition.path, condition.test))
    }

    /// Returns the conditions on a path that concern whole documents.
    pub fn tests_of(&self, path: &str) -> impl Iterator<Item = &'q Test> {
        self.document_conditions().filter(move |(other, _)| *other == path).map(|(_, test)| test)
    }

    /// Returns the query for one branch of a disjunction: the branch and all conditions outside of
    /// the disjunction.
    pub fn branch(&self, branch: &'q Node) -> PlannerQuery<'q> {
        steps::steps(1 + self.conditions.len());
        let complete = self.complete && self.disjunctions.len() == 1;
        let mut wanted = PlannerQuery { disjunctions: SmallVec::new(), complete, ..self.clone() };
        wanted.read(branch);
        wanted
    }

    /// Returns whether the predicate consists of the conditions.
    pub fn is_complete(&self) -> bool {
        self.complete && self.disjunctions.is_empty()
    }

    fn read(&mut self, node: &'q Node) {
        steps::step();
        match node {
            Node::And(all) => all.iter().for_each(|node| self.read(node)),
            Node::Path { path, test } => self.push(Cow::Borrowed(path.as_str()), test, Scope::DOCUMENT),
            Node::Or(branches) => self.disjunctions.push(branches),
            Node::KeyRange(range) => {
                self.range = Some(range);
                self.has_others = true;
                self.complete = false;
            }
            Node::Text { search, .. } => {
                self.text = Some(search);
                self.complete = false;
            }
            Node::Expression(expression) => {
                self.has_others = true;
                self.complete = false;
                let implied = expression.implied().iter();
                implied.for_each(|(path, test)| self.push(Cow::Borrowed(path.as_str()), test, Scope::DOCUMENT));
            }
            _ => {
                self.has_others = true;
                self.complete = false;
            }
        }
    }

    fn push(&mut self, path: Cow<'q, str>, test: &'q Test, scope: Scope) {
        if let Test::ElementMatches(inner) = test {
            self.has_others = true;
            // An index does not distinguish an array from a document in its place.
            self.complete = false;
            self.scopes += 1;
            let scope = Scope { id: self.scopes, depth: path.split('.').count() as u32 };
            return self.read_within(inner, &path, scope);
        }
        self.conditions.push(Condition { path, test, scope });
    }

    /// Reads conditions on the fields of an array's element.
    fn read_within(&mut self, node: &'q Node, outer: &str, scope: Scope) {
        steps::step();
        match node {
            Node::And(all) => all.iter().for_each(|node| self.read_within(node, outer, scope)),
            // A number may be a position in an element that is an array.
            Node::Path { path, test } if document::path::position(path.first()).is_none() => {
                self.push(Cow::Owned(format!("{outer}.{path}")), test, scope);
            }
            _ => {}
        }
    }
}
