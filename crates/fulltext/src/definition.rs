//! The definition of a text index: fields, their weights, and the language.

use super::Language;
use document::{Doc, DocBuf, Value};
use error::{Code, Error, Result};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;
use values::integer::as_i64_truncated;
use values::text;

/// The name among weights that covers every field.
pub const WILDCARD: &str = "$**";

/// The fields of a key pattern that represent the terms and their scores.
pub const TERMS_FIELD: &str = "_fts";
pub const SCORES_FIELD: &str = "_ftsx";

/// The values of some fields.
pub type KeyValues<'d> = SmallVec<[Value<'d>; 2]>;

/// A collection's text index.
#[derive(Clone, Debug)]
pub struct TextIndex {
    pub name: Box<str>,
    /// Weights of the fields that have one of their own.
    pub(super) weights: BTreeMap<Box<str>, f64>,
    /// Whether every field is covered.
    pub(super) wildcard: bool,
    pub default_language: Language,
    default_language_name: Box<str>,
    pub(super) has_short_name: bool,
    pub(super) language_override: Box<str>,
    /// Fields before the terms. A query must give a value for each of them.
    pub prefix: Vec<Box<str>>,
    /// `partialFilterExpression`: the index contains only documents that match.
    pub partial_filter: Option<DocBuf>,
    /// `textIndexVersion`
    pub version: i64,
    /// Whether the index is hidden. A search with a hidden index fails.
    pub hidden: bool,
    /// Fields that other indexes begin with: they may be used in an `$or` beside a search.
    pub indexed_fields: Vec<Box<str>>,
    /// Fields after the scores.
    pub suffix: Vec<Box<str>>,
}

/// The text indexes of the collections that a command reads.
#[derive(Clone, Debug, Default)]
pub struct TextIndexes {
    /// By collection; `None` if the command has no text search.
    by_collection: Option<Arc<BTreeMap<Box<str>, Arc<TextIndex>>>>,
    /// The index of the collection that is being read.
    current: Option<Arc<TextIndex>>,
}

impl TextIndexes {
    /// Returns an index with which every `$text` parses, for pipelines that are parsed but not
    /// executed.
    pub fn placeholder() -> TextIndexes {
        TextIndexes { by_collection: None, current: Some(Arc::new(TextIndex::of_anything())) }
    }

    pub fn insert(&mut self, collection: &str, index: Arc<TextIndex>) {
        let indexes = self.by_collection.get_or_insert_default();
        Arc::make_mut(indexes).insert(collection.into(), index);
    }

    /// Returns the same indexes, for a stage that reads another collection.
    #[must_use]
    pub fn for_collection(&self, collection: &str) -> TextIndexes {
        let current = self.by_collection.as_ref().and_then(|indexes| indexes.get(collection)).cloned();
        TextIndexes { by_collection: self.by_collection.clone(), current }
    }

    pub fn current(&self) -> Option<&Arc<TextIndex>> {
        self.current.as_ref()
    }
}

impl TextIndex {
    fn of_anything() -> TextIndex {
        TextIndex {
            name: Box::default(),
            weights: BTreeMap::new(),
            wildcard: true,
            default_language: Language::English,
            default_language_name: "english".into(),
            has_short_name: false,
            language_override: "language".into(),
            prefix: Vec::new(),
            partial_filter: None,
            version: 3,
            hidden: false,
            indexed_fields: Vec::new(),
            suffix: Vec::new(),
        }
    }

    /// Returns the text index among a collection's indexes, given all their specifications.
    pub fn find_in<'s>(specs: impl Iterator<Item = Doc<'s>> + Clone) -> Option<TextIndex> {
        let mut index = specs.clone().find_map(TextIndex::from_spec)?;
        let leading = |spec: Doc<'s>| Some(spec.get("key")?.as_document()?.first()?.key());
        index.indexed_fields = specs.filter_map(leading).map(Box::from).collect();
        Some(index)
    }

    /// Fails if the index cannot contain the document (see [`TextIndex::any_text`] and
    /// [`TextIndex::key_values`]).
    pub fn check(&self, document: Doc<'_>) -> Result<()> {
        self.key_values(document)?;
        self.any_text(document, &mut |_| false).map(drop)
    }

    /// Returns the values before and after the terms in a document's keys, null for missing fields.
    /// Fails with 201 if a value is an array.
    pub fn key_values<'d>(&self, document: Doc<'d>) -> Result<(KeyValues<'d>, KeyValues<'d>)> {
        let values =
            |paths: &[Box<str>]| paths.iter().map(|path| self.scalar_at(document, path)).collect::<Result<_>>();
        Ok((values(&self.prefix)?, values(&self.suffix)?))
    }

    fn scalar_at<'d>(&self, document: Doc<'d>, path: &str) -> Result<Value<'d>> {
        let mut current = Value::Document(document);
        let mut names = path.split('.').peekable();
        while let Some(name) = names.next() {
            let (Value::Document(within) | Value::Array(within)) = current else { return Ok(Value::Null) };
            current = within.get(name).unwrap_or(Value::Null);
            let is_position = |name: &&str| name.bytes().all(|digit| digit.is_ascii_digit());
            if matches!(current, Value::Array(_)) && !names.peek().is_some_and(is_position) {
                let shown = text::document(document);
                let message = format!("Field '{path}' of text index contains an array in document: {shown}");
                return Err(Error::new(Code::CANNOT_BUILD_INDEX_KEYS, message));
            }
        }
        Ok(current)
    }

    /// Parses a specification in the form of `listIndexes`; returns `None` if it is not a text
    /// index.
    pub fn from_spec(spec: Doc<'_>) -> Option<TextIndex> {
        let partial = spec.get("partialFilterExpression").and_then(Value::as_document);
        let key = spec.get("key")?.as_document()?;
        let at = key.iter().position(|(name, value)| name == TERMS_FIELD && value.as_str() == Some("text"))?;
        let text = |name| spec.get(name).and_then(Value::as_str);
        let language = text("default_language").unwrap_or("english");
        let version = spec.get("textIndexVersion").and_then(as_i64_truncated).unwrap_or(3);
        let mut weights = BTreeMap::new();
        let mut wildcard = false;
        for (field, weight) in spec.get("weights").and_then(Value::as_document)?.iter() {
            match field {
                WILDCARD => wildcard = true,
                _ => drop(weights.insert(field.into(), as_i64_truncated(weight).unwrap_or(1) as f64)),
            }
        }
        Some(TextIndex {
            name: text("name").unwrap_or_default().into(),
            weights,
            wildcard,
            default_language: Language::named_or_none(language),
            version,
            default_language_name: language.into(),
            has_short_name: language.len() == 2,
            language_override: text("language_override").unwrap_or("language").into(),
            prefix: key.iter().take(at).map(|(name, _)| name.into()).collect(),
            partial_filter: partial.map(Doc::to_owned),
            hidden: spec.get("hidden").is_some_and(Value::is_truthy),
            indexed_fields: Vec::new(),
            suffix: key.iter().skip(at + 2).map(|(name, _)| name.into()).collect(),
        })
    }

    /// Returns the default language by the name given in the specification.
    pub fn default_language_name(&self) -> &str {
        &self.default_language_name
    }
}
