//! `$graphLookup`: documents that are reached from the input by following a field.
//!
//! The caller searches breadth first. It begins with [`GraphLookup::start`], gets each query from
//! [`GraphSearch::next_predicate`], and passes the results to [`GraphSearch::add_found`], until the
//! search has no further query.

use super::join_values;
use super::sources::parse_source;
use crate::add_fields::set_path;
use document::path::Path;
use document::{ArrayWriter, Collation, Doc, DocBuf, DocWriter, Kind, Value, ValueBuf};
use error::{Code, Error, Result};
use hashbrown::HashSet;
use query::expression::check_field_path;
use query::{Context, Expression, Folding, Item, Predicate};
use std::borrow::Cow;
use steps::Counted;
use values::text;

#[derive(Debug)]
pub struct GraphLookup {
    collection: String,
    target: Vec<Box<str>>,
    start: Expression,
    connect_from: Path,
    connect_to: String,
    depth_max: Option<i64>,
    depth_field: Option<Vec<Box<str>>>,
    restriction: Predicate,
    /// The failure of a constant in the restriction, reported with the first search.
    constant_failure: Option<Error>,
    context: Context,
}

/// A search from one input document.
#[derive(Debug)]
pub struct GraphSearch<'g> {
    lookup: &'g GraphLookup,
    /// The values to search for next.
    frontier: Vec<ValueBuf>,
    /// The values searched for so far or next, as keys.
    searched: HashSet<Vec<u8>>,
    /// The `_id`s of the results, as keys.
    found_ids: HashSet<Vec<u8>>,
    results: Vec<DocBuf>,
    depth: i64,
    memory_bytes: usize,
}

impl GraphLookup {
    /// Returns the path that the stage writes to.
    pub(crate) fn target(&self) -> String {
        self.target.join(".")
    }

    pub(super) fn parse(spec: Value<'_>, context: &Context) -> Result<GraphLookup> {
        let Value::Document(spec) = spec else {
            let kind = spec.kind().alias();
            let message = format!("the $graphLookup stage specification must be an object, but found {kind}");
            return Err(Error::failed_to_parse(message));
        };
        let from = spec.get("from").ok_or_else(|| {
            let spec = text::document(spec);
            Error::failed_to_parse(format!("missing 'from' option to $graphLookup stage specification: {spec}"))
        })?;
        let from = parse_source("$graphLookup", from)?;
        // Its constants are not computed before there is a document.
        let unfolded = &Context { folding: Folding::Never, ..context.clone() };
        let (mut start, mut depth_max, mut restriction, mut failure) = (None, None, None, None);
        let (mut target, mut connect_from, mut connect_to, mut depth_field) = (None, None, None, None);
        for (name, value) in spec.iter() {
            match name {
                "startWith" => start = Some(Expression::parse(value, unfolded)?),
                "maxDepth" => depth_max = Some(parse_depth(value)?),
                "restrictSearchWithMatch" => {
                    restriction = Some(parse_restriction(value, unfolded)?);
                    failure = parse_restriction(value, &Context { folding: Folding::AtOnce, ..context.clone() }).err();
                }
                "from" => {}
                "as" => target = Some(string(name, value)?),
                "connectFromField" => connect_from = Some(string(name, value)?),
                "connectToField" => connect_to = Some(string(name, value)?),
                "depthField" => {
                    let path = string(name, value)?;
                    check_field_path(&path)?;
                    depth_field = Some(path);
                }
                other => return Err(Error::new(Code(40104), format!("Unknown argument to $graphLookup: {other}"))),
            }
        }
        let [target, connect_from, connect_to] =
            [target, connect_from, connect_to].map(|path| path.filter(|path| !path.is_empty()));
        let (Some(target), Some(start), Some(connect_from), Some(connect_to)) =
            (target, start, connect_from, connect_to)
        else {
            let message = "$graphLookup requires 'from', 'as', 'startWith', 'connectFromField', and 'connectToField' to \
                           be specified.";
            return Err(Error::new(Code(40105), message));
        };
        [&target, &connect_from, &connect_to].into_iter().try_for_each(|path| check_field_path(path))?;
        let components = |path: &str| path.split('.').map(Into::into).collect();
        Ok(GraphLookup {
            collection: from.to_owned(),
            target: components(&target),
            start,
            connect_from: Path::new(&connect_from),
            connect_to: connect_to.into_owned(),
            depth_max,
            depth_field: depth_field.map(|path| components(&path)),
            restriction: restriction.unwrap_or_else(Predicate::everything),
            constant_failure: failure,
            context: context.clone(),
        })
    }

    /// Returns the collection to search, in the same database.
    pub fn collection(&self) -> &str {
        &self.collection
    }

