//! From the conditions on a field to ranges of its keys.

mod low_selectivity;

use crate::index::column_key;
use document::{Kind, Value, ValueBuf};
use query::predicate::Test;
use query::sort;
use values::regex::Beginning;

/// ElementTable compared with at once; a longer list is left to the evaluator.
const POINTS_MAX: usize = 2_000;

/// Keys from `low` (with it) to `high` (without it).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyRange {
    pub low: Vec<u8>,
    pub high: Vec<u8>,
}

impl KeyRange {
    fn point(key: Vec<u8>) -> KeyRange {
        KeyRange { high: column_key::behind(key.clone()), low: key }
    }

    fn of((low, high): (&[u8], &[u8])) -> KeyRange {
        KeyRange { low: low.to_vec(), high: high.to_vec() }
    }

    /// One key and no other.
    pub fn is_point(&self) -> bool {
        self.high.split_last().is_some_and(|(last, rest)| *last == 0 && rest == self.low)
    }
}

/// The keys that documents which match can have in one field.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    /// Keys with a place of their own: disjoint, ascending.
    pub plain: Vec<KeyRange>,
    /// Keys without, among which a match may hide.
    pub odd: Vec<KeyRange>,
    /// How many of the conditions this stands for.
    pub conditions: usize,
    /// Every document with one of the plain keys meets those conditions.
    pub exact: bool,
    /// Documents without the field are not among them.
    pub excludes_missing: bool,
    /// Only values within an array may match, not an array as a whole.
    pub excludes_arrays: bool,
    /// Most documents may lie in them: see [`low_selectivity`].
    pub wide: bool,
}

impl Bounds {
    /// `None` where no condition bounds the field. `bytes`: see [`column_key::expression`].
    pub fn of(path: &str, conditions: &[(&str, &Test)], bytes: usize) -> Option<Bounds> {
        let here = conditions.iter().filter(|(other, _)| *other == path);
        here.filter_map(|(_, test)| Bounds::of_test(test, bytes)).reduce(Bounds::and)
    }

    /// The bounds of one condition alone, as another element of an array may meet the others: of one that a value within an array meets, and the
    /// array as a whole does not.
    pub fn of_element(path: &str, conditions: &[(&str, &Test)], bytes: usize) -> Option<Bounds> {
        let here = conditions.iter().filter(|(other, _)| *other == path);
        let found = here.filter_map(|(_, test)| Bounds::of_test(test, bytes)).filter(|bounds| bounds.excludes_arrays);
        found.min_by_key(|bounds| bounds.wide)
    }

    /// The bounds of an index's fields by `min` and `max`: those that are the same in both, and the one behind them.
    pub fn of_stretch(range: &sort::KeyRange, fields: usize) -> Vec<Bounds> {
        let mut bounds = Vec::new();
        for field in 0..fields {
            let (low, high) = range.field_bounds(field);
            let goes_on = matches!((low, high), (Some((low, _)), Some((high, _))) if is_same(low, high));
            let low = low.map_or_else(|| column_key::NULLS.0.to_vec(), low_edge);
            let high = high.map_or_else(|| column_key::END.to_vec(), high_edge);
            bounds.push(Bounds::between(low, high));
            if !goes_on {
                break;
            }
        }
        bounds
    }

    /// All keys of a stretch, whatever their types.
    fn between(low: Vec<u8>, high: Vec<u8>) -> Bounds {
        let excludes_missing = low.as_slice() >= column_key::NULLS.1;
        let whole = KeyRange { low, high };
        let placed = [
            KeyRange::of((column_key::NULLS.0, column_key::ODD.0)),
            KeyRange::of((column_key::ODD.1, column_key::END)),
        ];
        let plain = intersections(&[whole], &placed);
        Bounds {
            conditions: 0,
            excludes_missing,
            excludes_arrays: false,
            ..Bounds::new(plain, vec![KeyRange::of(column_key::ODD)], false)
        }
    }

    /// Whether it is about booleans and null alone, which many documents share.
    pub fn is_of_flags(&self) -> bool {
        let flag = |range: &KeyRange| {
            column_key::FLAGS.iter().any(|(low, high)| *low <= &range.low[..] && &range.high[..] <= *high)
        };
        !self.plain.is_empty() && self.plain.iter().all(flag)
    }

    /// Every key that a document which matches may have.
    pub fn all(&self) -> Vec<KeyRange> {
        [self.plain.as_slice(), &self.odd].concat()
    }

