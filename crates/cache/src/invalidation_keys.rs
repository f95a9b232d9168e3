//! The ways to file a filter: paths with values, ranges of values or parts of texts, of which every document that matches has one. Parts of texts
//! are found by three bytes in a row (Cox, Regular Expression Matching with a Trigram Index, 2012).

use document::path::{self, Path};
use document::{Kind, Value, ValueBuf, key};
use query::Predicate;
use query::predicate::{Node, Test};
use smallvec::{SmallVec, smallvec};
use store::type_bracket;
use values::regex::Regex;

/// A filter with more values than this is not filed under each, but under the range that they lie in.
const VALUES_MAX: usize = 100;

/// A regular expression is filed under one of so many parts of what it contains.
const TRIGRAMS_MAX: usize = 16;

/// The `_id` field goes before all others: it says most.
const ID: &str = "_id";

/// Where a document's values have to lie.
#[derive(Clone, Debug)]
pub enum Spot {
    /// One of them has this key.
    At(Box<[u8]>),
    /// One of them has this key or a higher one, and one of them, perhaps another, that key or a lower one.
    Between(Box<[u8]>, Box<[u8]>),
    /// One of them is a text with these three bytes in a row, as [`trigrams`] has them.
    Containing(Trigram),
    /// There is one, whichever.
    Present,
}

/// Three bytes in a row.
pub type Trigram = u32;

/// Where an answer is to be found. No pairs: no document matches.
pub type Under = SmallVec<[(Path, Spot); 1]>;

/// One way to file a filter.
#[derive(Debug)]
pub struct Way {
    pub under: Under,
    /// A document that is found so matches, but for arrays and the ends of ranges.
    pub is_exact: bool,
    narrowness: Narrowness,
}

/// How much a condition says, most first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Narrowness {
    Values,
    Between,
    Containing,
    Above,
    Present,
}

/// The ways to file a filter, those that say most first. None: it has to be held against every change.
pub fn of(predicate: &Predicate) -> Vec<Way> {
    ways(predicate.root())
}

/// Whether a document with this `_id` may match, as far as the filter says something of the `_id`.
pub fn may_match_id(predicate: &Predicate, id: Value<'_>) -> bool {
    let id = encoded(id);
    let may_hold = |(path, spot): &(Path, Spot)| {
        *path != *ID
            || match spot {
                Spot::At(value) => *value == id,
                Spot::Between(low, high) => (low..=high).contains(&&id),
                Spot::Containing(_) | Spot::Present => true,
            }
    };
    of(predicate).iter().all(|way| way.under.iter().any(may_hold))
}

fn ways(node: &Node) -> Vec<Way> {
    let mut ways = match node {
        Node::Never => vec![Way { under: Under::new(), is_exact: true, narrowness: Narrowness::Values }],
        Node::Path { path, test } => match test {
            Test::Regex(regex) => {
                let by_range = regex.beginning().and_then(|_| way(path, test));
                by_range.into_iter().chain(by_trigrams(path, regex)).collect()
            }
            test => way(path, test).into_iter().collect(),
        },
        Node::And(all) => of_all(all),
        Node::Or(branches) => of_any(branches).into_iter().collect(),
        Node::Expression(expression) => expression.equality().map(of_equality).into_iter().collect(),
        _ => Vec::new(),
    };
    ways.sort_by_key(|way| (way.narrowness, way.under.iter().any(|(path, _)| *path != *ID), way.under.len()));
    ways
}

/// Each condition holds for all that match, so that one of them is enough. Ranges of one path are one.
fn of_all(all: &[Node]) -> Vec<Way> {
    let (mut found, mut ranges): (Vec<Way>, Vec<Way>) = (Vec::new(), Vec::new());
    let each: Vec<Vec<Way>> = all.iter().map(ways).collect();
    let is_each_filed = each.iter().all(|ways| !ways.is_empty());
    for way in each.into_iter().flatten() {
        if let Some(same) = ranges.iter_mut().find(|range| is_range_of_same_path(range, &way)) {
            same.narrow(&way);
        } else if matches!(way.under.as_slice(), [(_, Spot::Between(..))]) {
            ranges.push(way);
        } else {
            found.push(way);
        }
    }
    found.append(&mut ranges);
    let is_all = is_each_filed && found.len() == 1;
    found.iter_mut().for_each(|way| way.is_exact &= is_all);
    found
}

