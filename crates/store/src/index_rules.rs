//! The requests that `createIndexes` refuses with the same text on every store: invalid key
//! patterns (code 67), and indexes that conflict with existing ones (codes 85 and 86).

use crate::catalog::random_uuid;
use crate::duplicate::{write_document, write_value};
use crate::index_kind::{self, Plugin, text, wildcard};
use crate::{IndexKind, IndexSpec, Namespace};
use document::{Doc, Value};
use error::{Code, Error, Result};
use values::number::as_f64_or_boolean;

/// How a requested index relates to existing ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexRelation {
    New,
    /// An identical index exists: nothing to do.
    Exists,
}

/// Options that belong to an index's identity, besides the fields of a wildcard: two indexes on one
/// key may differ in them.
const IDENTITY: [&str; 4] = ["unique", "sparse", "partialFilterExpression", "collation"];

/// Fields of a specification that do not distinguish indexes.
const IGNORED: [&str; 8] =
    ["v", "key", "name", "ns", "background", "hidden", "2dsphereIndexVersion", "wildcardProjection"];

/// The most fields that an index can have.
const FIELDS_MAX: usize = 32;

/// Checks key pattern and name, for every store.
pub fn check_key(index: &IndexSpec) -> Result<()> {
    let checked = check_pattern(index.key.as_doc()).and_then(|()| check_name(&index.name));
    checked.map_err(|error| match error.code() {
        Code::CANNOT_CREATE_INDEX => {
            let mut message = String::from("Error in specification ");
            write_document(index.spec.as_doc(), &mut message);
            error.context(&format!("{message} :: caused by :: "))
        }
        _ => error,
    })
}

/// Checks a key pattern.
pub fn check_pattern(key: Doc<'_>) -> Result<()> {
    if key.is_empty() {
        return index_kind::refuse("Index keys cannot be empty.");
    }
    let plugin = index_kind::plugin(key);
    plugin.map_or(Ok(()), check_plugin).or_else(index_kind::refuse)?;
    for (path, direction) in key.iter() {
        if plugin == Some(wildcard::NAME) && key.elements().nth(1).is_some() {
            return index_kind::refuse("wildcard indexes do not allow compounding");
        }
        check_value(path, direction, plugin).and_then(|()| check_path(path, plugin)).or_else(index_kind::refuse)?;
    }
    Ok(())
}

/// Checks an index's name.
pub fn check_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return index_kind::refuse("index name cannot be empty");
    }
    if name.contains('\0') {
        return index_kind::refuse("index name cannot contain NUL bytes");
    }
    if name == "*" {
        return Err(Error::bad_value("The index name '*' is not valid."));
    }
    Ok(())
}

/// Returns whether a key pattern is that of the index on `_id`, which every collection has.
pub fn is_id_key(key: Doc<'_>) -> bool {
    let mut fields = key.iter();
    match (fields.next(), fields.next()) {
        (Some(("_id", direction)), None) => matches!(direction.to_i64(), Some(1 | -1)),
        _ => false,
    }
}

/// Returns those of the requested indexes that do not exist yet. Fails with 68 for an index
/// requested twice, with 13103 for too many fields, and as [`relation`].
pub fn new_indexes(asked: Vec<IndexSpec>, existing: &[IndexSpec]) -> Result<Vec<IndexSpec>> {
    let mut new: Vec<IndexSpec> = Vec::new();
    for index in asked {
        if is_id_key(index.key.as_doc()) || relation(&index, existing)? == IndexRelation::Exists {
            continue;
        }
        if relation(&index, &new)? == IndexRelation::Exists {
            let message = format!("Identical index already exists: {}", index.name);
            return Err(Error::new(Code::INDEX_ALREADY_EXISTS, message));
        }
        if index.key.as_doc().iter().count() > FIELDS_MAX {
            return Err(Error::new(Code(13103), "too many compound keys"));
        }
        new.push(index);
    }
    Ok(new)
}

/// Returns the error for an index requested twice on a collection with documents.
pub fn requested_twice(error: Error) -> Error {
    match error.code() {
        Code::INDEX_ALREADY_EXISTS => Error::new(
            Code::OPERATION_FAILED,
            "Cannot build two identical indexes. Try again without duplicate indexes.",
        ),
        _ => error,
    }
}

