//! The stage's specification, and its output fields: `{$sum: "$x", window: {…}}`.

use super::SetWindowFields;
use super::bounds::{WindowBounds, parse_unit};
use crate::accumulate::{Accumulator, SelectN, Top};
use crate::field_tree::{FieldTree, PathSet};
use crate::operand::Operand;
use document::{Decimal128, Doc, Element, Value, ValueBuf};
use error::{Code, Error, Result};
use query::expression::check_field_path;
use query::expression::date::calculate::TimeUnit;
use query::{Context, Expression, Folding, Sort};
use values::decimal;
use values::integer::as_i64_exact;
use values::number::Number;
use values::text;

/// The function of an output field.
#[derive(Debug)]
pub(super) enum WindowFunction {
    /// Windows that only grow: an accumulator, as in `$group`.
    Growing(Accumulator, WindowBounds),
    Sliding(SlidingFunction, WindowBounds),
    /// The value of the window's first or last document.
    End {
        input: Operand,
        last: bool,
        bounds: WindowBounds,
    },
    Derivative {
        input: Operand,
        unit: Option<TimeUnit>,
        bounds: WindowBounds,
    },
    Shift {
        output: Operand,
        by: i64,
        default: Option<ValueBuf>,
    },
    Rank,
    DenseRank,
    DocumentNumber,
    MovingAverage {
        input: Operand,
        alpha: Decimal128,
    },
    LinearFill(Operand),
    CarryForward(Operand),
}

impl WindowFunction {
    /// Returns the last row of a partition that the one at `row` depends on; `None` if that may be
    /// any.
    pub fn last_row_needed(&self, row: usize) -> Option<usize> {
        let offset = match self {
            WindowFunction::Growing(_, bounds)
            | WindowFunction::Sliding(_, bounds)
            | WindowFunction::End { bounds, .. }
            | WindowFunction::Derivative { bounds, .. } => match bounds {
                WindowBounds::Documents(_, upper) => (*upper)?,
                WindowBounds::Range(..) => return None,
            },
            WindowFunction::Shift { by, .. } => *by,
            WindowFunction::LinearFill(_) => 1,
            WindowFunction::Rank | WindowFunction::DenseRank | WindowFunction::DocumentNumber => 0,
            WindowFunction::MovingAverage { .. } | WindowFunction::CarryForward(_) => 0,
        };
        Some(row.saturating_add(usize::try_from(offset).unwrap_or(0)))
    }
}

/// Functions over windows that documents enter and leave.
#[derive(Debug)]
pub(super) enum SlidingFunction {
    Count,
    Sum(Operand),
    Average(Operand),
    Deviation { operand: Operand, sample: bool },
    Covariance { pair: Operand, sample: bool },
    Integral { input: Operand, unit: Option<TimeUnit> },
    Push(Operand),
    AddToSet(Operand),
    Minimum(Operand),
    Maximum(Operand),
    Several(SelectN),
    Top(Top),
}

