//! `arrayFilters`: which elements `$[identifier]` selects.

use super::write::wrap_in_document;
use document::{Doc, Element, Value};
use error::{Code, Error, Result};
use query::{Context, Predicate};
use steps::Counted;
use values::name_index::NameIndex;

/// The filters of an update, with distinct identifiers.
#[derive(Clone, Debug, Default)]
pub(super) struct ArrayFilters {
    filters: Vec<ArrayFilter>,
    indices: NameIndex,
}

#[derive(Clone, Debug)]
struct ArrayFilter {
    identifier: Box<str>,
    predicate: Predicate,
}

impl ArrayFilters {
    pub fn parse(filters: Doc<'_>, context: &Context) -> Result<ArrayFilters> {
        let mut parsed = ArrayFilters::default();
        let given = filters.values().counted().enumerate();
        for (index, filter) in given.filter(|(_, filter)| !matches!(filter, Value::Null | Value::Undefined)) {
            let Value::Document(filter) = filter else {
                return Err(Error::type_mismatch(format!(
                    "BSON field 'update.updates.arrayFilters.{index}' is the wrong type '{}', expected type 'object'",
                    filter.kind().alias()
                )));
            };
            let filter = parse_filter(filter, context)?;
            if parsed.index_of(&filter.identifier).is_some() {
                return Err(Error::failed_to_parse(format!(
                    "Found multiple array filters with the same top-level field name {}",
                    filter.identifier
                )));
            }
            parsed.indices.push(&filter.identifier);
            parsed.filters.push(filter);
        }
        Ok(parsed)
    }

    pub fn len(&self) -> usize {
        self.filters.len()
    }

    /// Returns the identifier of the filter at an index.
    pub fn identifier(&self, index: usize) -> &str {
        self.filters.get(index).map_or("", |filter| &filter.identifier)
    }

    /// Returns the index of the filter of an identifier.
    pub fn index_of(&self, identifier: &str) -> Option<usize> {
        self.indices.index_of(identifier.as_bytes(), self.filters.iter().map(|filter| &*filter.identifier))
    }

    /// Returns whether `$[identifier]` selects this element; the empty identifier selects all.
    pub fn selects(&self, identifier: &str, element: Element<'_>, scratch: &mut Vec<u8>) -> Result<bool> {
        if identifier.is_empty() {
            return Ok(true);
        }
        match self.index_of(identifier).and_then(|index| self.filters.get(index)) {
            Some(filter) => filter.predicate.matches(wrap_in_document(identifier, element.value(), scratch)),
            None => Ok(false),
        }
    }
}

fn parse_filter(filter: Doc<'_>, context: &Context) -> Result<ArrayFilter> {
    const ERROR_CONTEXT: &str = "Error parsing array filter :: caused by :: ";
    let no_text = || Error::bad_value("$text is not allowed in this context");
    let predicate = match Predicate::parse(filter, context) {
        Ok(predicate) if predicate.text_search().is_some() => Err(no_text()),
        Err(error) if error.code() == Code::INDEX_NOT_FOUND => Err(no_text()),
        parsed => parsed,
    };
    let predicate = predicate.map_err(|error| error.context(ERROR_CONTEXT))?;
    if predicate.has_expression() {
        return Err(Error::new(Code(224), format!("{ERROR_CONTEXT}$expr is not allowed in this context")));
    }
    let mut identifier = None;
    find_identifier(filter, &mut identifier).map_err(|error| error.context(ERROR_CONTEXT))?;
    let Some(identifier) = identifier else {
        return Err(Error::failed_to_parse("Cannot use an expression without a top-level field name in arrayFilters"));
    };
    let well_formed = identifier.starts_with(|first: char| first.is_ascii_lowercase())
        && identifier.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !well_formed {
        return Err(Error::bad_value(format!(
            "{ERROR_CONTEXT}The top-level field name must be an alphanumeric string beginning with a lowercase letter, found '{identifier}'"
        )));
    }
    Ok(ArrayFilter { identifier: identifier.into(), predicate })
}

/// Finds the field that all conditions start from; fails if they start from several.
fn find_identifier<'f>(filter: Doc<'f>, found: &mut Option<&'f str>) -> Result<()> {
    for (name, value) in filter.iter().counted() {
        if name.starts_with('$') {
            let branches = value.as_array().unwrap_or(Doc::EMPTY);
            for branch in branches.values().counted() {
                find_identifier(branch.as_document().unwrap_or(Doc::EMPTY), found)?;
            }
            continue;
        }
        if value.as_document().is_some_and(matches_nothing) {
            continue;
        }
        let top = name.split('.').next().unwrap_or_default();
        match found {
            Some(known) if *known != top => {
                return Err(Error::failed_to_parse(format!(
                    "Expected a single top-level field name, found '{known}' and '{top}'"
                )));
            }
            _ => *found = Some(top),
        }
    }
    Ok(())
}

/// Returns whether a condition is an empty `$all`, which matches nothing; MongoDB does not look for
/// a field there.
fn matches_nothing(condition: Doc<'_>) -> bool {
    let is_empty = |value: Value<'_>| value.as_array().is_some_and(Doc::is_empty);
    !condition.is_empty()
        && condition.iter().all(|(operator, value)| match operator {
            "$all" => is_empty(value),
            "$not" => value.as_document().is_some_and(matches_nothing),
            _ => false,
        })
}
