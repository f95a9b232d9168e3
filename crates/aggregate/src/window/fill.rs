//! `$linearFill`: replaces missing values by interpolation between the known neighbors.

use super::WindowPartition;
use crate::operand::Operand;
use document::compare::equal;
use document::{Value, ValueBuf};
use error::{Code, Error, Result};
use query::Expression;
use query::expression::{Evaluated, apply};

/// The state of a run over one partition.
#[derive(Debug, Default)]
pub(super) struct LinearFillState {
    /// The sort value of the previous document.
    previous_position: Option<ValueBuf>,
    left: Option<(ValueBuf, ValueBuf)>,
    /// The next known point, and its row.
    right: Option<(usize, ValueBuf, ValueBuf)>,
}

impl LinearFillState {
    pub fn next(
        &mut self,
        input: &Operand,
        sort_by: &Expression,
        partition: &WindowPartition,
        row: usize,
    ) -> Result<ValueBuf> {
        let lent = partition.get(row)?;
        let document = lent.as_item();
        let sort_value = sort_by.evaluate(document)?;
        let value = input.evaluate(document)?;
        let kind = |evaluated: &Evaluated<'_>| evaluated.value().map(|value| value.kind());
        if !kind(&sort_value).is_some_and(|kind| kind.is_number() || kind == document::Kind::DateTime) {
            let found = sort_value.type_name();
            let message = format!("Value of the sortBy field must be numeric or a date, but found {found}");
            return Err(Error::type_mismatch(message));
        }
        if !value.is_nullish() && !kind(&value).is_some_and(|kind| kind.is_number()) {
            let found = value.type_name();
            return Err(Error::type_mismatch(format!(
                "Value to be filled must be numeric or nullish, but found {found}"
            )));
        }
        let position = sort_value.value_or_null().to_owned();
        self.check_position(position.as_value())?;
        self.previous_position = Some(position.clone());
        if !value.is_nullish() {
            let value = value.value_or_null().to_owned();
            self.left = Some((position, value.clone()));
            return Ok(value);
        }
        self.find_right(input, sort_by, partition, row)?;
        match (&self.left, &self.right) {
            (Some(left), Some((_, sort_value, value))) => interpolate(left, (sort_value, value), position.as_value()),
            _ => Ok(Value::Null.to_owned()),
        }
    }

    fn check_position(&self, position: Value<'_>) -> Result<()> {
        let Some(previous) = self.previous_position.as_ref().map(ValueBuf::as_value) else { return Ok(()) };
        if previous.kind().is_number() != position.kind().is_number() {
            let (previous, position) = (previous.kind().alias(), position.kind().alias());
            return Err(Error::type_mismatch(format!(
                "Conflicting sort value types, previously received type {previous}, but found {position}"
            )));
        }
        if equal(previous, position) {
            return Err(Error::new(Code(6050106), "There can be no repeated values in the sort field"));
        }
        Ok(())
    }

    fn find_right(
        &mut self,
        input: &Operand,
        sort_by: &Expression,
        partition: &WindowPartition,
        row: usize,
    ) -> Result<()> {
        if self.left.is_none() || self.right.as_ref().is_some_and(|(found, ..)| *found > row) {
            return Ok(());
        }
        self.right = None;
        for index in row + 1..partition.len() {
            steps::step();
            let document = partition.get(index)?;
            let value = input.evaluate(document.as_item())?;
            if !value.is_nullish() {
                let sort_value = sort_by.evaluate(document.as_item())?;
                self.right = Some((index, sort_value.value_or_null().to_owned(), value.value_or_null().to_owned()));
                return Ok(());
            }
        }
        // No further point follows: do not search for following rows either.
        self.left = None;
        Ok(())
    }
}

fn interpolate(left: &(ValueBuf, ValueBuf), right: (&ValueBuf, &ValueBuf), position: Value<'_>) -> Result<ValueBuf> {
    let rise = apply("$subtract", &[right.1.as_value(), left.1.as_value()])?;
    let run = apply("$subtract", &[right.0.as_value(), left.0.as_value()])?;
    let slope = apply("$divide", &[rise.as_value(), run.as_value()])?;
    let distance = apply("$subtract", &[position, left.0.as_value()])?;
    let change = apply("$multiply", &[slope.as_value(), distance.as_value()])?;
    apply("$add", &[left.1.as_value(), change.as_value()])
}