/// Returns the error of a build that met a document which the index cannot hold. `uuid` is the
/// collection's; the build's own UUID is of no use to a client.
pub fn build_failed(namespace: &Namespace, uuid: [u8; 16], error: Error) -> Error {
    let (build, uuid) = (uuid_digits(random_uuid()), uuid_digits(uuid));
    error.context(&format!("Index build failed: {build}: Collection {namespace} ( {uuid} ) :: caused by :: "))
}

fn uuid_digits(uuid: [u8; 16]) -> String {
    let mut text = String::new();
    write_value(Value::Binary { subtype: 4, bytes: &uuid }, &mut text);
    text.trim_start_matches("UUID(\"").trim_end_matches("\")").to_owned()
}

/// Checks that the kind which a key pattern names exists.
fn check_plugin(name: &str) -> Result<(), String> {
    match name {
        // The pattern's values are checked later.
        "" => Ok(()),
        "geoHaystack" => Err("GeoHaystack indexes cannot be created in version 5.0 and above".into()),
        name if Plugin::named(name).is_some() => Ok(()),
        other => Err(format!("Unknown index plugin '{other}'")),
    }
}

fn check_value(path: &str, direction: Value<'_>, plugin: Option<&str>) -> Result<(), String> {
    let number = match direction {
        Value::Int32(number) => f64::from(number),
        Value::Int64(number) => number as f64,
        Value::Double(number) => number,
        Value::Decimal128(number) => number.to_f64(),
        Value::String("") => return Err("Values in the index key pattern cannot be empty strings".into()),
        Value::String(name) if name == wildcard::NAME => {
            return Err("The key pattern value for an 'wildcard' index must be a non-zero number, not a string.".into());
        }
        Value::String(name) if plugin != Some(name) => {
            return Err("Can't use more than one index plugin for a single index.".into());
        }
        Value::String(_) => return Ok(()),
        other => {
            return Err(format!(
                "Values in v:2 index key pattern cannot be of type {}. Only numbers > 0, numbers < 0, and strings are allowed.",
                other.kind().alias()
            ));
        }
    };
    if number.is_nan() {
        return Err("Values in the index key pattern cannot be NaN.".into());
    }
    if number == 0.0 {
        return Err("Values in the index key pattern cannot be 0.".into());
    }
    if number < 0.0 && index_kind::is_wildcard(path) {
        return Err("A numeric value in a $** index key pattern must be positive.".into());
    }
    Ok(())
}

fn check_path(path: &str, plugin: Option<&str>) -> Result<(), String> {
    if path == "_fts" && plugin != Some(text::NAME) {
        return Err("Index key contains an illegal field name: '_fts'".into());
    }
    if path.is_empty() {
        return Err("Index keys cannot be an empty field.".into());
    }
    if path == "$**" && plugin == Some(text::NAME) {
        return Ok(());
    }
    if path.split('.').any(str::is_empty) {
        return Err("Index keys cannot contain an empty field.".into());
    }
    let path = match plugin == Some(wildcard::NAME) {
        true => path.strip_suffix("$**").unwrap_or(path),
        false => path,
    };
    // Behind the first component, the fields of a DBRef are allowed.
    let illegal =
        |(place, part): (usize, &str)| part.starts_with('$') && !(place > 0 && matches!(part, "$id" | "$ref" | "$db"));
    if path.split('.').enumerate().any(illegal) {
        return Err("Index key contains an illegal field name: field name starts with '$'.".into());
    }
    Ok(())
}

