//! `$push`, with `$each`, `$position`, `$sort` and `$slice`.

use super::target::{UpdateRun, UpdateTarget, levels};
use super::write::{extend_array, write_header};
use document::{ArrayWriter, Collation, Doc, Element, Kind, Value, ValueBuf};
use error::{Error, Result};
use query::sort::ElementOrder;
use std::ops::Range;
use steps::Counted;
use values::integer::as_i64_exact;

#[derive(Clone, Debug)]
pub(super) struct Push {
    values: Vec<ValueBuf>,
    levels: usize,
    position: Option<i64>,
    slice: Option<i64>,
    order: Option<ElementOrder>,
    collation: Collation,
}

/// The effect on one array of a `$push` without `$sort`, for stores that can execute it themselves.
#[derive(Clone, Copy, Debug)]
pub struct UnsortedPush<'u> {
    /// The field of the array.
    pub path: &'u str,
    values: &'u [ValueBuf],
    /// Levels of documents and arrays within the values.
    pub levels: usize,
    pub position: Option<i64>,
    pub slice: Option<i64>,
}

impl<'u> UnsortedPush<'u> {
    /// Returns the values; there is at least one.
    pub fn values(&self) -> impl ExactSizeIterator<Item = Value<'u>> + use<'u> {
        self.values.iter().map(ValueBuf::as_value)
    }
}

impl Push {
    /// Returns the operation for a store; `None` with `$sort` or without values, because the
    /// elements then decide whether anything changes.
    pub fn as_unsorted<'u>(&'u self, path: &'u str) -> Option<UnsortedPush<'u>> {
        let Push { values, levels, position, slice, order, collation: _ } = self;
        let told = order.is_none() && !values.is_empty();
        told.then_some(UnsortedPush { path, values, levels: *levels, position: *position, slice: *slice })
    }

    /// Returns whether MongoDB takes an array of `count` elements for changed, even if it is the
    /// same afterwards.
    pub fn always_changes(&self, count: usize) -> bool {
        self.order.is_some() && count > 0 || !self.values.is_empty()
    }

    /// Returns the number of elements that it appends to an array of `count`; `None` if MongoDB
    /// takes the array for changed as a whole.
    pub fn appended_count(&self, count: usize) -> Option<usize> {
        let inserts = self.position.is_some_and(|position| position <= count as i64);
        (self.order.is_none() && !inserts).then_some(self.values.len())
    }

    pub fn parse(argument: Value<'_>, collation: &Collation) -> Result<Self> {
        let collation = collation.clone();
        let mut push = Push { values: Vec::new(), levels: 0, position: None, slice: None, order: None, collation };
        match argument.as_document().filter(|spec| spec.get("$each").is_some()) {
            Some(spec) => push.parse_clauses(spec)?,
            None => push.values.push(argument.to_owned()),
        }
        push.levels = push.values.iter().counted().map(|value| levels(value.as_value())).max().unwrap_or(0);
        Ok(push)
    }

    fn parse_clauses(&mut self, spec: Doc<'_>) -> Result<()> {
        for (name, argument) in spec.iter() {
            match name {
                "$each" => {
                    let Value::Array(list) = argument else {
                        return Err(Error::bad_value(format!(
                            "The argument to $each in $push must be an array but it was of type: {}",
                            argument.kind().alias()
                        )));
                    };
                    self.values = list.values().counted().map(Value::to_owned).collect();
                }
                "$slice" => {
                    self.slice = Some(as_i64_exact(argument).ok_or_else(|| {
                        Error::bad_value(format!(
                            "The value for $slice must be an integer value but was given type: {}",
                            argument.kind().alias()
                        ))
                    })?);
                }
                "$position" => {
                    self.position = Some(as_i64_exact(argument).ok_or_else(|| {
                        Error::bad_value(format!(
                            "The value for $position must be an integer value, not of type: {}",
                            argument.kind().alias()
                        ))
                    })?);
                }
                "$sort" => self.order = Some(ElementOrder::parse(argument)?),
                _ => return Err(Error::bad_value(format!("Unrecognized clause in $push: {name}"))),
            }
        }
        Ok(())
    }

