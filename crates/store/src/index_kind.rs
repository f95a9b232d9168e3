//! The kinds of index: ordered by values, over geometries on the sphere or in the plane, by hash,
//! over text, or over all fields.
//!
//! [`IndexKind::of`] reads an index's kind, with its options, from its specification. [`complete`]
//! turns a requested specification into the stored and listed one: it fills in the defaults of a
//! kind's options, and refuses what the kind does not support. Errors of the key pattern itself
//! belong to [`crate::index_rules`].
//!
//! Source: <https://www.mongodb.com/docs/manual/indexes/>; messages and codes are those of a 6.0
//! server.

pub mod plane;
pub mod sphere;
mod text;
pub mod wildcard;

use crate::IndexSpec;
use crate::duplicate::write_document;
use document::{Doc, DocBuf, Value};
use error::{Code, Error, Result};
pub use plane::PlaneOptions;
pub use sphere::SphereOptions;
pub use text::TextOptions;
use values::number::as_f64_lossy;
pub use wildcard::WildcardOptions;

/// The kind of a whole index, with its options.
#[derive(Clone, Debug, PartialEq)]
pub enum IndexKind {
    /// By the fields' values, ascending or descending.
    Ordered,
    /// `2dsphere`
    Sphere(SphereOptions),
    /// `2d`
    Plane(PlaneOptions),
    /// `hashed`
    Hashed,
    /// `text`
    Text(TextOptions),
    /// `$**`
    Wildcard(WildcardOptions),
}

/// The keys that an index has for one of its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    Ascending,
    Descending,
    Sphere,
    Plane,
    Hashed,
    Text,
    Wildcard,
}

impl IndexKind {
    /// Reads the kind of an index with a valid key pattern. Missing options get their defaults.
    pub fn of(index: &IndexSpec) -> Result<IndexKind> {
        Ok(match plugin(index.key.as_doc()) {
            Some("2dsphere") => IndexKind::Sphere(SphereOptions::read(index.spec.as_doc())?),
            Some("2d") => IndexKind::Plane(PlaneOptions::read(index)?),
            Some("hashed") => IndexKind::Hashed,
            Some("text") => IndexKind::Text(TextOptions::read(index)?),
            Some("wildcard") => IndexKind::Wildcard(WildcardOptions::read(index)?),
            _ => IndexKind::Ordered,
        })
    }

    /// Returns MongoDB's name of the kind.
    pub fn name(&self) -> &'static str {
        match self {
            IndexKind::Ordered => "",
            IndexKind::Sphere(_) => "2dsphere",
            IndexKind::Plane(_) => "2d",
            IndexKind::Hashed => "hashed",
            IndexKind::Text(_) => "text",
            IndexKind::Wildcard(_) => "wildcard",
        }
    }

    /// Returns whether the index orders documents by the values of its fields.
    pub fn is_ordered(&self) -> bool {
        *self == IndexKind::Ordered
    }
}

impl FieldKind {
    /// Reads an element of a key pattern.
    pub fn of(path: &str, value: Value<'_>) -> FieldKind {
        match value {
            Value::String("2dsphere") => FieldKind::Sphere,
            Value::String("2d") => FieldKind::Plane,
            Value::String("hashed") => FieldKind::Hashed,
            Value::String(_) => FieldKind::Text,
            _ if is_wildcard(path) => FieldKind::Wildcard,
            value if as_f64_lossy(value).is_some_and(|number| number < 0.0) => FieldKind::Descending,
            _ => FieldKind::Ascending,
        }
    }
}

/// Returns the kind's name in the key pattern, if the index is not ordered: its first string, or
/// `wildcard`.
pub(crate) fn plugin(key: Doc<'_>) -> Option<&str> {
    key.iter().find_map(|(path, value)| match value {
        Value::String(name) => Some(name),
        _ if is_wildcard(path) => Some("wildcard"),
        _ => None,
    })
}

/// Returns whether a name in a key pattern is `$**`, alone or behind a path.
pub(crate) fn is_wildcard(path: &str) -> bool {
    path == "$**" || path.ends_with(".$**")
}

