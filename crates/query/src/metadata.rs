//! Metadata of a document: its score in a text search, its distance, its sort key.
//!
//! Expressions read it with `{$meta: "textScore"}`. Metadata is stored as a second document beside
//! the first. An [`Item`] is the two of them borrowed, an [`ItemBuf`] the two of them owned,
//! consecutively in the same bytes. If a command reads no metadata ([`Needs`]), the second document
//! is empty and costs nothing.
//!
//! The code that finds documents records the metadata that the command needs ([`MetadataBuf`]). The
//! stages of a pipeline then pass it along, and those that make new documents (`$group` and the
//! like) drop it.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/operator/aggregation/meta/>; where it is
//! silent, the behavior of a 6.0 server.

use document::{Doc, DocBuf, DocWriter, Value};
use error::{Code, Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

/// A kind of metadata, named by the operand of `$meta`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meta {
    TextScore,
    GeoNearDistance,
    GeoNearPoint,
    RecordId,
    SortKey,
    IndexKey,
    RandVal,
    SearchScore,
    SearchHighlights,
    SearchScoreDetails,
    BucketMinTime,
    BucketMaxTime,
}

/// The kinds with their names in `$meta` and in error messages.
const KINDS: [(Meta, &str, &str); 12] = [
    (Meta::TextScore, "textScore", "text score"),
    (Meta::GeoNearDistance, "geoNearDistance", "$geoNear distance"),
    (Meta::GeoNearPoint, "geoNearPoint", "$geoNear point"),
    (Meta::RecordId, "recordId", "record ID"),
    (Meta::SortKey, "sortKey", "sort key"),
    (Meta::IndexKey, "indexKey", "index key"),
    (Meta::RandVal, "randVal", "rand val"),
    (Meta::SearchScore, "searchScore", "$search score"),
    (Meta::SearchHighlights, "searchHighlights", "$search highlights"),
    (Meta::SearchScoreDetails, "searchScoreDetails", "$search score details"),
    (Meta::BucketMinTime, "timeseriesBucketMinTime", "timeseries bucket min time"),
    (Meta::BucketMaxTime, "timeseriesBucketMaxTime", "timeseries bucket max time"),
];

impl Meta {
    /// Parses the operand of `$meta`. Fails with 17307 if it is no string, and with 17308 for an
    /// unknown name.
    pub fn parse(operand: Value<'_>) -> Result<Meta> {
        let name = operand.as_str().ok_or_else(|| Error::new(Code(17307), "$meta only supports string arguments"))?;
        let known = KINDS.iter().find(|(_, known, _)| *known == name).map(|(meta, ..)| *meta);
        known.ok_or_else(|| Error::new(Code(17308), format!("Unsupported argument to $meta: {name}")))
    }

    fn names(self) -> (&'static str, &'static str) {
        KINDS.iter().find(|(meta, ..)| *meta == self).map_or(("", ""), |(_, name, words)| (name, words))
    }

    /// Returns the name in `$meta`, which is also the name of the field that stores the value.
    pub fn name(self) -> &'static str {
        self.names().0
    }

    /// Returns whether this is metadata of Atlas Search, which never exists and may be read
    /// anywhere.
    fn is_of_search(self) -> bool {
        matches!(self, Meta::SearchScore | Meta::SearchHighlights | Meta::SearchScoreDetails)
    }

    /// Returns error 40218: this kind is read where it does not exist.
    pub fn unavailable(self) -> Error {
        let message = format!("query requires {} metadata, but it is not available", self.names().1);
        Error::new(Code(40218), message)
    }
}

/// A set of kinds of metadata that a command reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs(u16);

impl Needs {
    pub const NONE: Needs = Needs(0);

    pub fn of(meta: Meta) -> Needs {
        Needs(1 << meta as u16)
    }

    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[inline]
    pub fn contains(self, meta: Meta) -> bool {
        self.0 & (1 << meta as u16) != 0
    }

    #[must_use]
    pub fn and(self, other: Needs) -> Needs {
        Needs(self.0 | other.0)
    }

    #[must_use]
    pub fn without(self, other: Needs) -> Needs {
        Needs(self.0 & !other.0)
    }

    fn kinds(self) -> impl Iterator<Item = Meta> {
        KINDS.iter().map(|(meta, ..)| *meta).filter(move |meta| self.contains(*meta))
    }

    /// Returns the kinds that only a text search or a search by distance produces.
    #[must_use]
    pub fn of_searches(self) -> Needs {
        Needs(self.0 & Needs::given_by_near().and(Needs::of(Meta::TextScore)).0)
    }

    /// Fails with 40218 if a text score or a distance is needed that is not in `available`.
    pub fn check(self, available: Needs) -> Result<()> {
        self.lacking(available).map_or(Ok(()), |meta| Err(meta.unavailable()))
    }

