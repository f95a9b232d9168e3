//! The window of a document: the neighbors that are part of it.

use super::partition::WindowPartition;
use document::compare::compare;
use document::{Doc, Element, Value, ValueBuf};
use error::{Code, Error, Result};
use query::expression::date::calculate::TimeUnit;
use query::{Context, Expression};
use std::cmp::Ordering;
use std::ops::Range;
use values::number::{Number, Sum};
use values::text;

#[derive(Debug)]
pub(super) enum WindowBounds {
    /// By position, relative to the document; `None` is unbounded.
    Documents(Option<i64>, Option<i64>),
    /// By the sort value, relative to the document's. `current` is the document itself, without its
    /// equals.
    Range(Bound<Number>, Bound<Number>, Option<TimeUnit>),
}

impl WindowBounds {
    /// Parses the bounds. `sorted` is the number of fields that the stage sorts by, if it sorts.
    pub fn parse(window: Option<Value<'_>>, context: &Context, sorted: Option<usize>) -> Result<WindowBounds> {
        let Some(window) = window else { return Ok(WindowBounds::Documents(None, None)) };
        let Value::Document(window) = window else {
            return Err(Error::failed_to_parse("'window' field must be an object"));
        };
        let (documents, range, unit) = (window.element("documents"), window.element("range"), window.get("unit"));
        let is_known = |name: &str| matches!(name, "documents" | "range" | "unit");
        if !window.elements().all(|element| is_known(element.key())) {
            return Err(Error::failed_to_parse(match documents {
                Some(_) => "'window' field that specifies documents cannot have other fields",
                None => {
                    "'window' field can only contain 'documents' as the only argument or 'range' with an optional 'unit' \
                     field"
                }
            }));
        }
        match (documents, range) {
            (Some(_), Some(_)) => {
                Err(Error::failed_to_parse("Window bounds can specify either 'documents' or 'unit', not both."))
            }
            (_, None) if unit.is_some() => {
                Err(Error::failed_to_parse("Window bounds can only specify 'unit' with range-based bounds."))
            }
            (None, None) => Ok(WindowBounds::Documents(None, None)),
            (Some(pair), None) => Self::parse_documents(pair, context, sorted),
            (None, Some(pair)) => Self::parse_range(pair, unit, context, sorted),
        }
    }

    fn parse_documents(pair: Element<'_>, context: &Context, sorted: Option<usize>) -> Result<WindowBounds> {
        let [lower, upper] = both(pair)?.map(|bound| {
            parse_bound(bound, context, |value| {
                let whole = values::integer::as_i64_exact(value).and_then(|whole| i32::try_from(whole).ok());
                let message = "Numeric document-based bounds must be an integer";
                whole.map(i64::from).ok_or_else(|| Error::failed_to_parse(message))
            })
        });
        let (lower, upper) = (lower?.resolve(0), upper?.resolve(0));
        if let (Some(lower), Some(upper)) = (lower, upper)
            && lower > upper
        {
            return Err(crossed_bounds(&lower.to_string(), &upper.to_string()));
        }
        if sorted.is_none() && (lower.is_some() || upper.is_some()) {
            return Err(Error::new(Code(5339901), "Document-based bounds require a sortBy"));
        }
        Ok(WindowBounds::Documents(lower, upper))
    }

    fn parse_range(
        pair: Element<'_>,
        unit: Option<Value<'_>>,
        context: &Context,
        sorted: Option<usize>,
    ) -> Result<WindowBounds> {
        let unit_name = unit
            .map(|unit| unit.as_str().ok_or_else(|| Error::failed_to_parse("'unit' must be a string")))
            .transpose()?;
        let [lower, upper] = both(pair)?.map(|bound| {
            parse_bound(bound, context, |value| {
                if unit_name.is_some() && values::integer::as_i64_exact(value).is_none() {
                    let message = "With 'unit', range-based bounds must be an integer";
                    return Err(Error::failed_to_parse(message));
                }
                let message = "Range-based bounds expression must be a number";
                Number::from_value(value).ok_or_else(|| Error::failed_to_parse(message))
            })
        });
        let (lower, upper) = (lower?, upper?);
        if let (Some(lower), Some(upper)) = (lower.resolve(Number::Int32(0)), upper.resolve(Number::Int32(0)))
            && compare(lower.to_value(), upper.to_value()).is_gt()
        {
            let shown = |number: Number| text::value(number.to_value()).to_string();
            return Err(crossed_bounds(&shown(lower), &shown(upper)));
        }
        let unit = unit_name.map(parse_unit).transpose()?;
        if sorted != Some(1) {
            return Err(Error::new(Code(5339902), "Range-based bounds require sortBy a single field"));
        }
        Ok(WindowBounds::Range(lower, upper, unit))
    }

