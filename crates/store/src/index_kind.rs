//! The kinds of index: ordered by values, over geometries on the sphere or in the plane, by hash,
//! over text, or over all fields.
//!
//! Each kind but the ordered one is an entry of [`PLUGINS`]. [`IndexKind::of`] reads an index's
//! kind, with its options, from its specification. [`complete`] turns a requested specification
//! into the stored and listed one: it fills in the defaults of a kind's options, and refuses what
//! the kind does not support. Errors of the key pattern itself belong to [`crate::index_rules`].
//!
//! Source: <https://www.mongodb.com/docs/manual/indexes/>; messages and codes are those of a 6.0
//! server.

pub mod plane;
pub mod sphere;
pub(crate) mod text;
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

/// A kind of index that is not ordered by values: how key patterns name it, and its options.
pub(crate) struct Plugin {
    /// MongoDB's name, which is a field's value in the key pattern.
    pub name: &'static str,
    /// The keys of the fields with this value.
    field: FieldKind,
    /// Reads the kind from the specification of an index. Missing options get their defaults.
    read: fn(&IndexSpec) -> Result<IndexKind>,
    /// Returns the specification to store for a requested one, and refuses what the kind does not
    /// support. The second argument is the client's document.
    complete: fn(IndexSpec, Doc<'_>) -> Result<IndexSpec>,
    allows_collation: bool,
}

/// All kinds of index that are not ordered by values.
const PLUGINS: [Plugin; 5] = [
    Plugin {
        name: sphere::NAME,
        field: FieldKind::Sphere,
        read: |index| SphereOptions::read(index.spec.as_doc()).map(IndexKind::Sphere),
        complete: sphere::complete,
        allows_collation: true,
    },
    Plugin {
        name: plane::NAME,
        field: FieldKind::Plane,
        read: |index| PlaneOptions::read(index).map(IndexKind::Plane),
        complete: |index, _| plane::complete(index),
        allows_collation: false,
    },
    Plugin {
        name: HASHED,
        field: FieldKind::Hashed,
        read: |_| Ok(IndexKind::Hashed),
        complete: |index, _| check_hashed(&index).map(|()| index),
        allows_collation: true,
    },
    Plugin {
        name: text::NAME,
        field: FieldKind::Text,
        read: |index| TextOptions::read(index).map(IndexKind::Text),
        complete: |index, _| text::complete(index),
        allows_collation: false,
    },
    Plugin {
        name: wildcard::NAME,
        field: FieldKind::Wildcard,
        read: |index| WildcardOptions::read(index).map(IndexKind::Wildcard),
        complete: |index, _| wildcard::check(&index).map(|()| index),
        allows_collation: true,
    },
];

const HASHED: &str = "hashed";

impl Plugin {
    /// Returns the kind of this name, if it exists.
    pub fn named(name: &str) -> Option<&'static Plugin> {
        PLUGINS.iter().find(|plugin| plugin.name == name)
    }
}

impl IndexKind {
    /// Reads the kind of an index with a valid key pattern. Missing options get their defaults.
    pub fn of(index: &IndexSpec) -> Result<IndexKind> {
        let plugin = plugin(index.key.as_doc()).and_then(Plugin::named);
        plugin.map_or(Ok(IndexKind::Ordered), |plugin| (plugin.read)(index))
    }

    /// Returns MongoDB's name of the kind.
    pub fn name(&self) -> &'static str {
        match self {
            IndexKind::Ordered => "",
            IndexKind::Sphere(_) => sphere::NAME,
            IndexKind::Plane(_) => plane::NAME,
            IndexKind::Hashed => HASHED,
            IndexKind::Text(_) => text::NAME,
            IndexKind::Wildcard(_) => wildcard::NAME,
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
            Value::String(name) => Plugin::named(name).map_or(FieldKind::Text, |plugin| plugin.field),
            _ if is_wildcard(path) => FieldKind::Wildcard,
            value if descends(value) => FieldKind::Descending,
            _ => FieldKind::Ascending,
        }
    }
}

/// Returns whether a field with this value in a key pattern is indexed in descending order.
pub fn descends(direction: Value<'_>) -> bool {
    as_f64_lossy(direction).is_some_and(|number| number < 0.0)
}

/// Returns the kind's name in the key pattern, if the index is not ordered: its first string, or
/// `wildcard`.
pub(crate) fn plugin(key: Doc<'_>) -> Option<&str> {
    key.iter().find_map(|(path, value)| match value {
        Value::String(name) => Some(name),
        _ if is_wildcard(path) => Some(wildcard::NAME),
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
    match plugin(index.key.as_doc()).and_then(Plugin::named) {
        Some(plugin) => (plugin.complete)(index, sent).map_err(refused),
        None => Ok(index),
    }
}

/// Converts numeric and boolean options to one type each, whatever type was sent.
fn with_types(index: IndexSpec) -> IndexSpec {
    let is_plane = plugin(index.key.as_doc()) == Some(plane::NAME);
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

/// Fails with 67 for a collation of a kind that does not support one.
fn check_collation(index: &IndexSpec, sent: Doc<'_>) -> Result<()> {
    let Some(Value::Document(collation)) = index.spec.as_doc().get("collation") else { return Ok(()) };
    let plugin = plugin(index.key.as_doc()).and_then(Plugin::named).filter(|plugin| !plugin.allows_collation);
    let Some(Plugin { name, .. }) = plugin else { return Ok(()) };
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
    message.push_str(&format!(" :: caused by :: Index type '{name}' does not support collation: "));
    write_document(collation, &mut message);
    Err(Error::new(Code::CANNOT_CREATE_INDEX, message))
}

fn check_hashed(index: &IndexSpec) -> Result<()> {
    let hashed = index.key.as_doc().values().filter(|value| *value == Value::String(HASHED)).count();
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
