//! Invalidation keys of a filter: pairs of a path and a condition on its values, of which every
//! matching document meets one. Substrings are found by trigrams (Cox, "Regular Expression Matching
//! with a Trigram Index", 2012).

use document::path::{self, Path};
use document::{Kind, Value, ValueBuf, key};
use query::Predicate;
use query::predicate::{Node, Test};
use smallvec::{SmallVec, smallvec};
use store::type_bracket;
use values::regex::Regex;

/// A filter with more values than this is indexed under the range that contains them.
const VALUES_MAX: usize = 100;

/// The most trigrams of a regular expression that are considered.
const TRIGRAMS_MAX: usize = 16;

/// The `_id` field comes before all others: it is the most selective.
const ID: &str = "_id";

/// A condition that a document's values at a path must meet.
#[derive(Clone, Debug)]
pub enum ValueCondition {
    /// One of them has this key.
    Equals(Box<[u8]>),
    /// One of them has this key or a higher one, and one of them, perhaps another, that key or a
    /// lower one.
    InRange(Box<[u8]>, Box<[u8]>),
    /// One of them is a text that contains this trigram, as [`trigrams`] returns it.
    Contains(Trigram),
    /// There is a value.
    Present,
}

/// Three consecutive bytes.
pub type Trigram = u32;

/// The keys under which an entry is indexed. None: no document matches.
pub type InvalidationKeys = SmallVec<[(Path, ValueCondition); 1]>;

/// One choice of keys for a filter.
#[derive(Debug)]
pub struct KeyCandidate {
    pub keys: InvalidationKeys,
    /// A document found by these keys matches, except for arrays and the ends of ranges.
    pub is_exact: bool,
    selectivity: Selectivity,
}

/// How selective a condition is, the most selective first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Selectivity {
    Values,
    Range,
    Substring,
    HalfOpenRange,
    Present,
}

/// Returns the choices of keys for a filter, the most selective first. None: it must be checked
/// against every change.
pub fn candidates(predicate: &Predicate) -> Vec<KeyCandidate> {
    node_candidates(predicate.root())
}

/// Returns whether a document with this `_id` may match, by the filter's conditions on `_id`.
pub fn may_match_id(predicate: &Predicate, id: Value<'_>) -> bool {
    let id = encoded(id);
    let may_hold = |(path, condition): &(Path, ValueCondition)| {
        *path != *ID
            || match condition {
                ValueCondition::Equals(value) => *value == id,
                ValueCondition::InRange(low, high) => (low..=high).contains(&&id),
                ValueCondition::Contains(_) | ValueCondition::Present => true,
            }
    };
    candidates(predicate).iter().all(|candidate| candidate.keys.iter().any(may_hold))
}

fn node_candidates(node: &Node) -> Vec<KeyCandidate> {
    let mut candidates = match node {
        Node::Never => {
            vec![KeyCandidate { keys: InvalidationKeys::new(), is_exact: true, selectivity: Selectivity::Values }]
        }
        Node::Path { path, test } => match test {
            Test::Regex(regex) => {
                let by_range = regex.beginning().and_then(|_| candidate(path, test));
                by_range.into_iter().chain(trigram_candidates(path, regex)).collect()
            }
            test => candidate(path, test).into_iter().collect(),
        },
        Node::And(all) => all_of(all),
        Node::Or(branches) => any_of(branches).into_iter().collect(),
        Node::Expression(expression) => expression.equality().map(equality_candidate).into_iter().collect(),
        _ => Vec::new(),
    };
    candidates.sort_by_key(|candidate| {
        (candidate.selectivity, candidate.keys.iter().any(|(path, _)| *path != *ID), candidate.keys.len())
    });
    candidates
}