/// Returns the specification to store for a requested index; `sent` is the client's document. Fails
/// with 67 for most options that a kind does not support, and with codes of their own for `2d` and
/// `hashed`.
pub fn complete(index: IndexSpec, sent: Doc<'_>) -> Result<IndexSpec> {
    let index = with_types(index);
    check_collation(&index, sent)?;
    let refused = |error: Error| match error.code() {
        Code::CANNOT_CREATE_INDEX => in_completed(sent, error),
        _ => error,
    };
    match plugin(index.key.as_doc()) {
        Some("2dsphere") => sphere::complete(index, sent).map_err(refused),
        Some("2d") => plane::complete(index),
        Some("hashed") => check_hashed(&index).map(|()| index),
        Some("text") => text::complete(index).map_err(refused),
        Some("wildcard") => wildcard::check(&index).map(|()| index).map_err(refused),
        _ => Ok(index),
    }
}

/// Converts numeric and boolean options to one type each, whatever type was sent.
fn with_types(index: IndexSpec) -> IndexSpec {
    let is_plane = plugin(index.key.as_doc()) == Some("2d");
    let spec = DocBuf::build(|writer| {
        for field in index.spec.as_doc().elements() {
            let (key, value) = (field.key(), field.value());
            match (key, value.to_i64()) {
                ("expireAfterSeconds", Some(seconds)) => writer.append(key, seconds_to_live(value, seconds)),
                (
                    "bits"
                    | "2dsphereIndexVersion"
                    | "textIndexVersion"
                    | "coarsestIndexedLevel"
                    | "finestIndexedLevel",
                    Some(number),
                ) => writer.append(key, clamped(number)),
                ("min" | "max", Some(_)) => {
                    let found = as_f64_lossy(value).filter(|number| is_plane || !number.is_nan());
                    writer.append(key, found.unwrap_or(0.0));
                }
                ("unique" | "sparse" | "background" | "hidden" | "prepareUnique", _) => {
                    writer.append(key, value.is_truthy());
                }
                _ => writer.append_element(field),
            }
        }
    });
    IndexSpec { spec, ..index }
}

/// Returns the lifetime; if it is no number, the longest possible.
fn seconds_to_live(value: Value<'_>, seconds: i64) -> i32 {
    match as_f64_lossy(value) {
        Some(number) if number.is_nan() => i32::MAX,
        _ => clamped(seconds),
    }
}

fn clamped(number: i64) -> i32 {
    number.clamp(i32::MIN.into(), i32::MAX.into()) as i32
}

/// `2d` and text indexes do not support a collation.
fn check_collation(index: &IndexSpec, sent: Doc<'_>) -> Result<()> {
    let Some(Value::Document(collation)) = index.spec.as_doc().get("collation") else { return Ok(()) };
    let Some(kind @ ("2d" | "text")) = plugin(index.key.as_doc()) else { return Ok(()) };
    let mut message = String::from("Error in specification ");
    let shown = DocBuf::build(|writer| {
        completed(sent)
            .as_doc()
            .elements()
            .filter(|it| it.key() != "collation")
            .for_each(|it| writer.append_element(it));
        writer.append("collation", collation);
    });
    write_document(shown.as_doc(), &mut message);
    message.push_str(&format!(" :: caused by :: Index type '{kind}' does not support collation: "));
    write_document(collation, &mut message);
    Err(Error::new(Code::CANNOT_CREATE_INDEX, message))
}

fn check_hashed(index: &IndexSpec) -> Result<()> {
    let hashed = index.key.as_doc().values().filter(|value| *value == Value::String("hashed")).count();
    if hashed > 1 {
        let mut message = format!("A maximum of one index field is allowed to be hashed but found {hashed} for 'key' ");
        write_document(index.key.as_doc(), &mut message);
        return Err(Error::new(Code(31303), message));
    }
    if index.unique {
        let message = "Currently hashed indexes cannot guarantee uniqueness. Use a regular index.";
        return Err(Error::new(Code(16764), message));
    }
    Ok(())
}

/// Returns the specification as sent, with the default version.
fn completed(sent: Doc<'_>) -> DocBuf {
    let mut completed = sent.to_owned();
    if sent.get("v").is_none() {
        completed.append("v", 2);
    }
    completed
}

fn in_completed(sent: Doc<'_>, error: Error) -> Error {
    let mut text = String::new();
    write_document(completed(sent).as_doc(), &mut text);
    error.context(&format!("Error in specification {text} :: caused by :: "))
}

pub(crate) fn refuse<T>(reason: impl Into<String>) -> Result<T> {
    Err(Error::new(Code::CANNOT_CREATE_INDEX, reason.into()))
}
