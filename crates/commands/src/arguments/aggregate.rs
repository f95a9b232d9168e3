//! The arguments of `aggregate`.

use crate::arguments::{self, options, plain_boolean, unknown_field};
use crate::envelope::{WriteConcern, check_time_limit, collection_uuid};
use crate::table::spec::TimeLimitField;
use document::{Doc, Element, Value};
use error::{Error, Result};

const WITHIN: &str = "aggregate";

/// The fields of an `aggregate`, not yet parsed further.
#[derive(Clone, Default)]
pub struct Arguments<'a> {
    pub pipeline: Doc<'a>,
    pub batch_size: Option<u64>,
    pub has_cursor: bool,
    pub explain: bool,
    pub allow_disk_use: Option<bool>,
    pub hint: Option<Value<'a>>,
    pub variables: Option<Doc<'a>>,
    pub collation: Option<Doc<'a>>,
}

impl<'a> Arguments<'a> {
    pub fn read(fields: impl Iterator<Item = Element<'a>>) -> Result<Self> {
        let mut arguments = Arguments::default();
        let mut pipeline = None;
        for field in fields {
            match field.key() {
                "pipeline" => pipeline = Some(read_pipeline(field)?),
                _ if arguments::is_left_out(field, &["let", "collation", "bypassDocumentValidation"]) => {}
                "cursor" => {
                    let message = "cursor field must be missing or an object";
                    field.value().as_document().ok_or_else(|| Error::type_mismatch(message))?;
                    arguments.batch_size = options::cursor_batch_size("cursor", field)?;
                    arguments.has_cursor = true;
                }
                "explain" => arguments.explain = plain_boolean(field)?,
                "hint" => arguments.hint = options::hint(field)?,
                "let" => arguments.variables = Some(arguments::document(WITHIN, field)?),
                "collation" => arguments.collation = options::collation(WITHIN, field)?,
                "allowDiskUse" => arguments.allow_disk_use = Some(plain_boolean(field)?),
                "maxTimeMS" => check_time_limit(WITHIN, TimeLimitField::NonNegative, field)?,
                "readConcern" => drop(arguments::document(WITHIN, field)?),
                "writeConcern" => drop(WriteConcern::read(field)?),
                "bypassDocumentValidation" => drop(arguments::boolean_or_number(WITHIN, field)?),
                "collectionUUID" => drop(collection_uuid::read(WITHIN, field)?),
                other => return Err(unknown_field(WITHIN, other)),
            }
        }
        arguments.pipeline = pipeline.ok_or_else(|| arguments::missing_field(WITHIN, "pipeline"))?;
        Ok(arguments)
    }
}

fn read_pipeline(field: Element<'_>) -> Result<Doc<'_>> {
    let stages = field.value().as_array();
    let stages = stages.ok_or_else(|| Error::type_mismatch("'pipeline' option must be specified as an array"))?;
    if stages.values().any(|stage| stage.as_document().is_none()) {
        return Err(Error::type_mismatch("Each element of the 'pipeline' array must be an object"));
    }
    Ok(stages)
}

/// Fails with 9 without a `cursor`, except for `explain`.
pub fn check_cursor(arguments: &Arguments<'_>) -> Result<()> {
    match arguments.has_cursor || arguments.explain {
        true => Ok(()),
        false => {
            let message = "The 'cursor' option is required, except for aggregate with the explain argument";
            Err(Error::failed_to_parse(message))
        }
    }
}

/// Returns the error of an aggregation that is explained and has a `writeConcern`. The missing
/// space is MongoDB's.
pub fn explained_with_write_concern() -> Error {
    Error::failed_to_parse("Aggregation explain does not support the'writeConcern' option")
}
