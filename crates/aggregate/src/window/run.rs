//! Evaluates the functions on one partition, row by row.

use super::bounds::{WindowBounds, WindowCursor};
use super::fill::LinearFillState;
use super::ordered::{ArrivalList, OrderedValues};
use super::parse::{SlidingFunction, WindowFunction};
use super::removable::{
    MovingAverage, RemovableAverage, RemovableCovariance, RemovableDeviation, RemovableIntegral, RemovableSum,
};
use super::{SetWindowFields, WindowPartition};
use crate::accumulate::{AccumulatorState, Selection};
use crate::operand::{Operand, Row};
use document::{Collation, DocBuf, DocWriter, Value, ValueBuf};
use error::{Code, Error, Result};
use query::Item;
use query::expression::apply;
use query::expression::date::calculate::TimeUnit;
use std::collections::VecDeque;
use std::ops::Range;
use values::number::Number;

/// The state of a function in the current partition.
pub(super) enum FunctionState {
    Idle,
    Growing {
        windowing: WindowCursor,
        state: AccumulatorState,
        added: usize,
        value: Option<DocBuf>,
        memory_bytes: usize,
    },
    Sliding {
        windowing: WindowCursor,
        window: Option<Range<usize>>,
        state: Box<SlidingState>,
    },
    Ends(WindowCursor),
    Rank {
        rank: i64,
        count: i64,
        before: Option<Option<ValueBuf>>,
    },
    MovingAverage(MovingAverage),
    Linear(LinearFillState),
    Carried(Option<ValueBuf>),
}

/// The result of a function for a row.
pub(super) enum RowResult {
    /// `None` is a missing value.
    Value(Option<ValueBuf>),
    /// The value that the run holds.
    Held,
}

impl FunctionState {
    /// Begins a partition. `before` is the run over the previous one.
    pub fn begin(
        function: &WindowFunction,
        stage: &SetWindowFields,
        partition: &WindowPartition,
        before: &FunctionState,
    ) -> Result<FunctionState> {
        let windowing = |bounds: &WindowBounds| {
            let ascending =
                stage.sort.as_ref().and_then(|sort| sort.parts().first()).is_some_and(|part| part.ascending);
            let sort_by = stage.sort_by.as_ref().filter(|_| ascending);
            WindowCursor::begin(bounds, sort_by, partition)
        };
        Ok(match function {
            WindowFunction::Growing(accumulator, bounds) => FunctionState::Growing {
                windowing: windowing(bounds)?,
                state: accumulator.new_state(Value::Null)?,
                added: 0,
                value: None,
                memory_bytes: 0,
            },
            WindowFunction::Sliding(sliding, bounds) => FunctionState::Sliding {
                windowing: windowing(bounds)?,
                window: None,
                state: Box::new(SlidingState::begin(sliding)?),
            },
            WindowFunction::End { bounds, .. } | WindowFunction::Derivative { bounds, .. } => {
                FunctionState::Ends(windowing(bounds)?)
            }
            WindowFunction::Rank | WindowFunction::DenseRank | WindowFunction::DocumentNumber => {
                FunctionState::Rank { rank: 0, count: 0, before: None }
            }
            WindowFunction::MovingAverage { .. } => FunctionState::MovingAverage(match before {
                FunctionState::MovingAverage(before) => before.for_next_partition(),
                _ => MovingAverage::default(),
            }),
            WindowFunction::LinearFill(_) => FunctionState::Linear(LinearFillState::default()),
            WindowFunction::CarryForward(_) => FunctionState::Carried(None),
            WindowFunction::Shift { .. } => FunctionState::Idle,
        })
    }

    /// Returns the memory it holds, in bytes.
    pub fn memory_bytes(&self) -> usize {
        match self {
            FunctionState::Growing { memory_bytes, .. } => *memory_bytes,
            FunctionState::Sliding { state: held, .. } => held.memory_bytes(),
            _ => 0,
        }
    }

