//! The `sort` of a command: parsing, sort keys and the blocking sort.
//!
//! In reading order: [`Sort`] (the specification), `keys` (from a document to its sort key),
//! [`Sorter`] (the blocking sort).
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/method/cursor.sort/>; where it is silent,
//! the behavior of a 6.0 server.

mod elements;
mod keys;
mod range;
mod sorter;

#[cfg(test)]
mod tests;

use crate::expression::check_field_path;
use crate::metadata::{Item, Meta, MetadataBuf, Needs};
use crate::{Context, MatchDetails};
use document::path::Path;
use document::{ArrayWriter, Collation, Doc, Element, Value};
use error::{Code, Error, Result};
use geo::Near;
use std::sync::Arc;
use steps::Counted;
use values::integer::as_i64_truncated;
use values::text;

pub use elements::ElementOrder;
use range::KeyBounds;
pub use range::KeyRange;
pub use sorter::{Sorted, Sorter};

/// Maximal number of fields of a sort.
const PARTS_MAX: usize = 32;

/// The name of the order in which the store keeps documents.
const NATURAL: &str = "$natural";

#[derive(Clone, Debug, Default)]
pub struct Sort {
    parts: Vec<SortPart>,
    collation: Collation,
    /// Whether documents are returned with their sort key (`{$meta: "sortKey"}`).
    records_key: bool,
    /// The condition by whose distances documents are sorted first; `parts` is then empty.
    near: Option<Arc<Near>>,
    /// The range of keys that count; `None` if all of a document's do.
    key_bounds: Option<Arc<KeyBounds>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortPart {
    /// For metadata, a name that no field has, so that no store takes it for one.
    pub path: Path,
    pub ascending: bool,
    /// `{$meta: "textScore"}`: the metadata that documents are sorted by instead of a field.
    pub meta: Option<Meta>,
}

impl Sort {
    /// Parses the `sort` of a command; the empty document is no sort.
    ///
    /// Fails with 15974 and 15975 for an invalid direction, 2 for `$natural` beside other fields,
    /// and like field paths (40352, 40353, 15998, 16410) and `$meta`.
    pub fn parse(spec: Doc<'_>, context: &Context) -> Result<Sort> {
        if let Some(natural) = spec.element(NATURAL) {
            if spec.elements().count() > 1 {
                let found = text::document(spec);
                return Err(Error::bad_value(format!("Cannot include '$natural' in compound sort: {found}")));
            }
            let backward = as_i64_truncated(natural.value()).is_some_and(|direction| direction < 0);
            let parts = vec![SortPart { path: Path::new(NATURAL), ascending: !backward, meta: None }];
            return Ok(Sort { parts, ..Sort::default() });
        }
        Self::parse_fields(spec, context)
    }

    /// Parses the operand of a `$sort` stage, which must name a field. Fails like [`Sort::parse`],
    /// and with 15976.
    pub fn parse_stage(spec: Doc<'_>, context: &Context) -> Result<Sort> {
        if spec.is_empty() {
            return Err(Error::new(Code(15976), "$sort stage must have at least one sort key"));
        }
        Self::parse_fields(spec, context)
    }

    fn parse_fields(spec: Doc<'_>, context: &Context) -> Result<Sort> {
        let parts =
            spec.elements().counted().map(|element| parse_sort_part(element, context)).collect::<Result<Vec<_>>>()?;
        if parts.len() > PARTS_MAX {
            return Err(Error::new(Code(13103), "too many compound keys"));
        }
        Ok(Sort { parts, collation: context.collation.clone(), ..Sort::default() })
    }

    /// Returns the order by distance, the nearest document first.
    pub fn by_distance(near: Arc<Near>) -> Sort {
        Sort { near: Some(near), ..Sort::default() }
    }

    /// Returns whether this is an order by distance.
    pub fn is_by_distance(&self) -> bool {
        self.near.is_some()
    }

    /// Returns the same order, preceded by this field: in the direction that the sort has for it,
    /// or else ascending.
    pub fn preceded_by(&self, path: &str) -> Sort {
        let own = self.parts.iter().find(|part| part.path == path).cloned();
        let lead = own.unwrap_or_else(|| SortPart { path: Path::new(path), ascending: true, meta: None });
        let rest = self.parts.iter().filter(|part| part.path != path).cloned();
        Sort { parts: [lead].into_iter().chain(rest).collect(), ..self.clone() }
    }

    /// Makes the sort return documents with their sort key (`{$meta: "sortKey"}`).
    pub fn record_keys(&mut self) {
        self.records_key = true;
    }

    /// Returns the fields to sort by; none if the order does not matter. The natural order is one
    /// part with the path `$natural`.
    pub fn parts(&self) -> &[SortPart] {
        &self.parts
    }

