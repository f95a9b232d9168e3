//! `$collStats` and `$indexStats`: statistics of a collection and its indexes.

use crate::arguments;
use crate::call::Call;
use crate::command::catalog::statistics::write_storage_stats;
use crate::{time_series, views};
use document::{Doc, DocBuf, DocWriter, Value};
use error::{Code, Error, Result};
use server::usage;
use std::collections::VecDeque;
use store::explain::append_count;
use store::{Namespace, Rules};

/// Returns the document of `$collStats`. Options that are null count as absent.
pub async fn of_collection(call: &Call<'_>, namespace: &Namespace, options: Doc<'_>) -> Result<DocBuf> {
    let asked = |name: &str| options.get(name).and_then(Value::as_document);
    let scale = asked("storageStats").and_then(|options| options.get("scale")).and_then(arguments::number_to_i64);
    let scale = scale.unwrap_or(1).max(1) as u64;
    let counted = ["count", "storageStats", "queryExecStats"].into_iter().find(|name| asked(name).is_some());
    let counts = counted.is_some();
    let stats = if counts { call.worker.store.collection_stats(namespace).await? } else { Some(Default::default()) };
    let Some(stats) = stats else {
        let during = "PlanExecutor error during aggregation :: caused by :: ";
        views::refuse(call, namespace).await.map_err(|error| error.context(during))?;
        let what = counted.unwrap_or_default();
        let message = format!(
            "PlanExecutor error during aggregation :: caused by :: Unable to retrieve {what} in $collStats stage :: caused \
             by :: Collection [{namespace}] not found."
        );
        return Err(Error::new(Code::NAMESPACE_NOT_FOUND, message));
    };
    let info = call.worker.store.collection(namespace).await?;
    let rules = info.map(|info| Rules::of(info.options.as_doc())).transpose()?.flatten();
    let cap = rules.and_then(|rules| rules.cap);
    let workers = call.worker.server.workers();
    Ok(DocBuf::build(|writer| {
        writer.append("ns", &namespace.to_string());
        writer.append("host", server::host::cached_name());
        writer.append("localTime", Value::DateTime(call.now_ms));
        let usages = || workers.iter().map(|worker| &worker.usage);
        if let Some(options) = asked("latencyStats") {
            let histograms = options.get("histograms").is_some_and(Value::is_truthy);
            let latencies = usage::latencies(usages(), Some(namespace));
            usage::write_latencies(&latencies, histograms, &mut writer.document("latencyStats"));
        }
        if asked("storageStats").is_some() {
            write_storage_stats(&stats, cap, scale, &mut writer.document("storageStats"));
        }
        if asked("count").is_some() {
            append_count("count", stats.documents, writer);
        }
        if asked("queryExecStats").is_some() {
            let scans = usage::plans(usages(), namespace, |plan| plan.as_str() == Some("COLLSCAN"));
            let mut stats = writer.document("queryExecStats");
            let mut stats = stats.document("collectionScans");
            // Tailable cursors are not counted separately.
            ["total", "nonTailable"].into_iter().for_each(|name| append_count(name, scans, &mut stats));
        }
    }))
}

/// Returns the documents of `$indexStats`, one per index.
pub async fn of_indexes(call: &Call<'_>, namespace: &Namespace) -> Result<VecDeque<DocBuf>> {
    let mut indexes = call.worker.store.indexes(namespace).await?;
    let mut base = namespace.clone();
    if indexes.is_none() {
        if let Some(series) = time_series::find(call, namespace).await? {
            let own = call.worker.store.indexes(&series.buckets).await?.unwrap_or_default();
            let own = own.into_iter().filter(|index| index.name != "_id_");
            let shown = |spec: &DocBuf| time_series::indexes::listed(spec.as_doc(), &series);
            return Ok(own.map(|index| of_index(call, &series.buckets, &index.spec, &shown(&index.spec))).collect());
        }
        let view = views::resolve(call, namespace).await?;
        if !view.stages.as_doc().is_empty() {
            // Behind the view's own stages it would not be first.
            return Err(Error::new(Code(40602), "$indexStats is only valid as the first stage in a pipeline"));
        }
        indexes = call.worker.store.indexes(&view.base).await?;
        base = view.base;
    }
    let indexes = indexes.unwrap_or_default();
    Ok(indexes.iter().map(|index| of_index(call, &base, &index.spec, &index.spec)).collect())
}

/// Returns the statistics of an index. `shown`: its specification as it is displayed. Indexes with
/// the same key share their counts.
fn of_index(call: &Call<'_>, namespace: &Namespace, spec: &DocBuf, shown: &DocBuf) -> DocBuf {
    let server = &call.worker.server;
    let workers = server.workers();
    let usages = || workers.iter().map(|worker| &worker.usage);
    let key = spec.as_doc().get("key").and_then(Value::as_document).unwrap_or(Doc::EMPTY);
    let accesses = usage::plans(usages(), namespace, |plan| plan.reads_by(key));
    let since = usage::index_since(usages(), namespace, key).unwrap_or_else(|| server.started_ms());
    DocBuf::build(|writer: &mut DocWriter<'_>| {
        for name in ["name", "key"] {
            writer.append(name, shown.as_doc().get(name).unwrap_or(Value::Null));
        }
        writer.append("host", server::host::cached_name());
        {
            let mut writer = writer.document("accesses");
            writer.append("ops", accesses as i64);
            writer.append("since", Value::DateTime(since));
        }
        writer.append("spec", shown);
    })
}