    /// Returns the function's value at `row`; rows must be passed in order.
    pub fn next(
        &mut self,
        function: &WindowFunction,
        stage: &SetWindowFields,
        partition: &WindowPartition,
        row: usize,
    ) -> Result<RowResult> {
        if let (
            WindowFunction::Growing(accumulator, bounds),
            FunctionState::Growing { windowing, state, added: taken, value, memory_bytes },
        ) = (function, &mut *self)
        {
            let end = windowing.window(bounds, row, partition.len())?.end;
            for index in *taken..end {
                steps::step();
                let lent = partition.get(index)?;
                let row = Row::new(lent.as_item());
                if let Some(input) = accumulator.skipped_operand(state) {
                    // A window also computes values that it has no position for, and may fail.
                    input.evaluate_in(&row)?;
                }
                let grown = accumulator.add(state, &row)?;
                *memory_bytes = memory_bytes.saturating_add_signed(grown);
            }
            *taken = end.max(*taken);
            // From here on the value does not change.
            if *taken == partition.len() && value.is_none() {
                *value = Some(DocBuf::build(|writer| accumulator.write(state, "", writer)));
            }
            return Ok(RowResult::Held);
        }
        self.compute(function, stage, partition, row).map(RowResult::Value)
    }

    /// Writes the held value ([`RowResult::Held`]) under a name, directly from its buffer, so that
    /// it is copied once.
    pub fn write_held(&self, function: &WindowFunction, name: &str, writer: &mut DocWriter<'_>) {
        let (WindowFunction::Growing(accumulator, _), FunctionState::Growing { state, value, .. }) = (function, self)
        else {
            return;
        };
        match value {
            None => accumulator.write(state, name, writer),
            Some(value) => value.as_doc().get("").into_iter().for_each(|value| writer.append(name, value)),
        }
    }

    /// Like [`FunctionState::next`], for functions that compute a new value for each row. `None` is
    /// a missing value.
    fn compute(
        &mut self,
        function: &WindowFunction,
        stage: &SetWindowFields,
        partition: &WindowPartition,
        row: usize,
    ) -> Result<Option<ValueBuf>> {
        let lent = partition.get(row)?;
        let document = lent.as_item();
        match (function, self) {
            (WindowFunction::Sliding(sliding, bounds), FunctionState::Sliding { windowing, window, state: held }) => {
                let target = windowing.window(bounds, row, partition.len())?;
                let mut source = WindowSource { sliding, stage, partition };
                held.move_to(window, target, &mut source)?;
                held.value(sliding).map(Some)
            }
            (WindowFunction::End { input, last, bounds }, FunctionState::Ends(windowing)) => {
                let window = windowing.window(bounds, row, partition.len())?;
                if window.is_empty() {
                    return Ok(Some(Value::Null.to_owned()));
                }
                let index = if *last { window.end - 1 } else { window.start };
                Ok(input.evaluate(partition.get(index)?.as_item())?.into_owned())
            }
            (WindowFunction::Derivative { input, unit, bounds }, FunctionState::Ends(windowing)) => {
                let window = windowing.window(bounds, row, partition.len())?;
                derivative(input, *unit, stage, partition, window).map(Some)
            }
            (WindowFunction::Shift { output, by, default }, _) => {
                match usize::try_from(row as i64 + by).ok().filter(|index| *index < partition.len()) {
                    Some(index) => Ok(output.evaluate(partition.get(index)?.as_item())?.into_owned()),
                    None => Ok(default.clone()),
                }
            }
            (_, FunctionState::Rank { rank, count, before }) => {
                let value = match &stage.sort_by {
                    Some(sort_by) => sort_by.evaluate(document)?.into_owned(),
                    None => None,
                };
                let same =
                    before.as_ref().is_some_and(|before| are_equal(before.as_ref(), value.as_ref(), &stage.collation));
                *before = Some(value);
                *count += 1;
                *rank = match function {
                    WindowFunction::Rank if same => *rank,
                    WindowFunction::DenseRank if same => *rank,
                    WindowFunction::DenseRank => *rank + 1,
                    _ => *count,
                };
                Ok(Some(Number::integer(*rank, true).to_value().to_owned()))
            }
            (WindowFunction::MovingAverage { input, alpha }, FunctionState::MovingAverage(average)) => {
                if let Some(number) = input.evaluate(document)?.value().and_then(Number::from_value) {
                    average.add(number, *alpha);
                }
                Ok(Some(average.value()))
            }
            (WindowFunction::LinearFill(input), FunctionState::Linear(linear)) => match &stage.sort_by {
                Some(sort_by) => linear.next(input, sort_by, partition, row).map(Some),
                None => Ok(Some(Value::Null.to_owned())),
            },
            (WindowFunction::CarryForward(input), FunctionState::Carried(carried)) => {
                let value = input.evaluate(document)?;
                if !value.is_nullish() {
                    *carried = value.into_owned();
                }
                Ok(Some(carried.clone().unwrap_or_else(|| Value::Null.to_owned())))
            }
            _ => Ok(None),
        }
    }
}