/// Compares a requested index with existing ones.
pub fn relation<'i>(index: &IndexSpec, existing: impl IntoIterator<Item = &'i IndexSpec>) -> Result<IndexRelation> {
    let is_text = |index: &IndexSpec| index_kind::plugin(index.key.as_doc()) == Some(text::NAME);
    let mut text = None;
    for other in existing {
        if is_text(index) && is_text(other) {
            text = Some(other);
        }
        let same_identity = same_key(index.key.as_doc(), other.key.as_doc())
            && IDENTITY.iter().all(|option| same_option(index, other, option))
            && same_fields(index, other);
        let same_options = same_identity && same_remaining(index, other) && same_remaining(other, index);
        match (index.name == other.name, same_identity, same_options) {
            (true, _, true) => return Ok(IndexRelation::Exists),
            (true, true, false) => {
                return Err(conflict(
                    Code::INDEX_OPTIONS_CONFLICT,
                    "An equivalent index already exists with the same name but different options.",
                    index,
                    other,
                ));
            }
            (true, false, _) => return Err(same_name(index, other)),
            (false, true, true) => {
                let message = format!("Index already exists with a different name: {}", other.name);
                return Err(Error::new(Code::INDEX_OPTIONS_CONFLICT, message));
            }
            (false, true, false) => {
                return Err(conflict(
                    Code::INDEX_OPTIONS_CONFLICT,
                    "An equivalent index already exists with a different name and options.",
                    index,
                    other,
                ));
            }
            (false, false, _) => {}
        }
    }
    if let Some(other) = text {
        let message =
            format!("only one text index per collection allowed, found existing text index \"{}\"", other.name);
        return Err(Error::new(Code::CANNOT_CREATE_INDEX, message));
    }
    Ok(IndexRelation::New)
}

/// Returns whether two wildcards include the same fields, however they are written.
fn same_fields(left: &IndexSpec, right: &IndexSpec) -> bool {
    let fields = |index: &IndexSpec| {
        let is_wildcard = index_kind::plugin(index.key.as_doc()) == Some(wildcard::NAME);
        is_wildcard.then(|| IndexKind::of(index).ok()).flatten()
    };
    fields(left) == fields(right)
}

