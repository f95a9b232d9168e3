//! From a query to a plan.
//!
//! The rule that everything here keeps: what a plan gives contains every document that matches. A condition that cannot be
//! turned into bounds on an index is left to the evaluator, and the plan is then not `exact`.
//!
//! [`bounds`] turns conditions on one field into ranges of values, [`intervals`] turns the ranges of an index's fields into
//! byte strings.

mod bounds;
mod intervals;

use crate::catalog::{Collection, Index, IndexField};
use crate::keys::Key;
use crate::plan::{Access, FieldBounds, IndexScan, Range, SqlitePlan};
use bounds::Bounds;
use document::{Doc, Kind, Value};
use error::{Error, Result};
use query::Sort;
use query::predicate::{Node, Predicate, Test};
use smallvec::SmallVec;
use std::sync::Arc;
use store::{FieldKind, PlanFacts, Query};

/// The path MongoDB sorts by when natural order is asked for.
const NATURAL: &str = "$natural";

/// Decides how to find what `query` wants.
pub fn plan(collection: Option<&Arc<Collection>>, query: &Query<'_>) -> Result<SqlitePlan> {
    let Some(collection) = collection else {
        let facts = PlanFacts { exact: true, sorted: true, view: false };
        return Ok(SqlitePlan { facts, collection: None, access: Access::Natural { forward: true }, tailable: false });
    };
    let wanted = Wanted::of(query);
    if matches!(query.predicate.root(), Node::Never) {
        let facts = PlanFacts { exact: true, sorted: true, view: false };
        return Ok(SqlitePlan {
            facts,
            collection: Some(collection.clone()),
            access: Access::Points(SmallVec::new()),
            tailable: false,
        });
    }
    if let Some(plan) = hinted(collection, query, &wanted)? {
        return Ok(plan);
    }
    if let Some(plan) = by_id(collection, &wanted) {
        return Ok(plan);
    }
    if let Some(forward) = wanted.natural {
        return Ok(natural(collection, &wanted, forward));
    }
    let id = Candidate::new(None, &[id_field(collection)], &wanted, false);
    let secondary = collection
        .indexes
        .iter()
        .filter(|index| index.partial.is_none() && !index.hidden && index.kind.is_ordered())
        .map(|index| Candidate::new(Some(index), &index.fields, &wanted, false));
    let best = std::iter::once(id).chain(secondary).filter(|it| it.score > 0).max_by_key(|it| it.score);
    Ok(match best {
        Some(candidate) => candidate.into_plan(collection, &wanted),
        None => natural(collection, &wanted, true),
    })
}

/// The plan for a name that is a view's: it gives nothing but that.
pub fn view() -> SqlitePlan {
    let facts = PlanFacts { exact: false, sorted: false, view: true };
    SqlitePlan { facts, collection: None, access: Access::Natural { forward: true }, tailable: false }
}

/// The plan that follows a capped collection.
pub fn tail(collection: Arc<Collection>) -> SqlitePlan {
    let facts = PlanFacts { exact: false, sorted: true, view: false };
    let access = Access::Natural { forward: true };
    SqlitePlan { facts, collection: Some(collection), access, tailable: true }
}

/// A query, as far as planning reads it.
struct Wanted<'q> {
    /// Conditions that all must hold.
    conditions: SmallVec<[(&'q str, &'q Test); 4]>,
    /// Whether the conditions are all there is to the predicate.
    complete: bool,
    sort: Option<&'q Sort>,
    /// The direction of a sort by `$natural`.
    natural: Option<bool>,
}

