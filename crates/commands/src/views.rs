//! Reading views: a view's name becomes a collection and the stages that make the view of it, and the command a pipeline behind them.
//!
//! Source: <https://www.mongodb.com/docs/manual/core/views/>

pub mod definitions;
mod graph;

use crate::arguments::options;
use crate::call::Call;
use crate::command::aggregate::aggregate_command;
use crate::command::crud::{count, distinct, find};
use crate::read::text_indexes;
use crate::read::{Reader, Visit, for_each};
use crate::time_series;
use crate::time_series::reading;
use cache::NotCached;
use document::{ArrayWriter, Collation, Doc, DocBuf, Value};
use error::{Code, Error, Result};
use futures_util::future::LocalBoxFuture;
use query::{Context, Predicate};
use store::{Namespace, Query, views};

/// How many views may stand on top of one another.
pub const DEPTH_MAX: usize = 20;

/// How large their stages may be together.
pub const PIPELINE_BYTES_MAX: usize = 16_000_000;

/// What a view stands for.
pub struct View {
    /// The collection at the bottom.
    pub base: Namespace,
    /// The stages of all views above it, the lowest view's first: an array.
    pub stages: DocBuf,
    /// The view's own, which all that reads it goes by.
    pub collation: Collation,
}

impl View {
    /// The view's stages with others behind them.
    pub fn followed_by(&self, stages: Doc<'_>) -> DocBuf {
        concatenated(self.stages.as_doc(), stages)
    }

    /// Error 167 for a command with another collation than the view's.
    pub fn check_collation(&self, given: Option<&Collation>) -> Result<()> {
        match given {
            Some(given) if *given != self.collation => {
                Err(Error::new(Code(167), "Cannot override a view's default collation"))
            }
            _ => Ok(()),
        }
    }
}

/// Follows a name down to a collection. Error 165 when that takes too long.
pub async fn resolve(call: &Call<'_>, namespace: &Namespace) -> Result<View> {
    let mut view = View { base: namespace.clone(), stages: DocBuf::new(), collation: Collation::SIMPLE };
    for depth in 0..DEPTH_MAX {
        let Some(definition) = definition(call, &view.base).await? else { return Ok(view) };
        let definition = definition.as_doc();
        if depth == 0 {
            view.collation = store::catalog::default_collation(definition)?;
        }
        let base = definition.get("viewOn").and_then(Value::as_str).unwrap_or_default();
        view.base = Namespace::new(call.database(), base);
        let stages = definition.get("pipeline").and_then(Value::as_array).unwrap_or(Doc::EMPTY);
        view.stages = concatenated(stages, view.stages.as_doc());
    }
    let message = format!("View depth too deep or view cycle detected; maximum depth is {DEPTH_MAX}");
    Err(Error::new(Code::VIEW_DEPTH_LIMIT_EXCEEDED, message))
}

/// The document in `system.views` that defines a view; `None` when the name is no view's.
pub async fn definition(call: &Call<'_>, namespace: &Namespace) -> Result<Option<DocBuf>> {
    let mut filter = DocBuf::new();
    filter.append("_id", namespace.to_string().as_str());
    Ok(read_definitions(call, &namespace.database, filter.as_doc()).await?.pop())
}

/// The definitions of all views of a database.
pub async fn all(call: &Call<'_>, database: &str) -> Result<Vec<DocBuf>> {
    read_definitions(call, database, Doc::EMPTY).await
}

async fn read_definitions(call: &Call<'_>, database: &str, filter: Doc<'_>) -> Result<Vec<DocBuf>> {
    let store = &*call.worker.store;
    let predicate = Predicate::parse(filter, &call.context())?;
    let namespace = views::definitions(database);
    let plan = store.plan(&namespace, Query::of(&predicate)).await?;
    let mut found = Vec::new();
    for_each(store, &plan, &predicate, true, call.operation, |document| {
        found.push(document.to_owned());
        Ok(Visit::Continue)
    })
    .await?;
    Ok(found)
}