fn of_any(branches: &[Node]) -> Option<Way> {
    let mut all = Way { under: Under::new(), is_exact: true, narrowness: Narrowness::Values };
    for branch in branches {
        let way = ways(branch).into_iter().next()?;
        all.is_exact &= way.is_exact;
        all.narrowness = all.narrowness.max(way.narrowness);
        all.under.extend(way.under);
    }
    (all.under.len() <= VALUES_MAX).then_some(all)
}

fn is_range_of_same_path(one: &Way, other: &Way) -> bool {
    matches!(
        (one.under.as_slice(), other.under.as_slice()),
        ([(path, Spot::Between(..))], [(other, Spot::Between(..))]) if path.as_str() == other.as_str()
    )
}

impl Way {
    /// Both hold. For each there is a value in its range, so there is one above both lower ends and one below both upper ends.
    fn narrow(&mut self, other: &Way) {
        if let ([(_, Spot::Between(low, high))], [(_, Spot::Between(other_low, other_high))]) =
            (self.under.as_mut_slice(), other.under.as_slice())
        {
            if other_low > low {
                low.clone_from(other_low);
            }
            if other_high < high {
                high.clone_from(other_high);
            }
            self.is_exact &= other.is_exact;
            self.narrowness = match (self.narrowness, other.narrowness) {
                (Narrowness::Above, Narrowness::Above) => Narrowness::Between,
                (one, other) => one.min(other),
            };
        }
    }
}

fn way(path: &Path, test: &Test) -> Option<Way> {
    let (spots, narrowness, is_exact) = spots(path, test)?;
    let spots = match spots.len() > VALUES_MAX {
        true => smallvec![range_of(&spots)?],
        false => spots,
    };
    let under = spots.into_iter().map(|spot| (path.clone(), spot)).collect();
    Some(Way { under, is_exact, narrowness })
}

type Spots = SmallVec<[Spot; 1]>;

/// Where values are for which a test may hold, of which one is needed. A missing value counts as null.
fn spots(path: &Path, test: &Test) -> Option<(Spots, Narrowness, bool)> {
    Some(match test {
        Test::Never => (Spots::new(), Narrowness::Values, true),
        Test::Equal(value) => (of_values(std::slice::from_ref(value)), Narrowness::Values, true),
        Test::In(list) if list.regexes().is_empty() => (of_values(list.values()), Narrowness::Values, true),
        Test::In(list) if list.regexes().iter().all(|regex| regex.beginning().is_some()) => {
            let mut spots = of_values(list.values());
            spots.extend(list.regexes().iter().filter_map(of_regex).flat_map(|(spots, _)| spots));
            (spots, Narrowness::Between, false)
        }
        Test::Less(value) => of_comparison(value, false, false)?,
        Test::LessOrEqual(value) => of_comparison(value, false, true)?,
        Test::Greater(value) => of_comparison(value, true, false)?,
        Test::GreaterOrEqual(value) => of_comparison(value, true, true)?,
        Test::Regex(regex) if regex.beginning().is_some() => {
            let (spots, is_all) = of_regex(regex)?;
            (spots, Narrowness::Between, is_all)
        }
        // What a number in the path picks is not taken apart as other arrays are.
        Test::ElementSatisfies(tests) if path.components().all(|name| path::position(name).is_none()) => {
            let of_test = |test: &Test| match test {
                // Elements are there, and those that are arrays are not looked into.
                Test::Not(_) | Test::ElementSatisfies(_) => None,
                test => self::way(path, test),
            };
            let way = tests.iter().filter_map(of_test).reduce(|mut one, other| {
                if is_range_of_same_path(&one, &other) {
                    one.narrow(&other);
                    one
                } else if other.narrowness < one.narrowness {
                    other
                } else {
                    one
                }
            });
            match way {
                Some(way) => (way.under.into_iter().map(|(_, spot)| spot).collect(), way.narrowness, false),
                None => (smallvec![Spot::Present], Narrowness::Present, false),
            }
        }
        test if needs_a_value(test) => (smallvec![Spot::Present], Narrowness::Present, matches!(test, Test::Exists)),
        _ => return None,
    })
}

