//! The `sort` of a command, parsed, and sorting itself.
//!
//! In reading order: [`Sort`] (the specification), `keys` (from a document to the bytes it sorts by), [`Sorter`] (the blocking sort).
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/method/cursor.sort/>; where it is silent, what a 6.0 server does.

mod keys;
mod range;
mod sorter;

#[cfg(test)]
mod tests;

use crate::expression::check_field_path;
use crate::geo::Near;
use crate::metadata::{Item, Meta, MetadataBuf, Needs};
use crate::predicate::number::truncated;
use crate::{Context, MatchDetails, text};
use document::path::Path;
use document::{ArrayWriter, Collation, Doc, Element, Value};
use error::{Code, Error, Result};
use std::sync::Arc;
use steps::Counted;

pub use range::KeyRange;
use range::Within;
pub use sorter::{Sorted, Sorter};

/// How many fields a sort may have.
const PARTS_MAX: usize = 32;

/// The name that stands for the order in which the store keeps documents.
const NATURAL: &str = "$natural";

#[derive(Clone, Debug, Default)]
pub struct Sort {
    parts: Vec<SortPart>,
    collation: Collation,
    /// Documents come out with what they were sorted by (`{$meta: "sortKey"}`).
    shows_key: bool,
    /// By distance: what counts before the parts, of which there are none then.
    near: Option<Arc<Near>>,
    /// The keys that count, where not all of a document's do.
    within: Option<Arc<Within>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortPart {
    /// Where this is metadata, a name that no field has, so that no store takes it for one.
    pub path: Path,
    pub ascending: bool,
    /// `{$meta: "textScore"}`: what the document is sorted by instead of a field.
    pub meta: Option<Meta>,
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
            let parts = vec![SortPart { path: Path::new(NATURAL), ascending: !backward, meta: None }];
            return Ok(Sort { parts, ..Sort::default() });
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
        let parts =
            spec.elements().counted().map(|element| parse_part(element, context)).collect::<Result<Vec<_>>>()?;
        if parts.len() > PARTS_MAX {
            return Err(Error::new(Code(13103), "too many compound keys"));
        }
        Ok(Sort { parts, collation: context.collation.clone(), ..Sort::default() })
    }

    /// The order of documents that are asked for by their distance: the nearest first.
    pub fn by_distance(near: Arc<Near>) -> Sort {
        Sort { near: Some(near), ..Sort::default() }
    }

    /// Whether this is the order of distances.
    pub fn is_by_distance(&self) -> bool {
        self.near.is_some()
    }

    /// The same order among documents that are sorted by this field first: in the direction that it is given here, or else upwards.
    pub(crate) fn led_by(&self, path: &str) -> Sort {
        let own = self.parts.iter().find(|part| part.path == path).cloned();
        let lead = own.unwrap_or_else(|| SortPart { path: Path::new(path), ascending: true, meta: None });
        let rest = self.parts.iter().filter(|part| part.path != path).cloned();
        Sort { parts: [lead].into_iter().chain(rest).collect(), ..self.clone() }
    }

    /// Lets documents come out with what they were sorted by (`{$meta: "sortKey"}`).
    pub fn show_keys(&mut self) {
        self.shows_key = true;
    }

    /// The fields to sort by; none where any order will do. The natural order is one part with the path `$natural`.
    pub fn parts(&self) -> &[SortPart] {
        &self.parts
    }

    /// `$natural`: the order in which the store keeps documents; true is forward.
    pub fn natural(&self) -> Option<bool> {
        self.parts.first().filter(|part| part.path == NATURAL).map(|part| part.ascending)
    }

    /// Which metadata documents are sorted by; a store that has none cannot sort so.
    pub fn needs(&self) -> Needs {
        let metas = self.parts.iter().filter_map(|part| part.meta);
        metas.fold(Needs::NONE, |needs, meta| needs.and(Needs::of(meta)))
    }

    /// How strings compare; what orders by their bytes gives this order only if it is simple.
    pub fn collation(&self) -> &Collation {
        &self.collation
    }

    /// Whether any order will do.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.near.is_none()
    }

    /// Appends the document's sort key: byte strings that compare (memcmp) as the documents sort.
    ///
    /// An array sorts by its smallest element, or the largest where the order is descending. Error 2 for two arrays side
    /// by side.
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

    /// The same for a document that has been found by a search: what that thinks of it may be sorted by.
    pub fn key_of_match(&self, document: Doc<'_>, details: &MatchDetails, out: &mut Vec<u8>) -> Result<()> {
        let mut metadata = MetadataBuf::default();
        if let Some(score) = details.text_score {
            metadata.set_text_score(score);
        }
        self.key(Item { document, metadata: metadata.as_metadata() }, out)
    }

    /// Notes what the document is sorted by (`{$meta: "sortKey"}`). Errors: as [`Sort::key`].
    pub fn show_key(&self, document: Doc<'_>, metadata: &mut MetadataBuf) -> Result<()> {
        let mut bytes = Vec::new();
        let item = Item { document, metadata: metadata.as_metadata() };
        self.values(item, &mut ArrayWriter::begin(&mut bytes))?;
        metadata.set(Meta::SortKey, Value::Array(Doc::from_bytes(&bytes).unwrap_or(Doc::EMPTY)));
        Ok(())
    }

    /// Appends the values that the document is sorted by, a string in the spelling that the collation compares.
    /// Errors: as [`Sort::key`].
    fn values(&self, item: Item<'_>, out: &mut ArrayWriter<'_>) -> Result<()> {
        if self.natural().is_some() || self.near.is_some() { Ok(()) } else { keys::append_values(self, item, out) }
    }
}

fn parse_part(element: Element<'_>, context: &Context) -> Result<SortPart> {
    let (name, value) = (element.key(), element.value());
    if let Value::Document(operator) = value {
        let meta = parse_meta(operator)?;
        context.requests.note(meta);
        // The best match comes first.
        return Ok(SortPart { path: Path::new(&format!("${}", meta.name())), ascending: false, meta: Some(meta) });
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
    Ok(SortPart { path: Path::new(name), ascending, meta: None })
}

/// `{$meta: "textScore"}` in the place of a direction.
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
