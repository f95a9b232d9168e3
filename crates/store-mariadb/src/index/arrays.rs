//! Arrays on the paths of an index's fields, and the documents that an index refuses because of
//! them.

use document::{Doc, Value};
use store::IndexSpec;

/// Returns the least number of fields with an array in a refused document: two parallel arrays; or
/// one, if a number in a path may mean an element or a field. `None` if the index refuses none.
pub(super) fn refused(spec: &IndexSpec) -> Option<usize> {
    let (mut fields, mut numbers) = (0, false);
    for (path, _) in spec.key.as_doc().iter() {
        fields += 1;
        numbers |= has_number(path);
    }
    if numbers { Some(1) } else { (fields > 1).then_some(2) }
}

/// Returns whether a path has a part that may be a position in an array.
pub(crate) fn has_number(path: &str) -> bool {
    path.split('.').any(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns whether a path leads to or through an array.
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

/// Returns whether a path meets an array within a document in another array, or one addressed by a
/// number.
pub(super) fn nest(document: Doc<'_>, path: &str) -> bool {
    let (mut document, mut rest) = (document, path);
    loop {
        let (name, behind) = rest.split_once('.').unwrap_or((rest, ""));
        match document.get(name) {
            Some(Value::Document(inner)) if !behind.is_empty() => (document, rest) = (inner, behind),
            Some(Value::Array(_)) if has_number(path) => return true,
            Some(Value::Array(array)) => {
                let within = |element: Value<'_>| element.as_document().is_some_and(|inner| meets_array(inner, behind));
                return !behind.is_empty() && array.values().any(within);
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::DocBuf;

    #[test]
    fn arrays_within_arrays() {
        let listed = DocBuf::build(|writer| {
            let mut list = writer.array("a");
            list.push(1);
            list.document().append("b", 1);
            list.document().array("c").push(1);
            list.array().push(1);
        });
        for (path, nests) in [
            ("a", false),
            ("a.b", false),
            ("a.b.d", false),
            ("a.c", true),
            ("a.c.d", true),
            ("a.0", true),
            ("x.a", false),
        ] {
            assert_eq!(nest(listed.as_doc(), path), nests, "{path}");
        }
        let deeper = document::doc! { "x": &listed };
        assert!(nest(deeper.as_doc(), "x.a.c") && !nest(deeper.as_doc(), "x.a.b"));
    }
}
