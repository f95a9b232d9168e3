//! The front of a pipeline, which MongoDB makes part of the plan: filter, sort, skip, limit and
//! projection, and the groups and lookups that its second engine executes.

use super::stages::{self, Stage};
use document::{Doc, DocBuf, DocWriter, Value};

/// The accumulators that MongoDB's second engine supports.
const ACCUMULATORS: [&str; 10] =
    ["$addToSet", "$avg", "$first", "$last", "$max", "$mergeObjects", "$min", "$push", "$sum", "$stdDevPop"];

/// The front of a pipeline, and the stages behind it.
pub struct Front<'a> {
    /// The filter as it was sent.
    pub filter: Doc<'a>,
    /// The stages above the store's plan, outermost first.
    pub above: Vec<Stage>,
    /// The stages behind the front, as they are displayed.
    pub rest: Vec<DocBuf>,
    /// The stages up to the last group of the plan, if there is one.
    pub up_to_group: Option<DocBuf>,
}

impl Front<'_> {
    /// Returns whether the plan has stages of MongoDB's second engine.
    pub fn is_of_second_engine(&self) -> bool {
        self.above.iter().any(|stage| matches!(stage, Stage::Group { .. } | Stage::Lookup { .. }))
    }
}

/// Splits a parsed pipeline. `sorts`: the store sorts for a `$sort`. `limit`: the store is asked
/// for this many documents, by whatever stage. `joins`: how to display the lookups that the plan
/// can contain, by their positions.
pub fn split<'a>(pipeline: Doc<'a>, sorts: bool, limit: Option<u64>, joins: &[(usize, DocBuf)]) -> Front<'a> {
    let all: Vec<Doc<'a>> = pipeline.values().filter_map(Value::as_document).collect();
    let first = |at: usize| all.get(at).and_then(|stage| stage.first());
    let mut at = 0;
    let mut filter = Doc::EMPTY;
    while let Some(stage) = first(at) {
        match stage.key() {
            "$match" => filter = stage.value().as_document().unwrap_or(filter),
            "$sort" if sorts => {}
            _ => break,
        }
        at += 1;
    }
    let mut window = Window::default();
    let mut projection = None;
    while let Some(stage) = first(at) {
        match (stage.key(), stage.value()) {
            ("$skip" | "$limit", amount) => window.narrow(stage.key(), amount),
            ("$project", Value::Document(spec)) if projection.is_none() && includes(spec) => projection = Some(spec),
            // The filter was moved ahead.
            ("$match", Value::Document(query)) if projection.is_some_and(|spec| includes_fields(spec, query)) => {}
            _ => break,
        }
        at += 1;
    }
    let mut joined = Vec::new();
    let mut rest = Vec::new();
    let mut groups_end = None;
    while let Some(stage) = first(at) {
        match (stage.key(), stage.value()) {
            ("$group", Value::Document(spec)) if is_computed_by_plan(spec) => {
                joined.push(Stage::Group { returned: None })
            }
            ("$sortByCount", value) if value.as_str().is_some() => {
                joined.push(Stage::Group { returned: None });
                rest.push(document::doc! { "$sort": &document::doc! { "sortKey": &document::doc! { "count": -1 } } });
            }
            _ => break,
        }
        at += 1;
        groups_end = Some(at);
        if !rest.is_empty() {
            break;
        }
    }
    // Behind the sort of a `$sortByCount` no plan continues.
    while let Some((_, shown)) = joins.iter().find(|(place, _)| *place == at && rest.is_empty()) {
        joined.push(Stage::Lookup { shown: shown.clone() });
        at += 1;
    }
    let simple = projection.is_some_and(|spec| stages::is_simple_projection(spec));
    let mut above: Vec<Stage> = joined.into_iter().rev().collect();
    above.extend(window.limit.or(limit.filter(|_| window.skip == 0)).map(Stage::Limit));
    // A group determines the needed fields itself.
    if let Some(spec) = projection.filter(|_| !(simple && groups_end.is_some())) {
        above.push(stages::of_projection(spec, transform(spec)));
    }
    above.extend((window.skip > 0).then_some(Stage::Skip(window.skip)));
    let mut behind: Vec<Doc<'_>> = all.iter().skip(at).copied().collect();
    if limit.is_some() && window.limit.is_none() {
        // The limit that is part of the plan was moved, too.
        if let Some(moved) = behind.iter().position(|stage| stage.get("$limit").is_some()) {
            behind.remove(moved);
        }
    }
    rest.extend(behind.into_iter().flat_map(shown));
    let up_to_group =
        groups_end.filter(|end| !rest.is_empty() || *end < at).map(|end| prefix(all.get(..end).unwrap_or_default()));
    Front { filter, above, rest, up_to_group }
}

