//! Field paths in expressions: `$a.b`.
//!
//! Unlike in filters, a path through an array returns an array of the values found in its elements;
//! numbers are names, not positions.

use super::Evaluated;
use document::{ArrayWriter, Doc, Value};
use error::{Code, Error, Result};
use std::fmt;
use steps::Counted;

/// The names along a path; empty for the whole value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldPath(Vec<Box<str>>);

impl FieldPath {
    /// Parses `a.b`. Fails with 40353, 15998, 16410 and 15.
    pub fn parse(text: &str) -> Result<FieldPath> {
        check_field_path(text)?;
        // A variable's name is a part of it.
        check_length(text, PARTS_MAX - 1)?;
        Ok(FieldPath(text.split('.').map(Into::into).collect()))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn evaluate<'a>(&self, value: Option<Value<'a>>) -> Evaluated<'a> {
        if self.0.is_empty() {
            return value.map_or(Evaluated::Missing, Evaluated::Value);
        }
        match value {
            Some(Value::Document(document)) => {
                // Account for the fields that are skipped.
                steps::bytes(document.size() / 16);
                in_document(&self.0, document)
            }
            Some(Value::Array(array)) => in_array(&self.0, array),
            _ => Evaluated::Missing,
        }
    }
}

/// Maximal number of names in a path.
const PARTS_MAX: usize = 200;

fn check_length(text: &str, most: usize) -> Result<()> {
    match text.split('.').nth(most) {
        Some(_) => Err(Error::new(Code::OVERFLOW, "FieldPath is too long")),
        None => Ok(()),
    }
}

/// Checks a dotted path of a projection, sort or expression. Fails with 40352, 40353, 15998, 16410
/// and 15.
pub fn check_field_path(text: &str) -> Result<()> {
    if text.is_empty() {
        return Err(Error::new(Code(40352), "FieldPath cannot be constructed with empty string"));
    }
    if text.ends_with('.') {
        return Err(Error::new(Code(40353), "FieldPath must not end with a '.'."));
    }
    check_length(text, PARTS_MAX)?;
    text.split('.').try_for_each(check_name)
}

pub fn check_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::new(Code(15998), "FieldPath field names may not be empty strings."));
    }
    // The fields of a DBRef are the exception.
    if name.starts_with('$') && !matches!(name, "$id" | "$ref" | "$db") {
        return Err(Error::new(
            Code(16410),
            "FieldPath field names may not start with '$'. Consider using $getField or $setField.",
        ));
    }
    if name.contains('\0') {
        return Err(Error::new(Code(16411), "FieldPath field names may not contain '\0'."));
    }
    Ok(())
}

fn in_document<'a>(path: &[Box<str>], document: Doc<'a>) -> Evaluated<'a> {
    let Some((name, rest)) = path.split_first() else { return Evaluated::Missing };
    match document.get(name) {
        None => Evaluated::Missing,
        Some(value) if rest.is_empty() => Evaluated::Value(value),
        Some(Value::Document(document)) => in_document(rest, document),
        Some(Value::Array(array)) => in_array(rest, array),
        Some(_) => Evaluated::Missing,
    }
}

fn in_array<'a>(path: &[Box<str>], array: Doc<'a>) -> Evaluated<'a> {
    Evaluated::array(|writer| collect(path, array, writer))
}

fn collect(path: &[Box<str>], array: Doc<'_>, writer: &mut ArrayWriter<'_>) {
    for document in array.values().counted().filter_map(Value::as_document) {
        let found = in_document(path, document);
        if !found.is_missing() {
            found.push_to(writer);
        }
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}
