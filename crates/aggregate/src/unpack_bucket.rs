//! `$_internalUnpackBucket`: the measurements in a bucket of a time-series collection.
//!
//! A bucket stores the common part of its measurements in `meta`, and their other fields by
//! columns: `data: {field: {"0": …}}`.

use super::flow::Demand;
use document::{Doc, DocWriter, Value};
use error::{Code, Error, Result};

/// The stage's name.
pub const UNPACK_BUCKET: &str = "$_internalUnpackBucket";

#[derive(Clone, Debug)]
pub struct UnpackBucket {
    time_field: Box<str>,
    meta_field: Option<Box<str>>,
}

impl UnpackBucket {
    pub(super) fn parse(spec: Value<'_>) -> Result<UnpackBucket> {
        let Some(spec) = spec.as_document() else {
            let kind = spec.kind().alias();
            let message = format!("{UNPACK_BUCKET} specification must be an object, got: {kind}");
            return Err(Error::new(Code(5346500), message));
        };
        let text = |name: &str, code: i32| match spec.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.into())),
            Some(other) => {
                let message = format!("{name} field must be a string, got: {}", other.kind().alias());
                Err(Error::new(Code(code), message))
            }
        };
        let time_field = text("timeField", 5346504)?.ok_or_else(|| {
            Error::new(Code(5346508), format!("The {UNPACK_BUCKET} stage requires a timeField parameter"))
        })?;
        Ok(UnpackBucket { time_field, meta_field: text("metaField", 5346505)? })
    }

    /// Passes each measurement of a bucket to a closure.
    pub(super) fn for_each(
        &self,
        bucket: Doc<'_>,
        scratch: &mut Vec<u8>,
        next: &mut dyn FnMut(Doc<'_>) -> Result<Demand>,
    ) -> Result<Demand> {
        let Some(data) = bucket.get("data").and_then(Value::as_document) else { return Ok(Demand::More) };
        let Some(times) = data.get(&self.time_field).and_then(Value::as_document) else { return Ok(Demand::More) };
        let meta = self.meta_field.as_deref().and_then(|name| Some((name, bucket.get("meta")?)));
        for time in times.elements() {
            steps::step();
            scratch.clear();
            let mut writer = DocWriter::begin(scratch);
            writer.append(&self.time_field, time.value());
            if let Some((name, meta)) = meta {
                writer.append(name, meta);
            }
            for field in data.elements() {
                steps::step();
                let values = field.value().as_document().unwrap_or(Doc::EMPTY);
                if let Some(value) = values.get(time.key()).filter(|_| *field.key() != *self.time_field) {
                    writer.append(field.key(), value);
                }
            }
            drop(writer);
            if next(Doc::from_bytes(scratch).unwrap_or(Doc::EMPTY))? == Demand::Enough {
                return Ok(Demand::Enough);
            }
        }
        Ok(Demand::More)
    }
}
