//! Partial indexes: which documents they have, as SQL, and which queries may use them.
//!
//! Ranges of keys decide comparisons and `$in` with values; the JSON text decides `$exists: true`
//! and most of `$type`. They may be put together with `$and` and `$or`. What else a filter demands
//! is left undecided: the index then has the documents that do not meet it, too. So it has those
//! whose key does not tell, arrays among them. That costs room and gives no wrong answer; but a
//! unique index must not have documents that its filter leaves out, so gateways compute its keys
//! where its filter is undecided ([`crate::index::side_index::claims`]).

use crate::index::column_key;
use crate::plan::index_bounds::{IndexBounds, KeyRange};
use document::{Doc, Kind, Value};
use mariadb_client::quote;
use query::predicate::{Node, Test, TypeSet};
use query::{Context, Predicate};

/// Length of the columns with the keys that filters look at, less the byte in front.
const BYTES: usize = 960;

/// The filter of a partial index.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    /// All of them hold.
    clauses: Vec<Clause>,
    conditions: Vec<Condition>,
    /// There is more to the filter.
    pub is_undecided: bool,
}

/// Conditions by their positions among those of the filter.
#[derive(Clone, Debug)]
enum Clause {
    Holds(usize),
    Any(Vec<Vec<Clause>>),
}

/// What a filter demands of one field.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    pub path: String,
    test: Test,
}

/// The columns that one condition looks at.
#[derive(Clone, Debug)]
pub(crate) struct FilterColumns {
    /// The JSON text of the field.
    pub text: String,
    /// Its key, where the condition compares.
    pub key: Option<String>,
}

impl Condition {
    /// Whether it takes the field's key to decide, and not the text alone.
    pub fn compares(&self) -> bool {
        !matches!(self.test, Test::Exists | Test::Type(_))
    }

    fn expression(&self, columns: &FilterColumns) -> String {
        let text = quote(&columns.text);
        match (&self.test, &columns.key) {
            (Test::Exists, _) => format!("{text} is not null"),
            (Test::Type(types), _) => type_condition(&text, *types).unwrap_or_else(|| "true".into()),
            (test, Some(key)) => match IndexBounds::of(&self.path, &[(&self.path, test)], BYTES) {
                Some(bounds) => within(&quote(key), bounds.ordered.iter().chain(&bounds.unordered)),
                None => "true".into(),
            },
            (_, None) => "true".into(),
        }
    }

    /// Whether every document that meets `conditions` meets this one.
    fn is_implied_by(&self, conditions: &[(&str, &Test)]) -> bool {
        if let Test::Type(types) = &self.test {
            return conditions.iter().any(|(path, test)| *path == self.path && implies_type(test, *types));
        }
        let exists = |other: &Test| matches!(other, Test::Exists);
        let Some(asked) = IndexBounds::of(&self.path, conditions, BYTES) else {
            return exists(&self.test) && conditions.iter().any(|(other, test)| *other == self.path && exists(test));
        };
        if exists(&self.test) {
            return asked.excludes_missing;
        }
        let kept = IndexBounds::of(&self.path, &[(&self.path, &self.test)], BYTES);
        kept.is_some_and(|kept| covers(&kept.ordered, &asked.ordered) && covers(&kept.unordered, &asked.unordered))
    }
}

impl Filter {
    /// The filter among an index's options, if it has one.
    pub fn of(options: Doc<'_>) -> Option<Filter> {
        let Some(Value::Document(filter)) = options.get("partialFilterExpression") else { return None };
        let mut own = Filter { clauses: Vec::new(), conditions: Vec::new(), is_undecided: false };
        match Predicate::parse(filter, &Context::at(0)) {
            Ok(predicate) => {
                own.clauses = own.read(predicate.root());
            }
            Err(_) => own.is_undecided = true,
        }
        Some(own)
    }

    fn read(&mut self, node: &Node) -> Vec<Clause> {
        match node {
            Node::And(all) => all.iter().flat_map(|node| self.read(node)).collect(),
            Node::Or(any) => vec![Clause::Any(any.iter().map(|node| self.read(node)).collect())],
            Node::Path { path, test } if is_decided(path.as_str(), test) => {
                self.conditions.push(Condition { path: path.as_str().to_owned(), test: test.clone() });
                vec![Clause::Holds(self.conditions.len() - 1)]
            }
            _ => {
                self.is_undecided = true;
                Vec::new()
            }
        }
    }

