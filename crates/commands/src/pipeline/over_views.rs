//! Commands over views: each becomes a pipeline behind the view's own stages.

use crate::arguments::aggregate::Arguments as AggregateArguments;
use crate::arguments::count::Arguments as CountArguments;
use crate::arguments::distinct::Arguments as DistinctArguments;
use crate::arguments::find::Arguments as FindArguments;
use crate::arguments::options;
use crate::call::Call;
use crate::pipeline;
use crate::read::{Reader, text_indexes};
use crate::time_series::{self, reading};
use crate::views::{self, stages};
use cache::NotCached;
use document::{Collation, Doc, DocBuf, Value};
use error::{Code, Error, Result};
use futures_util::future::LocalBoxFuture;
use query::Context;
use store::Namespace;

/// Opens an aggregation over a view.
pub fn open<'a>(
    call: &'a Call<'_>,
    namespace: &'a Namespace,
    arguments: &'a AggregateArguments<'a>,
    context: &'a Context,
) -> LocalBoxFuture<'a, Result<Reader>> {
    Box::pin(async move {
        call.dependencies.refuse(NotCached::NotACollection);
        let view = views::resolve(call, namespace).await?;
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
        let arguments = AggregateArguments { pipeline: pipeline.as_doc(), hint, ..arguments.clone() };
        let text_indexes = text_indexes::of_pipeline(call.worker, &view.base, pipeline.as_doc()).await?;
        let context = Context { text_indexes, collation: view.collation, ..context.clone() };
        pipeline::open::open(call, &view.base, &arguments, &context).await
    })
}

/// Opens a `find` over a view.
pub async fn open_find(call: &Call<'_>, namespace: &Namespace, find: &FindArguments<'_>) -> Result<Reader> {
    let (pipeline, natural) = find_pipeline(find)?;
    let hint = natural.as_ref().map(|natural| Value::Document(natural.as_doc())).or(find.hint);
    let arguments = AggregateArguments {
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

/// Returns a `find` as a pipeline, and the hint that replaces a sort by `$natural`. Fails with 168
/// for options that pipelines do not have.
pub fn find_pipeline(find: &FindArguments<'_>) -> Result<(DocBuf, Option<DocBuf>)> {
    let unsupported = |message: String| Err(Error::new(Code::INVALID_PIPELINE_OPERATOR, message));
    if find.tailable {
        return unsupported("Tailable cursors are not supported in aggregation.".into());
    }
    // A single batch of one document equals a limit of one.
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
pub async fn count(call: &Call<'_>, namespace: &Namespace, count: &CountArguments<'_>) -> Result<u64> {
    let pipeline = count_pipeline(count);
    let arguments = AggregateArguments {
        pipeline: pipeline.as_doc(),
        hint: count.hint,
        collation: count.collation,
        ..Default::default()
    };
    let mut reader = open(call, namespace, &arguments, &call.context()).await?;
    let mut counted = 0;
    reader
        .for_each(call, |document| {
            let number = document.get("count").and_then(Value::to_i64);
            counted = number.unwrap_or_default().unsigned_abs();
            Ok(())
        })
        .await?;
    Ok(counted)
}

pub fn count_pipeline(count: &CountArguments<'_>) -> DocBuf {
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

/// Passes the documents of a view that a `distinct` needs to `visit`.
pub async fn distinct(
    call: &Call<'_>,
    namespace: &Namespace,
    distinct: &DistinctArguments<'_>,
    visit: impl FnMut(Doc<'_>) -> Result<()>,
) -> Result<()> {
    let pipeline = distinct_pipeline(distinct);
    let arguments = AggregateArguments {
        pipeline: pipeline.as_doc(),
        hint: distinct.hint,
        collation: distinct.collation,
        ..Default::default()
    };
    let mut reader = open(call, namespace, &arguments, &call.context()).await?;
    reader.for_each(call, visit).await
}

pub fn distinct_pipeline(distinct: &DistinctArguments<'_>) -> DocBuf {
    stages(|array| array.document().append("$match", distinct.query.unwrap_or(Doc::EMPTY)))
}