/// Every condition holds for all documents that match, so one of them suffices. Ranges of one path
/// are intersected.
fn all_of(all: &[Node]) -> Vec<KeyCandidate> {
    let (mut found, mut ranges): (Vec<KeyCandidate>, Vec<KeyCandidate>) = (Vec::new(), Vec::new());
    let each: Vec<Vec<KeyCandidate>> = all.iter().map(node_candidates).collect();
    let is_each_filed = each.iter().all(|candidates| !candidates.is_empty());
    for candidate in each.into_iter().flatten() {
        if let Some(same) = ranges.iter_mut().find(|range| is_range_of_same_path(range, &candidate)) {
            same.intersect(&candidate);
        } else if matches!(candidate.keys.as_slice(), [(_, ValueCondition::InRange(..))]) {
            ranges.push(candidate);
        } else {
            found.push(candidate);
        }
    }
    found.append(&mut ranges);
    let is_all = is_each_filed && found.len() == 1;
    found.iter_mut().for_each(|candidate| candidate.is_exact &= is_all);
    found
}

fn any_of(branches: &[Node]) -> Option<KeyCandidate> {
    let mut all = KeyCandidate { keys: InvalidationKeys::new(), is_exact: true, selectivity: Selectivity::Values };
    for branch in branches {
        let candidate = node_candidates(branch).into_iter().next()?;
        all.is_exact &= candidate.is_exact;
        all.selectivity = all.selectivity.max(candidate.selectivity);
        all.keys.extend(candidate.keys);
    }
    (all.keys.len() <= VALUES_MAX).then_some(all)
}

fn is_range_of_same_path(one: &KeyCandidate, other: &KeyCandidate) -> bool {
    matches!(
        (one.keys.as_slice(), other.keys.as_slice()),
        ([(path, ValueCondition::InRange(..))], [(other, ValueCondition::InRange(..))]) if path.as_str() == other.as_str()
    )
}

impl KeyCandidate {
    /// Both hold. For each there is a value in its range, so there is one above both lower ends and
    /// one below both upper ends.
    fn intersect(&mut self, other: &KeyCandidate) {
        if let ([(_, ValueCondition::InRange(low, high))], [(_, ValueCondition::InRange(other_low, other_high))]) =
            (self.keys.as_mut_slice(), other.keys.as_slice())
        {
            if other_low > low {
                low.clone_from(other_low);
            }
            if other_high < high {
                high.clone_from(other_high);
            }
            self.is_exact &= other.is_exact;
            self.selectivity = match (self.selectivity, other.selectivity) {
                (Selectivity::HalfOpenRange, Selectivity::HalfOpenRange) => Selectivity::Range,
                (one, other) => one.min(other),
            };
        }
    }
}

fn candidate(path: &Path, test: &Test) -> Option<KeyCandidate> {
    let (conditions, selectivity, is_exact) = value_conditions(path, test)?;
    let conditions = match conditions.len() > VALUES_MAX {
        true => smallvec![enclosing_range(&conditions)?],
        false => conditions,
    };
    let keys = conditions.into_iter().map(|condition| (path.clone(), condition)).collect();
    Some(KeyCandidate { keys, is_exact, selectivity })
}

type ValueConditions = SmallVec<[ValueCondition; 1]>;