    /// Begins a search for one input document.
    pub fn start(&self, item: Item<'_>) -> Result<GraphSearch<'_>> {
        let mut search = GraphSearch {
            lookup: self,
            frontier: Vec::new(),
            searched: HashSet::new(),
            found_ids: HashSet::new(),
            results: Vec::new(),
            depth: 0,
            memory_bytes: 0,
        };
        let start = self.start.evaluate(item)?;
        match start.value() {
            Some(Value::Array(array)) => array.values().counted().for_each(|value| search.enqueue(value)),
            Some(value) => search.enqueue(value),
            None => {}
        }
        Ok(search)
    }

    /// Returns the condition that a document's field has one of the values, combined with the
    /// search's restriction.
    fn predicate_for(&self, values: &[ValueBuf]) -> Result<Predicate> {
        if let Some(failure) = &self.constant_failure {
            return Err(failure.clone());
        }
        // A missing field is not null.
        let exists = DocBuf::build(|writer| writer.append("$exists", true));
        let list =
            query::expression::Evaluated::array(|list| values.iter().counted().for_each(|value| list.push(value)));
        let condition = DocBuf::build(|writer| writer.append("$in", list.value_or_null()));
        let conditions =
            [&condition, &exists].map(|test| DocBuf::build(|writer| writer.append(&self.connect_to, test)));
        let all = query::expression::Evaluated::array(|list| conditions.iter().for_each(|one| list.push(one)));
        let filter = DocBuf::build(|writer| writer.append("$and", all.value_or_null()));
        Ok(Predicate::parse(filter.as_doc(), &self.context)?.and(self.restriction.clone()))
    }

    /// Returns the input document with the results.
    pub fn join(&self, document: Doc<'_>, found: &[DocBuf]) -> DocBuf {
        let mut bytes = Vec::new();
        let mut array = ArrayWriter::begin(&mut bytes);
        for found in found {
            steps::step();
            steps::bytes(found.as_bytes().len());
            array.push_raw(Kind::Document, found.as_bytes());
        }
        drop(array);
        let found = Value::Array(Doc::from_bytes(&bytes).unwrap_or(Doc::EMPTY));
        let mut joined = Vec::with_capacity(document.size() + bytes.len());
        set_path(document, &self.target, Some(found), &mut DocWriter::begin(&mut joined));
        DocBuf::from_vec(joined).unwrap_or_default()
    }

    fn collation(&self) -> &Collation {
        &self.context.collation
    }
}

impl GraphSearch<'_> {
    fn enqueue(&mut self, value: Value<'_>) {
        let mut key = Vec::new();
        steps::step();
        self.lookup.collation().encode_key(value, &mut key);
        self.memory_bytes += key.len() + size_of::<Vec<u8>>();
        if self.searched.insert(key) {
            self.frontier.push(value.to_owned());
        }
    }

    /// Returns the next query; `None` when the search is finished.
    pub fn next_predicate(&mut self) -> Result<Option<Predicate>> {
        if self.frontier.is_empty() {
            return Ok(None);
        }
        let values = std::mem::take(&mut self.frontier);
        self.lookup.predicate_for(&values).map(Some)
    }

    /// Adds the results at the current depth, and advances to the next. Fails with 40099 past
    /// `memory_bytes_max`.
    pub fn add_found<'d>(&mut self, found: impl Iterator<Item = Doc<'d>>, memory_bytes_max: usize) -> Result<()> {
        for document in found {
            steps::step();
            steps::bytes(document.size());
            let mut key = Vec::new();
            let Some(id) = document.get("_id") else {
                let message = "Documents in the namespace must contain an _id for de-duplication in $graphLookup";
                return Err(Error::new(Code(40271), message));
            };
            // Whatever the collation, documents with different `_id`s are different ones.
            Collation::SIMPLE.encode_key(id, &mut key);
            self.memory_bytes += key.len() + document.size();
            if self.memory_bytes > memory_bytes_max {
                return Err(Self::memory_exceeded());
            }
            if !self.found_ids.insert(key) {
                continue;
            }
            let document = self.with_depth(document);
            if self.lookup.depth_max.is_none_or(|depth_max| self.depth < depth_max) {
                self.enqueue_links(document.as_doc());
            }
            self.results.push(document);
        }
        self.depth += 1;
        Ok(())
    }

    /// Returns error 40099: the search exceeds its memory limit.
    pub fn memory_exceeded() -> Error {
        Error::new(Code(40099), "$graphLookup reached maximum memory consumption")
    }

    fn with_depth(&self, document: Doc<'_>) -> DocBuf {
        let Some(field) = &self.lookup.depth_field else { return document.to_owned() };
        let mut bytes = Vec::with_capacity(document.size() + 32);
        set_path(document, field, Some(Value::Int64(self.depth)), &mut DocWriter::begin(&mut bytes));
        DocBuf::from_vec(bytes).unwrap_or_default()
    }

    fn enqueue_links(&mut self, document: Doc<'_>) {
        let mut values = Vec::new();
        let path: Vec<&str> = self.lookup.connect_from.components().collect();
        join_values::visit_values(document, &path, &mut |value| values.push(value.to_owned()));
        values.iter().counted().for_each(|value| self.enqueue(value.as_value()));
    }

    /// Returns the results.
    pub fn finish(self) -> Vec<DocBuf> {
        self.results
    }
}

fn string<'v>(name: &str, value: Value<'v>) -> Result<Cow<'v, str>> {
    if let Value::Document(_) = value {
        return Err(Error::new(Code(13111), format!("wrong type for field ({name}) object != string")));
    }
    value.as_name().ok_or_else(|| {
        let kind = value.kind().alias();
        Error::new(Code(40103), format!("expected string as argument for {name}, found: {kind}"))
    })
}

fn parse_depth(value: Value<'_>) -> Result<i64> {
    if !value.kind().is_number() {
        let kind = value.kind().alias();
        return Err(Error::new(Code(40100), format!("maxDepth must be numeric, found type: {kind}")));
    }
    let truncated = values::integer::as_i64_truncated(value).unwrap_or(0);
    if truncated < 0 {
        return Err(Error::new(Code(40101), format!("maxDepth requires a nonnegative argument, found: {truncated}")));
    }
    values::integer::as_i64_exact(value).ok_or_else(|| {
        Error::new(Code(40102), format!("maxDepth could not be represented as a long long: {truncated}"))
    })
}

fn parse_restriction(value: Value<'_>, context: &Context) -> Result<Predicate> {
    let Value::Document(filter) = value else {
        let kind = value.kind().alias();
        return Err(Error::new(Code(40185), format!("restrictSearchWithMatch must be an object, found {kind}")));
    };
    Predicate::parse(filter, context).map_err(|error| {
        error.context("Failed to parse 'restrictSearchWithMatch' option to $graphLookup :: caused by :: ")
    })
}
