//! Clustered collections: documents are stored by `_id`, which is their only index on it.
//!
//! Source: <https://www.mongodb.com/docs/v6.0/core/clustered-collections/>

use crate::arguments;
use crate::arguments::options::display;
use crate::arguments::unknown_field;
use document::{Doc, DocBuf, Element, Value};
use error::{Code, Error, Result};
use store::index_rules;
use store::rules::CLUSTERED_INDEX;

const WITHIN: &str = "create";

/// The value of `clusteredIndex` in `create`.
pub enum ClusteredOption {
    /// A boolean, as servers send it to one another.
    Switch(bool),
    /// The index as it is stored.
    Index(DocBuf),
}

/// Reads `clusteredIndex`. The index itself is checked by [`check`].
pub fn read(field: Element<'_>) -> Result<ClusteredOption> {
    let Value::Document(spec) = field.value() else {
        return match field.value() {
            Value::Boolean(flag) => Ok(ClusteredOption::Switch(flag)),
            value if value.kind().is_number() => Ok(ClusteredOption::Switch(value.is_truthy())),
            _ => Err(arguments::wrong_types(WITHIN, field, "'[bool']")),
        };
    };
    let (mut key, mut name, mut version, mut unique) = (None, "_id_", 2, None);
    for field in spec.elements() {
        match field.key() {
            _ if arguments::is_left_out(field, &["name", "v", "unique"]) => {}
            "key" => key = Some(arguments::document(WITHIN, field)?),
            "name" => name = arguments::string(WITHIN, field)?,
            "v" => version = arguments::integer(WITHIN, field)?,
            "unique" => unique = Some(arguments::boolean_or_number(WITHIN, field)?),
            other => return Err(unknown_field(WITHIN, other)),
        }
    }
    let key = key.ok_or_else(|| arguments::missing_field(WITHIN, "key"))?;
    let unique = unique.ok_or_else(|| arguments::missing_field(WITHIN, "unique"))?;
    let version = version.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
    Ok(ClusteredOption::Index(document::doc! { "v": version, "key": &key.to_owned(), "name": name, "unique": unique }))
}

/// Checks a clustered index: it must be on `_id`, unique and of version 2.
pub fn check(index: Doc<'_>) -> Result<()> {
    let key = index.get("key").and_then(Value::as_document).unwrap_or(Doc::EMPTY);
    if !index_rules::same_key(key, document::doc! { "_id": 1 }.as_doc()) {
        let message = "The clusteredIndex option is only supported for key: {_id: 1}";
        return Err(Error::new(Code::INVALID_INDEX_SPECIFICATION_OPTION, message));
    }
    if index.get("unique").is_none_or(|unique| !unique.is_truthy()) {
        return Err(Error::new(Code(5979700), "The clusteredIndex option requires unique: true to be specified"));
    }
    match index.get("v").and_then(Value::to_i64) {
        Some(2) => Ok(()),
        version => {
            let message = format!(
                "Invalid clusteredIndex specification {}; cannot create a clusteredIndex with v={}",
                display(index),
                version.unwrap_or_default()
            );
            Err(Error::new(Code(5979704), message))
        }
    }
}

/// Checks the lifetime of documents in a clustered collection.
pub fn check_seconds(seconds: i64) -> Result<()> {
    let invalid = |message: &str| Err(Error::new(Code::INVALID_OPTIONS, message));
    match seconds {
        ..0 => invalid("TTL index 'expireAfterSeconds' option cannot be less than 0"),
        0..=2_147_483_647 => Ok(()),
        _ => invalid("TTL index 'expireAfterSeconds' option must be within an acceptable range, try a lower number"),
    }
}

/// Returns the clustered index among a collection's options.
pub fn of(options: Doc<'_>) -> Option<Doc<'_>> {
    options.get(CLUSTERED_INDEX).and_then(Value::as_document)
}

/// Returns the name of a clustered index.
pub fn name(index: Doc<'_>) -> &str {
    index.get("name").and_then(Value::as_str).unwrap_or("_id_")
}

/// Returns a clustered index as `listIndexes` shows it.
pub fn listed(index: Doc<'_>, collation: Option<&DocBuf>) -> DocBuf {
    let mut listed = index.to_owned();
    if let Some(collation) = collation {
        listed.append("collation", collation);
    }
    listed.append("clustered", true);
    listed
}
