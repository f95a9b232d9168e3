//! The keys of an index ordered by values: one per combination of a document's indexed fields, with
//! arrays expanded; a missing field counts as null.

use crate::IndexField;
use document::{Doc, Value};
use error::{Code, Error, Result};
use smallvec::SmallVec;

/// The state of the search for one field.
#[derive(Clone, Copy)]
enum Part<'a> {
    /// The rest of the path, from the current document on.
    Path(&'a str),
    /// The rest of the path, from the element on that a number in the path has selected.
    Picked(Value<'a>, &'a str),
    Value(Value<'a>),
    Missing,
}

/// The result of following a path up to the first array.
enum Followed<'a> {
    Value(Value<'a>),
    Missing,
    /// An array, its name, and the rest of the path behind it.
    Array(Doc<'a>, &'a str, &'a str),
}

/// A field whose path has met an array.
struct InArray<'a> {
    /// The field's number in the index.
    at: usize,
    /// The rest of its path.
    rest: &'a str,
}

type Parts<'a> = SmallVec<[Part<'a>; 4]>;

/// Calls `give` with the values of each of a document's keys, in the order of the fields. Fails
/// with 171 if two of the fields are different arrays.
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
    fields: &'a [IndexField],
    sparse: bool,
    arrays: &mut u64,
    give: &mut dyn FnMut(&[Value<'a>]),
) -> Result<()> {
    // All fields that meet an array here must meet the same one; they are expanded together.
    let mut array: Option<(Doc<'a>, &'a str)> = None;
    let mut in_array: SmallVec<[InArray<'a>; 4]> = SmallVec::new();
    // An array that was selected by its position stays whole.
    let mut whole = false;
    for at in 0..parts.len() {
        let reached = match parts[at] {
            Part::Path(path) => follow(document, path),
            Part::Picked(Value::Array(array), rest) => {
                whole = true;
                Followed::Array(array, name_before(&fields[at].path, rest), rest)
            }
            Part::Picked(value, "") => Followed::Value(value),
            Part::Picked(Value::Document(inner), rest) => follow(inner, rest),
            Part::Picked(..) => Followed::Missing,
            Part::Value(_) | Part::Missing => continue,
        };
        match reached {
            Followed::Value(value) => parts[at] = Part::Value(value),
            Followed::Missing => parts[at] = Part::Missing,
            Followed::Array(found, name, rest) => {
                if let Some((other, first)) = array
                    && other.as_bytes().as_ptr() != found.as_bytes().as_ptr()
                {
                    return Err(parallel_arrays(name, first));
                }
                let positional = rest.split('.').next().is_some_and(is_position);
                *arrays |= if positional { fields[at].all_parts() } else { fields[at].part_before(rest) };
                array = array.or(Some((found, name)));
                in_array.push(InArray { at, rest });
            }
        }
    }
    let Some((array, _)) = array else {
        give_key(&parts, sparse, give);
        return Ok(());
    };
    let mut elements = array.values().peekable();
    if elements.peek().is_none() {
        // An empty array counts as undefined in an index on the array, and as missing in an index
        // on a field within.
        for field in &in_array {
            parts[field.at] = if field.rest.is_empty() { Part::Value(Value::Undefined) } else { Part::Missing };
        }
        give_key(&parts, sparse, give);
        return Ok(());
    }
    for element in elements {
        steps::step();
        let inner = match element {
            Value::Document(inner) => inner,
            _ => Doc::EMPTY,
        };
        let mut parts = parts.clone();
        for &InArray { at, rest } in &in_array {
            parts[at] = match rest {
                "" => Part::Value(if whole { Value::Array(array) } else { element }),
                rest => pick(array, inner, rest)?,
            };
        }
        expand(inner, parts, fields, sparse, arrays, give)?;
    }
    Ok(())
}

/// Continues in an array: at the element that a number in the path selects, or at the current one.
///
/// Fails with 16746 if the number is also a field's name in the current element, since a lookup
/// could mean either.
fn pick<'a>(array: Doc<'a>, inner: Doc<'a>, rest: &'a str) -> Result<Part<'a>> {
    let (name, behind) = rest.split_once('.').unwrap_or((rest, ""));
    steps::bytes(array.size() / 16);
    let picked = is_position(name).then(|| array.get(name)).flatten();
    match picked {
        None => Ok(Part::Path(rest)),
        Some(_) if inner.element(name).is_some() => Err(ambiguous(array, name)),
        Some(picked) => Ok(Part::Picked(picked, behind)),
    }
}

fn is_position(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the component of a path in front of its rest.
fn name_before<'a>(path: &'a str, rest: &str) -> &'a str {
    let before = path.strip_suffix(rest).unwrap_or(path).trim_end_matches('.');
    before.rsplit('.').next().unwrap_or(before)
}

fn give_key<'a>(parts: &Parts<'a>, sparse: bool, give: &mut dyn FnMut(&[Value<'a>])) {
    if sparse && parts.iter().all(|part| matches!(part, Part::Missing)) {
        return;
    }
    let values: SmallVec<[Value<'a>; 4]> = parts
        .iter()
        .map(|part| match part {
            Part::Value(value) => *value,
            Part::Missing | Part::Path(_) | Part::Picked(..) => Value::Null,
        })
        .collect();
    give(&values);
}

/// Follows a path up to its end or to an array.
fn follow<'a>(mut document: Doc<'a>, mut path: &'a str) -> Followed<'a> {
    loop {
        let (name, rest) = path.split_once('.').unwrap_or((path, ""));
        match document.get(name) {
            None => return Followed::Missing,
            Some(Value::Array(array)) => return Followed::Array(array, name, rest),
            Some(value) if rest.is_empty() => return Followed::Value(value),
            Some(Value::Document(inner)) => (document, path) = (inner, rest),
            Some(_) => return Followed::Missing,
        }
    }
}

fn parallel_arrays(one: &str, other: &str) -> Error {
    Error::new(Code::CANNOT_INDEX_PARALLEL_ARRAYS, format!("cannot index parallel arrays [{one}] [{other}]"))
}

fn ambiguous(array: Doc<'_>, name: &str) -> Error {
    let message = format!(
        "Ambiguous field name found in array (do not use numeric field names in embedded elements in an array), \
         field: '{name}' for array: {}",
        values::text::document(array)
    );
    Error::new(Code(16746), message)
}