    /// Returns whether windows start at the partition's first document.
    pub fn starts_unbounded(&self) -> bool {
        matches!(self, WindowBounds::Documents(None, _) | WindowBounds::Range(Bound::Unbounded, ..))
    }
}

pub(crate) fn parse_unit(name: &str) -> Result<TimeUnit> {
    TimeUnit::parse(name).ok_or_else(|| Error::failed_to_parse(format!("unknown time unit value: {name}")))
}

fn both(pair: Element<'_>) -> Result<[Value<'_>; 2]> {
    let refuse = || {
        let found = text::element(pair.key(), pair.value());
        Error::failed_to_parse(format!("Window bounds must be a 2-element array: {found}"))
    };
    let values: Vec<Value<'_>> = pair.value().as_array().ok_or_else(refuse)?.values().collect();
    values.try_into().map_err(|_| refuse())
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Bound<T> {
    Unbounded,
    Current,
    By(T),
}

impl<T> Bound<T> {
    fn resolve(self, current: T) -> Option<T> {
        match self {
            Bound::Unbounded => None,
            Bound::Current => Some(current),
            Bound::By(offset) => Some(offset),
        }
    }
}

fn parse_bound<T>(
    bound: Value<'_>,
    context: &Context,
    offset: impl FnOnce(Value<'_>) -> Result<T>,
) -> Result<Bound<T>> {
    match bound {
        Value::String("unbounded") => Ok(Bound::Unbounded),
        Value::String("current") => Ok(Bound::Current),
        Value::String(_) => Err(Error::failed_to_parse("Window bounds must be 'unbounded', 'current', or a number.")),
        value => {
            let expression = Expression::parse(value, context)?;
            // An expression that reads nothing and is no constant fails below, with its own error.
            let is_read = expression.is_never_folded() || expression.paths().is_none_or(|paths| !paths.is_empty());
            if !expression.is_constant() && is_read {
                return Err(Error::failed_to_parse("Window bounds expression must be a constant."));
            }
            offset(expression.evaluate(Doc::EMPTY)?.value_or_null()).map(Bound::By)
        }
    }
}

fn crossed_bounds(lower: &str, upper: &str) -> Error {
    Error::new(Code(5339900), format!("Lower bound must not exceed upper bound: [{lower}, {upper}]"))
}

/// The windows of a partition, from its first document on.
#[derive(Debug)]
pub(super) struct WindowCursor {
    /// The values that range-based bounds are relative to, one per document that has it. `None`
    /// unless the stage sorts by exactly one field, ascending.
    values: Option<Vec<Option<ValueBuf>>>,
    start: usize,
    end: usize,
}

impl WindowCursor {
    /// Begins a partition. `sort_by` is the only field that is sorted by, ascending; range-based
    /// bounds require it.
    pub fn begin(
        bounds: &WindowBounds,
        sort_by: Option<&Expression>,
        partition: &WindowPartition,
    ) -> Result<WindowCursor> {
        let mut values = None;
        if let (WindowBounds::Range(..), Some(sort_by)) = (bounds, sort_by) {
            let of_row = |row| Ok(sort_by.evaluate(partition.get(row)?.as_item())?.into_owned());
            values = Some((0..partition.len()).map(of_row).collect::<Result<_>>()?);
        }
        Ok(WindowCursor { values, start: 0, end: 0 })
    }

    /// Returns the window of the document at `row`. Rows must be passed in order: neither end ever
    /// moves back. A document whose value cannot start a range fails at its own row, not before.
    pub fn window(&mut self, bounds: &WindowBounds, row: usize, count: usize) -> Result<Range<usize>> {
        match bounds {
            WindowBounds::Documents(lower, upper) => {
                let clamp = |offset: i64| usize::try_from(row as i64 + offset).unwrap_or(0).min(count);
                let start = lower.map_or(0, clamp);
                let end = upper.map_or(count, |offset| clamp(offset.saturating_add(1)));
                Ok(start..end.max(start))
            }
            WindowBounds::Range(lower, upper, unit) => {
                let values = self.values.as_deref();
                let values =
                    values.ok_or_else(|| Error::new(Code(5429404), "Missing _sortExpr with range-based bounds"))?;
                let base = range_base(values.get(row).and_then(Option::as_ref), *unit)?;
                match lower {
                    Bound::Unbounded => {}
                    Bound::Current => self.start = row,
                    Bound::By(lower) => {
                        let limit = add_offset(base, *lower, *unit)?;
                        self.start +=
                            count_matching(values, self.start, limit.as_value(), |order| order == Ordering::Less);
                    }
                }
                match upper {
                    // As far as there are values that can be compared with a range.
                    Bound::Unbounded => {
                        let rest = values.get(self.end..).unwrap_or_default().iter();
                        self.end += rest.take_while(|value| range_base(value.as_ref(), *unit).is_ok()).count();
                    }
                    Bound::Current => self.end = row + 1,
                    Bound::By(upper) => {
                        let limit = add_offset(base, *upper, *unit)?;
                        self.end +=
                            count_matching(values, self.end, limit.as_value(), |order| order != Ordering::Greater);
                    }
                }
                Ok(self.start..self.end.max(self.start))
            }
        }
    }
}

/// Counts the consecutive values from an index on that compare this way to the limit. Missing
/// values sort before null.
fn count_matching(
    values: &[Option<ValueBuf>],
    from: usize,
    limit: Value<'_>,
    keep: impl Fn(Ordering) -> bool,
) -> usize {
    let rest = values.get(from..).unwrap_or_default();
    let is_kept =
        |value: &Option<ValueBuf>| keep(compare(value.as_ref().map_or(Value::Undefined, ValueBuf::as_value), limit));
    rest.iter().take_while(|value| is_kept(value)).count()
}

/// Returns the value that a document's range starts from.
fn range_base(value: Option<&ValueBuf>, unit: Option<TimeUnit>) -> Result<Value<'_>> {
    let value = value.map(ValueBuf::as_value);
    let expected = |code: i32, what: &str| {
        let found = value.map_or("missing", |value| value.kind().alias());
        Error::new(Code(code), format!("Invalid range: Expected the sortBy field to be a {what}, but it was {found}"))
    };
    match (value, unit) {
        (Some(value @ Value::DateTime(_)), Some(_)) => Ok(value),
        (_, Some(_)) => Err(expected(5429513, "Date")),
        (Some(Value::DateTime(_)), None) => {
            let message = "Invalid range: For windows that involve date or time ranges, a unit must be provided.";
            Err(Error::new(Code(5429413), message))
        }
        (Some(value), None) if value.kind().is_number() => Ok(value),
        (_, None) => Err(expected(5429414, "number")),
    }
}

fn add_offset(base: Value<'_>, offset: Number, unit: Option<TimeUnit>) -> Result<ValueBuf> {
    if let (Value::DateTime(moment), Some(unit)) = (base, unit) {
        let amount = values::integer::as_i64_exact(offset.to_value()).unwrap_or(0);
        let out_of_range = || Error::new(Code(5166406), "dateAdd overflowed");
        return Ok(Value::DateTime(unit.add(moment, amount).ok_or_else(out_of_range)?).to_owned());
    }
    let mut sum = Sum::default();
    Number::from_value(base).into_iter().chain([offset]).for_each(|number| sum.add(number));
    Ok(sum.total().to_value().to_owned())
}