/// Error 166 when the name is a view's.
pub async fn refuse(call: &Call<'_>, namespace: &Namespace) -> Result<()> {
    match definition(call, namespace).await? {
        Some(_) => Err(views::not_a_collection(namespace)),
        None => Ok(()),
    }
}

/// Opens an aggregation over a view.
pub fn open<'a>(
    call: &'a Call<'_>,
    namespace: &'a Namespace,
    arguments: &'a aggregate_command::Arguments<'a>,
    context: &'a Context,
) -> LocalBoxFuture<'a, Result<Reader>> {
    Box::pin(async move {
        call.dependencies.refuse(NotCached::NotACollection);
        let view = resolve(call, namespace).await?;
        view.check_collation(options::given_collation(arguments.collation)?.as_ref())?;
        let mut pipeline = view.followed_by(arguments.pipeline);
        let mut hint = None;
        if view.base.collection.starts_with(time_series::BUCKETS)
            && let Some(series) = time_series::find(call, namespace).await?
        {
            pipeline = reading::with_bounds(pipeline.as_doc(), &series).unwrap_or(pipeline);
            let key = arguments.hint.filter(|hint| hint.as_document().is_some());
            hint = key.map(|key| reading::hint(key, &series));
        }
        let hint = hint.as_ref().map(|hint| Value::Document(hint.as_doc())).or(arguments.hint);
        let arguments = aggregate_command::Arguments { pipeline: pipeline.as_doc(), hint, ..arguments.clone() };
        let text_indexes = text_indexes::of_pipeline(call.worker, &view.base, pipeline.as_doc()).await?;
        let context = Context { text_indexes, collation: view.collation, ..context.clone() };
        aggregate_command::open(call, &view.base, &arguments, &context).await
    })
}

/// Opens a `find` over a view.
pub async fn open_find(call: &Call<'_>, namespace: &Namespace, find: &find::Arguments<'_>) -> Result<Reader> {
    let (pipeline, natural) = find_pipeline(find)?;
    let hint = natural.as_ref().map(|natural| Value::Document(natural.as_doc())).or(find.hint);
    let arguments = aggregate_command::Arguments {
        pipeline: pipeline.as_doc(),
        hint,
        variables: find.variables,
        allow_disk_use: find.allow_disk_use,
        collation: find.collation,
        ..Default::default()
    };
    let context = options::context(call, find.variables, Collation::SIMPLE)?;
    open(call, namespace, &arguments, &context).await
}

/// A `find` as a pipeline, and the hint that stands in for a sort by `$natural`. Error 168 for what pipelines do not have.
pub fn find_pipeline(find: &find::Arguments<'_>) -> Result<(DocBuf, Option<DocBuf>)> {
    let unsupported = |message: String| Err(Error::new(Code::INVALID_PIPELINE_OPERATOR, message));
    if find.tailable {
        return unsupported("Tailable cursors are not supported in aggregation.".into());
    }
    // A single batch of one document is what a limit comes to.
    let single_batch = (find.single_batch && find.limit != Some(1)).then_some("singleBatch");
    if let Some(option) = find.not_in_aggregation.or(single_batch) {
        return unsupported(format!("Option {option} not supported in aggregation."));
    }
    let projection = find.projection.filter(|projection| !projection.is_empty());
    let matches_elements =
        |value: Value<'_>| value.as_document().is_some_and(|inner| inner.get("$elemMatch").is_some());
    if projection.is_some_and(|projection| projection.values().any(matches_elements)) {
        return unsupported(
            "Unsupported in view pipeline: Invalid $project :: caused by :: Cannot use $elemMatch in this context"
                .into(),
        );
    }
    let sort = find.sort.filter(|sort| !sort.is_empty());
    let natural = sort.filter(|sort| sort.get("$natural").is_some());
    let pipeline = stages(|array| {
        if let Some(filter) = find.filter.filter(|filter| !filter.is_empty()) {
            array.document().append("$match", filter);
        }
        if let Some(sort) = sort.filter(|_| natural.is_none()) {
            array.document().append("$sort", sort);
        }
        if find.skip > 0 {
            array.document().append("$skip", find.skip as i64);
        }
        if let Some(limit) = find.limit {
            array.document().append("$limit", limit as i64);
        }
        if let Some(projection) = projection {
            array.document().append("$project", projection);
        }
    });
    Ok((pipeline, natural.map(Doc::to_owned)))
}