pub(super) fn parse_stage(spec: Value<'_>, context: &Context) -> Result<SetWindowFields> {
    let Value::Document(spec) = spec else {
        let kind = spec.kind().alias();
        let message = format!("the $setWindowFields stage specification must be an object, found {kind}");
        return Err(Error::failed_to_parse(message));
    };
    let (mut partition, mut sort, mut output) = (None, None, None);
    for element in spec.elements() {
        match (element.key(), element.value()) {
            ("partitionBy", value) => partition = Some(value),
            ("sortBy" | "output", Value::Null) => {}
            ("sortBy", value) => sort = Some(object(element, value)?),
            ("output", value) => output = Some(object(element, value)?),
            (other, _) => {
                let message = format!("BSON field '$setWindowFields.{other}' is an unknown field.");
                return Err(Error::new(Code(40415), message));
            }
        }
    }
    let output = output.ok_or_else(|| {
        Error::new(Code(40414), "BSON field '$setWindowFields.output' is missing but a required field")
    })?;
    let folding = Context { folding: Folding::AtOnce, ..context.clone() };
    let partition = partition.map(|partition| Expression::parse_folding(partition, &folding)).transpose()?;
    let (partition, failure) = partition.map_or((None, None), |(partition, failure)| (Some(partition), failure));
    let failure = failure.map(|failure| failure.context("Failed to optimize partitionBy expression :: caused by :: "));
    let sort = sort.map(|sort| parse_sort(sort, context)).transpose()?;
    let sort_by = match sort.as_ref().map(Sort::parts) {
        Some([only]) => Some(Expression::field(only.path.as_str())?),
        _ => None,
    };
    let parser = FunctionParser { context, sort: sort.as_ref(), has_sort_by: sort_by.is_some() };
    let (mut functions, mut fields, mut paths) = (Vec::new(), FieldTree::default(), PathSet::default());
    for (path, value) in output.iter() {
        let function = parser.parse(path, value)?;
        check_field_path(path)?;
        if paths.insert(path).is_some() {
            let message = "$setWindowFields 'output' specification contains two conflicting paths";
            return Err(Error::new(Code(6307900), message));
        }
        fields.insert(path, functions.len());
        functions.push(function);
    }
    // The failure of a constant is reported once all has been parsed.
    failure.map_or(Ok(()), Err)?;
    if partition.as_ref().is_some_and(Expression::is_root) {
        return Err(Error::new(Code(16409), "FieldPath::tail() called on single element path"));
    }
    if let Some(Value::Array(_)) = partition.as_ref().and_then(Expression::as_literal) {
        return Err(super::array_partition());
    }
    // A constant makes no partitions.
    let partition = partition.filter(|partition| partition.as_literal().is_none());
    let unsorted = || Sort::parse(Doc::EMPTY, context);
    let order = sort.clone().map_or_else(unsorted, Ok)?;
    let field = partition.as_ref().and_then(Expression::as_field);
    let order_has_partition = field.is_some();
    let order = field.map_or_else(|| order.clone(), |path| order.preceded_by(&path));
    let collation = context.collation.clone();
    Ok(SetWindowFields { partition, order, order_has_partition, sort, sort_by, functions, fields, collation })
}

fn object<'v>(element: Element<'v>, value: Value<'v>) -> Result<Doc<'v>> {
    value.as_document().ok_or_else(|| {
        let (name, kind) = (element.key(), element.kind.alias());
        let message =
            format!("BSON field '$setWindowFields.{name}' is the wrong type '{kind}', expected type 'object'");
        Error::type_mismatch(message)
    })
}

fn parse_sort(sort: Doc<'_>, context: &Context) -> Result<Sort> {
    if sort.is_empty() { Ok(Sort::default()) } else { Sort::parse_stage(sort, context) }
}

struct FunctionParser<'p> {
    context: &'p Context,
    sort: Option<&'p Sort>,
    has_sort_by: bool,
}