impl<'q> Wanted<'q> {
    fn of(query: &Query<'q>) -> Wanted<'q> {
        let sort = query.sort.filter(|sort| !sort.parts().is_empty());
        let natural = sort.and_then(|sort| sort.parts().first()).filter(|part| part.path.as_str() == NATURAL);
        let mut wanted =
            Wanted { conditions: SmallVec::new(), complete: true, sort, natural: natural.map(|part| part.ascending) };
        wanted.read(query.predicate.root());
        wanted
    }

    fn read(&mut self, node: &'q Node) {
        match node {
            Node::And(all) => all.iter().for_each(|node| self.read(node)),
            Node::Path { path, test } => self.conditions.push((path.as_str(), test)),
            _ => self.complete = false,
        }
    }
}

fn natural(collection: &Arc<Collection>, wanted: &Wanted<'_>, forward: bool) -> SqlitePlan {
    let exact = wanted.complete && wanted.conditions.is_empty();
    let sorted = wanted.sort.is_none() || wanted.natural == Some(forward);
    let facts = PlanFacts { exact, sorted, view: false };
    SqlitePlan { facts, collection: Some(collection.clone()), access: Access::Natural { forward }, tailable: false }
}

/// `_id` equal to one value or to one of several: looked up one by one.
fn by_id(collection: &Arc<Collection>, wanted: &Wanted<'_>) -> Option<SqlitePlan> {
    let collation = &collection.collation;
    let ids = wanted.conditions.iter().filter(|(path, _)| *path == "_id");
    let values = ids.filter_map(|(_, test)| bounds::by_keys(test, collation)).find_map(|test| match test {
        Test::Equal(value) => Some(std::slice::from_ref(value)),
        Test::In(list) if list.regexes().is_empty() => Some(list.values()),
        _ => None,
    })?;
    if !values.iter().all(|value| bounds::is_point(value.kind())) {
        return None;
    }
    // Null stands for undefined too, which has a key of its own.
    let nulls = values.iter().any(|value| value.kind() == Kind::Null);
    let undefined = nulls.then(|| Value::Undefined.to_owned());
    let mut points: SmallVec<[Key; 1]> = SmallVec::with_capacity(values.len());
    let mut buffer = Vec::with_capacity(40);
    for value in values.iter().chain(&undefined) {
        buffer.clear();
        collation.encode_key(value.as_value(), &mut buffer);
        points.push(Key::from_slice(&buffer));
    }
    points.sort_unstable();
    points.dedup();
    let sort = wanted.sort.filter(|sort| sort.collation() == collation);
    let by_id = sort.and_then(|sort| sort.parts().first()).filter(|part| part.path.as_str() == "_id");
    if by_id.is_some_and(|part| !part.ascending) {
        points.reverse();
    }
    let facts = PlanFacts {
        exact: wanted.complete && wanted.conditions.len() == 1 && !nulls,
        sorted: wanted.sort.is_none() || points.len() <= 1 || by_id.is_some(),
        view: false,
    };
    Some(SqlitePlan { facts, collection: Some(collection.clone()), access: Access::Points(points), tailable: false })
}

fn id_field(collection: &Collection) -> IndexField {
    let collation = collection.collation.clone();
    IndexField { path: "_id".into(), kind: FieldKind::Ascending, ascending: true, collation }
}

/// The plan that a hint asks for. Error 2 when there is no such index.
fn hinted(collection: &Arc<Collection>, query: &Query<'_>, wanted: &Wanted<'_>) -> Result<Option<SqlitePlan>> {
    let pattern = match query.hint {
        None => return Ok(None),
        Some(Value::Document(pattern)) if pattern.is_empty() => return Ok(None),
        Some(hint) => hint,
    };
    if let Value::Document(pattern) = pattern
        && let Some(direction) = pattern.get(NATURAL)
    {
        let forward = !matches!(direction, Value::Int32(..0) | Value::Int64(..0))
            && !matches!(direction, Value::Double(number) if number < 0.0);
        return Ok(Some(natural(collection, wanted, forward)));
    }
    let names = |name: &str, key: Doc<'_>| match pattern {
        Value::String(text) => text == name,
        Value::Document(pattern) => store::index_rules::same_key(pattern, key),
        _ => false,
    };
    let candidate = if names("_id_", document::doc! { "_id": 1 }.as_doc()) {
        Some(Candidate::new(None, &[id_field(collection)], wanted, true))
    } else {
        let mut indexes = collection.indexes.iter().filter(|index| !index.hidden);
        let index = indexes.find(|index| names(&index.spec.name, index.spec.key.as_doc()));
        index.map(|index| Candidate::new(Some(index), &index.fields, wanted, true))
    };
    match candidate {
        Some(candidate) => Ok(Some(candidate.into_plan(collection, wanted))),
        None => Err(Error::bad_value(
            "error processing query: planner returned error :: caused by :: \
             hint provided does not correspond to an existing index",
        )),
    }
}

/// An index that might serve, and how well.
struct Candidate<'c> {
    index: Option<&'c Arc<Index>>,
    fields: Vec<IndexField>,
    /// The ranges of each field; all values where nothing bounds it.
    bounds: Vec<FieldBounds>,
    exact: bool,
    forward: bool,
    sorted: bool,
    score: u32,
}

