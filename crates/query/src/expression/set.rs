//! Arrays as sets: order and repetition do not count.

use super::evaluated::Evaluated;
use super::second_engine::{ReplacedError, checked, differs, null_first};
use super::tree::Arity::{Any, AtLeastTwo, Exactly};
use super::tree::{Algebra, Expr, Foldable, Operator};
use document::{Collation, Doc, Kind, Value, ValueBuf};
use error::{Code, Error, Result};
use steps::Counted;
use values::value_set::ValueSet;

/// `$setIsSubset` of a constant set, for which the server has a separate error code.
static SUBSET_OF_CONSTANT: Operator = Operator::collated("$setIsSubset", Exactly(2), |name, arguments, collation| {
    is_subset(name, arguments, collation, 17310)
});

pub(super) static OPERATORS: &[Operator] = &[
    Operator::collated("$setUnion", Any, union)
        .algebra(Algebra::CommutativeSet)
        .second_engine(checked(null_first, SETS)),
    Operator::collated("$setIntersection", Any, intersection)
        .algebra(Algebra::CommutativeSet)
        .second_engine(checked(null_first, SETS)),
    Operator::collated("$setDifference", Exactly(2), difference).second_engine(differs(SETS)),
    Operator::collated("$setIsSubset", Exactly(2), |name, arguments, collation| {
        is_subset(name, arguments, collation, 17046)
    })
    .check_constants(check_constants)
    .specialize(subset_of_constant),
    Operator::collated("$setEquals", AtLeastTwo { code: 17045 }, equals)
        .foldable(Foldable::Arguments)
        .check_constants(check_constants),
];

const SETS: &[ReplacedError] = &[
    (17043, 5126900, "All operands of ~ must be arrays."),
    (17047, 5126900, "All operands of ~ must be arrays."),
    (17048, 5126900, "All operands of ~ must be arrays."),
    (17049, 5126900, "All operands of ~ must be arrays."),
];

/// Distinct values in the order of a collation.
struct SortedSet<'v, 'c> {
    values: Vec<Value<'v>>,
    collation: &'c Collation,
}

impl<'v, 'c> SortedSet<'v, 'c> {
    fn of(array: Doc<'v>, collation: &'c Collation) -> Self {
        Self::of_values(array.values().counted().collect(), collation)
    }

    fn of_values(mut values: Vec<Value<'v>>, collation: &'c Collation) -> Self {
        values.sort_by(|a, b| {
            steps::step();
            collation.compare(*a, *b)
        });
        values.dedup_by(|a, b| {
            steps::step();
            collation.equal(*a, *b)
        });
        SortedSet { values, collation }
    }

    fn contains(&self, value: Value<'_>) -> bool {
        let compare = |candidate: &Value<'_>| {
            steps::step();
            self.collation.compare(*candidate, value)
        };
        self.values.binary_search_by(compare).is_ok()
    }

    fn is_subset(&self, other: &SortedSet<'_, '_>) -> bool {
        self.values.iter().all(|value| other.contains(*value))
    }
}