impl FunctionParser<'_> {
    fn parse(&self, path: &str, value: Value<'_>) -> Result<WindowFunction> {
        let Value::Document(spec) = value else {
            return Err(Error::failed_to_parse(format!("The field '{path}' must be an object")));
        };
        let Some(function) = spec.elements().find(|element| element.key_bytes().starts_with(b"$")) else {
            let first = spec.first().map_or_else(String::new, |first| format!(", {}", first.key()));
            return Err(Error::failed_to_parse(format!("Expected a $-prefixed window function{first}")));
        };
        let name = function.key();
        if !NAMES.contains(&name) {
            return Err(Error::failed_to_parse(format!("Unrecognized window function, {name}")));
        }
        let second = spec.elements().filter(|element| element.key_bytes().starts_with(b"$")).nth(1);
        if second.is_some() {
            return Err(Error::failed_to_parse("Cannot specify two functions in window function spec"));
        }
        match name {
            "$rank" | "$denseRank" | "$documentNumber" => self.parse_rank(name, spec, function.value()),
            "$expMovingAvg" => self.parse_moving_average(spec, function.value()),
            "$shift" => self.parse_shift(spec, function.value()),
            "$linearFill" | "$locf" => self.parse_fill(name, spec, function.value()),
            "$derivative" => self.parse_derivative(name, spec, function.value()),
            "$integral" => {
                let (input, unit, bounds) = self.parse_over_time(name, spec, function.value())?;
                Ok(WindowFunction::Sliding(SlidingFunction::Integral { input, unit }, bounds))
            }
            _ => self.parse_windowed(name, spec, function.value()),
        }
    }

    fn bounds(&self, spec: Doc<'_>) -> Result<WindowBounds> {
        WindowBounds::parse(spec.get("window"), self.context, self.sort.map(|sort| sort.parts().len()))
    }

    fn operand(&self, value: Value<'_>) -> Result<Operand> {
        Operand::parse(value, self.context)
    }

    /// Parses functions that take a window and nothing else.
    fn parse_windowed(&self, name: &str, spec: Doc<'_>, argument: Value<'_>) -> Result<WindowFunction> {
        let is_known = matches!(
            name,
            "$first" | "$last" | "$firstN" | "$lastN" | "$minN" | "$maxN" | "$top" | "$topN" | "$bottom" | "$bottomN"
        );
        let unknown = spec.elements().find(|element| element.key() != "window" && element.key() != name);
        if let Some(unknown) = unknown {
            let unknown = unknown.key();
            return Err(Error::failed_to_parse(match is_known {
                true => format!("{name} got unexpected argument: {unknown}"),
                false => format!("Window function found an unknown argument: {unknown}"),
            }));
        }
        if name == "$count" && !argument.as_document().is_some_and(Doc::is_empty) {
            return Err(Error::failed_to_parse("$count only accepts an empty object as input"));
        }
        if let "$first" | "$last" = name {
            let (input, last) = (self.operand(argument)?, name == "$last");
            return Ok(WindowFunction::End { input, last, bounds: self.bounds(spec)? });
        }
        let sliding = self.parse_sliding(name, argument)?;
        let bounds = self.bounds(spec)?;
        if !bounds.starts_unbounded() {
            return Ok(WindowFunction::Sliding(sliding, bounds));
        }
        Ok(match sliding {
            // These compute the same either way.
            sliding @ (SlidingFunction::Covariance { .. } | SlidingFunction::Integral { .. }) => {
                WindowFunction::Sliding(sliding, bounds)
            }
            SlidingFunction::Count => WindowFunction::Growing(Accumulator::count(), bounds),
            SlidingFunction::Several(several) => WindowFunction::Growing(Accumulator::SelectN(several), bounds),
            SlidingFunction::Top(top) => WindowFunction::Growing(Accumulator::Top(top), bounds),
            _ => match Accumulator::constructor(name) {
                Some(make) => {
                    WindowFunction::Growing(make(self.operand(argument)?, self.context.collation.clone()), bounds)
                }
                None => return Err(Error::failed_to_parse(format!("Unrecognized window function, {name}"))),
            },
        })
    }

    fn parse_sliding(&self, name: &str, argument: Value<'_>) -> Result<SlidingFunction> {
        Ok(match name {
            "$count" => SlidingFunction::Count,
            "$firstN" | "$lastN" | "$minN" | "$maxN" => {
                SlidingFunction::Several(SelectN::parse(name, argument, self.context)?)
            }
            "$top" | "$topN" | "$bottom" | "$bottomN" => {
                SlidingFunction::Top(Top::parse(name, argument, self.context)?)
            }
            "$sum" => SlidingFunction::Sum(self.operand(argument)?),
            "$avg" => SlidingFunction::Average(self.operand(argument)?),
            "$min" => SlidingFunction::Minimum(self.operand(argument)?),
            "$max" => SlidingFunction::Maximum(self.operand(argument)?),
            "$push" => SlidingFunction::Push(self.operand(argument)?),
            "$addToSet" => SlidingFunction::AddToSet(self.operand(argument)?),
            "$stdDevPop" | "$stdDevSamp" => {
                SlidingFunction::Deviation { operand: self.operand(argument)?, sample: name == "$stdDevSamp" }
            }
            _ => SlidingFunction::Covariance { pair: self.operand(argument)?, sample: name == "$covarianceSamp" },
        })
    }

    fn parse_rank(&self, name: &str, spec: Doc<'_>, argument: Value<'_>) -> Result<WindowFunction> {
        if spec.elements().nth(1).is_some() {
            return Err(Error::new(Code(5371601), "Rank style window functions take no other arguments"));
        }
        if !argument.as_document().is_some_and(Doc::is_empty) {
            return Err(Error::new(Code(5371603), "(None) must be specified with '{}' as the value"));
        }
        if !self.has_sort_by {
            return Err(self.needs_one_sort_field(5371602, name));
        }
        Ok(match name {
            "$rank" => WindowFunction::Rank,
            "$denseRank" => WindowFunction::DenseRank,
            _ => WindowFunction::DocumentNumber,
        })
    }

    fn needs_one_sort_field(&self, code: i32, name: &str) -> Error {
        let message = format!("{name} must be specified with a top level sortBy expression with exactly one element");
        Error::new(Code(code), message)
    }

    fn parse_moving_average(&self, spec: Doc<'_>, argument: Value<'_>) -> Result<WindowFunction> {
        let Some(argument) = argument.as_document().filter(|_| spec.elements().nth(1).is_none()) else {
            let message = "$expMovingAvg must have exactly one argument that is an object";
            return Err(Error::failed_to_parse(message));
        };
        if self.sort.is_none() {
            return Err(Error::failed_to_parse("$expMovingAvg requires an explicit 'sortBy'"));
        }
        const FIELDS: &str = "$expMovingAvg sub object must have exactly two fields: An 'input' field, and either an 'N' \
                              field or an 'alpha' field";
        let (mut input, mut alpha) = (None, None);
        for (name, value) in argument.iter() {
            match name {
                "input" => input = Some(self.operand(value)?),
                "N" if alpha.is_none() => alpha = Some(alpha_of_count(value)?),
                "alpha" if alpha.is_none() => alpha = Some(plain_alpha(value)?),
                "N" | "alpha" => return Err(Error::failed_to_parse(FIELDS)),
                _ => {
                    let message = format!("Got unrecognized field in $expMovingAvg{FIELDS}");
                    return Err(Error::failed_to_parse(message));
                }
            }
        }
        match (input, alpha) {
            (Some(input), Some(alpha)) => Ok(WindowFunction::MovingAverage { input, alpha }),
            _ => Err(Error::failed_to_parse(FIELDS)),
        }
    }

    fn parse_shift(&self, spec: Doc<'_>, argument: Value<'_>) -> Result<WindowFunction> {
        if self.sort.is_none() {
            return Err(Error::failed_to_parse("'$shift' requires a sortBy"));
        }
        for element in spec.elements() {
            match element.key() {
                "$shift" => {}
                "window" => return Err(Error::failed_to_parse("$shift does not accept a 'window' field")),
                other => {
                    let message = format!("Window function found an unknown argument: {other}");
                    return Err(Error::failed_to_parse(message));
                }
            }
        }
        let argument = argument.as_document();
        let argument = argument.ok_or_else(|| Error::failed_to_parse("Argument to $shift must be an object"))?;
        let (mut output, mut by, mut default) = (None, None, Some(Value::Null.to_owned()));
        for (name, value) in argument.iter() {
            match name {
                "output" => output = Some(self.operand(value)?),
                "by" => {
                    let whole = as_i64_exact(value).and_then(|whole| i32::try_from(whole).ok()).map(i64::from);
                    by = Some(whole.ok_or_else(|| {
                        let found = text::element("by", value);
                        let message = format!("'$shift:by' field must be an integer, but found  {found}");
                        Error::failed_to_parse(message)
                    })?);
                }
                "default" => {
                    let expression = Expression::parse(value, self.context)?;
                    if !expression.is_constant() {
                        let message = "'$shift:default' expression must yield a constant value.";
                        return Err(Error::failed_to_parse(message));
                    }
                    default = expression.as_literal().map(Value::to_owned);
                }
                _ => return Err(Error::failed_to_parse("Unknown argument in $shift")),
            }
        }
        let output = output.ok_or_else(|| Error::failed_to_parse("$shift requires an 'output' expression."))?;
        let by = by.ok_or_else(|| Error::failed_to_parse("$shift requires 'by' as an integer value."))?;
        Ok(WindowFunction::Shift { output, by, default })
    }

    fn parse_fill(&self, name: &str, spec: Doc<'_>, argument: Value<'_>) -> Result<WindowFunction> {
        for element in spec.elements() {
            match element.key() {
                "window" => {
                    return Err(Error::failed_to_parse(format!("'window' field is not allowed in {name}")));
                }
                other if other != name => {
                    let message = format!("Window function found an unknown argument: {other}");
                    return Err(Error::failed_to_parse(message));
                }
                _ => {}
            }
        }
        if name == "$locf" {
            return Ok(WindowFunction::CarryForward(self.operand(argument)?));
        }
        if !self.has_sort_by {
            return Err(self.needs_one_sort_field(605001, name));
        }
        Ok(WindowFunction::LinearFill(self.operand(argument)?))
    }

    fn parse_derivative(&self, name: &str, spec: Doc<'_>, argument: Value<'_>) -> Result<WindowFunction> {
        let (input, unit, bounds) = self.parse_over_time(name, spec, argument)?;
        if spec.get("window").is_none() {
            return Err(Error::failed_to_parse("$derivative requires explicit window bounds"));
        }
        Ok(WindowFunction::Derivative { input, unit, bounds })
    }

    /// Parses the argument of `$derivative` and `$integral`, given their window.
    fn parse_over_time(
        &self,
        name: &str,
        spec: Doc<'_>,
        argument: Value<'_>,
    ) -> Result<(Operand, Option<TimeUnit>, WindowBounds)> {
        let Some(sort) = self.sort else {
            return Err(Error::failed_to_parse(format!("{name} requires a sortBy")));
        };
        if sort.parts().len() != 1 {
            return Err(Error::failed_to_parse(format!("{name} requires a non-compound sortBy")));
        }
        let unexpected =
            |name: &str, other: &str| Error::failed_to_parse(format!("{name} got unexpected argument: {other}"));
        let mut bounds = None;
        for element in spec.elements() {
            match element.key() {
                "window" => bounds = Some(self.bounds(spec)?),
                other if other != name => return Err(unexpected(name, other)),
                _ => {}
            }
        }
        let bounds = bounds.map_or_else(|| self.bounds(spec), Ok)?;
        let argument = argument.as_document();
        let argument = argument
            .ok_or_else(|| Error::failed_to_parse(format!("{name} expects an object, but got another type")))?;
        let (mut input, mut unit) = (None, None);
        for (field, value) in argument.iter() {
            match field {
                "input" => input = Some(self.operand(value)?),
                "unit" => unit = Some(short_unit(value)?),
                other => return Err(unexpected(name, other)),
            }
        }
        let input = input.ok_or_else(|| Error::failed_to_parse(format!("{name} requires an 'input' expression")))?;
        Ok((input, unit, bounds))
    }
}

