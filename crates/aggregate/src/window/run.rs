//! Evaluates the functions on one partition, row by row.

use super::bounds::{Bounds, Windowing};
use super::fill::Linear;
use super::ordered::{List, Ordered};
use super::parse::{Function, Sliding};
use super::removable::{
    MovingAverage, RemovableAverage, RemovableCovariance, RemovableDeviation, RemovableIntegral, RemovableSum,
};
use super::{Partition, SetWindowFields};
use crate::accumulate::{State, Which};
use crate::operand::{Operand, Row};
use document::{Collation, DocBuf, DocWriter, Value, ValueBuf};
use error::{Code, Error, Result};
use query::Item;
use query::expression::apply;
use query::expression::date::calculate::Unit;
use std::collections::VecDeque;
use std::ops::Range;
use values::number::Number;

/// The state of a function in the current partition.
pub(super) enum Run {
    Idle,
    Growing { windowing: Windowing, state: State, taken: usize, value: Option<DocBuf>, memory_bytes: usize },
    Sliding { windowing: Windowing, window: Option<Range<usize>>, held: Box<Held> },
    Ends(Windowing),
    Rank { rank: i64, count: i64, before: Option<Option<ValueBuf>> },
    MovingAverage(MovingAverage),
    Linear(Linear),
    Carried(Option<ValueBuf>),
}

/// The result of a function for a row.
pub(super) enum Outcome {
    /// `None` is a missing value.
    Value(Option<ValueBuf>),
    /// The value that the run holds.
    Held,
}

impl Run {
    /// Begins a partition. `before` is the run over the previous one.
    pub fn begin(function: &Function, stage: &SetWindowFields, partition: &Partition, before: &Run) -> Result<Run> {
        let windowing = |bounds: &Bounds| {
            let ascending =
                stage.sort.as_ref().and_then(|sort| sort.parts().first()).is_some_and(|part| part.ascending);
            let sort_by = stage.sort_by.as_ref().filter(|_| ascending);
            Windowing::begin(bounds, sort_by, partition)
        };
        Ok(match function {
            Function::Growing(accumulator, bounds) => Run::Growing {
                windowing: windowing(bounds)?,
                state: accumulator.begin(Value::Null)?,
                taken: 0,
                value: None,
                memory_bytes: 0,
            },
            Function::Sliding(sliding, bounds) => {
                Run::Sliding { windowing: windowing(bounds)?, window: None, held: Box::new(Held::begin(sliding)?) }
            }
            Function::End { bounds, .. } | Function::Derivative { bounds, .. } => Run::Ends(windowing(bounds)?),
            Function::Rank | Function::DenseRank | Function::DocumentNumber => {
                Run::Rank { rank: 0, count: 0, before: None }
            }
            Function::MovingAverage { .. } => Run::MovingAverage(match before {
                Run::MovingAverage(before) => before.begin_again(),
                _ => MovingAverage::default(),
            }),
            Function::LinearFill(_) => Run::Linear(Linear::default()),
            Function::CarryForward(_) => Run::Carried(None),
            Function::Shift { .. } => Run::Idle,
        })
    }

