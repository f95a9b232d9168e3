//! The `sort` of a command, parsed, and sorting itself.
//!
//! In reading order: [`Sort`] (the specification), `keys` (from a document to the bytes it sorts by), [`Sorter`] (the blocking sort).
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/method/cursor.sort/>; where it is silent, what a 6.0 server does.

mod keys;
mod sorter;

#[cfg(test)]
mod tests;

use crate::expression::check_field_path;
use crate::predicate::number::truncated;
use crate::{Context, text};
use document::path::Path;
use document::{Collation, Doc, Element, Value};
use error::{Code, Error, Result};

pub(crate) use sorter::memory_exceeded;
pub use sorter::{Sorted, Sorter};

/// How many fields a sort may have.
const PARTS_MAX: usize = 32;

/// The name that stands for the order in which the store keeps documents.
const NATURAL: &str = "$natural";

#[derive(Clone, Debug, Default)]
pub struct Sort {
    parts: Vec<SortPart>,
    collation: Collation,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortPart {
    pub path: Path,
    pub ascending: bool,
}

impl Sort {
    /// Parses the `sort` of a command; the empty document is no sort.
    ///
    /// Errors: 15974 and 15975 for what is no direction, 2 for `$natural` beside other fields, those of field paths
    /// (40352, 40353, 15998, 16410), and for `$meta`.
    pub fn parse(spec: Doc<'_>, context: &Context) -> Result<Sort> {
        if let Some(natural) = spec.element(NATURAL) {
            if spec.elements().count() > 1 {
                let found = text::document(spec);
                return Err(Error::bad_value(format!("Cannot include '$natural' in compound sort: {found}")));
            }
            let backward = truncated(natural.value()).is_some_and(|direction| direction < 0);
            let parts = vec![SortPart { path: Path::new(NATURAL), ascending: !backward }];
            return Ok(Sort { parts, collation: Collation::SIMPLE });
        }
        Self::parse_fields(spec, context)
    }

    /// Parses the operand of a `$sort` stage, which must name a field. Errors: as [`Sort::parse`], and 15976.
    pub fn parse_stage(spec: Doc<'_>, context: &Context) -> Result<Sort> {
        if spec.is_empty() {
            return Err(Error::new(Code(15976), "$sort stage must have at least one sort key"));
        }
        Self::parse_fields(spec, context)
    }

    fn parse_fields(spec: Doc<'_>, context: &Context) -> Result<Sort> {
        let parts = spec.elements().map(parse_part).collect::<Result<Vec<_>>>()?;
        if parts.len() > PARTS_MAX {
            return Err(Error::new(Code(13103), "too many compound keys"));
        }
        Ok(Sort { parts, collation: context.collation.clone() })
    }

    /// The fields to sort by; none where any order will do. The natural order is one part with the path `$natural`.
    pub fn parts(&self) -> &[SortPart] {
        &self.parts
    }

    /// `$natural`: the order in which the store keeps documents; true is forward.
    pub fn natural(&self) -> Option<bool> {
        self.parts.first().filter(|part| part.path == NATURAL).map(|part| part.ascending)
    }

    /// How strings compare; what orders by their bytes gives this order only if it is simple.
    pub fn collation(&self) -> &Collation {
        &self.collation
    }

    /// Whether any order will do.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Appends the document's sort key: byte strings that compare (memcmp) as the documents sort.
    ///
    /// An array sorts by its smallest element, or the largest where the order is descending. Error 2 for two arrays side
    /// by side.
    #[inline]
    pub fn key(&self, document: Doc<'_>, out: &mut Vec<u8>) -> Result<()> {
        keys::append(self, document, out)
    }
}

fn parse_part(element: Element<'_>) -> Result<SortPart> {
    let (name, value) = (element.key(), element.value());
    if let Value::Document(operator) = value {
        return Err(refuse_operator(operator));
    }
    if !element.kind.is_number() {
        let found = text::element(name, value);
        return Err(Error::new(Code(15974), format!("Illegal key in $sort specification: {found}")));
    }
    let ascending = match truncated(value) {
        Some(1) => true,
        Some(-1) => false,
        _ => {
            let message = "$sort key ordering must be 1 (for ascending) or -1 (for descending)";
            return Err(Error::new(Code(15975), message));
        }
    };
    check_field_path(name)?;
    Ok(SortPart { path: Path::new(name), ascending })
}

fn refuse_operator(operator: Doc<'_>) -> Error {
    match operator.first().map(|first| (first.key(), first.value())) {
        Some(("$meta", Value::String("textScore"))) => {
            Error::new(Code(40218), "query requires text score metadata, but it is not available")
        }
        Some(("$meta", value)) => {
            Error::new(Code(31138), format!("Illegal $meta sort: {}", text::element("$meta", value)))
        }
        _ => Error::new(Code(17312), "$meta is the only expression supported by $sort right now"),
    }
}