    pub fn create(&self, key: &[u8], target: &UpdateTarget<'_>, out: &mut Vec<u8>) -> Result<()> {
        target.check_depth(1 + self.levels)?;
        write_header(out, Kind::Array, key);
        self.write(Doc::EMPTY, out);
        Ok(())
    }

    pub fn change(
        &self,
        element: Element<'_>,
        target: &UpdateTarget<'_>,
        run: &UpdateRun<'_>,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let Value::Array(array) = element.value() else {
            return Err(Error::bad_value(format!(
                "The field '{target}' must be an array but is of type {} in document {}",
                element.kind.alias(),
                run.id_text()
            )));
        };
        target.check_depth(1 + self.levels)?;
        write_header(out, Kind::Array, element.key_bytes());
        let count = array.elements().counted().count();
        if self.order.is_none() && self.slice.is_none() && self.appends(count) {
            extend_array(array, count, self.values.iter().map(ValueBuf::as_value), out);
            return Ok(!self.values.is_empty());
        }
        let value_at = out.len();
        self.write(array, out);
        Ok(self.always_changes(count) || &out[value_at..] != array.as_bytes())
    }

    fn appends(&self, count: usize) -> bool {
        self.position.is_none_or(|position| usize::try_from(position).is_ok_and(|position| position >= count))
    }

    /// Writes `array` with the values pushed.
    fn write(&self, array: Doc<'_>, out: &mut Vec<u8>) {
        match &self.order {
            None => self.splice(array, out),
            Some(order) => self.write_sorted(order, array, out),
        }
    }

    /// Writes `array` with the values inserted. Elements that remain get new keys; their values are
    /// copied unchanged.
    fn splice(&self, array: Doc<'_>, out: &mut Vec<u8>) {
        let count = array.elements().counted().count();
        let position = self.insertion_index(count);
        let kept = self.retained_range(count + self.values.len());
        let mut writer = ArrayWriter::begin(out);
        let mut elements = array.elements();
        let mut push_old = |writer: &mut ArrayWriter<'_>, range: Range<usize>, moved: usize| {
            for (index, element) in range.zip(&mut elements) {
                steps::step();
                if kept.contains(&(index + moved)) {
                    writer.push_raw(element.kind, element.raw_value());
                }
            }
        };
        push_old(&mut writer, 0..position, 0);
        let values = (position..).zip(&self.values).counted().filter(|(index, _)| kept.contains(index));
        values.for_each(|(_, value)| writer.push(value));
        push_old(&mut writer, position..count, self.values.len());
    }

    fn write_sorted(&self, order: &ElementOrder, array: Doc<'_>, out: &mut Vec<u8>) {
        let mut values: Vec<Value<'_>> = array.values().collect();
        let position = self.insertion_index(values.len());
        values.splice(position..position, self.values.iter().map(ValueBuf::as_value));
        values.sort_by(|&a, &b| order.compare(a, b, &self.collation));
        let mut writer = ArrayWriter::begin(out);
        values[self.retained_range(values.len())].iter().for_each(|&value| writer.push(value));
    }

    /// Returns the index at which the values are inserted into an array of `count` elements.
    fn insertion_index(&self, count: usize) -> usize {
        match self.position {
            None => count,
            Some(position) if position < 0 => count.saturating_sub(magnitude(position)),
            Some(position) => magnitude(position).min(count),
        }
    }

    /// Returns the range of `count` elements that `$slice` retains.
    fn retained_range(&self, count: usize) -> Range<usize> {
        match self.slice {
            None => 0..count,
            Some(slice) if slice < 0 => count.saturating_sub(magnitude(slice))..count,
            Some(slice) => 0..magnitude(slice).min(count),
        }
    }
}

fn magnitude(number: i64) -> usize {
    usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX)
}
