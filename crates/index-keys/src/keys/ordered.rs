//! The keys of an index ordered by values: one per combination of a document's indexed fields, arrays taken apart; a field that
//! is missing counts as null.

use crate::IndexField;
use document::{Doc, Value};
use error::{Code, Error, Result};
use smallvec::SmallVec;

/// Where the search for one field has got to.
#[derive(Clone, Copy)]
enum Part<'a> {
    /// This much of the path is left, from the current document on.
    Path(&'a str),
    Value(Value<'a>),
    Missing,
}

/// What following a path without taking arrays apart comes to.
enum Reached<'a> {
    Value(Value<'a>),
    Missing,
    /// An array, and what is left of the path behind it.
    Array(Doc<'a>, &'a str),
    /// A number that is a position in this array and a field's name in one of its documents.
    Ambiguous(Doc<'a>, &'a str),
}

type Parts<'a> = SmallVec<[Part<'a>; 4]>;

/// Gives the values behind each of a document's keys, in the order of the fields. Error 171 when two of the fields are arrays.
pub fn for_each_key<'a>(
    document: Doc<'a>,
    fields: &'a [IndexField],
    sparse: bool,
    arrays: &mut u64,
    give: &mut dyn FnMut(&[Value<'a>]),
) -> Result<()> {
    let parts: Parts<'a> = fields.iter().map(|field| Part::Path(&field.path)).collect();
    expand(document, parts, fields, sparse, arrays, give)
}

fn expand<'a>(
    document: Doc<'a>,
    mut parts: Parts<'a>,
    fields: &[IndexField],
    sparse: bool,
    arrays: &mut u64,
    give: &mut dyn FnMut(&[Value<'a>]),
) -> Result<()> {
    // All fields that meet an array here must meet the same one; they are taken apart together.
    let mut array: Option<(Doc<'a>, usize)> = None;
    let mut in_array: SmallVec<[(usize, &'a str); 4]> = SmallVec::new();
    for at in 0..parts.len() {
        let Part::Path(path) = parts[at] else { continue };
        let mut by_position = false;
        let reached = follow(document, path, &mut by_position);
        if by_position {
            *arrays |= fields[at].all_parts();
        }
        match reached {
            Reached::Value(value) => parts[at] = Part::Value(value),
            Reached::Missing => parts[at] = Part::Missing,
            Reached::Ambiguous(array, name) => return Err(ambiguous(array, name)),
            Reached::Array(found, rest) => {
                if let Some((other, first)) = array
                    && other.as_bytes().as_ptr() != found.as_bytes().as_ptr()
                {
                    return Err(parallel_arrays(&fields[at].path, &fields[first].path));
                }
                *arrays |= fields[at].part_before(rest);
                array = array.or(Some((found, at)));
                in_array.push((at, rest));
            }
        }
    }
    let Some((array, _)) = array else {
        give_key(&parts, sparse, give);
        return Ok(());
    };
    let mut elements = array.values().peekable();
    if elements.peek().is_none() {
        // An empty array is undefined to an index on itself, and missing to one on what lies in it.
        for &(at, rest) in &in_array {
            parts[at] = if rest.is_empty() { Part::Value(Value::Undefined) } else { Part::Missing };
        }
        give_key(&parts, sparse, give);
        return Ok(());
    }
    for element in elements {
        let inner = match element {
            Value::Document(inner) => inner,
            _ => Doc::EMPTY,
        };
        let mut parts = parts.clone();
        for &(at, rest) in &in_array {
            parts[at] = match rest {
                "" => Part::Value(element),
                rest => Part::Path(rest),
            };
        }
        expand(inner, parts, fields, sparse, arrays, give)?;
    }
    Ok(())
}

fn give_key<'a>(parts: &Parts<'a>, sparse: bool, give: &mut dyn FnMut(&[Value<'a>])) {
    if sparse && parts.iter().all(|part| matches!(part, Part::Missing)) {
        return;
    }
    let values: SmallVec<[Value<'a>; 4]> = parts
        .iter()
        .map(|part| match part {
            Part::Value(value) => *value,
            Part::Missing | Part::Path(_) => Value::Null,
        })
        .collect();
    give(&values);
}

/// Follows a path. `by_position` is set where it goes into an array by a position.
fn follow<'a>(document: Doc<'a>, path: &'a str, by_position: &mut bool) -> Reached<'a> {
    let (name, rest) = path.split_once('.').unwrap_or((path, ""));
    let Some(value) = document.get(name) else { return Reached::Missing };
    into_value(value, rest, by_position)
}

fn into_value<'a>(value: Value<'a>, rest: &'a str, by_position: &mut bool) -> Reached<'a> {
    match value {
        Value::Array(array) => {
            // A number behind an array names one of its elements.
            let (name, behind) = rest.split_once('.').unwrap_or((rest, ""));
            if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()) {
                *by_position = true;
                if array.values().any(|element| element.as_document().is_some_and(|it| it.element(name).is_some())) {
                    return Reached::Ambiguous(array, name);
                }
                return match array.get(name) {
                    Some(element) => into_value(element, behind, by_position),
                    None => Reached::Missing,
                };
            }
            Reached::Array(array, rest)
        }
        value if rest.is_empty() => Reached::Value(value),
        Value::Document(inner) => follow(inner, rest, by_position),
        _ => Reached::Missing,
    }
}

fn parallel_arrays(one: &str, other: &str) -> Error {
    Error::new(Code::CANNOT_INDEX_PARALLEL_ARRAYS, format!("cannot index parallel arrays [{one}] [{other}]"))
}

/// MongoDB refuses these, too: a lookup could mean either.
fn ambiguous(array: Doc<'_>, name: &str) -> Error {
    let message = format!(
        "Ambiguous field name found in array (do not use numeric field names in embedded elements in an array), \
         field: '{name}' for array: {}",
        query::text::value(Value::Array(array))
    );
    Error::new(Code(16746), message)
}
