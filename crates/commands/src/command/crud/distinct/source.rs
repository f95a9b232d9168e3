//! What the values of a `distinct` are read from.
//!
//! MongoDB reads index keys and no documents if the keys cover the query. In keys, a missing field
//! is null and an empty array is undefined; both are returned as values then, but not if documents
//! are read.

use document::path::{Key, Path};
use document::{Collation, Doc, Kind, Value};
use query::Predicate;
use query::predicate::{Node, Test};
use std::ops::ControlFlow;
use store::{IndexSpec, Plan};

/// The source of the values.
pub enum Source {
    Documents,
    /// The keys of an index on the path, of all documents; of a sparse index, those with one of
    /// `present`.
    Keys {
        index: IndexSpec,
        path: Path,
        present: Option<Vec<Path>>,
    },
    /// The keys of an index. No document has an array on these paths, the first of which is the
    /// path of the values. If one has, documents are read after all.
    SingleKeys {
        index: IndexSpec,
        paths: Vec<Path>,
        missing: bool,
        arrays: bool,
    },
}

impl Source {
    /// Chooses the source for the distinct values at `path`, among the indexes that `plan` could
    /// use.
    pub fn of(plan: &dyn Plan, predicate: &Predicate, path: &str, collation: &Collation) -> Source {
        // Keys of strings are not the strings, and array positions are read from documents.
        let position = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
        if !collation.is_simple() || path.split('.').any(position) {
            return Source::Documents;
        }
        match predicate.matches_everything() {
            true => of_everything(plan, path),
            false => of_some(plan, predicate, path),
        }
    }

    /// Returns whether null is returned for documents without the field.
    pub fn is_keys(&self) -> bool {
        !matches!(self, Source::Documents)
    }

    /// Returns the index whose keys are read.
    pub fn index(&self) -> Option<&IndexSpec> {
        match self {
            Source::Documents | Source::SingleKeys { arrays: true, .. } => None,
            Source::Keys { index, .. } | Source::SingleKeys { index, .. } => Some(index),
        }
    }

    /// Takes note of a document's keys; returns null or undefined if they add that value.
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
                        // Elements without the field count as missing.
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

    /// Returns the value that is added after all documents.
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

/// For a query of all documents: the index with the fewest fields that begins with the path.
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

/// For a query with conditions: an index that contains the path and all paths of conditions, one of
/// them first. Other paths than the values' may have arrays if one key is enough to satisfy a
/// condition.
fn of_some(plan: &dyn Plan, predicate: &Predicate, path: &str) -> Source {
    let mut conditions: Vec<Condition<'_>> = Vec::new();
    if !collect_conditions(predicate.root(), &mut conditions) {
        return Source::Documents;
    }
    let is_single =
        |of: &Condition<'_>| of.negated || conditions.iter().filter(|other| other.path == of.path).count() > 1;
    let others = conditions.iter().filter(|of| of.path != path && is_single(of)).map(|of| of.path);
    let single: Vec<&str> = std::iter::once(path).chain(others).collect();
    let mut found = Source::Documents;
    plan.visit_indexes(&mut |index, arrays| {
        let Some(paths) = ordered_paths(index) else { return };
        let ordered = |path: &str| paths.iter().any(|(of, ordered)| *of == path && *ordered);
        let narrowed = paths.first().is_some_and(|(first, _)| conditions.iter().any(|of| of.path == *first));
        let complete = !index.sparse && !has(index, "partialFilterExpression");
        let decided =
            ordered(path) && conditions.iter().all(|of| ordered(of.path)) && !single.iter().any(|path| arrays(path));
        if complete && narrowed && decided && !found.is_keys() {
            let paths = single.iter().copied().map(Path::new).collect();
            found = Source::SingleKeys { index: index.clone(), paths, missing: false, arrays: false };
        }
    });
    found
}

fn has(index: &IndexSpec, option: &str) -> bool {
    index.spec.as_doc().get(option).is_some()
}

/// Returns the paths of a usable index with unchanged values, each with whether the index orders by
/// it.
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
struct Condition<'p> {
    path: &'p str,
    /// Whether it must hold for all keys of a document rather than one.
    negated: bool,
}

/// Collects the conditions of a filter; returns false if keys cannot decide them.
fn collect_conditions<'p>(node: &'p Node, conditions: &mut Vec<Condition<'p>>) -> bool {
    match node {
        Node::And(all) => all.iter().all(|node| collect_conditions(node, conditions)),
        Node::Nor(none) => none.iter().all(|node| match node {
            Node::Path { path, test } => {
                conditions.push(Condition { path: path.as_str(), negated: true });
                is_decided_by_keys(test, true)
            }
            _ => false,
        }),
        Node::Path { path, test } => {
            let (test, negated) = match test {
                Test::Not(test) => (&**test, true),
                test => (test, false),
            };
            conditions.push(Condition { path: path.as_str(), negated });
            is_decided_by_keys(test, negated)
        }
        // Equalities of one path are a list of values.
        Node::Or(any) => {
            let mut of: Vec<Condition<'_>> = Vec::new();
            let equal = |node: &Node| matches!(node, Node::Path { test: Test::Equal(_), .. });
            let decided = any.iter().all(|node| equal(node) && collect_conditions(node, &mut of));
            of.dedup_by(|a, b| a.path == b.path);
            let decided = decided && of.len() == 1;
            conditions.extend(of.into_iter().next());
            decided
        }
        _ => false,
    }
}

/// Returns whether keys can decide a condition, or its negation. Null cannot be decided: a missing
/// field has the same key.
fn is_decided_by_keys(test: &Test, negated: bool) -> bool {
    let plain = |kind: Kind| !matches!(kind, Kind::Null | Kind::Undefined | Kind::Array);
    match test {
        Test::Equal(value) => plain(value.kind()) || negated && value.kind() == Kind::Null,
        Test::Less(value) | Test::LessOrEqual(value) | Test::Greater(value) | Test::GreaterOrEqual(value) => {
            plain(value.kind())
        }
        Test::In(list) => {
            let decided = |kind: Kind| plain(kind) || negated && kind == Kind::Null;
            list.regexes().is_empty() && list.values().iter().all(|value| decided(value.kind()))
        }
        _ => false,
    }
}