    /// All keys but that of arrays.
    pub fn but_arrays() -> Bounds {
        let range = |low: &[u8], high: &[u8]| KeyRange::of((low, high));
        let (plain, odd) =
            (range(column_key::NULLS.0, column_key::HIDING.0), range(column_key::HIDING_BUT_ARRAYS.0, column_key::END));
        Bounds { conditions: 0, excludes_missing: false, ..Bounds::new(vec![plain], vec![odd], false) }
    }

    /// The keys of documents of which it is known that the field meets an array.
    pub fn of_arrays() -> Bounds {
        Bounds { conditions: 0, ..Bounds::new(Vec::new(), vec![KeyRange::of(column_key::HIDING)], false) }
    }

    /// The bounds without arrays, whose values have been looked up elsewhere.
    pub fn without_arrays(mut self) -> Bounds {
        let hiding = KeyRange::of(column_key::HIDING);
        let but_arrays = KeyRange::of(column_key::HIDING_BUT_ARRAYS);
        self.odd.iter_mut().filter(|range| **range == hiding).for_each(|range| *range = but_arrays.clone());
        self
    }

    fn of_test(test: &Test, bytes: usize) -> Option<Bounds> {
        match test {
            Test::Equal(value) => Bounds::of_points(std::slice::from_ref(value), bytes),
            Test::In(list) => {
                let beginnings =
                    list.regexes().iter().map(|regex| Some(Bounds::of_beginning(&regex.beginning()?, bytes)));
                beginnings.fold(Bounds::of_points(list.values(), bytes), |all, one| Some(all?.or(one?)))
            }
            Test::Less(value) => Bounds::of_range(value.as_value(), false, false, bytes),
            Test::LessOrEqual(value) => Bounds::of_range(value.as_value(), false, true, bytes),
            Test::Greater(value) => Bounds::of_range(value.as_value(), true, false, bytes),
            Test::GreaterOrEqual(value) => Bounds::of_range(value.as_value(), true, true, bytes),
            Test::Regex(regex) => match regex.beginning() {
                Some(beginning) => Some(Bounds::of_beginning(&beginning, bytes)),
                None => low_selectivity::of_test(test, bytes),
            },
            _ => low_selectivity::of_test(test, bytes),
        }
    }

    fn new(plain: Vec<KeyRange>, odd: Vec<KeyRange>, exact: bool) -> Bounds {
        Bounds { plain, odd, conditions: 1, exact, excludes_missing: true, excludes_arrays: true, wide: false }
    }

    pub fn is_points(&self) -> bool {
        self.plain.iter().all(KeyRange::is_point)
    }

    fn of_points(values: &[ValueBuf], bytes: usize) -> Option<Bounds> {
        if values.len() > POINTS_MAX {
            return None;
        }
        let mut bounds = Bounds::new(Vec::new(), vec![KeyRange::of(column_key::HIDING)], true);
        for value in values {
            bounds.add_point(value.as_value(), bytes)?;
        }
        bounds.plain.sort_by(|left, right| left.low.cmp(&right.low));
        bounds.plain.dedup();
        bounds.odd.sort_by(|left, right| left.low.cmp(&right.low));
        bounds.odd.dedup();
        Some(bounds)
    }

    fn add_point(&mut self, value: Value<'_>, bytes: usize) -> Option<()> {
        match value {
            Value::Null => {
                self.plain.push(KeyRange::of(column_key::NULLS));
                (self.exact, self.excludes_missing, self.excludes_arrays) = (false, false, false);
            }
            Value::Document(_) => self.odd.push(KeyRange::of(column_key::DOCUMENTS)),
            // Among arrays only.
            Value::Array(_) => self.excludes_arrays = false,
            Value::String(text) if text.len() > bytes => {
                let low = column_key::long_string(text.as_bytes(), bytes);
                self.odd.push(KeyRange { high: column_key::behind_prefix(low.clone()), low });
            }
            value => {
                let (key, exact) = column_key::place(value)?;
                self.exact &= exact;
                self.plain.push(KeyRange::point(key));
            }
        }
        Some(())
    }

    fn of_range(value: Value<'_>, above: bool, included: bool, bytes: usize) -> Option<Bounds> {
        let (low, high) = bracket(value.kind())?;
        let (place, exact) = column_key::place(value)?;
        // NaN is equal to itself and neither above nor below anything.
        if place == b"30" {
            return None;
        }
        let past = column_key::behind(place.clone());
        // What is not exact may be another value's place, too.
        let plain = match above {
            true => KeyRange { low: if included || !exact { place } else { past }, high: high.to_vec() },
            false => KeyRange { low: low.to_vec(), high: if included || !exact { past } else { place } },
        };
        let mut odd = Vec::new();
        if let Some(text) = value.string_bytes() {
            let edge = column_key::long_string(text, bytes);
            odd.push(match above {
                true => KeyRange { low: edge, high: b"F".to_vec() },
                false => KeyRange { low: b"E".to_vec(), high: column_key::behind_prefix(edge) },
            });
        }
        odd.push(KeyRange::of(column_key::HIDING));
        Some(Bounds::new(vec![plain], odd, exact))
    }

