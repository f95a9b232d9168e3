//! The fields of input documents that a pipeline reads: the others need not be decoded, carried or
//! sorted along.
//!
//! They are derived from the stages as sent, up to the first that makes documents of its own
//! (`$group`, an including `$project`): the top-level names in filters, expressions and paths. A
//! superset does no harm; if a stage may read anything, all fields count as read.

use document::{Doc, Value};
use hashbrown::HashSet;
use std::collections::BTreeSet;
use std::sync::Arc;
use steps::Counted;
use values::name_index::NameIndex;

/// Up to this number of fields, each is searched for in a document.
const SEARCHED_MAX: usize = 16;

/// Names of top-level fields.
#[derive(Clone, Debug)]
pub struct ReadFields(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    names: Box<[Box<str>]>,
    indices: NameIndex,
}

impl PartialEq for ReadFields {
    fn eq(&self, other: &ReadFields) -> bool {
        self.0.names == other.0.names
    }
}

impl Eq for ReadFields {}

impl ReadFields {
    #[inline]
    pub fn contains(&self, name: &[u8]) -> bool {
        self.index_of(name).is_some()
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.names.iter().map(|name| &**name)
    }

    /// Returns the number of fields.
    pub fn count(&self) -> usize {
        self.0.names.len()
    }

    /// Returns the index of a field, counted from zero.
    #[inline]
    pub fn index_of(&self, name: &[u8]) -> Option<usize> {
        self.0.indices.index_of(name, self.names())
    }

    /// Returns whether the document has all of them.
    pub fn are_in(&self, document: Doc<'_>) -> bool {
        let few = || self.names().all(|field| document.element(field).is_some());
        self.count() <= SEARCHED_MAX && few() || self.count() > SEARCHED_MAX && self.are_in_one_walk(document)
    }

    /// Examines each of the document's fields, rather than searching for each name.
    fn are_in_one_walk(&self, document: Doc<'_>) -> bool {
        let mut is_found = vec![false; self.count()];
        let mut missing = self.count();
        for element in document.elements().counted() {
            if let Some(is_found) = self.index_of(element.key_bytes()).and_then(|index| is_found.get_mut(index)) {
                missing -= usize::from(!std::mem::replace(is_found, true));
            }
        }
        missing == 0
    }

    /// Returns the fields that a filter and a sort read; `None` if they may read any.
    pub fn of_filter_and_sort(filter: Doc<'_>, order: Doc<'_>) -> Option<ReadFields> {
        let mut names = FieldCollector::default();
        names.filter(filter)?;
        names.sort(order)?;
        Some(names.finish())
    }

    /// Returns the fields that a find reads; `None` if it may read any.
    pub fn of_find(filter: Doc<'_>, order: Doc<'_>, projection: Doc<'_>) -> Option<ReadFields> {
        let mut names = FieldCollector::default();
        names.filter(filter)?;
        names.sort(order)?;
        names.projection(projection)?.then(|| names.finish())
    }

    /// Appends the document with these fields only to `out`.
    pub fn trim(&self, document: Doc<'_>, out: &mut Vec<u8>) {
        let mut writer = document::DocWriter::begin(out);
        let read = document.elements().counted().filter(|element| self.contains(element.key_bytes()));
        read.for_each(|element| writer.append_element(element));
    }

    /// Returns the fields that a pipeline reads; `None` if it may read any.
    pub fn of_pipeline(stages: Doc<'_>) -> Option<ReadFields> {
        Self::collect(FieldCollector::default(), stages)
    }

    /// Returns the dotted paths that a pipeline reads, including nested ones; `None` if it may read
    /// any.
    pub fn paths_of_pipeline(stages: Doc<'_>) -> Option<BTreeSet<String>> {
        let names = FieldCollector { whole_paths: true, ..FieldCollector::default() };
        Some(Self::collect(names, stages)?.names().map(str::to_owned).collect())
    }

