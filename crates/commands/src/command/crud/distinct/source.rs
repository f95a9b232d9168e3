//! What the values of a `distinct` are read from.
//!
//! MongoDB reads them from an index's keys, and no document, where the keys say all that the query asks. There a missing field is
//! null and an empty array undefined; so they are among the values, which they are not where documents are read.

use document::path::{Key, Path};
use document::{Collation, Doc, Kind, Value};
use query::Predicate;
use query::predicate::{Node, Test};
use std::ops::ControlFlow;
use store::{IndexSpec, Plan};

/// What values are read from.
pub enum Source {
    Documents,
    /// The keys of an index on the path, of all documents; of those with one of `present` where it is sparse.
    Keys {
        index: IndexSpec,
        path: Path,
        present: Option<Vec<Path>>,
    },
    /// The keys of an index. No document has an array on these paths, the first of which is the one of the values; where one turns up,
    /// documents are read after all.
    SingleKeys {
        index: IndexSpec,
        paths: Vec<Path>,
        missing: bool,
        arrays: bool,
    },
}

impl Source {
    /// What a query's different values at `path` are read from, by the indexes that `plan` could choose from.
    pub fn of(plan: &dyn Plan, predicate: &Predicate, path: &str, collation: &Collation) -> Source {
        // Keys of strings are not the strings, and those at positions are read from the documents.
        let position = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
        if !collation.is_simple() || path.split('.').any(position) {
            return Source::Documents;
        }
        match predicate.matches_everything() {
            true => of_everything(plan, path),
            false => of_some(plan, predicate, path),
        }
    }

    /// Whether it gives null for documents without the field.
    pub fn is_keys(&self) -> bool {
        !matches!(self, Source::Documents)
    }

    /// The index whose keys are read.
    pub fn index(&self) -> Option<&IndexSpec> {
        match self {
            Source::Documents | Source::SingleKeys { arrays: true, .. } => None,
            Source::Keys { index, .. } | Source::SingleKeys { index, .. } => Some(index),
        }
    }

    /// Takes in what the keys of a document say beside the values in it: gives null, undefined or nothing.
    pub fn note(&mut self, document: Doc<'_>) -> Option<Value<'static>> {
        match self {
            Source::Documents => None,
            Source::Keys { path, present, .. } => {
                let has = |path: &Path| !matches!(first_key(path, document), Key::Missing);
                if present.as_ref().is_some_and(|paths| !paths.iter().any(has)) {
                    return None;
                }
                let mut found = None;
                let _ = path.visit_keys(document, &mut |key| {
                    match key {
                        // Elements that lead nowhere are missing as well.
                        Key::Missing => found = Some(Value::Null),
                        Key::EmptyArray => found = found.or(Some(Value::Undefined)),
                        Key::Value(_) => {}
                    }
                    ControlFlow::Continue(())
                });
                found
            }
            Source::SingleKeys { paths, missing, arrays, .. } => {
                *arrays |= paths.iter().any(|path| meets_array(path, document));
                *missing |= paths.first().is_some_and(|path| matches!(first_key(path, document), Key::Missing));
                None
            }
        }
    }

    /// What there is beside the values of all the documents.
    pub fn last(&self) -> Option<Value<'static>> {
        matches!(self, Source::SingleKeys { missing: true, arrays: false, .. }).then_some(Value::Null)
    }
}

fn first_key<'d>(path: &Path, document: Doc<'d>) -> Key<'d> {
    let mut first = Key::Missing;
    let _ = path.visit_keys(document, &mut |key| {
        first = key;
        ControlFlow::Break(())
    });
    first
}

fn meets_array(path: &Path, document: Doc<'_>) -> bool {
    let mut inner = document;
    for name in path.as_str().split('.') {
        match inner.get(name) {
            Some(Value::Array(_)) => return true,
            Some(Value::Document(next)) => inner = next,
            _ => return false,
        }
    }
    false
}

/// Of all documents: the keys of the index with the fewest fields of those that the path leads.
fn of_everything(plan: &dyn Plan, path: &str) -> Source {
    let (mut best, mut fields_min) = (Source::Documents, usize::MAX);
    plan.visit_indexes(&mut |index, _| {
        let Some(paths) = ordered_paths(index) else { return };
        let leads = paths.first().is_some_and(|(first, ordered)| *first == path && *ordered);
        if !leads || has(index, "partialFilterExpression") || paths.len() >= fields_min {
            return;
        }
        fields_min = paths.len();
        let present = || paths.iter().map(|(path, _)| Path::new(path)).collect();
        best = Source::Keys { index: index.clone(), path: Path::new(path), present: index.sparse.then(present) };
    });
    best
}

