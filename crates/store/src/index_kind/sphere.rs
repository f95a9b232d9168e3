//! `2dsphere`: the cells of the sphere's surface under which a document's geometries are indexed.

use super::refuse;
use crate::IndexSpec;
use document::{Doc, DocBuf};
use error::{Code, Error, Result};
use values::number::as_f64_lossy;

pub(crate) const NAME: &str = "2dsphere";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SphereOptions {
    /// From version 2 on, documents without any of the fields are left out; from 3 on, MongoDB
    /// indexes GeoJSON by finer cells. All versions are stored in the same way here, except for the
    /// documents that are left out.
    pub version: i32,
    /// The levels of the largest and of the smallest cells.
    pub coarsest: u8,
    pub finest: u8,
}

const VERSION: &str = "2dsphereIndexVersion";

impl SphereOptions {
    pub(super) fn read(spec: Doc<'_>) -> Result<SphereOptions> {
        let integer =
            |option: &str, default: i32| spec.get(option).and_then(as_f64_lossy).map_or(default, |it| it as i32);
        let (coarsest, finest) = (integer("coarsestIndexedLevel", 0), integer("finestIndexedLevel", 23));
        let (finest, coarsest) = (finest.clamp(0, 30), coarsest.clamp(0, 30));
        Ok(SphereOptions { version: integer(VERSION, 3), coarsest: coarsest as u8, finest: finest as u8 })
    }

    /// Returns whether a document without any of the index's geometries has no key.
    pub fn leaves_out_missing(self) -> bool {
        self.version > 1
    }
}

/// Reads a level, which must be a whole number; a number out of the range of 32 bits wraps around.
fn level(sent: Doc<'_>, option: &str) -> Result<Option<i32>> {
    let Some(value) = sent.get(option) else { return Ok(None) };
    let Some(found) = as_f64_lossy(value) else {
        let found = value.kind().alias();
        return Err(Error::type_mismatch(format!(
            "Expected field \"{option}\" to have numeric type, but found {found}"
        )));
    };
    let exact = found.is_nan() || found.fract() == 0.0 && found.abs() < 9.2e18;
    match value.to_i64().filter(|_| exact) {
        Some(whole) => Ok(Some(whole as i32)),
        None => Err(Error::bad_value(format!(
            "Expected field \"{option}\" to have a value exactly representable as a 64-bit integer, but found {}",
            values::text::element(option, value)
        ))),
    }
}

/// Checks the levels with MongoDB's defaults for missing ones. By default, an index here has finer
/// cells.
fn check_levels(sent: Doc<'_>) -> Result<()> {
    let version = sent.get(VERSION).and_then(as_f64_lossy).unwrap_or(3.0);
    let default = if version < 3.0 { (7, 14) } else { (2, 16) };
    let finest = level(sent, "finestIndexedLevel")?.unwrap_or(default.1);
    let coarsest = level(sent, "coarsestIndexedLevel")?.unwrap_or(default.0);
    let invalid = |code, message| Err(Error::new(Code(code), message));
    if coarsest < 0 {
        return invalid(16747, "coarsestIndexedLevel must be >= 0");
    }
    if finest > 30 {
        return invalid(16748, "finestIndexedLevel must be <= 30");
    }
    if finest < coarsest {
        return invalid(16749, "finestIndexedLevel must be >= coarsestIndexedLevel");
    }
    Ok(())
}

pub(super) fn complete(index: IndexSpec, sent: Doc<'_>) -> Result<IndexSpec> {
    if let Some(version) = sent.get(VERSION) {
        let whole = as_f64_lossy(version).filter(|number| number.fract() == 0.0);
        if whole.is_none() {
            let found = values::text::element(VERSION, version);
            return Err(Error::bad_value(format!(
                "Expected field \"{VERSION}\" to have a value exactly representable as a 64-bit integer, but found {found}"
            )));
        }
        if !matches!(whole, Some(1.0 | 2.0 | 3.0)) {
            let found = values::text::element(VERSION, version);
            return refuse(format!(
                "unsupported geo index version {{ {VERSION} : {found} }}, only versions: [1,2,3] are supported"
            ));
        }
    }
    check_levels(sent)?;
    let mut spec = index.spec;
    if spec.as_doc().get(VERSION).is_none() {
        spec = DocBuf::build(|writer| {
            spec.as_doc().elements().for_each(|field| writer.append_element(field));
            writer.append(VERSION, 3);
        });
    }
    Ok(IndexSpec { spec, ..index })
}