    /// Returns a text score or a distance that is not in `available`.
    pub fn lacking(self, available: Needs) -> Option<Meta> {
        self.of_searches().without(available).kinds().next()
    }

    /// Fails with 40218 if the filter of a `$match` stage reads metadata that is not allowed there,
    /// which is nearly all.
    pub fn check_in_match(self, filter: Doc<'_>) -> Result<()> {
        let available = Needs::given_by(filter);
        let lacking = self.without(available).kinds().find(|meta| !meta.is_of_search());
        lacking.map_or(Ok(()), |meta| Err(meta.unavailable()))
    }

    /// Returns the metadata that a filter produces for matching documents: `$text` a score, `$near`
    /// distance and point.
    pub fn given_by(filter: Doc<'_>) -> Needs {
        let mut given = Needs::NONE;
        for (name, value) in filter.iter() {
            given = given.and(match (name, value) {
                ("$text", _) => Needs::of(Meta::TextScore),
                ("$and" | "$or" | "$nor", Value::Array(branches)) => {
                    let branches = branches.values().filter_map(Value::as_document);
                    branches.fold(Needs::NONE, |given, branch| given.and(Needs::given_by(branch)))
                }
                (_, Value::Document(operators)) if operators.elements().any(|operator| is_near(operator.key())) => {
                    Needs::given_by_near()
                }
                _ => Needs::NONE,
            });
        }
        given
    }

    /// Returns the metadata that a search by distance produces (`$near`, `$geoNear`).
    pub fn given_by_near() -> Needs {
        Needs::of(Meta::GeoNearDistance).and(Needs::of(Meta::GeoNearPoint))
    }
}

fn is_near(operator: &str) -> bool {
    matches!(operator, "$near" | "$nearSphere" | "$geoNear")
}

/// Collects the metadata read by a command's expressions, while it is parsed.
#[derive(Clone, Debug, Default)]
pub struct MetadataRequests(Arc<AtomicU16>);

impl MetadataRequests {
    pub fn note(&self, meta: Meta) {
        self.0.fetch_or(Needs::of(meta).0, Ordering::Relaxed);
    }

    pub fn add(&self, needs: Needs) {
        self.0.fetch_or(needs.0, Ordering::Relaxed);
    }

    /// Returns the metadata collected since the last call.
    pub fn take(&self) -> Needs {
        Needs(self.0.swap(0, Ordering::Relaxed))
    }
}

/// The metadata of one document: a document whose fields have the names used by `$meta`.
#[derive(Clone, Copy, Debug)]
pub struct Metadata<'a>(Doc<'a>);

impl<'a> Metadata<'a> {
    pub const NONE: Metadata<'static> = Metadata(Doc::EMPTY);

    pub fn get(self, meta: Meta) -> Option<Value<'a>> {
        if self.is_empty() { None } else { self.0.get(meta.name()) }
    }

    #[inline]
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

/// A builder of metadata, whose buffer is reused for one document after the other.
#[derive(Clone, Debug, Default)]
pub struct MetadataBuf(DocBuf);

impl MetadataBuf {
    /// Starts anew with existing metadata.
    pub fn begin(&mut self, known: Metadata<'_>) {
        let mut bytes = std::mem::take(&mut self.0).into_vec();
        bytes.clear();
        bytes.extend_from_slice(known.0.as_bytes());
        self.0 = DocBuf::from_vec(bytes).unwrap_or_default();
    }

    /// Sets or replaces a value.
    pub fn set<'v>(&mut self, meta: Meta, value: impl Into<Value<'v>>) {
        if self.as_metadata().get(meta).is_some() {
            self.remove(meta);
        }
        self.0.append(meta.name(), value);
    }

    /// Sets the score of a text search.
    pub fn set_text_score(&mut self, score: f64) {
        self.set(Meta::TextScore, score);
    }

    /// Sets the results of a search by distance: the distance, and the location in the document
    /// that has it.
    pub fn set_near(&mut self, distance: f64, point: Value<'_>) {
        self.set(Meta::GeoNearDistance, distance);
        self.set(Meta::GeoNearPoint, point);
    }

    pub fn remove(&mut self, meta: Meta) {
        let rest = self.0.as_doc().elements().filter(|element| element.key() != meta.name());
        self.0 = DocBuf::build(|writer: &mut DocWriter<'_>| rest.for_each(|element| writer.append_element(element)));
    }

    pub fn as_metadata(&self) -> Metadata<'_> {
        Metadata(self.0.as_doc())
    }
}

/// A document on its way through a command, with its metadata.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    pub document: Doc<'a>,
    pub metadata: Metadata<'a>,
}

