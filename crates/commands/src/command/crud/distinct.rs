//! `distinct`.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/command/distinct/>

mod first;
mod source;

use self::first::FirstKeys;
use self::source::Source;
use crate::arguments::distinct::Arguments;
use crate::arguments::options;
use crate::call::{Call, Disposition};
use crate::pipeline::over_views;
use crate::read::index_filters;
use crate::read::table_scan;
use crate::read::{Visit, for_each};
use crate::reply::in_executor;
use crate::views;
use cache::dependencies::Aspect;
use cache::{Dependencies, NotCached};
use document::path::Path;
use document::{ArrayWriter, Collation, Doc, DocWriter, Value, ValueBuf, doc};
use error::{Code, Error, Result};
use hashbrown::HashTable;
use query::Predicate;
use std::hash::BuildHasher;
use store::Query;

pub async fn distinct(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let namespace = options::strict_namespace(call.database(), call.first())?;
    let arguments = Arguments::read(call.fields())?;
    let collation = options::effective_collation(call, &namespace, arguments.collation).await?;
    let context = query::Context { has_clock: false, ..options::context(call, None, collation)? };
    let predicate = Predicate::parse_query(arguments.query.unwrap_or(Doc::EMPTY), &context)?;
    query::check_field_path(&arguments.key)?;
    call.worker.statistics().operations_command.add(1);
    call.dependencies.depend_on(|| {
        let answer = Aspect::DistinctValues(Path::new(&arguments.key));
        Dependencies::matching(namespace.clone(), predicate.clone(), answer)
    });

    let store = &*call.worker.store;
    let filter = index_filters::find(call, &namespace, Some(&predicate), None, || None, arguments.collation).await?;
    let hint = index_filters::hint(&filter, arguments.hint);
    let query = Query { hint, ..Query::of(&predicate) };
    let plan = store.plan_distinct(&namespace, query, &arguments.key, &context.collation).await?;
    table_scan::check(&namespace, &predicate, &*plan)?;
    if call.bypasses_row_cache() {
        plan.bypass_caches();
    }
    let mut values = DistinctValues::new(&arguments.key, context.collation);
    if plan.facts().view {
        call.dependencies.refuse(NotCached::NotACollection);
        call.by_view = true;
        values.collation = views::resolve(call, &namespace).await?.collation;
        over_views::distinct(call, &namespace, &arguments, |document| values.add(document)).await?;
        values.write(reply.array("values"))?;
        return Ok(Disposition::Reply);
    }
    if hint.is_none() {
        values.source = Source::of(&*plan, &predicate, &arguments.key, &values.collation);
        if values.source.is_keys() {
            // Documents without the field matter, and so do arrays.
            call.dependencies.depend_on(|| Dependencies::all_documents(namespace.clone(), Vec::new()));
        }
    }
    for_each(store, &plan, &predicate, true, call.operation, |document| {
        values.add(document)?;
        Ok(Visit::Continue)
    })
    .await
    .map_err(|error| in_executor(error, "Executor error during distinct command"))?;
    if let Some(mut first) = values.first_keys(&arguments.key)? {
        let natural = doc! { "$natural": 1 };
        let hint = Some(Value::Document(natural.as_doc()));
        let plan = store.plan(&namespace, Query { hint, ..Query::of(&predicate) }).await?;
        for_each(store, &plan, &predicate, true, call.operation, |document| {
            first.take(document, &mut values);
            Ok(Visit::Continue)
        })
        .await
        .map_err(|error| in_executor(error, "Executor error during distinct command"))?;
    }
    values.write(reply.array("values"))?;
    call.append_snapshot_time(reply);
    Ok(Disposition::Reply)
}

/// Collects the values that a path reaches; of an array at its end, each element. In an array, a
/// number selects an element only; other names continue in each document of the array.
fn reach<'d>(document: Doc<'d>, components: &[Box<str>], reached: &mut Vec<Value<'d>>) {
    let Some((name, rest)) = components.split_first() else { return };
    match (document.get(name), rest.first()) {
        (None, _) => {}
        (Some(Value::Array(elements)), None) => reached.extend(elements.values()),
        (Some(value), None) => reached.push(value),
        (Some(Value::Document(inner)), Some(_)) => reach(inner, rest, reached),
        (Some(Value::Array(array)), Some(next)) if next.bytes().all(|byte| byte.is_ascii_digit()) => {
            reach(array, rest, reached);
        }
        (Some(Value::Array(array)), Some(_)) => {
            array.values().filter_map(Value::as_document).for_each(|inner| reach(inner, rest, reached));
        }
        (Some(_), Some(_)) => {}
    }
}

