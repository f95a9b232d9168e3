//! Conditions that the server checks before it sends a row: cheap tests on the JSON text that every matching document passes.
//!
//! A text that equals, begins with or contains something stands in the document's JSON literally, unless somebody wrote it with
//! escapes (there is a backslash then) or it is nested so deep that it went into a blob (`"$bson"` is there then). So
//! "contains the text, or a backslash, or a blob" keeps every document that matches. Looking at bytes is several times
//! cheaper than parsing JSON for each row, and arrays and nested documents need no case of their own. Everything else (numbers,
//! dates, ranges) is spelled in too many ways and left to the evaluator.

use crate::spelling;
use crate::table::Table;
use document::{Value, ValueBuf};
use mariadb_wire::Param;
use query::predicate::{Node, Test};

/// A condition in SQL, true for every document that matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    pub sql: String,
    /// In the order of their placeholders.
    params: Vec<Vec<u8>>,
    /// The parameters are compared as text, as keys are ordered, not as bytes.
    as_text: bool,
}

impl Condition {
    pub fn params(&self) -> impl Iterator<Item = Param<'_>> {
        self.params.iter().map(|bytes| if self.as_text { Param::Text(bytes) } else { Param::Bytes(bytes) })
    }
}

/// Texts looked for at once; a longer list is left to the evaluator.
const NEEDLES_MAX: usize = 16;

/// A shorter text is in nearly every document.
const NEEDLE_BYTES_MIN: usize = 3;

/// A key to look up, and the condition for it: where the filter demands that the first field of an index equal something.
pub(crate) fn by_index(node: &Node, table: &Table) -> Option<(String, Condition)> {
    let all = match node {
        Node::And(all) => all.as_slice(),
        one => std::slice::from_ref(one),
    };
    all.iter().find_map(|node| {
        let Node::Path { path, test } = node else { return None };
        let suitable = table.indexes.iter().filter(|index| index.fields().next() == Some(path.as_str()));
        suitable.into_iter().find_map(|index| {
            let (sql, params) = match test {
                Test::Equal(value) => index.equality(std::iter::once(value.as_value())),
                Test::In(list) if list.regexes().is_empty() => {
                    index.equality(list.values().iter().map(ValueBuf::as_value))
                }
                _ => None,
            }?;
            Some((index.sql_name.clone(), Condition { sql, params, as_text: true }))
        })
    })
}

/// What the server can check of a filter; `None` when nothing.
pub(crate) fn condition(node: &Node) -> Option<Condition> {
    let needles = needles(node)?;
    if needles.is_empty() || needles.len() > NEEDLES_MAX {
        return None;
    }
    let mut sql = String::from("(");
    for _ in &needles {
        sql.push_str("LOCATE(?,doc) OR ");
    }
    sql.push_str("LOCATE('\\\\',doc) OR LOCATE('\"$bson\"',doc))");
    Some(Condition { sql, params: needles, as_text: false })
}

/// Texts of which every matching document holds at least one, if it is spelled without escapes and blobs.
fn needles(node: &Node) -> Option<Vec<Vec<u8>>> {
    match node {
        // One branch is enough; the one with the fewest and longest texts keeps the fewest documents.
        Node::And(all) => all
            .iter()
            .filter_map(needles)
            .min_by_key(|needles| (needles.len(), std::cmp::Reverse(needles.iter().map(Vec::len).min()))),
        Node::Or(any) => any.iter().map(needles).collect::<Option<Vec<_>>>().map(|lists| lists.concat()),
        Node::Path { test, .. } => needles_of(test),
        Node::Nor(_) | Node::Expression(_) | Node::Never => None,
    }
}

fn needles_of(test: &Test) -> Option<Vec<Vec<u8>>> {
    match test {
        Test::Equal(value) => needle(value.as_value()).map(|needle| vec![needle]),
        Test::In(list) if list.regexes().is_empty() && !list.values().is_empty() => {
            list.values().iter().map(|value| needle(value.as_value())).collect()
        }
        Test::Regex(regex) => {
            let text = regex.substring()?;
            let quoted = spelling::value(Value::String(text));
            let inner = quoted.get(1..quoted.len() - 1)?.to_vec();
            (inner.len() >= NEEDLE_BYTES_MIN).then(|| vec![inner])
        }
        Test::ElementMatches(node) => needles(node),
        Test::ElementSatisfies(tests) => tests.iter().find_map(needles_of),
        _ => None,
    }
}

/// The text that stands in every document with this value.
fn needle(value: Value<'_>) -> Option<Vec<u8>> {
    match value {
        Value::String(_) => Some(spelling::value(value)).filter(|needle| needle.len() >= NEEDLE_BYTES_MIN),
        _ => None,
    }
}
