//! The keys of a `hashed` index: one per document, with the hash in place of the hashed field's
//! value.

use super::encode_field;
use crate::IndexShape;
use document::{Doc, Value};
use error::{Code, Error, Result};
use smallvec::SmallVec;
use store::FieldKind;
use values::hash::hash;

pub fn for_each_key(document: Doc<'_>, index: &IndexShape, give: &mut dyn FnMut(&[u8], &[Value<'_>])) -> Result<()> {
    let mut values: SmallVec<[Value<'_>; 4]> = SmallVec::new();
    let mut any = false;
    let mut buffer = Vec::with_capacity(40);
    for field in &index.fields {
        let value = reach(document, &field.path)?;
        any |= value.is_some();
        let value = value.unwrap_or(Value::Null);
        let value = match field.kind {
            FieldKind::Hashed => Value::Int64(hash(value, &field.collation)),
            _ => value,
        };
        encode_field(value, field, &mut buffer);
        values.push(value);
    }
    if any || !index.spec.sparse {
        give(&buffer, &values);
    }
    Ok(())
}

/// Returns the value at a path. Fails with 16766 for an array there, or on the way.
fn reach<'a>(document: Doc<'a>, path: &str) -> Result<Option<Value<'a>>> {
    let mut current = Value::Document(document);
    let mut behind = 0;
    for name in path.split('.') {
        let Value::Document(document) = current else { return Ok(None) };
        let Some(value) = document.get(name) else { return Ok(None) };
        behind += name.len() + 1;
        if let Value::Array(_) = value {
            let found = &path[..behind - 1];
            let message =
                format!("Error: hashed indexes do not currently support array values. Found array at path: {found}");
            return Err(Error::new(Code(16766), message));
        }
        current = value;
    }
    Ok(Some(current))
}