/// Counts a view's documents.
pub async fn count(call: &Call<'_>, namespace: &Namespace, count: &count::Arguments<'_>) -> Result<u64> {
    let pipeline = count_pipeline(count);
    let arguments = aggregate_command::Arguments {
        pipeline: pipeline.as_doc(),
        hint: count.hint,
        collation: count.collation,
        ..Default::default()
    };
    let mut reader = open(call, namespace, &arguments, &call.context()).await?;
    let mut counted = 0;
    reader
        .for_each(call, |document| {
            let number = document.get("count").and_then(crate::arguments::number_to_i64);
            counted = number.unwrap_or_default().unsigned_abs();
            Ok(())
        })
        .await?;
    Ok(counted)
}

pub fn count_pipeline(count: &count::Arguments<'_>) -> DocBuf {
    stages(|array| {
        array.document().append("$match", count.query.unwrap_or(Doc::EMPTY));
        if count.skip > 0 {
            array.document().append("$skip", count.skip as i64);
        }
        if let Some(limit) = count.limit {
            array.document().append("$limit", limit as i64);
        }
        array.document().append("$count", "count");
    })
}

/// Shows the documents of a view that a `distinct` is about to `visit`.
pub async fn distinct(
    call: &Call<'_>,
    namespace: &Namespace,
    distinct: &distinct::Arguments<'_>,
    visit: impl FnMut(Doc<'_>) -> Result<()>,
) -> Result<()> {
    let pipeline = distinct_pipeline(distinct);
    let arguments = aggregate_command::Arguments {
        pipeline: pipeline.as_doc(),
        hint: distinct.hint,
        collation: distinct.collation,
        ..Default::default()
    };
    let mut reader = open(call, namespace, &arguments, &call.context()).await?;
    reader.for_each(call, visit).await
}

pub fn distinct_pipeline(distinct: &distinct::Arguments<'_>) -> DocBuf {
    stages(|array| array.document().append("$match", distinct.query.unwrap_or(Doc::EMPTY)))
}

/// An array of stages.
pub fn stages(write: impl FnOnce(&mut ArrayWriter<'_>)) -> DocBuf {
    let mut bytes = Vec::new();
    write(&mut ArrayWriter::begin(&mut bytes));
    DocBuf::from_vec(bytes).unwrap_or_default()
}

fn concatenated(first: Doc<'_>, second: Doc<'_>) -> DocBuf {
    stages(|array| first.values().chain(second.values()).for_each(|stage| array.push(stage)))
}

/// What is written to `system.views`.
pub fn write_definition(namespace: &Namespace, view_on: &str, stages: Doc<'_>, collation: Option<Doc<'_>>) -> DocBuf {
    DocBuf::build(|writer| {
        writer.append("_id", namespace.to_string().as_str());
        writer.append("viewOn", view_on);
        writer.append("pipeline", Value::Array(stages));
        if let Some(collation) = collation {
            writer.append("collation", collation);
        }
    })
}

/// A definition's parts: name within its database, and what it stands on.
pub fn parts<'d>(database: &str, definition: &'d DocBuf) -> Option<(&'d str, &'d str)> {
    let definition = definition.as_doc();
    let name = definition.get("_id")?.as_str()?.strip_prefix(database)?.strip_prefix('.')?;
    Some((name, definition.get("viewOn")?.as_str()?))
}