impl<'a> Item<'a> {
    /// Returns another document with the same metadata.
    #[must_use]
    pub fn with<'b>(self, document: Doc<'b>) -> Item<'b>
    where
        'a: 'b,
    {
        Item { document, metadata: self.metadata }
    }

    pub fn to_owned(self) -> ItemBuf {
        let metadata = if self.metadata.is_empty() { &[][..] } else { self.metadata.0.as_bytes() };
        let mut bytes = Vec::with_capacity(self.document.size() + metadata.len());
        bytes.extend_from_slice(self.document.as_bytes());
        bytes.extend_from_slice(metadata);
        ItemBuf(bytes)
    }

    /// Returns the metadata's bytes, which [`ItemBuf`] stores after the document's own.
    pub fn metadata_bytes(self) -> &'a [u8] {
        if self.metadata.is_empty() { &[] } else { self.metadata.0.as_bytes() }
    }

    /// Returns the item in the bytes of an [`ItemBuf`].
    #[inline]
    pub fn from_bytes(bytes: &'a [u8]) -> Item<'a> {
        let document = Doc::from_prefix(bytes).unwrap_or(Doc::EMPTY);
        let metadata = bytes.get(document.size()..).filter(|rest| !rest.is_empty()).and_then(Doc::from_bytes);
        Item { document, metadata: metadata.map_or(Metadata::NONE, Metadata) }
    }
}

impl<'a> From<Doc<'a>> for Item<'a> {
    #[inline]
    fn from(document: Doc<'a>) -> Item<'a> {
        Item { document, metadata: Metadata::NONE }
    }
}

impl<'a> From<&'a DocBuf> for Item<'a> {
    fn from(document: &'a DocBuf) -> Item<'a> {
        document.as_doc().into()
    }
}

/// An owned [`Item`]: the document's bytes, followed by its metadata's if there are any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemBuf(Vec<u8>);

impl ItemBuf {
    /// Returns a document with the metadata of another one.
    pub fn new(document: DocBuf, metadata: Metadata<'_>) -> ItemBuf {
        let mut bytes = document.into_vec();
        if !metadata.is_empty() {
            bytes.extend_from_slice(metadata.0.as_bytes());
        }
        ItemBuf(bytes)
    }

    pub fn from_vec(bytes: Vec<u8>) -> ItemBuf {
        ItemBuf(bytes)
    }

    #[inline]
    pub fn as_item(&self) -> Item<'_> {
        Item::from_bytes(&self.0)
    }

    pub fn as_doc(&self) -> Doc<'_> {
        self.as_item().document
    }

    pub fn into_vec(self) -> Vec<u8> {
        self.0
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> usize {
        self.0.len()
    }

    /// Returns the document without its metadata.
    pub fn into_document(mut self) -> DocBuf {
        let size = self.as_doc().size();
        self.0.truncate(size);
        DocBuf::from_vec(self.0).unwrap_or_default()
    }
}

impl From<DocBuf> for ItemBuf {
    fn from(document: DocBuf) -> ItemBuf {
        ItemBuf(document.into_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::doc;

    #[test]
    fn an_item_comes_back_from_its_bytes() {
        let document = doc! {"_id": 1, "a": "x"};
        let mut metadata = MetadataBuf::default();
        metadata.set_text_score(1.5);
        metadata.set_near(2.0, Value::Null);
        metadata.set_text_score(0.75);
        let item = Item { document: document.as_doc(), metadata: metadata.as_metadata() }.to_owned();
        assert_eq!(item.as_doc().as_bytes(), document.as_bytes());
        let known = item.as_item().metadata;
        assert_eq!(known.get(Meta::TextScore).map(|score| score.to_owned()), Some(Value::Double(0.75).to_owned()));
        assert!(known.get(Meta::GeoNearPoint).is_some() && known.get(Meta::SortKey).is_none());
        assert_eq!(item.into_document(), document);
    }

    #[test]
    fn without_metadata_an_item_is_its_document() {
        let document = doc! {"_id": 1};
        let item = Item::from(document.as_doc()).to_owned();
        assert_eq!(item.size(), document.as_bytes().len());
        assert!(item.as_item().metadata.is_empty());
    }

    #[test]
    fn filters_tell_what_they_give() {
        let search = doc! {"$search": "a"};
        let text = doc! {"$text": &search};
        assert!(Needs::given_by(text.as_doc()).contains(Meta::TextScore));
        let near = doc! {"$near": 1};
        let near = doc! {"place": &near};
        assert_eq!(Needs::given_by(near.as_doc()), Needs::given_by_near());
        assert!(Needs::given_by(doc! {"a": 1}.as_doc()).is_empty());
    }
}