/// Of some documents: the keys of an index that the path is in, and all that is asked about with it, the first field for one. Elsewhere than
/// on the path there may be arrays, as long as one key is enough to tell that a condition holds.
fn of_some(plan: &dyn Plan, predicate: &Predicate, path: &str) -> Source {
    let mut asked: Vec<Asked<'_>> = Vec::new();
    if !conditions(predicate.root(), &mut asked) {
        return Source::Documents;
    }
    let is_single = |of: &Asked<'_>| of.negated || asked.iter().filter(|other| other.path == of.path).count() > 1;
    let others = asked.iter().filter(|of| of.path != path && is_single(of)).map(|of| of.path);
    let single: Vec<&str> = std::iter::once(path).chain(others).collect();
    let mut found = Source::Documents;
    plan.visit_indexes(&mut |index, arrays| {
        let Some(paths) = ordered_paths(index) else { return };
        let ordered = |path: &str| paths.iter().any(|(of, ordered)| *of == path && *ordered);
        let narrowed = paths.first().is_some_and(|(first, _)| asked.iter().any(|of| of.path == *first));
        let complete = !index.sparse && !has(index, "partialFilterExpression");
        let told = ordered(path) && asked.iter().all(|of| ordered(of.path)) && !single.iter().any(|path| arrays(path));
        if complete && narrowed && told && !found.is_keys() {
            let paths = single.iter().copied().map(Path::new).collect();
            found = Source::SingleKeys { index: index.clone(), paths, missing: false, arrays: false };
        }
    });
    found
}

fn has(index: &IndexSpec, option: &str) -> bool {
    index.spec.as_doc().get(option).is_some()
}

/// The paths of an index that a query may use and whose keys are of values as they are, each with whether it stands in their order.
fn ordered_paths(index: &IndexSpec) -> Option<Vec<(&str, bool)>> {
    let hidden = index.spec.as_doc().get("hidden") == Some(Value::Boolean(true));
    if hidden || has(index, "collation") {
        return None;
    }
    let field = |field: document::Element<'_>| match field.value() {
        Value::String("hashed") => Some(false),
        value => value.kind().is_number().then_some(true),
    };
    let fields = index.key.as_doc().elements();
    fields
        .map(|element| field(element).filter(|_| !element.key().contains("$**")).map(|is| (element.key(), is)))
        .collect()
}

/// A condition of a filter.
struct Asked<'p> {
    path: &'p str,
    /// It has to hold of all keys of a document, and not of one.
    negated: bool,
}

/// Collects the conditions of a filter; false where keys do not tell who meets it.
fn conditions<'p>(node: &'p Node, asked: &mut Vec<Asked<'p>>) -> bool {
    match node {
        Node::And(all) => all.iter().all(|node| conditions(node, asked)),
        Node::Nor(none) => none.iter().all(|node| match node {
            Node::Path { path, test } => {
                asked.push(Asked { path: path.as_str(), negated: true });
                is_told_by_keys(test, true)
            }
            _ => false,
        }),
        Node::Path { path, test } => {
            let (test, negated) = match test {
                Test::Not(test) => (&**test, true),
                test => (test, false),
            };
            asked.push(Asked { path: path.as_str(), negated });
            is_told_by_keys(test, negated)
        }
        // Equalities of one path are a list of values.
        Node::Or(any) => {
            let mut of: Vec<Asked<'_>> = Vec::new();
            let equal = |node: &Node| matches!(node, Node::Path { test: Test::Equal(_), .. });
            let told = any.iter().all(|node| equal(node) && conditions(node, &mut of));
            of.dedup_by(|a, b| a.path == b.path);
            let told = told && of.len() == 1;
            asked.extend(of.into_iter().next());
            told
        }
        _ => false,
    }
}

/// Whether keys alone tell what a condition, or its opposite, holds for. Of null they don't: a missing field has its key.
fn is_told_by_keys(test: &Test, negated: bool) -> bool {
    let plain = |kind: Kind| !matches!(kind, Kind::Null | Kind::Undefined | Kind::Array);
    match test {
        Test::Equal(value) => plain(value.kind()) || negated && value.kind() == Kind::Null,
        Test::Less(value) | Test::LessOrEqual(value) | Test::Greater(value) | Test::GreaterOrEqual(value) => {
            plain(value.kind())
        }
        Test::In(list) => {
            let told = |kind: Kind| plain(kind) || negated && kind == Kind::Null;
            list.regexes().is_empty() && list.values().iter().all(|value| told(value.kind()))
        }
        _ => false,
    }
}
