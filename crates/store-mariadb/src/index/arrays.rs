//! Where an index's fields meet arrays, and which documents it refuses for that.

use document::{Doc, Value};
use store::IndexSpec;

/// How many of an index's fields meet an array in a document that it refuses, at least: two arrays side by side; or one, in which a
/// number in a path may mean an element or a field. `None` where it refuses none.
pub(super) fn refused(spec: &IndexSpec) -> Option<usize> {
    let (mut fields, mut numbers) = (0, false);
    for (path, _) in spec.key.as_doc().iter() {
        fields += 1;
        numbers |= has_number(path);
    }
    if numbers { Some(1) } else { (fields > 1).then_some(2) }
}

/// Whether a path has a part that may be a position in an array.
pub(crate) fn has_number(path: &str) -> bool {
    path.split('.').any(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether a path leads to an array, or through one.
pub(crate) fn meets_array(document: Doc<'_>, path: &str) -> bool {
    let mut value = Value::Document(document);
    for name in path.split('.') {
        value = match value {
            Value::Document(document) => document.get(name).unwrap_or(Value::Null),
            other => other,
        };
    }
    matches!(value, Value::Array(_))
}