const NAMES: &[&str] = &[
    "$addToSet",
    "$avg",
    "$bottom",
    "$bottomN",
    "$count",
    "$covariancePop",
    "$covarianceSamp",
    "$denseRank",
    "$derivative",
    "$documentNumber",
    "$expMovingAvg",
    "$first",
    "$firstN",
    "$integral",
    "$last",
    "$lastN",
    "$linearFill",
    "$locf",
    "$max",
    "$maxN",
    "$min",
    "$minN",
    "$push",
    "$rank",
    "$shift",
    "$stdDevPop",
    "$stdDevSamp",
    "$sum",
    "$top",
    "$topN",
];

/// Parses a unit of constant length.
fn short_unit(value: Value<'_>) -> Result<TimeUnit> {
    let name = value
        .as_str()
        .ok_or_else(|| Error::failed_to_parse(format!("unit' must be a string, but got {}", value.kind().alias())))?;
    let unit = parse_unit(name)?;
    match unit.milliseconds() {
        Some(_) => Ok(unit),
        None => Err(Error::new(Code(5490710), "unit must be 'week' or smaller")),
    }
}

fn alpha_of_count(value: Value<'_>) -> Result<Decimal128> {
    if !value.kind().is_number() {
        let kind = value.kind().alias();
        return Err(Error::failed_to_parse(format!("'N' field must be an integer, but found type {kind}")));
    }
    let count = as_i64_exact(value).ok_or_else(|| {
        let found = text::element("N", value);
        Error::failed_to_parse(format!(
            "'N' field must be an integer, but found  {found}. To use a non-integer, use the 'alpha' argument instead"
        ))
    })?;
    if count <= 0 {
        return Err(Error::failed_to_parse(format!("'N' must be greater than zero. Got {count}")));
    }
    Ok(decimal::divide(decimal::from_i64(2), decimal::from_i64(count.saturating_add(1))))
}

fn plain_alpha(value: Value<'_>) -> Result<Decimal128> {
    let Some(alpha) = Number::from_value(value) else {
        return Err(Error::failed_to_parse("'alpha' must be a number"));
    };
    if !(alpha.to_f64() > 0.0 && alpha.to_f64() < 1.0) {
        let found = text::element("alpha", value);
        let message = format!("'alpha' must be between 0 and 1 (exclusive), found {found}");
        return Err(Error::failed_to_parse(message));
    }
    Ok(alpha.to_decimal())
}