fn to_array<'a, 'v>(values: impl IntoIterator<Item = Value<'v>>) -> Evaluated<'a> {
    Evaluated::array(|writer| values.into_iter().counted().for_each(|value| writer.push(value)))
}

/// Returns the arguments as arrays; `None` if one is null.
fn arrays<'v>(name: &str, code: i32, arguments: &'v [Evaluated<'_>]) -> Result<Option<Vec<Doc<'v>>>> {
    let mut arrays = Vec::with_capacity(arguments.len());
    for argument in arguments {
        steps::step();
        match argument.value() {
            None | Some(Value::Null | Value::Undefined) => return Ok(None),
            Some(Value::Array(array)) => arrays.push(array),
            Some(_) => {
                let found = argument.type_name();
                let message = format!("All operands of {name} must be arrays. One argument is of type: {found}");
                return Err(Error::new(Code(code), message));
            }
        }
    }
    Ok(Some(arrays))
}

fn union<'a>(name: &'static str, arguments: &mut [Evaluated<'a>], collation: &Collation) -> Result<Evaluated<'a>> {
    let Some(arrays) = arrays(name, 17043, arguments)? else { return Ok(Evaluated::NULL) };
    Ok(to_array(SortedSet::of_values(arrays.into_iter().flat_map(Doc::values).counted().collect(), collation).values))
}

fn intersection<'a>(
    name: &'static str,
    arguments: &mut [Evaluated<'a>],
    collation: &Collation,
) -> Result<Evaluated<'a>> {
    let Some(arrays) = arrays(name, 17047, arguments)? else { return Ok(Evaluated::NULL) };
    let mut sets = arrays.into_iter().map(|array| SortedSet::of(array, collation));
    let Some(mut common) = sets.next() else { return Ok(to_array([])) };
    for mut set in sets {
        // Of equal values (1 or 1.0) those of the smaller set are retained.
        if set.values.len() < common.values.len() {
            std::mem::swap(&mut set, &mut common);
        }
        common.values.retain(|value| set.contains(*value));
    }
    Ok(to_array(common.values))
}

fn operand<'v>(name: &str, argument: &'v Evaluated<'_>, code: i32, position: &str) -> Result<Doc<'v>> {
    match argument.value() {
        Some(Value::Array(array)) => Ok(array),
        _ => {
            let found = argument.type_name();
            let message = format!("both operands of {name} must be arrays. {position} argument is of type: {found}");
            Err(Error::new(Code(code), message))
        }
    }
}

fn difference<'a>(name: &'static str, arguments: &mut [Evaluated<'a>], collation: &Collation) -> Result<Evaluated<'a>> {
    Evaluated::mark_all_read(arguments);
    if arguments.iter().any(Evaluated::is_nullish) {
        return Ok(Evaluated::NULL);
    }
    let (from, without) =
        (operand(name, &arguments[0], 17048, "First")?, operand(name, &arguments[1], 17049, "Second")?);
    let without = SortedSet::of(without, collation);
    let kept = ValueSet::of(from.values().counted().filter(|value| !without.contains(*value)), collation);
    Ok(to_array(kept.values().map(ValueBuf::as_value)))
}

/// Checks the constant argument that was folded last. The server does so while it prepares a query,
/// with separate codes.
fn check_constants(name: &'static str, arguments: &[Expr], folded: usize) -> Result<()> {
    let wrong = |argument: &Expr| match argument {
        Expr::Literal(value) if value.as_value().kind() != Kind::Array => Some(value.as_value().kind().alias()),
        Expr::Missing => Some("missing"),
        _ => None,
    };
    let Some(kind) = folded.checked_sub(1).and_then(|last| arguments.get(last)).and_then(wrong) else {
        return Ok(());
    };
    match (name, arguments.first()) {
        ("$setEquals", _) => Err(not_an_array(5887502, folded, kind)),
        ("$setIsSubset", Some(part)) if folded == 2 && !part.is_constant() => {
            let message = format!("both operands of {name} must be arrays. Second argument is of type: {kind}");
            Err(Error::new(Code(17311), message))
        }
        _ => Ok(()),
    }
}

fn subset_of_constant(arguments: &[Expr]) -> Option<&'static Operator> {
    let [part, whole] = arguments else { return None };
    (whole.is_constant() && !part.is_constant()).then_some(&SUBSET_OF_CONSTANT)
}

fn not_an_array(code: i32, position: usize, kind: &str) -> Error {
    let message = format!("All operands of $setEquals must be arrays. {position}-th argument is of type: {kind}");
    Error::new(Code(code), message)
}

fn is_subset<'a>(
    name: &'static str,
    arguments: &mut [Evaluated<'a>],
    collation: &Collation,
    code: i32,
) -> Result<Evaluated<'a>> {
    Evaluated::mark_all_read(arguments);
    let part = operand(name, &arguments[0], code, "First")?;
    let whole = operand(name, &arguments[1], 17042, "Second")?;
    Ok(SortedSet::of(part, collation).is_subset(&SortedSet::of(whole, collation)).into())
}

fn equals<'a>(_: &'static str, arguments: &mut [Evaluated<'a>], collation: &Collation) -> Result<Evaluated<'a>> {
    let mut sets = Vec::with_capacity(arguments.len());
    for (position, argument) in arguments.iter().enumerate() {
        match argument.value() {
            Some(Value::Array(array)) => sets.push(SortedSet::of(array, collation)),
            _ => return Err(not_an_array(17044, position + 1, argument.type_name())),
        }
    }
    let (first, others) = match sets.split_first() {
        Some(split) => split,
        None => return Ok(true.into()),
    };
    Ok(others.iter().all(|other| first.values.len() == other.values.len() && first.is_subset(other)).into())
}
