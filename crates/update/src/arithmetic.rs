//! `$inc` and `$mul`. The result has the wider of the two number types. An int32 that overflows
//! becomes an int64; an int64 that overflows is an error.

use super::target::{UpdateRun, UpdateTarget};
use super::write::write_element;
use document::compare::equal;
use document::{Decimal128, Element, Value, ValueBuf};
use error::{Error, Result};
use values::decimal;
use values::number::Number;
use values::text;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArithmeticOperation {
    Increment,
    Multiply,
}

#[derive(Clone, Debug)]
pub(super) struct Arithmetic {
    operation: ArithmeticOperation,
    operand: ValueBuf,
}

impl Arithmetic {
    pub fn parse(operation: ArithmeticOperation, path: &str, operand: Value<'_>) -> Result<Self> {
        if !operand.kind().is_number() {
            let verb = if operation == ArithmeticOperation::Increment { "increment" } else { "multiply" };
            let given = text::element(path, operand);
            return Err(Error::type_mismatch(format!("Cannot {verb} with non-numeric argument: {{{given}}}")));
        }
        Ok(Arithmetic { operation, operand: operand.to_owned() })
    }

    /// Returns the value of a new field: the increment, or a zero of the factor's type.
    pub fn initial_value(&self) -> ValueBuf {
        match self.operation {
            ArithmeticOperation::Increment => self.operand.clone(),
            ArithmeticOperation::Multiply => self.compute(Value::Int32(0)).unwrap_or(Value::Int32(0)).to_owned(),
        }
    }

    pub fn change(
        &self,
        element: Element<'_>,
        target: &UpdateTarget<'_>,
        run: &UpdateRun<'_>,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let current = element.value();
        if !current.kind().is_number() {
            return Err(Error::type_mismatch(format!(
                "Cannot apply {} to a value of non-numeric type. {} has the field '{}' of non-numeric type {}",
                self.name(),
                run.id_text(),
                target.name,
                current.kind().alias()
            )));
        }
        let result = self.compute(current).ok_or_else(|| {
            let kind = if let Value::Int32(_) = current { "NumberInt" } else { "NumberLong" };
            Error::bad_value(format!(
                "Failed to apply {} operations to current value (({kind}){}) for document {}",
                self.name(),
                text::value(current),
                run.id_text()
            ))
        })?;
        write_element(element.key_bytes(), result, out);
        // MongoDB counts NaN as different from itself, and so as a change.
        let is_nan = Number::from_value(result).is_some_and(|number| number.to_f64().is_nan());
        Ok(result.kind() != element.kind || !equal(result, current) || is_nan)
    }

    fn name(&self) -> &'static str {
        if self.operation == ArithmeticOperation::Increment { "$inc" } else { "$mul" }
    }

    /// Returns the result, or `None` if it overflows an int64.
    fn compute(&self, current: Value<'_>) -> Option<Value<'static>> {
        let increment = self.operation == ArithmeticOperation::Increment;
        let operand = self.operand.as_value();
        Some(match (current, operand) {
            (Value::Decimal128(_), _) | (_, Value::Decimal128(_)) => {
                let (a, b) = (to_decimal(current), to_decimal(operand));
                Value::Decimal128(if increment { decimal::add(a, b) } else { decimal::multiply(a, b) })
            }
            (Value::Double(_), _) | (_, Value::Double(_)) => {
                let (a, b) = (to_double(current), to_double(operand));
                Value::Double(if increment { a + b } else { a * b })
            }
            _ => {
                let (a, b) = (to_integer(current), to_integer(operand));
                let result = if increment { a.checked_add(b)? } else { a.checked_mul(b)? };
                match (current, operand, i32::try_from(result)) {
                    (Value::Int32(_), Value::Int32(_), Ok(small)) => Value::Int32(small),
                    _ => Value::Int64(result),
                }
            }
        })
    }
}

fn to_integer(value: Value<'_>) -> i64 {
    match value {
        Value::Int32(number) => number.into(),
        Value::Int64(number) => number,
        _ => 0,
    }
}

fn to_double(value: Value<'_>) -> f64 {
    match value {
        Value::Double(number) => number,
        Value::Int32(number) => number.into(),
        Value::Int64(number) => number as f64,
        _ => 0.0,
    }
}

fn to_decimal(value: Value<'_>) -> Decimal128 {
    Number::from_value(value).map_or_else(|| decimal::from_i64(0), Number::to_decimal)
}
