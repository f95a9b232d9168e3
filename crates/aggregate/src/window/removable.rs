//! Functions over a moving window from which values can be removed: the result is as if they had
//! never been added.

use document::{Decimal128, Value, ValueBuf};
use error::{Code, Error, Result};
use query::expression::apply;
use std::collections::VecDeque;
use values::decimal;
use values::number::{Number, Sum};

/// A sum whose type is the widest one in the window; integers are int32 if they fit.
#[derive(Debug, Default)]
pub(super) struct RemovableSum {
    sum: Sum,
    nans: i64,
    positive_infinities: i64,
    negative_infinities: i64,
    doubles: i64,
    decimals: i64,
}

impl RemovableSum {
    pub fn add(&mut self, number: Number) {
        self.update(number, 1);
    }

    pub fn remove(&mut self, number: Number) {
        self.update(number, -1);
    }

    fn update(&mut self, number: Number, quantity: i64) {
        match number {
            Number::Int32(_) | Number::Int64(_) => {}
            Number::Double(_) => self.doubles += quantity,
            Number::Decimal(_) => self.decimals += quantity,
        }
        let value = number.to_f64();
        if value.is_nan() {
            self.nans += quantity;
        } else if value == f64::INFINITY && !is_finite_decimal(number) {
            self.positive_infinities += quantity;
        } else if value == f64::NEG_INFINITY && !is_finite_decimal(number) {
            self.negative_infinities += quantity;
        } else {
            self.apply(number, quantity > 0);
        }
    }

    /// Adds a finite number, or subtracts it.
    fn apply(&mut self, number: Number, adding: bool) {
        if adding {
            return self.sum.add(number);
        }
        // The smallest integer has no negation: it is subtracted in two parts, so that the sum
        // remains one of integers.
        let (negated, rest) = match number {
            Number::Int32(value) => (Number::Int32(value.saturating_neg()), value == i32::MIN),
            Number::Int64(value) => (Number::Int64(value.saturating_neg()), value == i64::MIN),
            Number::Double(value) => (Number::Double(-value), false),
            Number::Decimal(value) => (Number::Decimal(decimal::negate(value)), false),
        };
        self.sum.add(negated);
        if rest {
            self.sum.add(Number::Int32(1));
        }
    }

    pub fn value(&self) -> Number {
        let special = |value: f64| match self.decimals > 0 {
            true => Number::Decimal(decimal::from_f64(value)),
            false => Number::Double(value),
        };
        if self.nans > 0 || self.positive_infinities > 0 && self.negative_infinities > 0 {
            return special(f64::NAN);
        }
        if self.positive_infinities > 0 {
            return special(f64::INFINITY);
        }
        if self.negative_infinities > 0 {
            return special(f64::NEG_INFINITY);
        }
        let mut total = self.sum.total();
        if self.decimals == 0 && total.is_decimal() {
            total = Number::Double(total.to_f64());
        }
        if let (Number::Double(value), true) = (total, self.doubles == 0 && self.decimals == 0)
            && value >= i64::MIN as f64
            && value < i64::MAX as f64
        {
            total = Number::Int64(value.round() as i64);
        }
        match total {
            Number::Int64(value) => Number::integer(value, true),
            total => total,
        }
    }
}

fn is_finite_decimal(number: Number) -> bool {
    matches!(number, Number::Decimal(number) if decimal::is_finite(number))
}

/// An average; null for no values.
#[derive(Debug, Default)]
pub(super) struct RemovableAverage {
    sum: RemovableSum,
    count: i64,
}

impl RemovableAverage {
    pub fn add(&mut self, number: Number) {
        self.sum.add(number);
        self.count += 1;
    }

    pub fn remove(&mut self, number: Number) {
        self.sum.remove(number);
        self.count -= 1;
    }

    pub fn value(&self) -> Option<Number> {
        match self.sum.value() {
            _ if self.count <= 0 => None,
            Number::Decimal(sum) => Some(Number::Decimal(decimal::divide(sum, decimal::from_i64(self.count)))),
            sum => Some(Number::Double(sum.to_f64() / self.count as f64)),
        }
    }
}

/// `$stdDevPop` and `$stdDevSamp`.
#[derive(Debug, Default)]
pub(super) struct RemovableDeviation {
    sum: Sum,
    squares: Sum,
    count: i64,
    /// Number of values that are not finite, with which the result is null.
    non_finite: i64,
}

