//! `2d`: a square of the plane, divided into cells by the bits of its coordinates.

use crate::IndexSpec;
use document::Value;
use error::{Code, Error, Result};
use values::number::as_f64_lossy;
use values::text::general;

pub(crate) const NAME: &str = "2d";

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlaneOptions {
    /// How often each side is halved.
    pub bits: u8,
    /// Both coordinates are between these.
    pub min: f64,
    pub max: f64,
}

impl PlaneOptions {
    pub(super) fn read(index: &IndexSpec) -> Result<PlaneOptions> {
        let option = |name: &str, default: f64| index.spec.as_doc().get(name).and_then(as_f64_lossy).unwrap_or(default);
        let (bits, min, max) = (option("bits", 26.0) as i32, option("min", -180.0), option("max", 180.0));
        if !(1..=32).contains(&bits) {
            let message = format!("bits for hash must be > 0 and <= 32, but {bits} bits were specified");
            return Err(Error::new(Code::INVALID_OPTIONS, message));
        }
        if min.is_nan() || max.is_nan() || min >= max || !(max - min).is_finite() {
            let (min, max) = (general(min, 6), general(max, 6));
            let message =
                format!("region for hash must be valid and have positive area, but [{min}, {max}] was specified");
            return Err(Error::new(Code::INVALID_OPTIONS, message));
        }
        Ok(PlaneOptions { bits: bits as u8, min, max })
    }
}

pub(super) fn complete(index: IndexSpec) -> Result<IndexSpec> {
    let mut geo_field = None;
    let fields = index.key.as_doc().values().enumerate();
    for (position, _) in fields.filter(|(_, value)| *value == Value::String(NAME)) {
        if geo_field.is_some() {
            return Err(Error::new(Code(16800), "can't have 2 geo fields"));
        }
        if position > 0 {
            return Err(Error::new(Code(16801), "2d has to be first in index"));
        }
        geo_field = Some(position);
    }
    PlaneOptions::read(&index)?;
    Ok(index)
}
