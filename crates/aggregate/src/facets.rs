//! The pipelines of a `$facet`.

use document::{Doc, Kind, Value};
use error::{Code, Error, Result};
use query::expression::check_name;
use steps::Counted;
use values::text;

/// Returns the pipelines of a `$facet`. Fails with 40169 to 40171, and for invalid names.
pub(super) fn facet_pipelines(spec: Value<'_>) -> Result<Vec<(&str, Doc<'_>)>> {
    let Some(spec) = spec.as_document().filter(|spec| !spec.is_empty()) else {
        let found = text::element("$facet", spec);
        let message = format!("the $facet specification must be a non-empty object, but found: {found}");
        return Err(Error::new(Code(40169), message));
    };
    spec.iter().counted().map(|(name, pipeline)| Ok((name, facet_pipeline(name, pipeline)?))).collect()
}

fn facet_pipeline<'v>(name: &str, pipeline: Value<'v>) -> Result<Doc<'v>> {
    check_name(name)?;
    if name.contains('.') {
        let message = "FieldPath field names may not contain '.'. Consider using $getField or $setField.";
        return Err(Error::new(Code(16412), message));
    }
    let Value::Array(pipeline) = pipeline else {
        let kind = pipeline.kind().alias();
        return Err(Error::new(Code(40170), format!("arguments to $facet must be arrays, {name} is type {kind}")));
    };
    match pipeline.elements().counted().find(|stage| stage.kind != Kind::Document) {
        None => Ok(pipeline),
        Some(stage) => {
            let (kind, found) = (stage.kind.alias(), text::element(stage.key(), stage.value()));
            let message = format!(
                "elements of arrays in $facet spec must be non-empty objects, {name} argument contained an element of \
                 type {kind}: {found}"
            );
            Err(Error::new(Code(40171), message))
        }
    }
}