impl RemovableDeviation {
    pub fn update(&mut self, number: Number, quantity: i64) {
        let value = number.to_f64();
        if !value.is_finite() {
            self.non_finite += quantity;
            self.count += quantity;
            return;
        }
        if self.count == 0 {
            self.count += quantity;
            self.sum.add(number);
            return;
        }
        if self.count + quantity == 0 {
            *self = RemovableDeviation { non_finite: self.non_finite, ..RemovableDeviation::default() };
            return;
        }
        let difference = self.count as f64 * value - self.sum.total().to_f64();
        self.count += quantity;
        self.sum.add(Number::Double(value * quantity as f64));
        let weight = (self.count * (self.count - quantity)) as f64;
        self.squares.add(Number::Double(difference * difference * quantity as f64 / weight));
    }

    pub fn value(&mut self, sample: bool) -> ValueBuf {
        if self.non_finite > 0 || !sample && self.count < 1 {
            return Value::Null.to_owned();
        }
        let count = if sample { self.count - 1 } else { self.count };
        if count == 0 {
            return Value::Null.to_owned();
        }
        // Rounding may leave less than zero; a single value has no deviation.
        let squares = self.squares.total().to_f64();
        if squares < 0.0 || !sample && count == 1 {
            self.squares = Sum::default();
            return Value::Int32(0).to_owned();
        }
        Value::Double((squares / count as f64).sqrt()).to_owned()
    }
}

/// `$covariancePop` and `$covarianceSamp`.
#[derive(Debug, Default)]
pub(super) struct RemovableCovariance {
    x: RemovableAverage,
    y: RemovableAverage,
    products: RemovableSum,
    count: i64,
}

impl RemovableCovariance {
    pub fn add(&mut self, x: Number, y: Number) -> Result<()> {
        if let Some(special) = non_finite_summand(x, y) {
            self.products.add(special);
            return Ok(());
        }
        let mean_before = self.x.value();
        self.x.add(x);
        self.y.add(y);
        self.count += 1;
        if let (Some(x_mean), Some(y_mean)) = (mean_before, self.y.value()) {
            self.products.add(product_of_differences((x, x_mean), (y, y_mean))?);
        }
        Ok(())
    }

    pub fn remove(&mut self, x: Number, y: Number) -> Result<()> {
        if let Some(special) = non_finite_summand(x, y) {
            self.products.remove(special);
            return Ok(());
        }
        if self.count <= 1 {
            *self = RemovableCovariance::default();
            return Ok(());
        }
        let mean_before = self.y.value();
        self.x.remove(x);
        self.y.remove(y);
        self.count -= 1;
        if let (Some(x_mean), Some(y_mean)) = (self.x.value(), mean_before) {
            self.products.remove(product_of_differences((x, x_mean), (y, y_mean))?);
        }
        Ok(())
    }

    pub fn value(&self, sample: bool) -> Result<ValueBuf> {
        let count = if sample { self.count - 1 } else { self.count };
        if count <= 0 {
            return Ok(Value::Null.to_owned());
        }
        if !sample && count == 1 {
            return Ok(Value::Double(0.0).to_owned());
        }
        // No negative zero: the sum began at zero.
        let sum = match self.products.value() {
            Number::Decimal(sum) => Number::Decimal(decimal::add(sum, decimal::from_i64(0))),
            sum => sum,
        };
        apply("$divide", &[sum.to_value(), Value::Double(count as f64)])
    }
}

/// Returns the summand of a pair that is not finite; it is left out of means and count.
fn non_finite_summand(x: Number, y: Number) -> Option<Number> {
    let is_finite = |number: Number| number.to_f64().is_finite() || is_finite_decimal(number);
    if is_finite(x) && is_finite(y) {
        return None;
    }
    let specials = [x, y].map(|number| if is_finite(number) { 0.0 } else { number.to_f64() });
    // Infinities of one sign remain, those of both result in NaN.
    let special = specials[0] + specials[1];
    // NaN is a double, whatever it was read as.
    Some(match (x.is_decimal() || y.is_decimal()) && !special.is_nan() {
        true => Number::Decimal(decimal::from_f64(special)),
        false => Number::Double(special),
    })
}

fn product_of_differences(x: (Number, Number), y: (Number, Number)) -> Result<Number> {
    let difference = |(value, mean): (Number, Number)| apply("$subtract", &[value.to_value(), mean.to_value()]);
    let product = apply("$multiply", &[difference(x)?.as_value(), difference(y)?.as_value()])?;
    Ok(Number::from_value(product.as_value()).unwrap_or(Number::Int32(0)))
}

