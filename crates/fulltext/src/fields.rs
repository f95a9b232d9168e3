//! The texts of a document that an index covers, each with its language and weight.

use super::words::TextRules;
use super::{Language, TextIndex};
use document::{Doc, Kind, Value};
use error::{Code, Error, Result};
use std::ops::Bound;

/// A covered text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoveredText<'d> {
    pub text: &'d str,
    pub rules: TextRules,
    pub weight: f64,
}

/// The weight of a field that has none of its own.
const DEFAULT_WEIGHT: f64 = 1.0;

impl TextIndex {
    /// Passes every text to `visit`, in the document's order, until it returns true. Returns
    /// whether it did.
    ///
    /// Fails with 17261 or 17262 if (a part of) the document has an unknown language, so that the
    /// index cannot contain it, and with 28755 if a text is not UTF-8.
    pub fn any_text<'d>(&self, document: Doc<'d>, visit: &mut dyn FnMut(CoveredText<'d>) -> bool) -> Result<bool> {
        let own = document.get(&self.language_override).and_then(Value::as_str).filter(|name| !name.is_empty());
        let language_name = own.unwrap_or(if self.has_short_name { "en" } else { "english" });
        let mut walk = TextWalk { index: self, visit, path: String::new(), language_name };
        walk.document(document, self.default_language, false)
    }
}

struct TextWalk<'w, 'd> {
    index: &'w TextIndex,
    visit: &'w mut dyn FnMut(CoveredText<'d>) -> bool,
    /// The dotted path of the current value; elements of arrays have their array's.
    path: String,
    /// The language as named in the document, or in the index; in version 1 there is one for the
    /// whole document.
    language_name: &'d str,
}

impl<'d> TextWalk<'_, 'd> {
    fn document(&mut self, document: Doc<'d>, inherited: Language, is_array: bool) -> Result<bool> {
        let language = self.language_of(document, inherited)?;
        for element in document.elements() {
            steps::step();
            if !is_array && element.key() == &*self.index.language_override {
                continue;
            }
            let length = self.path.len();
            if length == 0 {
                self.path.push_str(element.key());
            } else if !is_array {
                self.path.push('.');
                self.path.push_str(element.key());
            }
            let found = self.value(element.value(), language, is_array)?;
            self.path.truncate(length);
            if found {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn value(&mut self, value: Value<'d>, language: Language, in_array: bool) -> Result<bool> {
        let wildcard = self.index.wildcard;
        match value {
            // Text after a NUL is ignored.
            Value::String(text) => match self.index.weights.get(self.path.as_str()) {
                None if !wildcard => Ok(false),
                own => {
                    let text = text.split('\0').next().unwrap_or_default();
                    let rules = TextRules::for_version(self.index.version, language, self.language_name);
                    Ok((self.visit)(CoveredText { text, rules, weight: own.copied().unwrap_or(DEFAULT_WEIGHT) }))
                }
            },
            Value::IllFormed { kind: Kind::String, .. }
                if wildcard || self.index.weights.contains_key(self.path.as_str()) =>
            {
                Err(Error::new(Code(28755), "text contains invalid UTF-8"))
            }
            Value::Document(document) if wildcard || self.covers_below() => self.document(document, language, false),
            // Only wildcard indexes descend into an array that is an element of an array.
            Value::Array(array) if wildcard || !in_array && self.covers_elements() => {
                self.document(array, language, true)
            }
            _ => Ok(false),
        }
    }

    /// Returns whether the index covers a field below this document.
    fn covers_below(&self) -> bool {
        let from = format!("{}.", self.path);
        self.index
            .weights
            .range::<str, _>((Bound::Included(&*from), Bound::Unbounded))
            .next()
            .is_some_and(|(name, _)| name.starts_with(&from))
    }

    /// Returns whether the index covers this array's elements or fields below them. Only the first
    /// name that does not sort before the array's is examined: with `a-b` and `a.b` covered, the
    /// elements of an array `a` are not visited.
    fn covers_elements(&self) -> bool {
        let path = self.path.as_str();
        let first = self.index.weights.range::<str, _>((Bound::Included(path), Bound::Unbounded)).next();
        let rest = first.and_then(|(name, _)| name.strip_prefix(path));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }

    fn language_of(&self, document: Doc<'_>, inherited: Language) -> Result<Language> {
        if self.index.version == 1 {
            // The whole document has one language; no name is an error.
            return Ok(match document.get(&self.index.language_override) {
                Some(Value::String(name)) if self.path.is_empty() && !name.is_empty() => Language::named_or_none(name),
                _ => inherited,
            });
        }
        match document.get(&self.index.language_override) {
            None => Ok(inherited),
            Some(Value::String(name)) => Language::named(name)
                .ok_or_else(|| Error::new(Code(17262), format!("language override unsupported: {name}"))),
            Some(_) => Err(Error::new(Code(17261), "found language override field in document with non-string type")),
        }
    }
}
