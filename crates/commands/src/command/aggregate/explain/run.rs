//! Plans the explained operation, executes it on request, and writes the reply about both.

use super::Verbosity;
use super::stages::{self, Outcome, Stage};
use crate::call::Call;
use crate::read::table_scan;
use crate::read::{ReadSpec, Reader, Visit, for_each};
use document::{Collation, Doc, DocBuf, DocWriter};
use error::Result;
use query::Predicate;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;
use store::explain::{ExecutionStats, append_count};
use store::{ExplainContext, Namespace, Plan, Query};

/// The purpose of a read.
pub enum ReadKind<'a> {
    Read,
    /// Counts them, up to a limit.
    Count {
        limit: Option<u64>,
    },
    /// Returns one document for each value of a path.
    Distinct {
        path: Cow<'a, str>,
        collation: Collation,
    },
}

/// The read of an explained command.
pub struct ExplainedRead<'a> {
    /// The filter as it was sent.
    pub filter: Doc<'a>,
    /// Whether an index filter applies.
    pub index_filter_set: bool,
    pub request: ReadSpec<'a>,
    pub kind: ReadKind<'a>,
    /// The stages above the store's plan, outermost first.
    pub above: Vec<Stage>,
}

/// The plan to explain.
struct ExplainedPlan<'s> {
    namespace: &'s Namespace,
    plan: Arc<dyn Plan>,
    predicate: Predicate,
    filter: Doc<'s>,
    stages: Vec<Stage>,
    counted: bool,
    index_filter_set: bool,
}

/// The statistics of an executed plan.
#[derive(Clone, Copy, Default)]
pub struct ReadStats {
    /// The number of documents that the plan returned.
    pub returned_by_plan: u64,
    /// The number of documents that the pipeline behind it returned, if one was executed.
    pub returned: u64,
    pub milliseconds: i32,
}

/// Writes `queryPlanner` and, on request, `executionStats`.
pub async fn explain(
    call: &Call<'_>,
    namespace: &Namespace,
    read: ExplainedRead<'_>,
    verbosity: Verbosity,
    writer: &mut DocWriter<'_>,
) -> Result<ReadStats> {
    let store = &*call.worker.store;
    let ExplainedRead { filter, index_filter_set, mut request, kind, mut above } = read;
    let predicate = request.predicate.clone().unwrap_or_else(Predicate::everything);
    let (plan, reader) = match &kind {
        ReadKind::Read => {
            let limit = request.limit.map(|limit| limit.saturating_add(request.skip));
            let reader = Reader::open(store, namespace, request).await?;
            if let Some(sort) = reader.sorts_by() {
                // The sort itself limits, because it retains no more documents than requested.
                above.retain(|stage| !matches!(stage, Stage::Limit(_)));
                above.push(stages::of_sort(sort, limit));
            }
            (reader.plan().cloned(), Some(reader))
        }
        ReadKind::Count { limit } => {
            let query =
                Query { predicate: &predicate, sort: None, limit: *limit, hint: request.hint.take(), fields: None };
            let plan = store.plan(namespace, query).await?;
            table_scan::check(namespace, &predicate, &*plan)?;
            (Some(plan), None)
        }
        ReadKind::Distinct { path, collation } => {
            let query = Query { hint: request.hint.take(), ..Query::of(&predicate) };
            (Some(store.plan_distinct(namespace, query, path, collation).await?), None)
        }
    };
    let Some(plan) = plan else { return Ok(ReadStats::default()) };
    let counted = matches!(kind, ReadKind::Count { .. }) || reader.as_ref().is_some_and(Reader::counts);
    let mut explained = ExplainedPlan { namespace, plan, predicate, filter, stages: above, counted, index_filter_set };
    explained.write_plan(writer);
    if let Some((name, section)) = store.explain(&*explained.plan, counted).await? {
        writer.append(name, &section);
    }
    if verbosity == Verbosity::Planner {
        return Ok(ReadStats::default());
    }
    explained.plan.enable_exact_counts();
    let began = Instant::now();
    let (found, returned) = match (reader, kind) {
        (Some(mut reader), _) => {
            reader.for_each(call, |_| Ok(())).await?;
            (reader.matched, Some(reader.returned).filter(|_| reader.has_pipeline()))
        }
        (None, ReadKind::Count { limit }) => (explained.count(call, limit).await?, None),
        (None, _) => {
            let mut found = 0;
            let visit = |_: Doc<'_>| {
                found += 1;
                Ok(Visit::Continue)
            };
            for_each(store, &explained.plan, &explained.predicate, true, call.operation, visit).await?;
            (found, None)
        }
    };
    if let Some(returned) = returned {
        stages::note_groups(&mut explained.stages, returned);
    }
    let outcome = Outcome { found, milliseconds: began.elapsed().as_millis() as i32 };
    explained.write_stats(outcome, verbosity, writer);
    let returned_by_plan = stages::returned(&explained.stages, found);
    Ok(ReadStats {
        returned_by_plan,
        returned: returned.unwrap_or(returned_by_plan),
        milliseconds: outcome.milliseconds,
    })
}

impl ExplainedPlan<'_> {
    async fn count(&self, call: &Call<'_>, limit: Option<u64>) -> Result<u64> {
        let store = &*call.worker.store;
        if let Some(counted) = store.count(&*self.plan, limit).await? {
            return Ok(counted);
        }
        let mut found = 0;
        for_each(store, &self.plan, &self.predicate, false, call.operation, |_| {
            found += 1;
            Ok(if Some(found) == limit { Visit::Stop } else { Visit::Continue })
        })
        .await?;
        Ok(found)
    }

    fn stages(&self, outcome: Option<Outcome>) -> DocBuf {
        let ran = outcome.map(|outcome| ExecutionStats { found: outcome.found, milliseconds: outcome.milliseconds });
        let about = ExplainContext { predicate: Some((&self.predicate, self.filter)), counted: self.counted, ran };
        let plan = self.plan.stages(&about);
        store::explain::bounded(DocBuf::build(|writer| stages::write(&self.stages, outcome, plan.as_doc(), writer)))
    }

    fn write_plan(&self, writer: &mut DocWriter<'_>) {
        let mut planner = writer.document("queryPlanner");
        planner.append("namespace", &self.namespace.to_string());
        planner.append("indexFilterSet", self.index_filter_set);
        planner.append("parsedQuery", &self.predicate.describe(self.filter));
        for key in ["maxIndexedOrSolutionsReached", "maxIndexedAndSolutionsReached", "maxScansToExplodeReached"] {
            planner.append(key, false);
        }
        let of_second_engine = |stage: &Stage| matches!(stage, Stage::Group { .. } | Stage::Lookup { .. });
        match self.stages.iter().any(of_second_engine) {
            true => planner.document("winningPlan").append("queryPlan", &self.stages(None)),
            false => planner.append("winningPlan", &self.stages(None)),
        }
        drop(planner.array("rejectedPlans"));
    }

    fn write_stats(&self, outcome: Outcome, verbosity: Verbosity, writer: &mut DocWriter<'_>) {
        let examined = self.plan.examined();
        let mut stats = writer.document("executionStats");
        stats.append("executionSuccess", true);
        append_count("nReturned", stages::returned(&self.stages, outcome.found), &mut stats);
        stats.append("executionTimeMillis", outcome.milliseconds);
        append_count("totalKeysExamined", examined.keys, &mut stats);
        append_count("totalDocsExamined", examined.documents, &mut stats);
        stats.append("executionStages", &self.stages(Some(outcome)));
        if verbosity == Verbosity::AllPlans {
            drop(stats.array("allPlansExecution"));
        }
    }
}
