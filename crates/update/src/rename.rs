//! `$rename`: moves the value at one path to another. Neither path may cross an array.

use super::target::{UpdateRun, UpdateTarget, array_index, levels};
use super::write::write_element;
use document::Value;
use error::{Code, Error, Result};
use steps::Counted;
use values::text;

/// Writes the source's value under `key`; returns `false` if there is no source.
pub(super) fn write_source_value(
    source: &str,
    key: &[u8],
    target: &UpdateTarget<'_>,
    run: &UpdateRun<'_>,
    out: &mut Vec<u8>,
) -> Result<bool> {
    let Some(value) = find_source(source, run)? else {
        return Ok(false);
    };
    if let Some(inside) = target.ancestors().find(|target| target.in_array) {
        return Err(target_in_array(target, inside.parent.map_or("", |array| array.name), run));
    }
    target.check_depth(levels(value))?;
    write_element(key, value, out);
    Ok(true)
}

/// Returns the value to move.
pub(super) fn find_source<'r>(source: &str, run: &UpdateRun<'r>) -> Result<Option<Value<'r>>> {
    let mut value = Value::Document(run.root);
    let mut array = None;
    let mut parent = "";
    // Account for the fields that are skipped.
    steps::bytes(run.root.size() / 16);
    for name in source.split('.') {
        let below = match value {
            Value::Document(document) => document.get(name),
            Value::Array(elements) if array_index(name).is_some() => {
                array = array.or(Some(parent));
                array_index(name).and_then(|index| elements.values().counted().nth(index))
            }
            other => {
                let named = text::element(parent, other);
                let message =
                    format!("cannot use the part ({parent} of {source}) to traverse the element ({{{named}}})");
                return Err(Error::new(Code::PATH_NOT_VIABLE, message));
            }
        };
        let Some(below) = below else {
            return Ok(None);
        };
        (value, parent) = (below, name);
    }
    match array {
        Some(array) => Err(crosses_array_error("source", source, array, run)),
        None => Ok(Some(value)),
    }
}

pub(super) fn target_in_array(target: &UpdateTarget<'_>, array: &str, run: &UpdateRun<'_>) -> Error {
    crosses_array_error("destination", &target.to_string(), array, run)
}

fn crosses_array_error(role: &str, path: &str, array: &str, run: &UpdateRun<'_>) -> Error {
    let id =
        run.root.get("_id").map_or("INVALID-MUTABLE-ELEMENT".to_owned(), |id| text::element("_id", id).to_string());
    Error::bad_value(format!(
        "The {role} field cannot be an array element, '{path}' in doc with {id} has an array field called '{array}'"
    ))
}
