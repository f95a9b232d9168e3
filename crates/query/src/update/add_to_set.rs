//! `$addToSet`: adds values that an array does not have yet.

use super::apply::header;
use super::place::{Place, levels};
use crate::text;
use document::{ArrayWriter, Collation, Element, Kind, Value, ValueBuf};
use error::{Error, Result};

#[derive(Clone, Debug)]
pub(super) struct AddToSet {
    /// No two of them equal.
    values: Vec<ValueBuf>,
    levels: usize,
    collation: Collation,
}

impl AddToSet {
    pub fn parse(argument: Value<'_>, collation: &Collation) -> Result<Self> {
        let each = argument.as_document().filter(|spec| spec.first().is_some_and(|first| first.key() == "$each"));
        let mut values: Vec<ValueBuf> = Vec::new();
        match each {
            None => values.push(argument.to_owned()),
            Some(spec) => {
                let list = spec.get("$each").unwrap_or(Value::Undefined);
                let Value::Array(list) = list else {
                    return Err(Error::type_mismatch(format!(
                        "The argument to $each in $addToSet must be an array but it was of type {}",
                        list.kind().alias()
                    )));
                };
                if spec.elements().nth(1).is_some() {
                    return Err(Error::bad_value(format!(
                        "Found unexpected fields after $each in $addToSet: {}",
                        text::document(spec)
                    )));
                }
                for value in list.values() {
                    if !values.iter().any(|known| collation.equal(known.as_value(), value)) {
                        values.push(value.to_owned());
                    }
                }
            }
        }
        let levels = values.iter().map(|value| levels(value.as_value())).max().unwrap_or(0);
        Ok(AddToSet { values, levels, collation: collation.clone() })
    }

    pub fn create(&self, key: &[u8], place: &Place<'_>, out: &mut Vec<u8>) -> Result<()> {
        place.check_depth(1 + self.levels)?;
        header(out, Kind::Array, key);
        let mut writer = ArrayWriter::begin(out);
        self.values.iter().for_each(|value| writer.push(value));
        Ok(())
    }

    pub fn change(&self, element: Element<'_>, place: &Place<'_>, out: &mut Vec<u8>) -> Result<bool> {
        let Value::Array(array) = element.value() else {
            return Err(Error::bad_value(format!(
                "Cannot apply $addToSet to non-array field. Field named '{}' has non-array type {}",
                place.name,
                element.kind.alias()
            )));
        };
        let mut new: Vec<&ValueBuf> = self.values.iter().collect();
        let mut count = 0;
        for value in array.values() {
            new.retain(|candidate| !self.collation.equal(candidate.as_value(), value));
            count += 1;
        }
        if new.is_empty() {
            return Ok(false);
        }
        place.check_depth(1 + self.levels)?;
        header(out, Kind::Array, element.key_bytes());
        super::push::extend_array(array, count, new.iter().map(|value| value.as_value()), out);
        Ok(true)
    }
}