    fn collect(mut names: FieldCollector, stages: Doc<'_>) -> Option<ReadFields> {
        for stage in stages.values().counted() {
            let stage = stage.as_document()?.first()?;
            match (stage.key(), stage.value()) {
                ("$match", Value::Document(filter)) => names.filter(filter)?,
                ("$sort", Value::Document(order)) => names.sort(order)?,
                ("$limit" | "$skip", _) => {}
                ("$addFields" | "$set", fields) => {
                    names.expression(fields)?;
                    names.parents_of(fields);
                }
                ("$unwind", path @ (Value::String(_) | Value::IllFormed { .. })) => names.expression(path)?,
                ("$unwind", Value::Document(spec)) => names.expression(spec.get("path")?)?,
                ("$lookup", Value::Document(spec)) => {
                    spec.get("localField").and_then(Value::as_name).into_iter().for_each(|path| names.path(&path));
                    spec.get("let").map_or(Some(()), |variables| names.expression(variables))?;
                }
                ("$project", Value::Document(spec)) => {
                    if names.projection(spec)? {
                        return Some(names.finish());
                    }
                }
                ("$unset", _) => {}
                ("$count", _) => return Some(names.finish()),
                ("$group" | "$bucket" | "$bucketAuto" | "$sortByCount" | "$replaceRoot" | "$replaceWith", spec) => {
                    names.expression(spec)?;
                    return Some(names.finish());
                }
                _ => return None,
            }
        }
        None
    }
}

/// Returns whether a projection is an inclusion; `None` if that is not obvious.
fn includes(spec: Doc<'_>) -> Option<bool> {
    let mut includes = None;
    for element in spec.elements().counted().filter(|element| element.key() != "_id") {
        let keeps = match element.value() {
            Value::Document(_) | Value::Array(_) => return None,
            Value::Boolean(flag) => flag,
            value if value.kind().is_number() => value.is_truthy(),
            _ => true,
        };
        if includes.replace(keeps).is_some_and(|before| before != keeps) {
            return None;
        }
    }
    includes
}

#[derive(Default)]
struct FieldCollector {
    names: Vec<Box<str>>,
    known: HashSet<Box<str>>,
    /// Whether whole paths are recorded, rather than their first names.
    whole_paths: bool,
}

impl FieldCollector {
    fn path(&mut self, path: &str) {
        let name = if self.whole_paths { path } else { path.split('.').next().unwrap_or(path) };
        if !self.known.contains(name) {
            self.known.insert(name.into());
            self.names.push(name.into());
        }
    }

