//! The values that a `$lookup` joins a document on, and by which a `$graphLookup` goes on.

use document::path::position;
use document::{Doc, Value};
use steps::Counted;

/// Visits what a dotted path leads to, the elements of an array at its end one by one.
///
/// Numbers pick elements of the arrays that they directly follow. Other arrays on the way stand for their documents; what has
/// no such field is passed over.
pub(super) fn visit<'d>(document: Doc<'d>, path: &[&str], take: &mut impl FnMut(Value<'d>)) {
    let Some((name, mut rest)) = path.split_first() else { return };
    let mut reached = document.get(name);
    while let (Some(Value::Array(array)), Some((name, behind))) = (reached, rest.split_first()) {
        let Some(position) = position(name) else { break };
        reached = array.values().counted().nth(position as usize);
        rest = behind;
    }
    match reached {
        Some(Value::Array(array)) if rest.is_empty() => array.values().counted().for_each(take),
        Some(value) if rest.is_empty() => take(value),
        Some(Value::Array(array)) => {
            for inner in array.values().counted().filter_map(Value::as_document) {
                visit(inner, rest, take);
            }
        }
        Some(Value::Document(inner)) => visit(inner, rest, take),
        _ => {}
    }
}