/// Returns whether two key patterns have the same fields in the same directions.
pub fn same_key(left: Doc<'_>, right: Doc<'_>) -> bool {
    let mut left = left.iter();
    let mut right = right.iter();
    loop {
        match (left.next(), right.next()) {
            (None, None) => return true,
            (Some((left_path, left_value)), Some((right_path, right_value))) => {
                if left_path != right_path || !same_value(left_value, right_value) {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

fn same_name(index: &IndexSpec, other: &IndexSpec) -> Error {
    conflict(
        Code::INDEX_KEY_SPECS_CONFLICT,
        "An existing index has the same name as the requested index. When index names are not specified, they are auto \
         generated and can cause conflicts. Please refer to our documentation.",
        index,
        other,
    )
}

fn conflict(code: Code, sentence: &str, index: &IndexSpec, other: &IndexSpec) -> Error {
    let mut message = format!("{sentence} Requested index: ");
    write_document(index.spec.as_doc(), &mut message);
    message.push_str(", existing index: ");
    write_document(other.spec.as_doc(), &mut message);
    Error::new(code, message)
}

fn same_option(left: &IndexSpec, right: &IndexSpec, option: &str) -> bool {
    match (left.spec.as_doc().get(option), right.spec.as_doc().get(option)) {
        (None, None) => true,
        (Some(left), Some(right)) => same_value(left, right),
        // A boolean option set to false equals a missing one.
        (Some(value), None) | (None, Some(value)) => !matches!(option, "bits" | "min" | "max") && !value.is_truthy(),
    }
}

fn same_remaining(left: &IndexSpec, right: &IndexSpec) -> bool {
    let remaining = |key: &str| !IGNORED.contains(&key) && !IDENTITY.contains(&key);
    left.spec.as_doc().iter().filter(|(key, _)| remaining(key)).all(|(key, _)| same_option(left, right, key))
}

fn same_value(left: Value<'_>, right: Value<'_>) -> bool {
    match (as_f64_or_boolean(left), as_f64_or_boolean(right)) {
        (Some(left), Some(right)) => left == right,
        _ => left == right,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{DocBuf, doc};

    fn index(name: &str, key: DocBuf, options: DocBuf) -> IndexSpec {
        let mut spec = doc! { "v": 2, "key": &key, "name": name };
        options.as_doc().iter().for_each(|(key, value)| spec.append(key, value));
        let flag = |option| options.as_doc().get(option).is_some_and(Value::is_truthy);
        IndexSpec { name: name.into(), unique: flag("unique"), sparse: flag("sparse"), key, spec }
    }

    fn check(asked: IndexSpec, expected: Result<IndexRelation, i32>) {
        let existing = [index("a1", doc! { "a": 1 }, doc! { "sparse": true })];
        assert_eq!(relation(&asked, &existing).map_err(|error| error.code().0), expected, "{asked:?}");
    }

    #[test]
    fn a_requested_index_is_compared_with_existing_ones() {
        check(index("a1", doc! { "a": 1.0 }, doc! { "sparse": true, "hidden": true }), Ok(IndexRelation::Exists));
        check(index("b", doc! { "a": 1 }, doc! { "sparse": true }), Err(85));
        check(index("b", doc! { "a": 1 }, doc! { "sparse": true, "expireAfterSeconds": 5 }), Err(85));
        check(index("a1", doc! { "a": 1 }, doc! { "sparse": true, "expireAfterSeconds": 5 }), Err(85));
        check(index("a1", doc! { "a": 1 }, doc! {}), Err(86));
        check(index("a1", doc! { "q": 1 }, doc! { "sparse": true }), Err(86));
        check(index("b", doc! { "a": 1 }, doc! { "sparse": false }), Ok(IndexRelation::New));
        check(index("b", doc! { "a": -1 }, doc! { "sparse": true }), Ok(IndexRelation::New));
    }

    #[test]
    fn invalid_key_patterns_are_refused() {
        let bad = [
            doc! {},
            doc! { "a": 0 },
            doc! { "a": true },
            doc! { "a": "foo" },
            doc! { "": 1 },
            doc! { "a..b": 1 },
            doc! { "a.": 1 },
            doc! { "$a": 1 },
            doc! { "a": f64::NAN },
            doc! { "a": "geoHaystack" },
            doc! { "a": "wildcard" },
            doc! { "a": "2d", "b": "2dsphere" },
            doc! { "$**": 1, "a": 1 },
            doc! { "$**": -1 },
            doc! { "$**": "hashed" },
            doc! { "a.$**.b": 1 },
            doc! { "a.$**": "text" },
            doc! { "_fts": 1 },
        ];
        for key in bad {
            let error = check_key(&index("x", key.clone(), doc! {})).expect_err("refused");
            assert_eq!(error.code(), Code::CANNOT_CREATE_INDEX, "{key:?}");
        }
        let good = [
            doc! { "a.b": -2, "c": 1.5 },
            doc! { "a": 1, "b": "2dsphere", "c": "2dsphere" },
            doc! { "a": "hashed", "b": -1 },
            doc! { "$**": 1 },
            doc! { "a.b.$**": 1 },
            doc! { "a": 1, "$**": "text" },
            doc! { "_fts": "text", "_ftsx": 1 },
            doc! { "a$**": 1 },
        ];
        for key in good {
            assert_eq!(check_key(&index("x", key.clone(), doc! {})), Ok(()), "{key:?}");
        }
    }

    #[test]
    fn indexes_of_special_kinds_are_compared_by_their_fields() {
        let relation = |asked: IndexSpec, there: IndexSpec| relation(&asked, [&there]).map_err(|error| error.code().0);
        let text = |name: &str, field: &str| {
            let (key, mut weights) = (doc! { "_fts": "text", "_ftsx": 1 }, DocBuf::new());
            weights.append(field, 1);
            index(name, key, doc! { "weights": &weights })
        };
        assert_eq!(relation(text("j", "b"), text("i", "a")), Err(85));
        let compound = index("j", doc! { "a": 1, "_fts": "text", "_ftsx": 1 }, doc! { "weights": &doc! { "a": 1 } });
        assert_eq!(relation(compound, text("i", "a")), Err(67));
        let wildcard =
            |name: &str, fields: DocBuf| index(name, doc! { "$**": 1 }, doc! { "wildcardProjection": &fields });
        let nested = doc! { "b": &doc! { "c": true }, "a": 1 };
        assert_eq!(relation(wildcard("j", nested), wildcard("i", doc! { "a": 1, "b.c": 1 })), Err(85));
        assert_eq!(relation(wildcard("j", doc! { "a": 1 }), wildcard("i", doc! { "b": 1 })), Ok(IndexRelation::New));
        assert_eq!(relation(wildcard("i", doc! { "a": 1 }), wildcard("i", doc! { "b": 1 })), Err(86));
        let plane = |options| index("i", doc! { "a": "2d" }, options);
        assert_eq!(relation(plane(doc! { "bits": 20 }), plane(doc! {})), Err(85));
        assert_eq!(relation(plane(doc! {}), index("j", doc! { "a": "2dsphere" }, doc! {})), Ok(IndexRelation::New));
    }
}