/// The range of documents that `$skip` and `$limit` leave.
#[derive(Default)]
struct Window {
    skip: u64,
    limit: Option<u64>,
}

impl Window {
    fn narrow(&mut self, stage: &str, amount: Value<'_>) {
        let amount = amount.to_i64().and_then(|amount| u64::try_from(amount).ok()).unwrap_or_default();
        if stage == "$skip" {
            self.skip = self.skip.saturating_add(amount);
            self.limit = self.limit.map(|limit| limit.saturating_sub(amount));
        } else {
            self.limit = Some(self.limit.map_or(amount, |limit| limit.min(amount)));
        }
    }
}

/// Returns whether a `$project` names the fields to include, not those to exclude.
fn includes(spec: Doc<'_>) -> bool {
    spec.elements().any(|field| match field.value() {
        value @ (Value::Boolean(_) | Value::Int32(_) | Value::Int64(_) | Value::Double(_) | Value::Decimal128(_)) => {
            value.is_truthy() && field.key() != "_id"
        }
        _ => true,
    })
}

/// Returns whether a projection includes, unchanged, all fields of a filter.
fn includes_fields(spec: Doc<'_>, query: Doc<'_>) -> bool {
    stages::is_simple_projection(spec)
        && query.elements().all(|field| spec.get(field.key()).is_some_and(Value::is_truthy))
}

/// Returns a projection as a plan displays it: with `_id`, and booleans for numbers.
fn transform(spec: Doc<'_>) -> DocBuf {
    DocBuf::build(|writer| {
        if spec.get("_id").is_none() {
            writer.append("_id", true);
        }
        spec.elements().for_each(|field| match field.value() {
            value if value.kind().is_number() => writer.append(field.key(), value.is_truthy()),
            _ => writer.append_element(field),
        });
    })
}

/// Returns whether MongoDB makes a `$group` part of the plan: it reads a field, and uses
/// accumulators of the second engine.
fn is_computed_by_plan(spec: Doc<'_>) -> bool {
    let computes = |field: Doc<'_>| field.elements().all(|accumulator| ACCUMULATORS.contains(&accumulator.key()));
    let accumulators = spec.elements().filter(|field| *field.key() != *"_id");
    accumulators.filter_map(|field| field.value().as_document()).all(computes) && reads_field(Value::Document(spec))
}

fn reads_field(value: Value<'_>) -> bool {
    match value {
        Value::String(text) => text.starts_with('$') && !text.starts_with("$$"),
        Value::Document(inner) | Value::Array(inner) => inner.values().any(reads_field),
        _ => false,
    }
}

