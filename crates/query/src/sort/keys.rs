//! From a document to its sort key.
//!
//! A document has one key per element of the array it sorts by, and sorts by the first of them in
//! the requested order. With several fields, an array element that they share contributes to all of
//! them: by `{a.b: 1, a.c: 1}` the document `{a: [{b: 1, c: 9}, {b: 2, c: 1}]}` sorts as (1, 9).
//! Parallel arrays have no such order.

use super::range::KeyBounds;
use super::{Sort, SortPart};
use crate::metadata::{Item, Metadata};
use document::key::encode_field;
use document::path::{Path, position};
use document::{ArrayWriter, Collation, Doc, Kind, Value, ValueBuf};
use error::{Code, Error, Result};
use smallvec::SmallVec;
use std::ops::ControlFlow;
use steps::Counted;

pub(super) fn append(sort: &Sort, item: Item<'_>, out: &mut Vec<u8>) -> Result<()> {
    let document = item.document;
    let (parts, collation) = (&*sort.parts, &sort.collation);
    if sort.key_bounds.is_some() {
        return append_compound(sort, item, out, out.len());
    }
    if let [part] = parts
        && part.meta.is_none()
        && !part.path.components().any(|name| position(name).is_some())
    {
        append_single(part, collation, document, out);
        return Ok(());
    }
    let start = out.len();
    let mut values = SmallVec::<[Value<'_>; 4]>::new();
    for part in parts {
        match value_without_array(part, item) {
            Some(value) => values.push(value),
            None => return append_compound(sort, item, out, start),
        }
    }
    for (part, value) in parts.iter().zip(values) {
        encode(Some(value), part.ascending, collation, out);
    }
    Ok(())
}

/// Appends the values of the document's key.
pub(super) fn append_values(sort: &Sort, item: Item<'_>, out: &mut ArrayWriter<'_>) -> Result<()> {
    for value in &values(sort, item)? {
        match (value.as_value(), sort.collation.key_of_string(value.as_value())) {
            (_, Some(key)) => out.push(key.as_str()),
            (value, None) => out.push(value),
        }
    }
    Ok(())
}

/// Returns the values of the document's key; none if no key of the document counts.
pub(super) fn values(sort: &Sort, item: Item<'_>) -> Result<SmallVec<[ValueBuf; 4]>> {
    let mut keys = KeyGenerator::new(sort, item.metadata);
    keys.best_values = Some(SmallVec::new());
    keys.generate(initial_states(sort, item.document))?;
    Ok(keys.best_values.unwrap_or_default())
}

/// Returns the value that a document is sorted by, unless the path crosses an array.
fn value_without_array<'d>(part: &SortPart, item: Item<'d>) -> Option<Value<'d>> {
    if let Some(meta) = part.meta {
        return Some(item.metadata.get(meta).unwrap_or(Value::Null));
    }
    scalar_at(&part.path, item.document)
}

/// Returns the value at a path that crosses no array.
fn scalar_at<'d>(path: &Path, document: Doc<'d>) -> Option<Value<'d>> {
    let mut components = path.components();
    let mut value = Value::Document(document);
    for name in &mut components {
        value = match value {
            Value::Document(document) => document.get(name).unwrap_or(Value::Null),
            Value::Array(_) => return None,
            _ => Value::Null,
        };
    }
    (value.kind() != Kind::Array).then_some(value)
}

fn append_single(part: &SortPart, collation: &Collation, document: Doc<'_>, out: &mut Vec<u8>) {
    if part.path == "_id" {
        // As in the index on `_id`, an array is a value like any other.
        return encode(document.get("_id"), part.ascending, collation, out);
    }
    if let Some(value) = scalar_at(&part.path, document) {
        return encode(Some(value), part.ascending, collation, out);
    }
    let better = if part.ascending { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater };
    let mut first: Option<Value<'_>> = None;
    let _ = part.path.visit_keys(document, &mut |key| {
        let value = key.sort_value();
        steps::step();
        if first.is_none_or(|first| collation.compare(value, first) == better) {
            first = Some(value);
        }
        ControlFlow::Continue(())
    });
    encode(first, part.ascending, collation, out);
}