    /// Records the parents of nested fields that are set: an expression is computed for each
    /// element of an array, and for none of an empty one.
    fn parents_of(&mut self, fields: Value<'_>) {
        let of_fields = |value: Value<'_>| {
            let first = value.as_document().and_then(Doc::first);
            first.is_some_and(|field| !field.key().starts_with('$'))
        };
        for (name, value) in fields.as_document().into_iter().flat_map(|fields| fields.iter()).counted() {
            if name.contains('.') || of_fields(value) {
                self.path(name);
            }
        }
    }

    fn filter(&mut self, filter: Doc<'_>) -> Option<()> {
        for (name, value) in filter.iter().counted() {
            match (name, value) {
                ("$and" | "$or" | "$nor", Value::Array(branches)) => {
                    branches.values().counted().try_for_each(|branch| self.filter(branch.as_document()?))?;
                }
                ("$expr", expression) => self.expression(expression)?,
                ("$comment", _) => {}
                (name, _) if name.starts_with('$') => return None,
                (_, Value::Document(operators)) if operators.elements().any(|operator| is_near(operator.key())) => {
                    return None;
                }
                (path, _) => self.path(path),
            }
        }
        Some(())
    }

    fn sort(&mut self, order: Doc<'_>) -> Option<()> {
        order.iter().counted().try_for_each(|(path, direction)| {
            self.path(path);
            direction.kind().is_number().then_some(())
        })
    }

    /// Records the paths of a projection. Returns whether its documents consist of the named fields
    /// only.
    fn projection(&mut self, spec: Doc<'_>) -> Option<bool> {
        let includes = includes(spec)?;
        if includes {
            if spec.get("_id").is_none_or(Value::is_truthy) {
                self.path("_id");
            }
            spec.elements()
                .counted()
                .filter(|element| element.key() != "_id")
                .for_each(|element| self.path(element.key()));
            self.expression(Value::Document(spec))?;
        }
        Some(includes)
    }

    /// Records every string that may be a path. Returns `None` for operators that name fields in
    /// another way.
    fn expression(&mut self, expression: Value<'_>) -> Option<()> {
        steps::step();
        match expression {
            Value::String(text) if text.starts_with("$$ROOT") || text.starts_with("$$CURRENT") => return None,
            Value::String(text) if text.starts_with("$$") => {}
            Value::String(text) => text.strip_prefix('$').into_iter().for_each(|path| self.path(path)),
            Value::IllFormed { .. } => {
                expression.as_name().map_or(Some(()), |text| self.expression(Value::String(&text)))?;
            }
            Value::Array(elements) => elements.values().try_for_each(|element| self.expression(element))?,
            Value::Document(fields) => fields.iter().try_for_each(|(name, value)| match name {
                "$getField" | "$setField" | "$unsetField" | "$meta" | "sortBy" | "$function" | "$accumulator" => None,
                _ => self.expression(value),
            })?,
            _ => {}
        }
        Some(())
    }

    fn finish(self) -> ReadFields {
        let mut places = NameIndex::default();
        self.names.iter().counted().for_each(|name| places.push(name));
        ReadFields(Arc::new(Inner { names: self.names.into(), indices: places }))
    }
}

fn is_near(operator: &str) -> bool {
    matches!(operator, "$near" | "$nearSphere" | "$geoNear")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(stages: &str) -> Option<Vec<String>> {
        let stages = shorthand::value(stages);
        let fields = ReadFields::of_pipeline(stages.as_value().as_array()?)?;
        Some(fields.names().map(str::to_owned).collect())
    }

    #[test]
    fn the_fields_that_a_pipeline_reads() {
        let some = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        for (stages, expected) in [
            ("[{$group: {_id: '$a.b', n: {$sum: {$add: ['$c', 1]}}}}]", some(&["a", "c"])),
            ("[{$match: {x: 1, $or: [{'y.z': 2}, {$expr: {$eq: ['$w', 1]}}]}}, {$count: 'n'}]", some(&["x", "y", "w"])),
            ("[{$sort: {a: 1}}, {$project: {b: 1, c: '$d'}}]", some(&["a", "_id", "b", "c", "d"])),
            ("[{$unwind: '$l'}, {$set: {q: '$r'}}, {$group: {_id: '$q'}}]", some(&["l", "r", "q"])),
            ("[{$project: {b: 0}}, {$group: {_id: '$a'}}]", some(&["a"])),
            (
                "[{$lookup: {from: 'o', localField: 'k.x', foreignField: 'f', as: 'o'}}, {$group: {_id: '$o'}}]",
                some(&["k", "o"]),
            ),
            ("[{$group: {_id: '$$ROOT'}}]", None),
            ("[{$group: {_id: {$getField: 'a'}}}]", None),
            ("[{$group: {_id: 1, t: {$top: {sortBy: {a: 1}, output: '$b'}}}}]", None),
            ("[{$match: {a: 1}}]", None),
            ("[{$sort: {a: {$meta: 'textScore'}}}, {$count: 'n'}]", None),
            ("[{$match: {$text: {$search: 'a'}}}, {$count: 'n'}]", None),
            ("[{$facet: {a: []}}, {$count: 'n'}]", None),
            ("[{$project: {_id: 0}}, {$group: {_id: '$a'}}]", None),
        ] {
            assert_eq!(read(stages), expected, "{stages}");
        }
    }
}