fn are_equal(a: Option<&ValueBuf>, b: Option<&ValueBuf>, collation: &Collation) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => collation.equal(a.as_value(), b.as_value()),
        (a, b) => a.is_none() && b.is_none(),
    }
}

fn derivative(
    input: &Operand,
    unit: Option<TimeUnit>,
    stage: &SetWindowFields,
    partition: &WindowPartition,
    window: Range<usize>,
) -> Result<ValueBuf> {
    let Some(sort_by) = stage.sort_by.as_ref().filter(|_| !window.is_empty()) else {
        return Ok(Value::Null.to_owned());
    };
    let (left, right) = (partition.get(window.start)?, partition.get(window.end - 1)?);
    let (left, right) = (left.as_item(), right.as_item());
    let positions = [sort_by.evaluate(left)?, sort_by.evaluate(right)?];
    let is_date = |value: Value<'_>| matches!(value, Value::DateTime(_));
    for position in &positions {
        let value = position.value_or_null();
        if unit.is_some() && !is_date(value) {
            let message = "$derivative with 'unit' expects the sortBy field to be a Date";
            return Err(Error::new(Code(5624900), message));
        }
        if unit.is_none() && is_date(value) {
            let message = "$derivative where the sortBy is a Date requires an 'unit'";
            return Err(Error::new(Code(5624901), message));
        }
    }
    for position in &positions {
        if unit.is_none() && !position.value_or_null().kind().is_number() {
            let message = "$derivative (with no 'unit') expects the sortBy field to be numeric";
            return Err(Error::new(Code(5624902), message));
        }
    }
    let values = [input.evaluate(left)?, input.evaluate(right)?];
    if values.iter().any(|value| value.is_nullish()) {
        return Err(Error::new(Code(5624903), "$derivative input must not be null or missing"));
    }
    let rise = apply("$subtract", &[values[1].value_or_null(), values[0].value_or_null()])?;
    let run = apply("$subtract", &[positions[1].value_or_null(), positions[0].value_or_null()])?;
    if Number::from_value(run.as_value()).is_some_and(Number::is_zero) {
        return Ok(Value::Null.to_owned());
    }
    let slope = apply("$divide", &[rise.as_value(), run.as_value()])?;
    match unit.and_then(TimeUnit::milliseconds) {
        Some(milliseconds) => apply("$multiply", &[slope.as_value(), Value::Int64(milliseconds)]),
        None => Ok(slope),
    }
}

/// The state of a sliding window.
pub(super) enum SlidingState {
    Count(i64),
    Sum(RemovableSum, VecDeque<Option<Number>>),
    Average(RemovableAverage, VecDeque<Option<Number>>),
    Deviation(RemovableDeviation, VecDeque<Option<Number>>),
    Covariance(Box<RemovableCovariance>, VecDeque<Option<(Number, Number)>>),
    Integral(RemovableIntegral),
    /// `$push`, `$firstN`, `$lastN`; with the limit of the latter two.
    List(ArrivalList, usize),
    /// Functions that sort values; with the limit of those that have one.
    Ordered(OrderedValues, usize),
}

/// The source of the documents that enter a window.
struct WindowSource<'e> {
    sliding: &'e SlidingFunction,
    stage: &'e SetWindowFields,
    partition: &'e WindowPartition,
}