/// Appends the key of a value, or of a missing one.
#[inline]
pub(super) fn encode(value: Option<Value<'_>>, ascending: bool, collation: &Collation, out: &mut Vec<u8>) {
    if collation.is_simple() {
        return encode_field(value, ascending, out);
    }
    let start = out.len();
    collation.encode_key(value.unwrap_or(Value::Null), out);
    if !ascending {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// The state of one field of a compound sort while arrays are expanded.
#[derive(Clone, Copy)]
enum FieldState<'d> {
    /// The components from this index on remain to be looked up in this value.
    Pending(Value<'d>, usize),
    /// The same in an element that a number in the path selected.
    Selected(Value<'d>, usize),
    /// The path has reached an array, with the components from this index on left.
    AtArray(Doc<'d>, usize),
    Reached(Value<'d>),
}

type FieldStates<'d> = SmallVec<[FieldState<'d>; 4]>;

fn initial_states<'d>(sort: &Sort, document: Doc<'d>) -> FieldStates<'d> {
    sort.parts.iter().map(|_| FieldState::Pending(Value::Document(document), 0)).collect()
}

fn append_compound(sort: &Sort, item: Item<'_>, out: &mut Vec<u8>, start: usize) -> Result<()> {
    out.truncate(start);
    let mut keys = KeyGenerator::new(sort, item.metadata);
    keys.generate(initial_states(sort, item.document))?;
    out.extend_from_slice(&keys.best);
    Ok(())
}

struct KeyGenerator<'p> {
    parts: &'p [SortPart],
    collation: &'p Collation,
    metadata: Metadata<'p>,
    within: Option<&'p KeyBounds>,
    best: Vec<u8>,
    /// The values of `best`, if requested.
    best_values: Option<SmallVec<[ValueBuf; 4]>>,
    candidate: Vec<u8>,
}

impl<'p> KeyGenerator<'p> {
    fn new(sort: &'p Sort, metadata: Metadata<'p>) -> KeyGenerator<'p> {
        KeyGenerator {
            parts: &sort.parts,
            collation: &sort.collation,
            metadata,
            within: sort.key_bounds.as_deref(),
            best: Vec::new(),
            best_values: None,
            candidate: Vec::new(),
        }
    }

    /// Resolves all pending fields, and expands the next array.
    fn generate<'d>(&mut self, mut fields: FieldStates<'d>) -> Result<()> {
        let mut array: Option<Doc<'d>> = None;
        // An array that was selected by its position is not expanded.
        let mut whole = false;
        for (field, part) in fields.iter_mut().zip(self.parts) {
            if part.meta.is_some() {
                continue;
            }
            if let FieldState::Pending(value, at) | FieldState::Selected(value, at) = *field {
                whole |= matches!(*field, FieldState::Selected(Value::Array(_), _));
                *field = follow_path(&part.path, value, at);
            }
            if let FieldState::AtArray(found, _) = *field {
                if array.is_some_and(|array| !std::ptr::eq(array.as_bytes(), found.as_bytes())) {
                    return Err(Error::bad_value("cannot sort with keys that are parallel arrays"));
                }
                array = Some(found);
            }
        }
        match array {
            None => self.complete(&fields),
            Some(array) if array.is_empty() => self.enter(None, false, &fields),
            Some(array) => array.values().counted().try_for_each(|element| self.enter(Some(element), whole, &fields)),
        }
    }

    /// Continues with one element of the array, or with none if it is empty.
    fn enter<'d>(&mut self, element: Option<Value<'d>>, whole: bool, fields: &FieldStates<'d>) -> Result<()> {
        let inside = fields
            .iter()
            .zip(self.parts)
            .map(|(field, part)| match *field {
                FieldState::AtArray(array, at) if whole && at == part.path.component_count() => {
                    Ok(FieldState::Reached(Value::Array(array)))
                }
                FieldState::AtArray(array, at) => state_in_element(&part.path, array, element, at),
                field => Ok(field),
            })
            .collect::<Result<_>>()?;
        self.generate(inside)
    }

    fn complete(&mut self, fields: &FieldStates<'_>) -> Result<()> {
        self.candidate.clear();
        let metadata = self.metadata;
        for (field, part) in fields.iter().zip(self.parts) {
            encode(reached_value(*field, part, metadata), part.ascending, self.collation, &mut self.candidate);
        }
        if self.within.is_some_and(|within| !within.contains(&self.candidate)) {
            return Ok(());
        }
        if self.best.is_empty() || self.candidate < self.best {
            if let Some(values) = &mut self.best_values {
                let found = fields.iter().zip(self.parts).map(|(field, part)| reached_value(*field, part, metadata));
                *values = found.map(|value| value.unwrap_or(Value::Null).to_owned()).collect();
            }
            std::mem::swap(&mut self.best, &mut self.candidate);
        }
        Ok(())
    }
}

/// Returns the value that a part of the sort has reached.
fn reached_value<'v>(field: FieldState<'v>, part: &SortPart, metadata: Metadata<'v>) -> Option<Value<'v>> {
    match (field, part.meta) {
        (_, Some(meta)) => metadata.get(meta),
        (FieldState::Reached(value), None) => Some(value),
        _ => None,
    }
}

/// Returns a field's state inside an array whose current element is `element`.
///
/// Fails with 16746 if a number in the path is both an index of the array and the name of a field
/// of the element.
fn state_in_element<'d>(path: &Path, array: Doc<'d>, element: Option<Value<'d>>, at: usize) -> Result<FieldState<'d>> {
    let Some(name) = path.components().nth(at) else {
        return Ok(FieldState::Reached(element.unwrap_or(Value::Undefined)));
    };
    let inner = element.and_then(Value::as_document);
    let picked = position(name).and_then(|position| array.values().counted().nth(position as usize));
    if picked.is_some() && inner.is_some_and(|inner| inner.element(name).is_some()) {
        let message = format!(
            "Ambiguous field name found in array (do not use numeric field names in embedded elements in an array), \
             field: '{name}' for array: {}",
            values::text::document(array)
        );
        return Err(Error::new(Code(16746), message));
    }
    Ok(match picked {
        Some(picked) => FieldState::Selected(picked, at + 1),
        // An array directly inside an array is not expanded.
        None => FieldState::Pending(inner.map_or(Value::Null, Value::Document), at),
    })
}

/// Follows a path from its component `at` on, up to its end or to an array.
fn follow_path<'d>(path: &Path, mut value: Value<'d>, at: usize) -> FieldState<'d> {
    for (index, name) in path.components().enumerate().skip(at) {
        value = match value {
            Value::Document(document) => document.get(name).unwrap_or(Value::Null),
            Value::Array(array) => return FieldState::AtArray(array, index),
            _ => return FieldState::Reached(Value::Null),
        };
    }
    match value {
        Value::Array(array) => FieldState::AtArray(array, path.component_count()),
        value => FieldState::Reached(value),
    }
}