/// `$integral` by trapezoids.
#[derive(Debug, Default)]
pub(super) struct RemovableIntegral {
    points: VecDeque<(ValueBuf, ValueBuf)>,
    area: RemovableSum,
    nans: i64,
}

impl RemovableIntegral {
    /// Adds a point. `has_unit`: positions are dates, otherwise numbers.
    pub fn add(&mut self, position: Value<'_>, value: Value<'_>, has_unit: bool) -> Result<()> {
        let is_date = matches!(position, Value::DateTime(_));
        if !(is_date || position.kind().is_number()) || !value.kind().is_number() {
            let message = "The input value of $integral window function must be a vector of 2 value, the first value \
                           must be numeric or date type and the second must be numeric.";
            return Err(Error::new(Code(5423900), message));
        }
        if has_unit && !is_date {
            let message = "$integral with 'unit' expects the sortBy field to be a Date";
            return Err(Error::new(Code(5423901), message));
        }
        if !has_unit && is_date {
            let message = "$integral (with no 'unit') expects the sortBy field to be numeric";
            return Err(Error::new(Code(5423902), message));
        }
        let point = (position.to_owned(), value.to_owned());
        if is_nan(&point) {
            self.nans += 1;
        }
        if let Some(left) = self.points.back() {
            self.area.add(trapezoid(left, &point)?);
        }
        self.points.push_back(point);
        Ok(())
    }

    /// Removes the first point.
    pub fn remove(&mut self) -> Result<()> {
        let Some(point) = self.points.pop_front() else { return Ok(()) };
        if is_nan(&point) {
            self.nans -= 1;
        }
        if let Some(next) = self.points.front() {
            self.area.remove(trapezoid(&point, next)?);
        }
        Ok(())
    }

    pub fn value(&self, unit_ms: Option<i64>) -> Result<ValueBuf> {
        if self.points.is_empty() {
            return Ok(Value::Null.to_owned());
        }
        if self.nans > 0 {
            return Ok(Value::Double(f64::NAN).to_owned());
        }
        let area = self.area.value().to_value();
        match unit_ms {
            Some(unit_ms) => apply("$divide", &[area, Value::Int64(unit_ms)]),
            None => Ok(area.to_owned()),
        }
    }
}

fn is_nan((position, value): &(ValueBuf, ValueBuf)) -> bool {
    [position, value]
        .into_iter()
        .any(|value| Number::from_value(value.as_value()).is_some_and(|it| it.to_f64().is_nan()))
}

fn trapezoid(left: &(ValueBuf, ValueBuf), right: &(ValueBuf, ValueBuf)) -> Result<Number> {
    let width = apply("$subtract", &[right.0.as_value(), left.0.as_value()])?;
    let height = apply("$add", &[left.1.as_value(), right.1.as_value()])?;
    let rectangle = apply("$multiply", &[width.as_value(), height.as_value()])?;
    let area = apply("$divide", &[rectangle.as_value(), Value::Int32(2)])?;
    Ok(Number::from_value(area.as_value()).unwrap_or(Number::Int32(0)))
}

/// The state of `$expMovingAvg` after the numbers so far.
#[derive(Debug, Default)]
pub(super) struct MovingAverage {
    current: Option<Decimal128>,
    has_decimal: bool,
}

impl MovingAverage {
    /// Returns the state for the next partition. After a decimal, results remain decimals.
    pub fn for_next_partition(&self) -> MovingAverage {
        MovingAverage { current: None, has_decimal: self.has_decimal }
    }

    pub fn add(&mut self, number: Number, alpha: Decimal128) {
        self.has_decimal |= number.is_decimal();
        self.current = Some(match self.current {
            None => number.to_decimal(),
            Some(current) => {
                let rest = decimal::add(decimal::from_i64(1), decimal::negate(alpha));
                let new = decimal::multiply(number.to_decimal(), alpha);
                decimal::add(new, decimal::multiply(current, rest))
            }
        });
    }

    /// Returns the average: a double, unless there was a decimal.
    pub fn value(&self) -> ValueBuf {
        match self.current {
            None => Value::Null.to_owned(),
            Some(current) if self.has_decimal => Value::Decimal128(current).to_owned(),
            Some(current) => Value::Double(current.to_f64()).to_owned(),
        }
    }
}
