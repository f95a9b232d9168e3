//! `$addToSet`: appends values that an array does not contain yet.

use super::target::{UpdateTarget, levels};
use super::write::write_header;
use document::{ArrayWriter, Collation, Element, Kind, Value};
use error::{Error, Result};
use steps::Counted;
use values::text;
use values::value_set::ValueSet;

#[derive(Clone, Debug)]
pub(super) struct AddToSet {
    values: ValueSet,
    levels: usize,
}

impl AddToSet {
    pub fn parse(argument: Value<'_>, collation: &Collation) -> Result<Self> {
        let each = argument.as_document().filter(|spec| spec.first().is_some_and(|first| first.key() == "$each"));
        let values = match each {
            None => ValueSet::of([argument], collation),
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
                ValueSet::of(list.values(), collation)
            }
        };
        let levels = values.values().counted().map(|value| levels(value.as_value())).max().unwrap_or(0);
        Ok(AddToSet { values, levels })
    }

    pub fn create(&self, key: &[u8], target: &UpdateTarget<'_>, out: &mut Vec<u8>) -> Result<()> {
        target.check_depth(1 + self.levels)?;
        write_header(out, Kind::Array, key);
        let mut writer = ArrayWriter::begin(out);
        self.values.values().counted().for_each(|value| writer.push(value));
        Ok(())
    }

    pub fn change(&self, element: Element<'_>, target: &UpdateTarget<'_>, out: &mut Vec<u8>) -> Result<bool> {
        let Value::Array(array) = element.value() else {
            return Err(Error::bad_value(format!(
                "Cannot apply $addToSet to non-array field. Field named '{}' has non-array type {}",
                target.name,
                element.kind.alias()
            )));
        };
        let mut is_new = vec![true; self.values.len()];
        let (mut count, mut count_new) = (0, self.values.len());
        for value in array.values() {
            steps::step();
            count += 1;
            if count_new > 0
                && let Some(is_new) = self.values.position(value).and_then(|position| is_new.get_mut(position))
                && std::mem::take(is_new)
            {
                count_new -= 1;
            }
        }
        if count_new == 0 {
            return Ok(false);
        }
        target.check_depth(1 + self.levels)?;
        write_header(out, Kind::Array, element.key_bytes());
        let new = self.values.values().zip(is_new).filter(|(_, is_new)| *is_new);
        super::write::extend_array(array, count, new.map(|(value, _)| value.as_value()), out);
        Ok(true)
    }
}
