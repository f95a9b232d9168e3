//! Checks the position of `$text`: at most once, not in a `$nor`, and not beside a hint or another
//! condition that determines how documents are found.

use super::tree::{Node, Test};
use crate::Context;
use document::path::Path;
use document::{DocBuf, ValueBuf};
use error::{Error, Result};
use fulltext::TextSearch;
use fulltext::search::cannot_execute;
use std::sync::Arc;

pub(super) fn find(node: &Node) -> Option<&Arc<TextSearch>> {
    steps::step();
    match node {
        Node::Text { search, .. } => Some(search),
        Node::And(branches) | Node::Or(branches) | Node::Nor(branches) => branches.iter().find_map(find),
        Node::Path { .. } | Node::Expression(_) | Node::Schema(_) | Node::Near(_) | Node::KeyRange(_) | Node::Never => {
            None
        }
    }
}

/// Fails with 2 or 291 for a text search in a position where it cannot be executed.
pub(super) fn check(root: &Node, context: &Context) -> Result<()> {
    if context.text_indexes.current().is_none() {
        return Ok(());
    }
    match count(root, false)? {
        0 => Ok(()),
        1 if has_near(root) => Err(Error::bad_value("text and geoNear not allowed in same query")),
        1 => check_branch(root),
        _ => Err(Error::bad_value("Too many text expressions")),
    }
}

fn has_near(root: &Node) -> bool {
    match root {
        Node::And(branches) => branches.iter().any(has_near),
        node => matches!(node, Node::Near(_)),
    }
}

/// The index can be used if there is an equality for each field before the terms; other branches of
/// an `$or` must have indexes too.
fn check_branch(node: &Node) -> Result<()> {
    match node {
        Node::Text { search, partial } => check_prefix(search, partial.as_deref(), std::slice::from_ref(node)),
        Node::And(branches) => match branches.iter().find(|branch| find(branch).is_some()) {
            Some(Node::Text { search, partial }) => check_prefix(search, partial.as_deref(), branches),
            Some(branch) => check_branch(branch),
            None => Ok(()),
        },
        Node::Or(branches) => {
            let Some(search) = find(node) else { return Ok(()) };
            branches.iter().filter(|branch| find(branch).is_some()).try_for_each(check_branch)?;
            let mut others = branches.iter().filter(|branch| find(branch).is_none());
            match others.all(|branch| is_indexed(branch, &search.index.indexed_fields)) {
                true => Ok(()),
                false => Err(cannot_execute(
                    "Failed to produce a solution for TEXT under OR - other non-TEXT clauses under OR have to be indexed as well.",
                )),
            }
        }
        _ => Ok(()),
    }
}

fn check_prefix(search: &TextSearch, partial: Option<&Node>, all: &[Node]) -> Result<()> {
    let given = |field: &str| all.iter().any(|node| equality(node, field).is_some());
    if search.index.prefix.iter().all(|field| given(field)) && asks_for_indexed_alone(partial, all) {
        return Ok(());
    }
    Err(cannot_execute(
        "failed to use text index to satisfy $text query (if text index is compound, are equality predicates given for all prefix fields?)",
    ))
}

/// Returns whether the conditions select only documents that a partial index contains, judged by
/// conditions on the same fields.
fn asks_for_indexed_alone(partial: Option<&Node>, all: &[Node]) -> bool {
    let Some(partial) = partial else { return true };
    let demanded = match partial {
        Node::And(branches) => branches,
        node => std::slice::from_ref(node),
    };
    let holds = |test: &Node, path: &Path, value: &ValueBuf| {
        let document = DocBuf::build(|writer| writer.append(path.as_str(), value.as_value()));
        test.matches(document.as_doc()).unwrap_or(true)
    };
    demanded.iter().all(|test| {
        let Node::Path { path, .. } = test else { return true };
        let mut about = all.iter().filter(|node| matches!(node, Node::Path { path: other, .. } if other == path));
        let is_field = path.component_count() == 1;
        about.any(|node| equality(node, path.as_str()).is_none_or(|value| !is_field || holds(test, path, value)))
    })
}

/// Returns the value that a condition requires a field to equal.
pub fn equality<'n>(node: &'n Node, field: &str) -> Option<&'n ValueBuf> {
    steps::step();
    let Node::Path { path, test } = node else { return None };
    match test {
        Test::Equal(value) if path == field => Some(value),
        Test::In(list) if path == field && list.regexes().is_empty() && list.values().len() == 1 => {
            list.values().first()
        }
        _ => None,
    }
}

fn is_indexed(node: &Node, indexed: &[Box<str>]) -> bool {
    steps::step();
    match node {
        Node::And(branches) => branches.iter().any(|branch| is_indexed(branch, indexed)),
        Node::Or(branches) => branches.iter().all(|branch| is_indexed(branch, indexed)),
        Node::Path { path, .. } => indexed.iter().any(|field| path == &**field),
        _ => false,
    }
}

fn count(node: &Node, in_nor: bool) -> Result<usize> {
    steps::step();
    match node {
        Node::Text { .. } if in_nor => Err(Error::bad_value("text expression not allowed in nor")),
        Node::Text { .. } => Ok(1),
        Node::And(branches) | Node::Or(branches) => branches.iter().map(|branch| count(branch, in_nor)).sum(),
        Node::Nor(branches) => branches.iter().map(|branch| count(branch, true)).sum(),
        Node::Path { .. } | Node::Expression(_) | Node::Schema(_) | Node::Near(_) | Node::KeyRange(_) | Node::Never => {
            Ok(0)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Context, Predicate};
    use document::{Value, array, doc};
    use fulltext::{TextIndex, TextIndexes};
    use std::sync::Arc;

    #[test]
    fn a_search_stands_where_the_index_can_answer() {
        let key = doc! { "x": 1, "_fts": "text", "_ftsx": 1 };
        let spec = doc! { "name": "words", "key": &key, "weights": &doc! { "t": 1 } };
        let mut indexes = TextIndexes::default();
        indexes.insert("c", Arc::new(TextIndex::find_in([spec.as_doc()].into_iter()).unwrap()));
        let context = Context { text_indexes: indexes.for_collection("c"), ..Context::at(0) };
        let text = doc! { "$text": &doc! { "$search": "tea" } };
        let with = |value: Value<'_>| doc! { "x": value, "$text": &doc! { "$search": "tea" } };
        let both = array![&with(1.into()), &with(2.into())];
        let cases = [
            (with(1.into()), 0),
            (with(Value::Null), 0),
            (text.clone(), 291),
            (with((&doc! { "$gt": 1 }).into()), 291),
            (doc! { "$or": &array![&with(1.into()), &doc! { "x": 2 }] }, 0),
            (doc! { "$or": &array![&with(1.into()), &doc! { "y": 2 }] }, 291),
            (doc! { "$and": &both }, 2),
            (doc! { "$nor": &array![&text] }, 2),
        ];
        for (filter, code) in cases {
            let found = Predicate::parse(filter.as_doc(), &context).map_or_else(|error| error.code().0, |_| 0);
            assert_eq!(found, code, "{filter:?}");
        }
        assert_eq!(Predicate::parse(text.as_doc(), &Context::at(0)).unwrap_err().code().0, 27);
    }
}
