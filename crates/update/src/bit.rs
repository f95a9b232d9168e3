//! `$bit`: `and`, `or` and `xor` on integers.

use super::target::{UpdateRun, UpdateTarget};
use super::write::write_element;
use document::{Element, Value};
use error::{Error, Result};
use steps::Counted;
use values::text;

#[derive(Clone, Copy, Debug)]
enum BitOperation {
    And,
    Or,
    Xor,
}

/// An integer with its width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Integer {
    Narrow(i32),
    Wide(i64),
}

#[derive(Clone, Debug)]
pub(super) struct Bit {
    /// The operations in order; each applies to the result of the one before.
    operations: Vec<(BitOperation, Integer)>,
}

impl Bit {
    pub fn parse(argument: Value<'_>) -> Result<Self> {
        let Value::Document(spec) = argument else {
            return Err(Error::bad_value(format!(
                "The $bit modifier is not compatible with a {}. You must pass in an embedded document: \
                 {{$bit: {{field: {{and/or/xor: #}}}}",
                argument.kind().alias()
            )));
        };
        let steps =
            spec.iter().counted().map(|(name, operand)| parse_operation(name, operand)).collect::<Result<Vec<_>>>()?;
        if steps.is_empty() {
            return Err(Error::bad_value(
                "You must pass in at least one bitwise operation. The format is: {$bit: {field: {and/or/xor: #}}",
            ));
        }
        Ok(Bit { operations: steps })
    }

    /// Returns the value of a new field: the operations applied to 0.
    pub fn initial_value(&self) -> Value<'static> {
        self.apply(Integer::Narrow(0))
    }

    pub fn change(
        &self,
        element: Element<'_>,
        target: &UpdateTarget<'_>,
        run: &UpdateRun<'_>,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let Some(current) = Integer::from_value(element.value()) else {
            let id = run
                .root
                .get("_id")
                .map_or("INVALID-MUTABLE-ELEMENT".to_owned(), |id| text::element("_id", id).to_string());
            return Err(Error::bad_value(format!(
                "Cannot apply $bit to a value of non-integral type.{id} has the field {} of non-integer type {}",
                target.name,
                element.kind.alias()
            )));
        };
        let result = self.apply(current);
        write_element(element.key_bytes(), result, out);
        Ok(result != element.value())
    }

    fn apply(&self, start: Integer) -> Value<'static> {
        let result =
            self.operations.iter().fold(start, |value, &(operation, operand)| value.combine(operation, operand));
        match result {
            Integer::Narrow(number) => Value::Int32(number),
            Integer::Wide(number) => Value::Int64(number),
        }
    }
}

fn parse_operation(name: &str, operand: Value<'_>) -> Result<(BitOperation, Integer)> {
    let operation = match name {
        "and" => BitOperation::And,
        "or" => BitOperation::Or,
        "xor" => BitOperation::Xor,
        _ => {
            return Err(Error::bad_value(format!(
                "The $bit modifier only supports 'and', 'or', and 'xor', not '{name}' which is an unknown operator: {{{}}}",
                text::element(name, operand)
            )));
        }
    };
    let operand = Integer::from_value(operand).ok_or_else(|| {
        Error::bad_value(format!(
            "The $bit modifier field must be an Integer(32/64 bit); a '{}' is not supported here: {{{}}}",
            operand.kind().alias(),
            text::element(name, operand)
        ))
    })?;
    Ok((operation, operand))
}

impl Integer {
    fn from_value(value: Value<'_>) -> Option<Integer> {
        match value {
            Value::Int32(number) => Some(Integer::Narrow(number)),
            Value::Int64(number) => Some(Integer::Wide(number)),
            _ => None,
        }
    }

    fn to_i64(self) -> i64 {
        match self {
            Integer::Narrow(number) => number.into(),
            Integer::Wide(number) => number,
        }
    }

    fn combine(self, operation: BitOperation, operand: Integer) -> Integer {
        let (a, b) = (self.to_i64(), operand.to_i64());
        let result = match operation {
            BitOperation::And => a & b,
            BitOperation::Or => a | b,
            BitOperation::Xor => a ^ b,
        };
        match (self, operand) {
            // Sign extension makes the result of two 32-bit numbers a 32-bit one again.
            (Integer::Narrow(_), Integer::Narrow(_)) => Integer::Narrow(result as i32),
            _ => Integer::Wide(result),
        }
    }
}
