//! Converts a measurement to its bucket.

use crate::time_series::Series;
use crate::time_series::options::Granularity;
use bytes::Bytes;
use document::{Doc, DocBuf, DocWriter, Element, ObjectId, Value};
use error::{Error, Result};

/// Returns the bucket of one measurement, as MongoDB writes it. Fails with 2 without a time.
///
/// `new_id` makes an id from the start of the bucket.
pub fn of(
    series: &Series,
    granularity: Granularity,
    measurement: Doc<'_>,
    new_id: impl FnOnce(i64) -> ObjectId,
) -> Result<Bytes> {
    let time_field = &*series.time_field;
    let Some(Value::DateTime(time_ms)) = measurement.get(time_field) else {
        let message = format!("'{time_field}' must be present and contain a valid BSON UTC datetime value");
        return Err(Error::bad_value(message));
    };
    let rounding_ms = granularity.rounding_ms();
    let begin_ms = time_ms.div_euclid(rounding_ms).saturating_mul(rounding_ms);
    let is_meta = |field: &Element<'_>| series.meta_field.as_deref() == Some(field.key());
    let fields = || measurement.elements().filter(|field| !is_meta(field));
    let bucket = DocBuf::build(|writer| {
        writer.append("_id", Value::ObjectId(new_id(begin_ms)));
        {
            let mut control = writer.document("control");
            control.append("version", 1);
            let mut min = control.document("min");
            for field in fields() {
                match field.key() == time_field {
                    true => min.append(time_field, Value::DateTime(begin_ms)),
                    false => min.append_element(field),
                }
            }
            drop(min);
            let mut max = control.document("max");
            fields().for_each(|field| max.append_element(field));
        }
        if let Some(meta) = measurement.elements().find(is_meta) {
            write_sorted("meta", meta.value(), writer);
        }
        let mut data = writer.document("data");
        for field in fields() {
            data.document(field.key()).append("0", field.value());
        }
    });
    if bucket.as_doc().size() > document::DOCUMENT_BYTES_MAX {
        let message = format!(
            "BSONObj size: {size} (0x{size:X}) is invalid. Size must be between 0 and 16793600(16MB)",
            size = bucket.as_doc().size()
        );
        return Err(Error::new(error::Code::BSON_OBJECT_TOO_LARGE, message));
    }
    Ok(Bytes::from(bucket.into_vec()))
}

/// Writes a value with the fields of documents sorted by name, recursively, so that equal metadata
/// is identical.
fn write_sorted(key: &str, value: Value<'_>, writer: &mut DocWriter<'_>) {
    match value {
        Value::Document(document) => {
            let mut fields: Vec<Element<'_>> = document.elements().collect();
            fields.sort_by_key(|field| field.key());
            let mut writer = writer.document(key);
            fields.iter().for_each(|field| write_sorted(field.key(), field.value(), &mut writer));
        }
        Value::Array(array) => {
            let sorted = DocBuf::build(|writer| {
                array.elements().for_each(|element| write_sorted(element.key(), element.value(), writer));
            });
            writer.append(key, Value::Array(sorted.as_doc()));
        }
        value => writer.append(key, value),
    }
}