    /// Strings that begin with a text.
    fn of_beginning(beginning: &Beginning, bytes: usize) -> Bounds {
        let text = beginning.text.as_bytes();
        let low = [b"A", text].concat();
        let long = column_key::long_string(text, bytes);
        let plain = KeyRange { high: column_key::behind_prefix(low.clone()), low };
        let odd = KeyRange { high: column_key::behind_prefix(long.clone()), low: long };
        Bounds::new(vec![plain], vec![odd, KeyRange::of(column_key::HIDING)], beginning.is_all)
    }

    pub fn and(self, other: Bounds) -> Bounds {
        Bounds {
            plain: intersections(&self.plain, &other.plain),
            odd: intersections(&self.odd, &other.odd),
            conditions: self.conditions + other.conditions,
            exact: self.exact && other.exact,
            excludes_missing: self.excludes_missing || other.excludes_missing,
            excludes_arrays: self.excludes_arrays && other.excludes_arrays,
            wide: self.wide && other.wide,
        }
    }
}

impl Bounds {
    /// Bounds for one condition of which any part may hold.
    fn or(self, other: Bounds) -> Bounds {
        Bounds {
            plain: union([self.plain, other.plain].concat()),
            odd: union([self.odd, other.odd].concat()),
            conditions: 1,
            exact: self.exact && other.exact,
            excludes_missing: self.excludes_missing && other.excludes_missing,
            excludes_arrays: self.excludes_arrays && other.excludes_arrays,
            wide: self.wide || other.wide,
        }
    }
}

/// The same keys by disjoint, ascending ranges.
fn union(mut ranges: Vec<KeyRange>) -> Vec<KeyRange> {
    ranges.sort_by(|left, right| left.low.cmp(&right.low));
    let mut disjoint: Vec<KeyRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match disjoint.last_mut() {
            Some(last) if range.low < last.high => last.high = std::mem::take(&mut last.high).max(range.high),
            _ => disjoint.push(range),
        }
    }
    disjoint
}

fn intersections(left: &[KeyRange], right: &[KeyRange]) -> Vec<KeyRange> {
    let mut both = Vec::new();
    for one in left {
        for other in right {
            let low = one.low.clone().max(other.low.clone());
            let high = one.high.clone().min(other.high.clone());
            if low < high {
                both.push(KeyRange { low, high });
            }
        }
    }
    both
}

/// Whether the values have one place, which no others have.
fn is_same(one: Value<'_>, other: Value<'_>) -> bool {
    let place = |value| column_key::place(value).filter(|(_, exact)| *exact);
    place(one).is_some_and(|one| place(other).is_some_and(|other| one == other))
}

/// The first key of a stretch from a value on.
fn low_edge((value, included): (Value<'_>, bool)) -> Vec<u8> {
    match column_key::place(value) {
        Some((place, exact)) if exact && !included => column_key::behind(place),
        Some((place, _)) => place,
        None => around(value).0.to_vec(),
    }
}

/// The first key behind a stretch up to a value.
fn high_edge((value, included): (Value<'_>, bool)) -> Vec<u8> {
    match column_key::place(value) {
        Some((place, exact)) if exact && !included => place,
        Some((place, _)) => column_key::behind(place),
        None => around(value).1.to_vec(),
    }
}

/// Where the keys of values begin and end that have the type of one without a place.
fn around(value: Value<'_>) -> (&'static [u8], &'static [u8]) {
    match value {
        Value::Undefined | Value::Null => column_key::NULLS,
        Value::Document(_) | Value::Array(_) => column_key::ODD,
        _ => (column_key::NULLS.0, column_key::END),
    }
}

/// All keys that a range condition with a value of this kind can match: those of its own type.
fn bracket(kind: Kind) -> Option<(&'static [u8], &'static [u8])> {
    Some(match kind {
        // NaN lies below.
        Kind::Double | Kind::Int32 | Kind::Int64 | Kind::Decimal128 => (b"31", b"4"),
        Kind::String => column_key::STRINGS,
        Kind::Binary => (b"J", b"K"),
        Kind::ObjectId => (b"K", b"L"),
        Kind::Boolean => (b"L", b"M"),
        Kind::DateTime => (b"M", b"N"),
        Kind::Timestamp => (b"N", b"O"),
        _ => return None,
    })
}
