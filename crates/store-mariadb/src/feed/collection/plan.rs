//! The plan of a query on the log. Documents are in the order of their `ts`, so conditions on `ts`
//! are bounds.

use ::store::{Examined, ExaminedCounter, ExplainContext, FeedPosition, Plan, PlanFacts, PlanSummary, Query};
use access::conditions::PlannerQuery;
use document::{DocBuf, Value};
use query::Predicate;
use query::Sort;
use query::predicate::Test;
use std::any::Any;

#[derive(Debug)]
pub(crate) struct LogPlan {
    pub forward: bool,
    /// A scan goes on with later documents, and never ends.
    pub is_tail: bool,
    /// Documents that match are behind this.
    pub behind: Option<FeedPosition>,
    /// And not behind this.
    pub last: Option<FeedPosition>,
    pub examined: ExaminedCounter,
    facts: PlanFacts,
}

/// Returns the plan of a query.
pub(crate) fn plan(query: &Query<'_>) -> LogPlan {
    let wanted = PlannerQuery::of(query);
    let (behind, last) = bounds(&wanted);
    let by_time = wanted.natural.or(wanted.sort.and_then(direction_of_ts));
    let facts = PlanFacts { exact: false, sorted: wanted.sort.is_none() || by_time.is_some(), view: false };
    LogPlan {
        forward: by_time.unwrap_or(true),
        is_tail: false,
        behind,
        last,
        examined: ExaminedCounter::default(),
        facts,
    }
}

/// Returns the plan that follows the log.
pub(crate) fn tail(predicate: &Predicate) -> LogPlan {
    LogPlan { is_tail: true, last: None, ..plan(&Query::of(predicate)) }
}

/// No two documents have the same `ts`, so further fields of a sort have no effect.
fn direction_of_ts(sort: &Sort) -> Option<bool> {
    let first = sort.parts().first().filter(|part| part.meta.is_none() && part.path == "ts")?;
    Some(first.ascending)
}

/// Returns the position behind which documents can match, and the last one.
fn bounds(wanted: &PlannerQuery<'_>) -> (Option<FeedPosition>, Option<FeedPosition>) {
    let (mut behind, mut last) = (None::<FeedPosition>, None::<FeedPosition>);
    for test in wanted.tests_of("ts") {
        let (Test::Equal(bound)
        | Test::Greater(bound)
        | Test::GreaterOrEqual(bound)
        | Test::Less(bound)
        | Test::LessOrEqual(bound)) = test
        else {
            continue;
        };
        let Value::Timestamp { time, increment } = bound.as_value() else { continue };
        let position = FeedPosition { time, increment };
        match test {
            Test::Greater(_) => behind = behind.max(Some(position)),
            Test::Equal(_) | Test::GreaterOrEqual(_) => behind = behind.max(Some(position.before())),
            _ => {}
        }
        // A document at the bound itself is left to the filter.
        if matches!(test, Test::Equal(_) | Test::Less(_) | Test::LessOrEqual(_)) {
            last = Some(last.map_or(position, |last| last.min(position)));
        }
    }
    (behind, last)
}

impl Plan for LogPlan {
    fn facts(&self) -> &PlanFacts {
        &self.facts
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn stages(&self, about: &ExplainContext<'_>) -> DocBuf {
        DocBuf::build(|writer| {
            writer.append("stage", "COLLSCAN");
            about.write_filter(|_, _| false, writer);
            about.write_execution_stats(|ran| ran.found, writer);
            writer.append("direction", if self.forward { "forward" } else { "backward" });
            about.write_count("docsExamined", self.examined.get().documents, writer);
        })
    }

    fn summary(&self) -> PlanSummary {
        PlanSummary::Name("COLLSCAN")
    }

    fn examined(&self) -> Examined {
        self.examined.get()
    }
}
