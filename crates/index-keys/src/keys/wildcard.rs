//! The keys of a wildcard index: the path and the value of every field without inner fields.
//!
//! Arrays are expanded, except those directly within an array; fields of their documents have paths
//! without positions.

use super::{encode, encode_field};
use crate::{IndexField, IndexShape};
use document::{Doc, Value};
use error::Result;
use store::index_kind::WildcardOptions;

pub fn for_each_key(
    document: Doc<'_>,
    index: &IndexShape,
    options: &WildcardOptions,
    give: &mut dyn FnMut(&[u8], &[Value<'_>]),
) -> Result<()> {
    let Some(field) = index.fields.first() else { return Ok(()) };
    let mut walk = Walk { field, options, path: String::new(), buffer: Vec::with_capacity(40), give };
    walk.document(document);
    Ok(())
}

/// Appends the prefix of all keys of a path.
pub fn encode_path(path: &str, out: &mut Vec<u8>) {
    encode(Value::String(path), out);
}

struct Walk<'w, 'g> {
    field: &'w IndexField,
    options: &'w WildcardOptions,
    path: String,
    buffer: Vec<u8>,
    give: &'g mut dyn FnMut(&[u8], &[Value<'_>]),
}

impl Walk<'_, '_> {
    fn document(&mut self, document: Doc<'_>) {
        let length = self.path.len();
        for (name, value) in document.iter() {
            if length > 0 {
                self.path.push('.');
            }
            self.path.push_str(name);
            if self.options.reaches(&self.path) {
                self.value(value, true);
            }
            self.path.truncate(length);
        }
    }

    fn value(&mut self, value: Value<'_>, outside_array: bool) {
        match value {
            Value::Document(inner) if !inner.is_empty() => self.document(inner),
            Value::Array(array) if outside_array => {
                if array.is_empty() {
                    self.give(Value::Undefined);
                }
                array.values().for_each(|element| self.value(element, false));
            }
            value => self.give(value),
        }
    }

    fn give(&mut self, value: Value<'_>) {
        if self.options.covers(&self.path) {
            self.buffer.clear();
            encode_path(&self.path, &mut self.buffer);
            encode_field(value, self.field, &mut self.buffer);
            (self.give)(&self.buffer, &[value]);
        }
    }
}