/// Returns conditions of which a document must meet one for the test to hold. A missing value
/// counts as null.
fn value_conditions(path: &Path, test: &Test) -> Option<(ValueConditions, Selectivity, bool)> {
    Some(match test {
        Test::Never => (ValueConditions::new(), Selectivity::Values, true),
        Test::Equal(value) => (equal_to(std::slice::from_ref(value)), Selectivity::Values, true),
        Test::In(list) if list.regexes().is_empty() => (equal_to(list.values()), Selectivity::Values, true),
        Test::In(list) if list.regexes().iter().all(|regex| regex.beginning().is_some()) => {
            let mut conditions = equal_to(list.values());
            conditions.extend(list.regexes().iter().filter_map(regex_prefix).flat_map(|(conditions, _)| conditions));
            (conditions, Selectivity::Range, false)
        }
        Test::Less(value) => comparison_range(value, false, false)?,
        Test::LessOrEqual(value) => comparison_range(value, false, true)?,
        Test::Greater(value) => comparison_range(value, true, false)?,
        Test::GreaterOrEqual(value) => comparison_range(value, true, true)?,
        Test::Regex(regex) if regex.beginning().is_some() => {
            let (conditions, is_all) = regex_prefix(regex)?;
            (conditions, Selectivity::Range, is_all)
        }
        // An array that a number in the path selects is not expanded as other arrays are.
        Test::ElementSatisfies(tests) if path.components().all(|name| path::position(name).is_none()) => {
            let of_test = |test: &Test| match test {
                // An element cannot be missing, and an element that is an array is not expanded.
                Test::Not(_) | Test::ElementSatisfies(_) => None,
                test => self::candidate(path, test),
            };
            let candidate = tests.iter().filter_map(of_test).reduce(|mut one, other| {
                if is_range_of_same_path(&one, &other) {
                    one.intersect(&other);
                    one
                } else if other.selectivity < one.selectivity {
                    other
                } else {
                    one
                }
            });
            match candidate {
                Some(candidate) => {
                    (candidate.keys.into_iter().map(|(_, condition)| condition).collect(), candidate.selectivity, false)
                }
                None => (smallvec![ValueCondition::Present], Selectivity::Present, false),
            }
        }
        test if rejects_missing(test) => {
            (smallvec![ValueCondition::Present], Selectivity::Present, matches!(test, Test::Exists))
        }
        _ => return None,
    })
}

/// Returns whether a test cannot hold for a missing value, so that no document without the field
/// matches.
fn rejects_missing(test: &Test) -> bool {
    match test {
        Test::Collated(test, _) => match &**test {
            Test::Equal(value) => value.kind() != Kind::Null,
            test => rejects_missing(test),
        },
        Test::In(list) => list.values().iter().all(|value| !matches!(value.kind(), Kind::Null | Kind::Undefined)),
        Test::Less(value) | Test::LessOrEqual(value) | Test::Greater(value) | Test::GreaterOrEqual(value) => {
            !matches!(value.kind(), Kind::Null | Kind::Undefined | Kind::MinKey | Kind::MaxKey)
        }
        Test::Regex(_) | Test::Geometry(_) | Test::Exists | Test::Type(_) | Test::Mod { .. } | Test::Bits(_) => true,
        Test::Size(_) | Test::ElementMatches(_) | Test::ElementSatisfies(_) => true,
        Test::Equal(_) | Test::Not(_) | Test::And(_) | Test::Never => false,
    }
}

fn equal_to(values: &[ValueBuf]) -> ValueConditions {
    let mut conditions = ValueConditions::new();
    for value in values {
        if value.kind() == Kind::Null {
            // An undefined value matches null.
            conditions.push(ValueCondition::Equals(encoded(Value::Undefined)));
        }
        conditions.push(ValueCondition::Equals(encoded(value.as_value())));
    }
    conditions
}

/// Returns the range of the values less or greater than a value, among those that compare with it.
fn comparison_range(value: &ValueBuf, above: bool, or_equal: bool) -> Option<(ValueConditions, Selectivity, bool)> {
    let kind = value.kind();
    let is_nan = match value.as_value() {
        Value::Double(number) => number.is_nan(),
        Value::Decimal128(number) => number.is_nan(),
        _ => false,
    };
    if is_nan || matches!((kind, above), (Kind::Null, _) | (Kind::MinKey, false) | (Kind::MaxKey, true)) {
        let conditions = if or_equal { equal_to(std::slice::from_ref(value)) } else { ValueConditions::new() };
        return Some((conditions, Selectivity::Values, true));
    }
    // Every value is between MinKey and MaxKey, also a missing one.
    if matches!(kind, Kind::MinKey | Kind::MaxKey) {
        return None;
    }
    let (lowest, highest, _) = type_bracket::of(kind);
    let range = match above {
        true => ValueCondition::InRange(encoded(value.as_value()), encoded(highest)),
        false => ValueCondition::InRange(encoded(lowest), encoded(value.as_value())),
    };
    Some((smallvec![range], Selectivity::HalfOpenRange, true))
}

