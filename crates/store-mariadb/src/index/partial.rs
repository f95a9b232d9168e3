//! Filters of partial indexes: as SQL conditions on documents, and the check whether a query may
//! use the index.
//!
//! Key ranges decide comparisons and `$in` with values; the JSON text decides `$exists: true` and
//! most of `$type`. They may be combined with `$and` and `$or`. Other conditions are undecided: the
//! index then also has documents that do not meet them. It also has documents whose key does not
//! decide, such as arrays. That costs space, but no result is wrong. A unique index must not have
//! documents outside its filter, so gateways compute its keys if the filter is undecided
//! ([`crate::index::side_index::claims`]).

use crate::index::column_key;
use crate::plan::index_bounds::{IndexBounds, KeyRange};
use document::{Doc, Kind, Value};
use mariadb_client::quote;
use query::predicate::{Node, Test, TypeSet};
use query::{Context, Predicate};

/// The length of key columns for filters, without the type byte.
const BYTES: usize = 960;

/// The filter of a partial index.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    /// All must hold.
    clauses: Vec<Clause>,
    conditions: Vec<Condition>,
    /// The filter has conditions that SQL does not decide.
    pub is_undecided: bool,
}

/// A clause; conditions are given by their positions in the filter.
#[derive(Clone, Debug)]
enum Clause {
    Holds(usize),
    Any(Vec<Vec<Clause>>),
}

/// A condition of a filter on one field.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    pub path: String,
    test: Test,
}

/// The columns that one condition reads.
#[derive(Clone, Debug)]
pub(crate) struct FilterColumns {
    /// The JSON text of the field.
    pub text: String,
    /// Its key, if the condition compares.
    pub key: Option<String>,
}

impl Condition {
    /// Returns whether it needs the field's key, and not just the text.
    pub fn compares(&self) -> bool {
        !matches!(self.test, Test::Exists | Test::Type(_))
    }

    fn expression(&self, columns: &FilterColumns) -> String {
        let text = quote(&columns.text);
        match (&self.test, &columns.key) {
            (Test::Exists, _) => format!("{text} is not null"),
            (Test::Type(types), _) => type_condition(&text, *types).unwrap_or_else(|| "true".into()),
            (test, Some(key)) => match IndexBounds::of([test], BYTES) {
                Some(bounds) => within(&quote(key), bounds.ordered.iter().chain(&bounds.unordered)),
                None => "true".into(),
            },
            (_, None) => "true".into(),
        }
    }

    /// Returns whether every document that meets `conditions` meets this one.
    fn is_implied_by(&self, conditions: &[(&str, &Test)]) -> bool {
        if let Test::Type(types) = &self.test {
            return conditions.iter().any(|(path, test)| *path == self.path && implies_type(test, *types));
        }
        let exists = |other: &Test| matches!(other, Test::Exists);
        let own = || conditions.iter().filter(|(path, _)| *path == self.path).map(|(_, test)| *test);
        let Some(asked) = IndexBounds::of(own(), BYTES) else {
            return exists(&self.test) && own().any(exists);
        };
        if exists(&self.test) {
            return asked.excludes_missing;
        }
        let kept = IndexBounds::of([&self.test], BYTES);
        kept.is_some_and(|kept| covers(&kept.ordered, &asked.ordered) && covers(&kept.unordered, &asked.unordered))
    }
}

impl Filter {
    /// Returns the filter from an index's options, if it has one.
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
            Node::Path { path, test } if is_decided(test) => {
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

    /// Returns the definition of a key column for a condition, computed from the text column.
    pub fn key_definition(text: &str) -> String {
        let text = quote(text);
        let key = column_key::Source { text: &text, decimal: None, bytes: BYTES, unique: false }.expression();
        format!("VARBINARY({}) AS (if({text} is null,'2',{key})) STORED INVISIBLE", BYTES + 1)
    }

    /// Returns the expression whether a document belongs to the index, by the columns of each
    /// condition.
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

    /// Returns whether every document that meets the conditions belongs to the index.
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

fn is_decided(test: &Test) -> bool {
    match test {
        Test::Exists => true,
        Test::Type(types) => type_condition("", *types).is_some(),
        test => IndexBounds::of([test], BYTES).is_some_and(|bounds| !bounds.low_selectivity),
    }
}

/// Returns whether all values that meet a test are of these types, or in arrays. Keys cannot
/// decide: a value of any type may have an unordered key.
fn implies_type(test: &Test, types: TypeSet) -> bool {
    // Null also matches missing fields, and an array other arrays.
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

/// Returns an SQL condition on a field's JSON text that holds for values of some types, and for
/// arrays, which may have such an element. `None` if the text does not decide: documents, which
/// look like wrapped values; one type of number without the others; types that are rare.
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

/// Returns whether each requested range is within one of the index's.
fn covers(kept: &[KeyRange], asked: &[KeyRange]) -> bool {
    asked.iter().all(|asked| kept.iter().any(|kept| kept.low <= asked.low && asked.high <= kept.high))
}

/// Returns a condition on key ranges as constants in hexadecimal digits, since column definitions
/// take no parameters.
fn within<'r>(column: &str, ranges: impl Iterator<Item = &'r KeyRange>) -> String {
    let hex = |key: &[u8]| key.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let parts =
        ranges.map(|range| format!("{column} >= x'{}' and {column} < x'{}'", hex(&range.low), hex(&range.high)));
    let parts: Vec<String> = parts.collect();
    // Without ranges no value matches.
    if parts.is_empty() { "false".into() } else { format!("({})", parts.join(" or ")) }
}