    /// Returns the memory it holds, in bytes.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Run::Growing { memory_bytes, .. } => *memory_bytes,
            Run::Sliding { held, .. } => held.memory_bytes(),
            _ => 0,
        }
    }

    /// Returns the function's value at `row`; rows must be passed in order.
    pub fn next(
        &mut self,
        function: &Function,
        stage: &SetWindowFields,
        partition: &Partition,
        row: usize,
    ) -> Result<Outcome> {
        if let (Function::Growing(accumulator, bounds), Run::Growing { windowing, state, taken, value, memory_bytes }) =
            (function, &mut *self)
        {
            let end = windowing.window(bounds, row, partition.len())?.end;
            for index in *taken..end {
                steps::step();
                let lent = partition.get(index)?;
                let row = Row::of(lent.as_item());
                if let Some(input) = accumulator.unread_input(state) {
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
            return Ok(Outcome::Held);
        }
        self.compute(function, stage, partition, row).map(Outcome::Value)
    }

    /// Writes the held value ([`Outcome::Held`]) under a name, directly from its buffer, so that it
    /// is copied once.
    pub fn write_held(&self, function: &Function, name: &str, writer: &mut DocWriter<'_>) {
        let (Function::Growing(accumulator, _), Run::Growing { state, value, .. }) = (function, self) else { return };
        match value {
            None => accumulator.write(state, name, writer),
            Some(value) => value.as_doc().get("").into_iter().for_each(|value| writer.append(name, value)),
        }
    }

    /// Like [`Run::next`], for functions that compute a new value for each row. `None` is a missing
    /// value.
    fn compute(
        &mut self,
        function: &Function,
        stage: &SetWindowFields,
        partition: &Partition,
        row: usize,
    ) -> Result<Option<ValueBuf>> {
        let lent = partition.get(row)?;
        let document = lent.as_item();
        match (function, self) {
            (Function::Sliding(sliding, bounds), Run::Sliding { windowing, window, held }) => {
                let wanted = windowing.window(bounds, row, partition.len())?;
                let mut source = WindowSource { sliding, stage, partition };
                held.move_to(window, wanted, &mut source)?;
                held.value(sliding).map(Some)
            }
            (Function::End { input, last, bounds }, Run::Ends(windowing)) => {
                let window = windowing.window(bounds, row, partition.len())?;
                if window.is_empty() {
                    return Ok(Some(Value::Null.to_owned()));
                }
                let index = if *last { window.end - 1 } else { window.start };
                Ok(input.evaluate(partition.get(index)?.as_item())?.into_owned())
            }
            (Function::Derivative { input, unit, bounds }, Run::Ends(windowing)) => {
                let window = windowing.window(bounds, row, partition.len())?;
                derivative(input, *unit, stage, partition, window).map(Some)
            }
            (Function::Shift { output, by, default }, _) => {
                match usize::try_from(row as i64 + by).ok().filter(|index| *index < partition.len()) {
                    Some(index) => Ok(output.evaluate(partition.get(index)?.as_item())?.into_owned()),
                    None => Ok(default.clone()),
                }
            }
            (_, Run::Rank { rank, count, before }) => {
                let value = match &stage.sort_by {
                    Some(sort_by) => sort_by.evaluate(document)?.into_owned(),
                    None => None,
                };
                let same =
                    before.as_ref().is_some_and(|before| are_equal(before.as_ref(), value.as_ref(), &stage.collation));
                *before = Some(value);
                *count += 1;
                *rank = match function {
                    Function::Rank if same => *rank,
                    Function::DenseRank if same => *rank,
                    Function::DenseRank => *rank + 1,
                    _ => *count,
                };
                Ok(Some(Number::integer(*rank, true).to_value().to_owned()))
            }
            (Function::MovingAverage { input, alpha }, Run::MovingAverage(average)) => {
                if let Some(number) = input.evaluate(document)?.value().and_then(Number::from_value) {
                    average.add(number, *alpha);
                }
                Ok(Some(average.value()))
            }
            (Function::LinearFill(input), Run::Linear(linear)) => match &stage.sort_by {
                Some(sort_by) => linear.next(input, sort_by, partition, row).map(Some),
                None => Ok(Some(Value::Null.to_owned())),
            },
            (Function::CarryForward(input), Run::Carried(carried)) => {
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
    unit: Option<Unit>,
    stage: &SetWindowFields,
    partition: &Partition,
    window: Range<usize>,
) -> Result<ValueBuf> {
    let Some(sort_by) = stage.sort_by.as_ref().filter(|_| !window.is_empty()) else {
        return Ok(Value::Null.to_owned());
    };
    let (left, right) = (partition.get(window.start)?, partition.get(window.end - 1)?);
    let (left, right) = (left.as_item(), right.as_item());
    let places = [sort_by.evaluate(left)?, sort_by.evaluate(right)?];
    let is_date = |value: Value<'_>| matches!(value, Value::DateTime(_));
    for place in &places {
        let value = place.value_or_null();
        if unit.is_some() && !is_date(value) {
            let message = "$derivative with 'unit' expects the sortBy field to be a Date";
            return Err(Error::new(Code(5624900), message));
        }
        if unit.is_none() && is_date(value) {
            let message = "$derivative where the sortBy is a Date requires an 'unit'";
            return Err(Error::new(Code(5624901), message));
        }
    }
    for place in &places {
        if unit.is_none() && !place.value_or_null().kind().is_number() {
            let message = "$derivative (with no 'unit') expects the sortBy field to be numeric";
            return Err(Error::new(Code(5624902), message));
        }
    }
    let values = [input.evaluate(left)?, input.evaluate(right)?];
    if values.iter().any(|value| value.is_nullish()) {
        return Err(Error::new(Code(5624903), "$derivative input must not be null or missing"));
    }
    let rise = apply("$subtract", &[values[1].value_or_null(), values[0].value_or_null()])?;
    let run = apply("$subtract", &[places[1].value_or_null(), places[0].value_or_null()])?;
    if Number::from_value(run.as_value()).is_some_and(Number::is_zero) {
        return Ok(Value::Null.to_owned());
    }
    let slope = apply("$divide", &[rise.as_value(), run.as_value()])?;
    match unit.and_then(Unit::milliseconds) {
        Some(milliseconds) => apply("$multiply", &[slope.as_value(), Value::Int64(milliseconds)]),
        None => Ok(slope),
    }
}

/// The state of a sliding window.
pub(super) enum Held {
    Count(i64),
    Sum(RemovableSum, VecDeque<Option<Number>>),
    Average(RemovableAverage, VecDeque<Option<Number>>),
    Deviation(RemovableDeviation, VecDeque<Option<Number>>),
    Covariance(Box<RemovableCovariance>, VecDeque<Option<(Number, Number)>>),
    Integral(RemovableIntegral),
    /// `$push`, `$firstN`, `$lastN`; with the limit of the latter two.
    List(List, usize),
    /// Functions that sort values; with the limit of those that have one.
    Ordered(Ordered, usize),
}

/// The source of the documents that enter a window.
struct WindowSource<'e> {
    sliding: &'e Sliding,
    stage: &'e SetWindowFields,
    partition: &'e Partition,
}

impl Held {
    fn begin(sliding: &Sliding) -> Result<Held> {
        Ok(match sliding {
            Sliding::Count => Held::Count(0),
            Sliding::Sum(_) => Held::Sum(RemovableSum::default(), VecDeque::new()),
            Sliding::Average(_) => Held::Average(RemovableAverage::default(), VecDeque::new()),
            Sliding::Deviation { .. } => Held::Deviation(RemovableDeviation::default(), VecDeque::new()),
            Sliding::Covariance { .. } => Held::Covariance(Box::default(), VecDeque::new()),
            Sliding::Integral { .. } => Held::Integral(RemovableIntegral::default()),
            Sliding::Push(_) => Held::List(List::default(), usize::MAX),
            Sliding::AddToSet(_) | Sliding::Minimum(_) | Sliding::Maximum(_) => {
                Held::Ordered(Ordered::default(), usize::MAX)
            }
            Sliding::Several(several) => {
                let limit = several.limit(Value::Null)?;
                match several.which() {
                    Which::Extreme(_) => Held::Ordered(Ordered::default(), limit),
                    _ => Held::List(List::default(), limit),
                }
            }
            Sliding::Top(top) => Held::Ordered(Ordered::default(), top.limit(Value::Null)?),
        })
    }

    fn memory_bytes(&self) -> usize {
        match self {
            Held::Ordered(ordered, _) => ordered.memory_bytes,
            Held::List(list, _) => list.memory_bytes,
            _ => 0,
        }
    }

    /// Moves the window: new documents are added before old ones are removed.
    fn move_to(
        &mut self,
        window: &mut Option<Range<usize>>,
        wanted: Range<usize>,
        source: &mut WindowSource<'_>,
    ) -> Result<()> {
        let now = window.clone().unwrap_or(wanted.start..wanted.start);
        let first_new = now.end.max(wanted.start);
        for index in first_new..wanted.end {
            steps::step();
            let document = source.partition.get(index)?;
            self.enter(source, document.as_item())?;
        }
        for _ in now.start..wanted.start.min(now.end) {
            steps::step();
            self.leave()?;
        }
        *window = Some(wanted.start..wanted.end.max(first_new));
        Ok(())
    }

    fn enter(&mut self, source: &WindowSource<'_>, document: Item<'_>) -> Result<()> {
        let number =
            |operand: &Operand| Ok::<_, Error>(operand.evaluate(document)?.value().and_then(Number::from_value));
        match (self, source.sliding) {
            (Held::Count(count), _) => *count += 1,
            (Held::Sum(sum, entered), Sliding::Sum(operand)) => {
                let number = number(operand)?;
                number.into_iter().for_each(|number| sum.add(number));
                entered.push_back(number);
            }
            (Held::Average(average, entered), Sliding::Average(operand)) => {
                let number = number(operand)?;
                number.into_iter().for_each(|number| average.add(number));
                entered.push_back(number);
            }
            (Held::Deviation(deviation, entered), Sliding::Deviation { operand, .. }) => {
                let number = number(operand)?;
                number.into_iter().for_each(|number| deviation.update(number, 1));
                entered.push_back(number);
            }
            (Held::Covariance(covariance, entered), Sliding::Covariance { pair, .. }) => {
                let pair = pair.evaluate(document)?;
                let pair = pair.value().and_then(pair_of_numbers);
                if let Some((x, y)) = pair {
                    covariance.add(x, y)?;
                }
                entered.push_back(pair);
            }
            (Held::Integral(integral), Sliding::Integral { input, unit }) => {
                let value = input.evaluate(document)?;
                if let Some(sort_by) = &source.stage.sort_by {
                    let place = sort_by.evaluate(document)?;
                    integral.add(place.value_or_null(), value.value_or_null(), unit.is_some())?;
                }
            }
            (Held::List(list, _), Sliding::Push(operand)) => {
                list.push(operand.evaluate(document)?.into_owned());
            }
            (Held::List(list, _), Sliding::Several(several)) => {
                list.push(Some(several.input().evaluate(document)?.value_or_null().to_owned()));
            }
            (Held::Ordered(ordered, _), Sliding::AddToSet(operand)) => {
                ordered.push_value(operand.evaluate(document)?.value(), &source.stage.collation);
            }
            (Held::Ordered(ordered, _), Sliding::Minimum(operand) | Sliding::Maximum(operand)) => {
                let evaluated = operand.evaluate(document)?;
                ordered.push_value(evaluated.value().filter(|_| !evaluated.is_nullish()), &source.stage.collation);
            }
            (Held::Ordered(ordered, _), Sliding::Several(several)) => {
                let evaluated = several.input().evaluate(document)?;
                ordered.push_value(evaluated.value().filter(|_| !evaluated.is_nullish()), &source.stage.collation);
            }
            (Held::Ordered(ordered, _), Sliding::Top(top)) => {
                let (key, value) = top.keyed(document)?;
                ordered.push(key, value);
            }
            _ => {}
        }
        Ok(())
    }

    fn leave(&mut self) -> Result<()> {
        match self {
            Held::Count(count) => *count -= 1,
            Held::Sum(sum, entered) => {
                entered.pop_front().flatten().into_iter().for_each(|number| sum.remove(number));
            }
            Held::Average(average, entered) => {
                entered.pop_front().flatten().into_iter().for_each(|number| average.remove(number));
            }
            Held::Deviation(deviation, entered) => {
                entered.pop_front().flatten().into_iter().for_each(|number| deviation.update(number, -1));
            }
            Held::Covariance(covariance, entered) => {
                if let Some((x, y)) = entered.pop_front().flatten() {
                    covariance.remove(x, y)?;
                }
            }
            Held::Integral(integral) => integral.remove()?,
            Held::List(list, _) => list.pop(),
            Held::Ordered(ordered, _) => ordered.pop(),
        }
        Ok(())
    }

    fn value(&mut self, sliding: &Sliding) -> Result<ValueBuf> {
        Ok(match (self, sliding) {
            (Held::Count(count), _) => Number::integer(*count, true).to_value().to_owned(),
            (Held::Sum(sum, _), _) => sum.value().to_value().to_owned(),
            (Held::Average(average, _), _) => average.value().map_or(Value::Null, Number::to_value).to_owned(),
            (Held::Deviation(deviation, _), Sliding::Deviation { sample, .. }) => deviation.value(*sample),
            (Held::Covariance(covariance, _), Sliding::Covariance { sample, .. }) => covariance.value(*sample)?,
            (Held::Integral(integral), Sliding::Integral { unit, .. }) => {
                integral.value(unit.and_then(Unit::milliseconds))?
            }
            (Held::List(list, limit), Sliding::Several(several)) => match several.which() {
                Which::Last => list.last(*limit),
                _ => list.first(*limit),
            },
            (Held::List(list, limit), _) => list.first(*limit),
            (Held::Ordered(ordered, _), Sliding::AddToSet(_)) => ordered.unique(),
            (Held::Ordered(ordered, _), Sliding::Maximum(_)) => ordered.last(),
            (Held::Ordered(ordered, limit), Sliding::Several(several)) => ordered.extremes(several, *limit),
            (Held::Ordered(ordered, limit), Sliding::Top(top)) => ordered.top(top, *limit),
            (Held::Ordered(ordered, _), _) => ordered.first(),
            _ => Value::Null.to_owned(),
        })
    }
}

fn pair_of_numbers(pair: Value<'_>) -> Option<(Number, Number)> {
    let mut values = pair.as_array()?.values();
    let pair = (Number::from_value(values.next()?)?, Number::from_value(values.next()?)?);
    values.next().is_none().then_some(pair)
}