impl<'c> Candidate<'c> {
    /// `forced`: by a hint, so that even an index that leaves documents out is used, as MongoDB does.
    fn new(index: Option<&'c Arc<Index>>, fields: &[IndexField], wanted: &Wanted<'_>, forced: bool) -> Candidate<'c> {
        let multikey = index.is_some_and(|index| index.is_multikey());
        let mut candidate = Candidate {
            index,
            fields: fields.to_vec(),
            bounds: Vec::with_capacity(fields.len()),
            exact: wanted.complete && !multikey && index.is_none_or(|index| index.partial.is_none()),
            forward: true,
            sorted: wanted.sort.is_none(),
            score: 0,
        };
        let all = candidate.read_bounds(wanted, multikey);
        let usable = index.is_none_or(|index| !index.spec.sparse || all.excludes_missing);
        candidate.exact &= all.conditions == wanted.conditions.len();
        if let Some(forward) = candidate.order(wanted, multikey).filter(|_| usable) {
            candidate.sorted = true;
            candidate.forward = forward;
            candidate.score += 1;
        }
        let unique = index.is_none_or(|index| index.spec.unique && all.points as usize == fields.len());
        candidate.score += 8 * all.points + 4 * u32::from(all.ranged) + 2 * u32::from(unique && all.points > 0);
        if !forced && (!usable || multikey && fields.iter().any(has_position)) {
            candidate.score = 0;
        }
        candidate
    }

    fn read_bounds(&mut self, wanted: &Wanted<'_>, multikey: bool) -> Reading {
        let mut reading = Reading { conditions: 0, points: 0, ranged: false, excludes_missing: false };
        // Behind a field that is bound to ranges, or not at all, further bounds do not narrow what is read.
        let mut narrowing = true;
        for field in &self.fields {
            let found = narrowing.then(|| Bounds::of(field, &wanted.conditions, multikey)).flatten();
            let Some(found) = found else {
                narrowing = false;
                self.bounds.push(vec![Range::everything()]);
                continue;
            };
            self.exact &= found.exact;
            reading.conditions += found.conditions;
            reading.excludes_missing |= found.excludes_missing;
            narrowing = found.ranges.iter().all(Range::is_point);
            match narrowing {
                true => reading.points += 1,
                false => reading.ranged = true,
            }
            self.bounds.push(found.ranges);
        }
        reading
    }

    /// The direction in which the index gives the order wanted, if it does.
    fn order(&self, wanted: &Wanted<'_>, multikey: bool) -> Option<bool> {
        let sort = wanted.sort?;
        if self.fields.iter().any(|field| field.collation != *sort.collation()) {
            return None;
        }
        // With several keys per document, its first key within some bounds is not its least or greatest of all.
        if multikey && self.bounds.iter().any(|ranges| *ranges != [Range::everything()]) {
            return None;
        }
        let mut parts = sort.parts().iter();
        let mut part = parts.next();
        let mut forward = None;
        for (field, ranges) in self.fields.iter().zip(&self.bounds) {
            let Some(wanted) = part else { break };
            if wanted.path.as_str() == field.path {
                let same = wanted.ascending == field.ascending;
                if *forward.get_or_insert(same) != same {
                    return None;
                }
                part = parts.next();
                // No two documents share an `_id`, so nothing behind it matters.
                if field.path == "_id" && self.index.is_none() {
                    return forward;
                }
            } else if !(ranges.len() == 1 && ranges[0].is_point()) {
                return None;
            }
        }
        if part.is_none() { forward } else { None }
    }

    fn into_plan(self, collection: &Arc<Collection>, wanted: &Wanted<'_>) -> SqlitePlan {
        let (intervals, narrowed) = intervals::build(&self.fields, &self.bounds);
        let paths = self.fields.into_iter().map(|field| field.path);
        let scan = IndexScan {
            index: self.index.cloned(),
            intervals,
            forward: self.forward,
            bounds: paths.zip(self.bounds).collect(),
        };
        debug_assert!(wanted.natural.is_none() || !self.sorted);
        let facts = PlanFacts { exact: self.exact && narrowed, sorted: self.sorted, view: false };
        SqlitePlan { facts, collection: Some(collection.clone()), access: Access::Index(scan), tailable: false }
    }
}

/// What the bounds of an index's fields come to.
struct Reading {
    /// Conditions that the bounds stand for.
    conditions: usize,
    /// Leading fields that are bound to points.
    points: u32,
    /// The field behind them is bound to ranges.
    ranged: bool,
    /// No document without the index's fields can match.
    excludes_missing: bool,
}

fn has_position(field: &IndexField) -> bool {
    field.path.split('.').any(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The plan for everything in natural order, for the writer's own walks over a collection.
pub fn everything(collection: &Arc<Collection>) -> Result<SqlitePlan> {
    let predicate = Predicate::everything();
    plan(Some(collection), &Query { predicate: &predicate, sort: None, limit: None, hint: None })
}

#[cfg(test)]
mod tests;
