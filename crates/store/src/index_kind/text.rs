//! `text`: the fields whose words are indexed, and their weights.
//!
//! The stored key pattern has `{_fts: "text", _ftsx: 1}` in place of the fields; the fields' names
//! are those of the weights.

use super::refuse;
use crate::IndexSpec;
use document::{Doc, DocBuf, Value};
use error::Result;
use std::collections::BTreeMap;
use values::number::as_f64_lossy;

pub(crate) const NAME: &str = "text";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// Weights by field name; `$**` stands for all fields.
    pub weights: BTreeMap<String, i32>,
    pub default_language: String,
    /// The field with a document's language.
    pub language_override: String,
    pub version: i32,
}

/// The supported languages, by full and short name.
const LANGUAGES: [(&str, &str); 16] = [
    ("danish", "da"),
    ("dutch", "nl"),
    ("english", "en"),
    ("finnish", "fi"),
    ("french", "fr"),
    ("german", "de"),
    ("hungarian", "hu"),
    ("italian", "it"),
    ("norwegian", "nb"),
    ("portuguese", "pt"),
    ("romanian", "ro"),
    ("russian", "ru"),
    ("spanish", "es"),
    ("swedish", "sv"),
    ("turkish", "tr"),
    ("none", "none"),
];

impl TextOptions {
    pub(super) fn read(index: &IndexSpec) -> Result<TextOptions> {
        let (_, mut weights) = fields(index.key.as_doc())?;
        add_weights(index.spec.as_doc(), &mut weights)?;
        let spec = index.spec.as_doc();
        let text = |option: &str, default: &str| {
            spec.get(option).and_then(Value::as_str).map_or_else(|| default.to_owned(), str::to_owned)
        };
        let options = TextOptions {
            weights,
            default_language: text("default_language", "english"),
            language_override: text("language_override", "language"),
            version: spec.get("textIndexVersion").and_then(as_f64_lossy).map_or(3, |version| version as i32),
        };
        options.check()?;
        Ok(options)
    }

    fn check(&self) -> Result<()> {
        let language = self.default_language.to_ascii_lowercase();
        // In version 1, an unknown name means no language.
        if self.version != 1 && !LANGUAGES.iter().any(|(name, short)| language == *name || language == *short) {
            return refuse("default_language is not valid");
        }
        let field = &self.language_override;
        if field.is_empty() || field.starts_with('$') || field.contains('.') {
            return refuse("language_override is not valid");
        }
        if !(1..=3).contains(&self.version) {
            return refuse(format!("bad textIndexVersion: {}", self.version));
        }
        Ok(())
    }
}

pub(super) fn complete(index: IndexSpec) -> Result<IndexSpec> {
    let (key, _) = fields(index.key.as_doc())?;
    let options = TextOptions::read(&index)?;
    let spec = DocBuf::build(|writer| {
        for field in index.spec.as_doc().elements() {
            match field.key() {
                "key" => writer.append("key", &key),
                "weights" | "default_language" | "language_override" | "textIndexVersion" => {}
                _ => writer.append_element(field),
            }
        }
        let mut weights = writer.document("weights");
        options.weights.iter().for_each(|(field, weight)| weights.append(field, *weight));
        drop(weights);
        writer.append("default_language", options.default_language.as_str());
        writer.append("language_override", options.language_override.as_str());
        writer.append("textIndexVersion", options.version);
    });
    Ok(IndexSpec { key, spec, ..index })
}

/// Returns the key pattern to store, and the fields that the pattern names, each with a weight of
/// 1.
fn fields(pattern: Doc<'_>) -> Result<(DocBuf, BTreeMap<String, i32>)> {
    let mut key = DocBuf::new();
    let mut weights = BTreeMap::new();
    let mut replaced = false;
    for (path, value) in pattern.iter() {
        match (path, value) {
            ("_fts", value) => {
                replaced = true;
                key.append(path, value);
            }
            ("_ftsx", value) => {
                if as_f64_lossy(value).map(f64::trunc) != Some(1.0) {
                    return refuse("expecting _ftsx:1");
                }
                key.append(path, value);
            }
            (path, Value::String(_)) => {
                if !std::mem::replace(&mut replaced, true) {
                    key.append("_fts", "text");
                    key.append("_ftsx", 1);
                }
                weights.insert(path.to_owned(), 1);
            }
            (path, value) => {
                if !as_f64_lossy(value).map(f64::trunc).is_some_and(|it| it.abs() == 1.0) {
                    return refuse("expected value 1 or -1 for non-text key in compound index");
                }
                key.append(path, value);
            }
        }
    }
    check_order(pattern)?;
    Ok((key, weights))
}

/// Checks that the text fields are adjacent, and that no field has a reserved name.
fn check_order(pattern: Doc<'_>) -> Result<()> {
    let reserved = |path: &str| match path {
        "_fts" | "_ftsx" => refuse("text index with reserved fields _fts/_ftsx not allowed"),
        _ => Ok(()),
    };
    let mut fields = pattern.iter().peekable();
    while let Some((path, _)) = fields.next_if(|(_, value)| !matches!(value, Value::String(_))) {
        reserved(path)?;
    }
    if fields.next_if(|(path, _)| *path == "_fts").is_some() {
        if fields.next().is_none_or(|(path, _)| path != "_ftsx") {
            return refuse("expected _ftsx after _fts");
        }
    } else {
        while let Some((path, _)) = fields.next_if(|(_, value)| matches!(value, Value::String(_))) {
            reserved(path)?;
        }
    }
    for (path, value) in fields {
        if matches!(value, Value::String(_)) {
            return refuse("'text' fields in index must all be adjacent");
        }
        reserved(path)?;
    }
    Ok(())
}

fn add_weights(spec: Doc<'_>, weights: &mut BTreeMap<String, i32>) -> Result<()> {
    match spec.get("weights") {
        None => {}
        Some(Value::String("$**")) => drop(weights.insert("$**".into(), 1)),
        Some(Value::Document(given)) => {
            for (path, weight) in given.iter() {
                let Some(weight) = as_f64_lossy(weight) else {
                    return refuse("weight for text index needs numeric type");
                };
                weights.insert(path.to_owned(), weight as i32);
            }
        }
        Some(_) => return refuse("text index option 'weights' must be an object"),
    }
    if weights.is_empty() {
        return refuse("text index option 'weights' must specify fields or the wildcard");
    }
    weights.iter().try_for_each(|(path, weight)| check_weight(path, *weight))
}

fn check_weight(path: &str, weight: i32) -> Result<()> {
    if !(1..100_000).contains(&weight) {
        return refuse(format!("text index weight must be in the exclusive interval (0,100000) but found: {weight}"));
    }
    if path == "$**" {
        return Ok(());
    }
    if path.is_empty() {
        return refuse("weight cannot be on an empty field");
    }
    if path.split('.').any(str::is_empty) {
        return refuse("weight cannot have empty path component");
    }
    if path.split('.').any(|part| part.starts_with('$')) {
        return refuse("weight cannot have path component with $ prefix");
    }
    Ok(())
}