/// Returns the elements of an array; any other value as it is.
fn elements(value: Value<'_>) -> Vec<Value<'_>> {
    match value {
        Value::Array(array) => array.values().collect(),
        value => vec![value],
    }
}

fn hash(hasher: &ahash::RandomState, collation: &Collation, value: Value<'_>) -> u64 {
    let mut state = hasher.build_hasher();
    collation.hash(value, &mut state);
    std::hash::Hasher::finish(&state)
}

/// The distinct values of a path. Arrays count by their elements.
struct DistinctValues {
    source: Source,
    components: Vec<Box<str>>,
    values: Vec<ValueBuf>,
    /// Positions in `values`, by the value's hash.
    places: HashTable<usize>,
    hasher: ahash::RandomState,
    collation: Collation,
    bytes: usize,
    /// Whether equal values were met that are not identical, such as numbers of different types.
    ambiguous: bool,
    scratch: Vec<u8>,
}

impl DistinctValues {
    fn new(key: &str, collation: Collation) -> Self {
        DistinctValues {
            source: Source::Documents,
            components: key.split('.').map(Into::into).collect(),
            values: Vec::new(),
            places: HashTable::new(),
            hasher: ahash::RandomState::new(),
            collation,
            bytes: 0,
            ambiguous: false,
            scratch: Vec::new(),
        }
    }

    /// Returns the state that decides which of several equal values is returned, if keys do.
    fn first_keys(&self, path: &str) -> Result<Option<FirstKeys>> {
        let index = self.source.index().filter(|_| self.ambiguous);
        index.map_or(Ok(None), |index| FirstKeys::of(index, path, self.values.len()))
    }

    fn add(&mut self, document: Doc<'_>) -> Result<()> {
        let mut reached = Vec::new();
        reach(document, &self.components, &mut reached);
        if let Source::Keys { .. } = self.source {
            // A nested array is a key itself, and its elements count.
            reached = reached.into_iter().flat_map(elements).collect();
        }
        reached.extend(self.source.note(document));
        reached.into_iter().try_for_each(|value| self.add_value(value))
    }

    /// Returns the position of a known value.
    fn find(&self, value: Value<'_>) -> Option<usize> {
        let equal = |known: &ValueBuf| self.collation.equal(known.as_value(), value);
        let known = |place: &usize| self.values.get(*place).is_some_and(equal);
        self.places.find(hash(&self.hasher, &self.collation, value), known).copied()
    }

    fn add_value(&mut self, value: Value<'_>) -> Result<()> {
        if let Some(place) = self.find(value) {
            if self.source.is_keys() && !self.ambiguous {
                self.scratch.clear();
                value.write_raw(&mut self.scratch);
                let is_same = |known: &ValueBuf| known.kind() == value.kind() && *known.raw_value() == *self.scratch;
                self.ambiguous = !self.values.get(place).is_some_and(is_same);
            }
            return Ok(());
        }
        let owned = value.to_owned();
        let DistinctValues { values, places, hasher, bytes, collation, .. } = self;
        *bytes += owned.raw_value().len() + 8;
        if *bytes > document::DOCUMENT_BYTES_MAX {
            return Err(Error::new(Code(17217), "distinct too big, 16mb cap"));
        }
        values.push(owned);
        let hash = |value| hash(hasher, collation, value);
        let rehash = |place: &usize| values.get(*place).map_or(0, |value| hash(value.as_value()));
        places.insert_unique(hash(value), values.len() - 1, rehash);
        Ok(())
    }

    /// Writes the values in order, as MongoDB does.
    fn write(mut self, mut array: ArrayWriter<'_>) -> Result<()> {
        self.source.last().map_or(Ok(()), |value| self.add_value(value))?;
        let collation = &self.collation;
        self.values.sort_by(|a, b| collation.compare(a.as_value(), b.as_value()));
        self.values.iter().for_each(|value| array.push(value));
        Ok(())
    }
}
