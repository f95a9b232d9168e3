//! The values on which a `$lookup` joins a document, and which a `$graphLookup` follows.

use document::path::position;
use document::{Doc, Value};
use steps::Counted;

/// Visits the values at a dotted path, and the elements of an array at its end one by one.
///
/// Numbers select elements of the arrays that they directly follow. Of other arrays on the path all
/// documents are visited; values without such a field are skipped.
pub(super) fn visit_values<'d>(document: Doc<'d>, path: &[&str], take: &mut impl FnMut(Value<'d>)) {
    let Some((name, mut rest)) = path.split_first() else { return };
    let mut current = document.get(name);
    while let (Some(Value::Array(array)), Some((name, following))) = (current, rest.split_first()) {
        let Some(position) = position(name) else { break };
        current = array.values().counted().nth(position as usize);
        rest = following;
    }
    match current {
        Some(Value::Array(array)) if rest.is_empty() => array.values().counted().for_each(take),
        Some(value) if rest.is_empty() => take(value),
        Some(Value::Array(array)) => {
            for inner in array.values().counted().filter_map(Value::as_document) {
                visit_values(inner, rest, take);
            }
        }
        Some(Value::Document(inner)) => visit_values(inner, rest, take),
        _ => {}
    }
}