impl SlidingState {
    fn begin(sliding: &SlidingFunction) -> Result<SlidingState> {
        Ok(match sliding {
            SlidingFunction::Count => SlidingState::Count(0),
            SlidingFunction::Sum(_) => SlidingState::Sum(RemovableSum::default(), VecDeque::new()),
            SlidingFunction::Average(_) => SlidingState::Average(RemovableAverage::default(), VecDeque::new()),
            SlidingFunction::Deviation { .. } => {
                SlidingState::Deviation(RemovableDeviation::default(), VecDeque::new())
            }
            SlidingFunction::Covariance { .. } => SlidingState::Covariance(Box::default(), VecDeque::new()),
            SlidingFunction::Integral { .. } => SlidingState::Integral(RemovableIntegral::default()),
            SlidingFunction::Push(_) => SlidingState::List(ArrivalList::default(), usize::MAX),
            SlidingFunction::AddToSet(_) | SlidingFunction::Minimum(_) | SlidingFunction::Maximum(_) => {
                SlidingState::Ordered(OrderedValues::default(), usize::MAX)
            }
            SlidingFunction::Several(several) => {
                let limit = several.limit(Value::Null)?;
                match several.selection() {
                    Selection::Extreme(_) => SlidingState::Ordered(OrderedValues::default(), limit),
                    _ => SlidingState::List(ArrivalList::default(), limit),
                }
            }
            SlidingFunction::Top(top) => SlidingState::Ordered(OrderedValues::default(), top.limit(Value::Null)?),
        })
    }

    fn memory_bytes(&self) -> usize {
        match self {
            SlidingState::Ordered(ordered, _) => ordered.memory_bytes,
            SlidingState::List(list, _) => list.memory_bytes,
            _ => 0,
        }
    }

    /// Moves the window: new documents are added before old ones are removed.
    fn move_to(
        &mut self,
        window: &mut Option<Range<usize>>,
        target: Range<usize>,
        source: &mut WindowSource<'_>,
    ) -> Result<()> {
        let current = window.clone().unwrap_or(target.start..target.start);
        let first_new = current.end.max(target.start);
        for index in first_new..target.end {
            steps::step();
            let document = source.partition.get(index)?;
            self.enter(source, document.as_item())?;
        }
        for _ in current.start..target.start.min(current.end) {
            steps::step();
            self.leave()?;
        }
        *window = Some(target.start..target.end.max(first_new));
        Ok(())
    }

    fn enter(&mut self, source: &WindowSource<'_>, document: Item<'_>) -> Result<()> {
        let number =
            |operand: &Operand| Ok::<_, Error>(operand.evaluate(document)?.value().and_then(Number::from_value));
        match (self, source.sliding) {
            (SlidingState::Count(count), _) => *count += 1,
            (SlidingState::Sum(sum, entered), SlidingFunction::Sum(operand)) => {
                let number = number(operand)?;
                number.into_iter().for_each(|number| sum.add(number));
                entered.push_back(number);
            }
            (SlidingState::Average(average, entered), SlidingFunction::Average(operand)) => {
                let number = number(operand)?;
                number.into_iter().for_each(|number| average.add(number));
                entered.push_back(number);
            }
            (SlidingState::Deviation(deviation, entered), SlidingFunction::Deviation { operand, .. }) => {
                let number = number(operand)?;
                number.into_iter().for_each(|number| deviation.update(number, 1));
                entered.push_back(number);
            }
            (SlidingState::Covariance(covariance, entered), SlidingFunction::Covariance { pair, .. }) => {
                let pair = pair.evaluate(document)?;
                let pair = pair.value().and_then(pair_of_numbers);
                if let Some((x, y)) = pair {
                    covariance.add(x, y)?;
                }
                entered.push_back(pair);
            }
            (SlidingState::Integral(integral), SlidingFunction::Integral { input, unit }) => {
                let value = input.evaluate(document)?;
                if let Some(sort_by) = &source.stage.sort_by {
                    let position = sort_by.evaluate(document)?;
                    integral.add(position.value_or_null(), value.value_or_null(), unit.is_some())?;
                }
            }
            (SlidingState::List(list, _), SlidingFunction::Push(operand)) => {
                list.push(operand.evaluate(document)?.into_owned());
            }
            (SlidingState::List(list, _), SlidingFunction::Several(several)) => {
                list.push(Some(several.input().evaluate(document)?.value_or_null().to_owned()));
            }
            (SlidingState::Ordered(ordered, _), SlidingFunction::AddToSet(operand)) => {
                ordered.push_value(operand.evaluate(document)?.value(), &source.stage.collation);
            }
            (
                SlidingState::Ordered(ordered, _),
                SlidingFunction::Minimum(operand) | SlidingFunction::Maximum(operand),
            ) => {
                let evaluated = operand.evaluate(document)?;
                ordered.push_value(evaluated.value().filter(|_| !evaluated.is_nullish()), &source.stage.collation);
            }
            (SlidingState::Ordered(ordered, _), SlidingFunction::Several(several)) => {
                let evaluated = several.input().evaluate(document)?;
                ordered.push_value(evaluated.value().filter(|_| !evaluated.is_nullish()), &source.stage.collation);
            }
            (SlidingState::Ordered(ordered, _), SlidingFunction::Top(top)) => {
                let (key, value) = top.key_and_output(document)?;
                ordered.push(key, value);
            }
            _ => {}
        }
        Ok(())
    }