/// Returns the strings that a regular expression may match, and the expression itself; `None` if it
/// may match any string.
fn regex_prefix(regex: &Regex) -> Option<(ValueConditions, bool)> {
    let beginning = regex.beginning()?;
    let mut low = encoded(Value::String(&beginning.text)).into_vec();
    // Without the end of the text, since longer texts match too, with any bytes. The first byte,
    // the type of strings, is never 0xFF.
    low.pop();
    let mut high = low.clone();
    while high.last() == Some(&0xFF) {
        high.pop();
    }
    if let Some(last) = high.last_mut() {
        *last += 1;
    }
    let itself = ValueCondition::Equals(encoded(regex.to_value().as_value()));
    Some((smallvec![ValueCondition::InRange(low.into(), high.into()), itself], beginning.is_all))
}

/// Returns choices of keys for a regular expression: the value is a text that contains what the
/// pattern requires, or the expression itself.
fn trigram_candidates(path: &Path, regex: &Regex) -> Vec<KeyCandidate> {
    let itself = ValueCondition::Equals(encoded(regex.to_value().as_value()));
    let texts = regex.contained_texts();
    let all = texts.iter().flat_map(|text| trigrams(text.as_bytes()));
    let folds = |trigram: &Trigram| trigram.to_be_bytes().into_iter().all(has_one_case_pair);
    let telling = all.filter(|trigram| !regex.ignores_case() || folds(trigram));
    let candidate = |trigram| KeyCandidate {
        keys: smallvec![(path.clone(), ValueCondition::Contains(trigram)), (path.clone(), itself.clone())],
        is_exact: false,
        selectivity: Selectivity::Substring,
    };
    telling.take(TRIGRAMS_MAX).map(candidate).collect()
}

/// Returns the trigrams of a text, with ASCII letters in lower case.
pub fn trigrams(text: &[u8]) -> impl Iterator<Item = Trigram> {
    let joined = |before: &mut Trigram, byte: &u8| {
        *before = *before << 8 & 0xFF_FFFF | Trigram::from(byte.to_ascii_lowercase());
        Some(*before)
    };
    text.iter().scan(0, joined).skip(2)
}

/// Returns whether a letter equals only its ASCII counterpart when case is ignored. K also equals
/// the Kelvin sign, and s the long s.
fn has_one_case_pair(byte: u8) -> bool {
    byte.is_ascii() && !matches!(byte, b'k' | b's')
}

/// `$eq` in an expression compares arrays whole.
fn equality_candidate((path, value): (String, Value<'_>)) -> KeyCandidate {
    let keys = smallvec![(Path::new(&path), ValueCondition::Equals(encoded(value)))];
    KeyCandidate { keys, is_exact: false, selectivity: Selectivity::Values }
}

/// Returns the range that contains all conditions.
fn enclosing_range(conditions: &ValueConditions) -> Option<ValueCondition> {
    let ends = |condition: &ValueCondition| match condition {
        ValueCondition::Equals(value) => Some((value.clone(), value.clone())),
        ValueCondition::InRange(low, high) => Some((low.clone(), high.clone())),
        ValueCondition::Contains(_) | ValueCondition::Present => None,
    };
    let (low, high) = conditions.iter().filter_map(ends).reduce(|(low, high), (l, h)| (low.min(l), high.max(h)))?;
    Some(ValueCondition::InRange(low, high))
}

fn encoded(value: Value<'_>) -> Box<[u8]> {
    let mut bytes = Vec::with_capacity(16);
    key::encode(value, &mut bytes);
    bytes.into()
}

/// Returns the name of the field that a path begins with.
pub fn first_name(path: &Path) -> &str {
    path.components().next().unwrap_or_default()
}