    pub fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.conditions.iter().map(|condition| condition.path.as_str())
    }

    /// What the key that a condition looks at is, from the column with the text.
    pub fn key_definition(text: &str) -> String {
        let text = quote(text);
        let key = column_key::Source { text: &text, decimal: None, bytes: BYTES, unique: false }.expression();
        format!("VARBINARY({}) AS (if({text} is null,'2',{key})) STORED INVISIBLE", BYTES + 1)
    }

    /// Whether a document belongs to the index, by the columns that each condition looks at.
    pub fn expression(&self, columns: &[FilterColumns]) -> String {
        self.all(&self.clauses, columns)
    }

    fn all(&self, clauses: &[Clause], columns: &[FilterColumns]) -> String {
        let parts = clauses.iter().map(|clause| match clause {
            Clause::Holds(position) => match (self.conditions.get(*position), columns.get(*position)) {
                (Some(condition), Some(columns)) => condition.expression(columns),
                _ => "true".into(),
            },
            Clause::Any(branches) => {
                let branches: Vec<String> = branches.iter().map(|branch| self.all(branch, columns)).collect();
                format!("({})", branches.join(" or "))
            }
        });
        let parts: Vec<String> = parts.collect();
        if parts.is_empty() { "true".into() } else { parts.join(" and ") }
    }

    /// Whether every document that meets the conditions belongs to the index.
    pub fn is_implied_by(&self, conditions: &[(&str, &Test)]) -> bool {
        self.are_implied(&self.clauses, conditions)
    }

    fn are_implied(&self, clauses: &[Clause], conditions: &[(&str, &Test)]) -> bool {
        clauses.iter().all(|clause| match clause {
            Clause::Holds(position) => {
                self.conditions.get(*position).is_some_and(|condition| condition.is_implied_by(conditions))
            }
            Clause::Any(branches) => branches.iter().any(|branch| self.are_implied(branch, conditions)),
        })
    }
}

fn is_decided(path: &str, test: &Test) -> bool {
    match test {
        Test::Exists => true,
        Test::Type(types) => type_condition("", *types).is_some(),
        test => IndexBounds::of(path, &[(path, test)], BYTES).is_some_and(|bounds| !bounds.low_selectivity),
    }
}

/// Whether all values that meet a test are of these types, or lie in arrays. Keys do not tell: a value of any type may hide among those
/// without a place.
fn implies_type(test: &Test, types: TypeSet) -> bool {
    // Null finds missing fields as well, and an array other arrays.
    let is_within = |kind: Kind| types.contains(kind) && !matches!(kind, Kind::Null | Kind::Array);
    match test {
        Test::Type(asked) => Kind::ALL.into_iter().all(|kind| !asked.contains(kind) || types.contains(kind)),
        Test::Equal(value)
        | Test::Less(value)
        | Test::LessOrEqual(value)
        | Test::Greater(value)
        | Test::GreaterOrEqual(value) => is_within(value.kind()),
        Test::In(list) => list.regexes().is_empty() && list.values().iter().all(|value| is_within(value.kind())),
        _ => false,
    }
}

/// Returns an SQL condition on a field's JSON text that holds for values of some types, and for arrays, which may have such an element.
/// `None` where the text does not tell: documents, for they are spelled as wrapped values are; one type of number without the others;
/// types that are rare in data.
fn type_condition(text: &str, types: TypeSet) -> Option<String> {
    let begins = |front: &str| format!("left({text},{})='{front}'", front.len());
    let mut parts = Vec::new();
    let (mut numbers, mut all_numbers) = (false, true);
    for kind in Kind::ALL {
        let has = types.contains(kind);
        if kind.is_number() {
            (numbers, all_numbers) = (numbers || has, all_numbers && has);
        } else if has {
            parts.push(match kind {
                // A symbol is equal to the string.
                Kind::String => format!("{} or {}", begins("\""), begins("{\"$symbol\"")),
                Kind::Boolean => format!("{text} in ('true','false')"),
                Kind::Null => format!("{text}='null'"),
                Kind::ObjectId => begins("{\"$oid\""),
                Kind::DateTime => begins("{\"$date\""),
                _ => return None,
            });
        }
    }
    if numbers && !all_numbers {
        return None;
    }
    if numbers {
        // Decimals with unusual bits are kept as BSON.
        parts.push(format!("{text} regexp '^[-0-9]' or {} or {}", begins("{\"$number"), begins("{\"$bson\"")));
    }
    parts.push(begins("["));
    Some(format!("({})", parts.join(" or ")))
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
    let parts: Vec<String> = parts.collect();
    // No value can hold where there are no ranges.
    if parts.is_empty() { "false".into() } else { format!("({})", parts.join(" or ")) }
}