    /// Returns the direction of `$natural`, the order in which the store keeps documents; true is
    /// forward.
    pub fn natural(&self) -> Option<bool> {
        self.parts.first().filter(|part| part.path == NATURAL).map(|part| part.ascending)
    }

    /// Returns the metadata that documents are sorted by. A store that has none cannot sort by it.
    pub fn needs(&self) -> Needs {
        let metas = self.parts.iter().filter_map(|part| part.meta);
        metas.fold(Needs::NONE, |needs, meta| needs.and(Needs::of(meta)))
    }

    /// Returns the collation of strings. Only if it is simple, an order by bytes equals this order.
    pub fn collation(&self) -> &Collation {
        &self.collation
    }

    /// Returns whether the order does not matter.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.near.is_none()
    }

    /// Appends the document's sort key: byte strings that compare (memcmp) as the documents sort.
    ///
    /// An array sorts by its smallest element, or by the largest if the order is descending. Fails
    /// with 2 for parallel arrays.
    #[inline]
    pub fn key<'d>(&self, item: impl Into<Item<'d>>, out: &mut Vec<u8>) -> Result<()> {
        let item = item.into();
        if let Some(near) = &self.near {
            let distance = near.nearest(item.document).map_or(f64::INFINITY, |nearest| nearest.distance);
            document::key::encode(Value::Double(distance), out);
            return Ok(());
        }
        keys::append(self, item, out)
    }

    /// Like [`Sort::key`], for a document found by a search. `details` is the metadata that it may
    /// be sorted by.
    pub fn key_of_match(&self, document: Doc<'_>, details: &MatchDetails, out: &mut Vec<u8>) -> Result<()> {
        let mut metadata = MetadataBuf::default();
        if let Some(score) = details.text_score {
            metadata.set_text_score(score);
        }
        self.key(Item { document, metadata: metadata.as_metadata() }, out)
    }

    /// Records the document's sort key in `metadata` (`{$meta: "sortKey"}`). Fails like
    /// [`Sort::key`].
    pub fn record_key(&self, document: Doc<'_>, metadata: &mut MetadataBuf) -> Result<()> {
        let mut bytes = Vec::new();
        let item = Item { document, metadata: metadata.as_metadata() };
        self.values(item, &mut ArrayWriter::begin(&mut bytes))?;
        metadata.set(Meta::SortKey, Value::Array(Doc::from_bytes(&bytes).unwrap_or(Doc::EMPTY)));
        Ok(())
    }

    /// Appends the values of the document's sort key, a string in the form that the collation
    /// compares. Fails like [`Sort::key`].
    fn values(&self, item: Item<'_>, out: &mut ArrayWriter<'_>) -> Result<()> {
        if self.natural().is_some() || self.near.is_some() { Ok(()) } else { keys::append_values(self, item, out) }
    }
}

fn parse_sort_part(element: Element<'_>, context: &Context) -> Result<SortPart> {
    let (name, value) = (element.key(), element.value());
    if let Value::Document(operator) = value {
        let meta = parse_meta(operator)?;
        context.metadata_requests.note(meta);
        // The best match comes first.
        return Ok(SortPart { path: Path::new(&format!("${}", meta.name())), ascending: false, meta: Some(meta) });
    }
    if !element.kind.is_number() {
        let found = text::element(name, value);
        return Err(Error::new(Code(15974), format!("Illegal key in $sort specification: {found}")));
    }
    let ascending = match as_i64_truncated(value) {
        Some(1) => true,
        Some(-1) => false,
        _ => {
            let message = "$sort key ordering must be 1 (for ascending) or -1 (for descending)";
            return Err(Error::new(Code(15975), message));
        }
    };
    check_field_path(name)?;
    Ok(SortPart { path: Path::new(name), ascending, meta: None })
}

/// Parses `{$meta: "textScore"}`, which may replace a direction.
fn parse_meta(operator: Doc<'_>) -> Result<Meta> {
    let Some(("$meta", operand)) = operator.first().map(|first| (first.key(), first.value())) else {
        return Err(Error::new(Code(17312), "$meta is the only expression supported by $sort right now"));
    };
    if operator.elements().nth(1).is_some() {
        return Err(Error::failed_to_parse("Cannot have additional keys in a $meta sort specification"));
    }
    match operand.as_str() {
        Some("textScore") => Ok(Meta::TextScore),
        Some("geoNearDistance") => Ok(Meta::GeoNearDistance),
        Some("randVal") => Ok(Meta::RandVal),
        Some(name @ "searchScore") => Err(unsupported(31218, name)),
        Some(name @ "searchHighlights") => Err(unsupported(31219, name)),
        _ => {
            let found = text::element("$meta", operand);
            Err(Error::new(Code(31138), format!("Illegal $meta sort: {found}")))
        }
    }
}

fn unsupported(code: i32, name: &str) -> Error {
    Error::new(Code(code), format!("$meta sort by '{name}' metadata is not supported"))
}
