//! Partial indexes: which documents they have, as SQL, and which queries may use them.
//!
//! Ranges of keys decide comparisons, `$in` with values and `$exists: true`, where all of them must hold. What else a filter demands is left
//! undecided: the index has the documents that do not meet it, too. So it has those whose key does not tell (an array, say). They
//! are there in vain, which harms nobody; but a unique index must not have them, so it is refused where its filter is undecided.

use crate::key;
use crate::names::quote;
use crate::planner::{Bounds, KeyRange};
use document::{Doc, Value};
use query::predicate::{Node, Test};
use query::{Context, Predicate};

/// Length of the columns with the keys that filters look at, less the byte in front.
const BYTES: usize = 960;

/// The filter of a partial index.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    conditions: Vec<(String, Test)>,
    /// There is more to the filter.
    pub is_undecided: bool,
}

impl Filter {
    /// The filter among an index's options, if it has one.
    pub fn of(options: Doc<'_>) -> Option<Filter> {
        let Some(Value::Document(filter)) = options.get("partialFilterExpression") else { return None };
        let mut own = Filter { conditions: Vec::new(), is_undecided: false };
        match Predicate::parse(filter, &Context::at(0)) {
            Ok(predicate) => own.read(predicate.root()),
            Err(_) => own.is_undecided = true,
        }
        Some(own)
    }

    fn read(&mut self, node: &Node) {
        match node {
            Node::And(all) => all.iter().for_each(|node| self.read(node)),
            Node::Path { path, test } if is_decided(path.as_str(), test) => {
                self.conditions.push((path.as_str().to_owned(), test.clone()));
            }
            _ => self.is_undecided = true,
        }
    }

    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.conditions.iter().map(|(path, _)| path.as_str())
    }

    /// What the key that a condition looks at is, from the column with the text.
    pub fn key_definition(text: &str) -> String {
        let text = quote(text);
        let key = key::Source { text: &text, decimal: None, bytes: BYTES, unique: false }.expression();
        format!("VARBINARY({}) AS (if({text} is null,'2',{key})) STORED INVISIBLE", BYTES + 1)
    }

    /// Whether a document belongs to the index, by the columns with the text and the key that each condition looks at.
    pub fn expression(&self, columns: &[(String, String)]) -> String {
        let parts = self.conditions.iter().zip(columns).map(|((path, test), (text, key))| {
            let (text, key) = (quote(text), quote(key));
            match test {
                Test::Exists => format!("{text} is not null"),
                test => match Bounds::of(path, &[(path, test)], BYTES) {
                    Some(bounds) => within(&key, bounds.plain.iter().chain(&bounds.odd)),
                    None => "true".into(),
                },
            }
        });
        std::iter::once("true".to_owned()).chain(parts).collect::<Vec<_>>().join(" and ")
    }

    /// Whether every document that meets the conditions belongs to the index.
    pub fn is_implied_by(&self, conditions: &[(&str, &Test)]) -> bool {
        self.conditions.iter().all(|(path, test)| {
            let exists = |other: &Test| matches!(other, Test::Exists);
            let Some(asked) = Bounds::of(path, conditions, BYTES) else {
                return exists(test) && conditions.iter().any(|(other, test)| other == path && exists(test));
            };
            if exists(test) {
                return asked.excludes_missing;
            }
            let kept = Bounds::of(path, &[(path, test)], BYTES);
            kept.is_some_and(|kept| covers(&kept.plain, &asked.plain) && covers(&kept.odd, &asked.odd))
        })
    }
}

fn is_decided(path: &str, test: &Test) -> bool {
    matches!(test, Test::Exists) || Bounds::of(path, &[(path, test)], BYTES).is_some_and(|bounds| !bounds.wide)
}

/// Whether each of the ranges asked for lies within one of those kept.
fn covers(kept: &[KeyRange], asked: &[KeyRange]) -> bool {
    asked.iter().all(|asked| kept.iter().any(|kept| kept.low <= asked.low && asked.high <= kept.high))
}

/// Ranges of keys as constants, for the definition of a column takes no parameters: hexadecimal digits and nothing else.
fn within<'r>(column: &str, ranges: impl Iterator<Item = &'r KeyRange>) -> String {
    let hex = |key: &[u8]| key.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let parts =
        ranges.map(|range| format!("{column} >= x'{}' and {column} < x'{}'", hex(&range.low), hex(&range.high)));
    format!("({})", parts.collect::<Vec<_>>().join(" or "))
}