/// Whether a test holds for no missing value, so that it cannot hold for a document without the field.
fn needs_a_value(test: &Test) -> bool {
    match test {
        Test::Collated(test, _) => match &**test {
            Test::Equal(value) => value.kind() != Kind::Null,
            test => needs_a_value(test),
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

fn of_values(values: &[ValueBuf]) -> Spots {
    let mut spots = Spots::new();
    for value in values {
        if value.kind() == Kind::Null {
            // What is undefined is as good as null.
            spots.push(Spot::At(encoded(Value::Undefined)));
        }
        spots.push(Spot::At(encoded(value.as_value())));
    }
    spots
}

/// Where what is less or greater than a value lies: among those that it compares with.
fn of_comparison(value: &ValueBuf, above: bool, or_equal: bool) -> Option<(Spots, Narrowness, bool)> {
    let kind = value.kind();
    let is_nan = match value.as_value() {
        Value::Double(number) => number.is_nan(),
        Value::Decimal128(number) => number.is_nan(),
        _ => false,
    };
    if is_nan || matches!((kind, above), (Kind::Null, _) | (Kind::MinKey, false) | (Kind::MaxKey, true)) {
        let spots = if or_equal { of_values(std::slice::from_ref(value)) } else { Spots::new() };
        return Some((spots, Narrowness::Values, true));
    }
    // Everything lies above the one and below the other, what is missing too.
    if matches!(kind, Kind::MinKey | Kind::MaxKey) {
        return None;
    }
    let (lowest, highest, _) = type_bracket::of(kind);
    let range = match above {
        true => Spot::Between(encoded(value.as_value()), encoded(highest)),
        false => Spot::Between(encoded(lowest), encoded(value.as_value())),
    };
    Some((smallvec![range], Narrowness::Above, true))
}

/// The strings that a regular expression may match, and itself; `None` where those may be any.
fn of_regex(regex: &Regex) -> Option<(Spots, bool)> {
    let beginning = regex.beginning()?;
    let mut low = encoded(Value::String(&beginning.text)).into_vec();
    // Without the end of the text: what begins so has more, of any bytes. The first byte, that of strings, is never the last one
    // of all.
    low.pop();
    let mut high = low.clone();
    while high.last() == Some(&0xFF) {
        high.pop();
    }
    if let Some(last) = high.last_mut() {
        *last += 1;
    }
    let itself = Spot::At(encoded(regex.to_value().as_value()));
    Some((smallvec![Spot::Between(low.into(), high.into()), itself], beginning.is_all))
}

/// The ways to file what matches a regular expression: it is a text that contains what the pattern says, or the expression itself.
fn by_trigrams(path: &Path, regex: &Regex) -> Vec<Way> {
    let itself = Spot::At(encoded(regex.to_value().as_value()));
    let texts = regex.contained_texts();
    let all = texts.iter().flat_map(|text| trigrams(text.as_bytes()));
    let folds = |trigram: &Trigram| trigram.to_be_bytes().into_iter().all(folds_alone);
    let telling = all.filter(|trigram| !regex.ignores_case() || folds(trigram));
    let way = |trigram| Way {
        under: smallvec![(path.clone(), Spot::Containing(trigram)), (path.clone(), itself.clone())],
        is_exact: false,
        narrowness: Narrowness::Containing,
    };
    telling.take(TRIGRAMS_MAX).map(way).collect()
}

/// Each three bytes in a row of a text, with ASCII letters in lower case.
pub fn trigrams(text: &[u8]) -> impl Iterator<Item = Trigram> {
    let joined = |before: &mut Trigram, byte: &u8| {
        *before = *before << 8 & 0xFF_FFFF | Trigram::from(byte.to_ascii_lowercase());
        Some(*before)
    };
    text.iter().scan(0, joined).skip(2)
}

/// Whether a letter is the same, but for case, as no other than an ASCII letter: K is a sign for kelvins too, and s is written long as well.
fn folds_alone(byte: u8) -> bool {
    byte.is_ascii() && !matches!(byte, b'k' | b's')
}

/// `$eq` in an expression compares arrays whole.
fn of_equality((path, value): (String, Value<'_>)) -> Way {
    let under = smallvec![(Path::new(&path), Spot::At(encoded(value)))];
    Way { under, is_exact: false, narrowness: Narrowness::Values }
}

/// The range that all values lie in.
fn range_of(spots: &Spots) -> Option<Spot> {
    let ends = |spot: &Spot| match spot {
        Spot::At(value) => Some((value.clone(), value.clone())),
        Spot::Between(low, high) => Some((low.clone(), high.clone())),
        Spot::Containing(_) | Spot::Present => None,
    };
    let (low, high) = spots.iter().filter_map(ends).reduce(|(low, high), (l, h)| (low.min(l), high.max(h)))?;
    Some(Spot::Between(low, high))
}

fn encoded(value: Value<'_>) -> Box<[u8]> {
    let mut bytes = Vec::with_capacity(16);
    key::encode(value, &mut bytes);
    bytes.into()
}