    fn leave(&mut self) -> Result<()> {
        match self {
            SlidingState::Count(count) => *count -= 1,
            SlidingState::Sum(sum, entered) => {
                entered.pop_front().flatten().into_iter().for_each(|number| sum.remove(number));
            }
            SlidingState::Average(average, entered) => {
                entered.pop_front().flatten().into_iter().for_each(|number| average.remove(number));
            }
            SlidingState::Deviation(deviation, entered) => {
                entered.pop_front().flatten().into_iter().for_each(|number| deviation.update(number, -1));
            }
            SlidingState::Covariance(covariance, entered) => {
                if let Some((x, y)) = entered.pop_front().flatten() {
                    covariance.remove(x, y)?;
                }
            }
            SlidingState::Integral(integral) => integral.remove()?,
            SlidingState::List(list, _) => list.pop(),
            SlidingState::Ordered(ordered, _) => ordered.pop(),
        }
        Ok(())
    }

    fn value(&mut self, sliding: &SlidingFunction) -> Result<ValueBuf> {
        Ok(match (self, sliding) {
            (SlidingState::Count(count), _) => Number::integer(*count, true).to_value().to_owned(),
            (SlidingState::Sum(sum, _), _) => sum.value().to_value().to_owned(),
            (SlidingState::Average(average, _), _) => average.value().map_or(Value::Null, Number::to_value).to_owned(),
            (SlidingState::Deviation(deviation, _), SlidingFunction::Deviation { sample, .. }) => {
                deviation.value(*sample)
            }
            (SlidingState::Covariance(covariance, _), SlidingFunction::Covariance { sample, .. }) => {
                covariance.value(*sample)?
            }
            (SlidingState::Integral(integral), SlidingFunction::Integral { unit, .. }) => {
                integral.value(unit.and_then(TimeUnit::milliseconds))?
            }
            (SlidingState::List(list, limit), SlidingFunction::Several(several)) => match several.selection() {
                Selection::Last => list.last(*limit),
                _ => list.first(*limit),
            },
            (SlidingState::List(list, limit), _) => list.first(*limit),
            (SlidingState::Ordered(ordered, _), SlidingFunction::AddToSet(_)) => ordered.distinct(),
            (SlidingState::Ordered(ordered, _), SlidingFunction::Maximum(_)) => ordered.last(),
            (SlidingState::Ordered(ordered, limit), SlidingFunction::Several(several)) => {
                ordered.extremes(several, *limit)
            }
            (SlidingState::Ordered(ordered, limit), SlidingFunction::Top(top)) => ordered.top(top, *limit),
            (SlidingState::Ordered(ordered, _), _) => ordered.first(),
            _ => Value::Null.to_owned(),
        })
    }
}

fn pair_of_numbers(pair: Value<'_>) -> Option<(Number, Number)> {
    let mut values = pair.as_array()?.values();
    let pair = (Number::from_value(values.next()?)?, Number::from_value(values.next()?)?);
    values.next().is_none().then_some(pair)
}