/// Returns the stages up to the last group.
fn prefix(stages: &[Doc<'_>]) -> DocBuf {
    let mut bytes = Vec::new();
    {
        let mut writer = document::ArrayWriter::begin(&mut bytes);
        for stage in stages {
            match stage.first() {
                Some(first) if *first.key() == *"$sortByCount" => {
                    let group = DocBuf::build(|writer| {
                        let mut group = writer.document("$group");
                        group.append("_id", first.value());
                        group.document("count").append("$sum", 1);
                    });
                    writer.push(&group);
                }
                _ => writer.push(*stage),
            }
        }
    }
    DocBuf::from_vec(bytes).unwrap_or_default()
}

/// Returns a stage as MongoDB displays it after parsing.
fn shown(stage: Doc<'_>) -> Vec<DocBuf> {
    let Some(first) = stage.first() else { return Vec::new() };
    let build = |name: &str, write: &dyn Fn(&mut DocWriter<'_>)| {
        vec![DocBuf::build(|writer| write(&mut writer.document(name)))]
    };
    match (first.key(), first.value()) {
        ("$unwind", Value::String(path)) => build("$unwind", &|writer| writer.append("path", path)),
        ("$sort", Value::Document(pattern)) => build("$sort", &|writer| writer.append("sortKey", pattern)),
        ("$project", Value::Document(spec)) if includes(spec) => {
            vec![document::doc! { "$project": &transform(spec) }]
        }
        ("$project", Value::Document(spec)) => build("$project", &|writer| {
            spec.elements().for_each(|field| writer.append(field.key(), field.value().is_truthy()));
            if spec.get("_id").is_none() {
                writer.append("_id", true);
            }
        }),
        ("$unset", Value::String(path)) => build("$project", &|writer| {
            writer.append(path, false);
            writer.append("_id", true);
        }),
        ("$count", Value::String(name)) => {
            let group = DocBuf::build(|writer| {
                let mut group = writer.document("$group");
                group.document("_id").append("$const", Value::Null);
                group.document(name).document("$sum").append("$const", 1);
            });
            let project = build("$project", &|writer| {
                writer.append(name, true);
                writer.append("_id", false);
            });
            std::iter::once(group).chain(project).collect()
        }
        _ => vec![stage.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{array, doc};

    fn described(pipeline: Doc<'_>) -> (Vec<String>, Vec<String>) {
        let front = split(pipeline, true, None, &[]);
        let name = |stage: &Stage| match stage {
            Stage::Limit(limit) => format!("LIMIT {limit}"),
            Stage::Skip(skip) => format!("SKIP {skip}"),
            Stage::Projection { name, .. } => (*name).to_owned(),
            Stage::Group { .. } => "GROUP".to_owned(),
            _ => "other".to_owned(),
        };
        let rest = front.rest.iter().filter_map(|stage| Some(stage.as_doc().first()?.key().to_owned()));
        (front.above.iter().map(name).collect(), rest.collect())
    }

    #[test]
    fn the_front_goes_into_the_plan() {
        let project = &doc! { "$project": &doc! { "a": 1 } };
        let group = &doc! { "$group": &doc! { "_id": "$a", "n": &doc! { "$sum": 1 } } };
        let (limit, skip) = (&doc! { "$limit": 3 }, &doc! { "$skip": 2 });
        let count = &doc! { "$group": &doc! { "_id": Value::Null, "n": &doc! { "$sum": 1 } } };
        let sort = &doc! { "$sort": &doc! { "a": 1 } };
        for (pipeline, above, rest) in [
            (array![sort, skip, limit], &["LIMIT 3", "SKIP 2"][..], &[][..]),
            (array![limit, skip], &["LIMIT 1", "SKIP 2"], &[]),
            (array![limit, project], &["LIMIT 3", "PROJECTION_SIMPLE"], &[]),
            (array![&doc! { "$project": &doc! { "a": 0 } }], &[], &["$project"]),
            (array![&doc! { "$project": &doc! { "x": "$a" } }], &["PROJECTION_DEFAULT"], &[]),
            (array![group], &["GROUP"], &[]),
            (array![project, group, sort], &["GROUP"], &["$sort"]),
            (array![limit, group], &["GROUP", "LIMIT 3"], &[]),
            (array![count], &[], &["$group"]),
            (array![&doc! { "$sortByCount": "$a" }], &["GROUP"], &["$sort"]),
            (array![&doc! { "$count": "n" }], &[], &["$group", "$project"]),
            (array![&doc! { "$unwind": "$a" }, limit], &[], &["$unwind", "$limit"]),
        ] {
            let expected =
                (above.iter().map(ToString::to_string).collect(), rest.iter().map(ToString::to_string).collect());
            let stages = pipeline.as_value().as_array().unwrap();
            assert_eq!(described(stages), expected, "{pipeline:?}");
        }
    }
}
