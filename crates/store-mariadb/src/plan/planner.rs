//! From a query to a plan.
//!
//! What a plan gives contains every document that matches. Each index is a candidate: conditions on its leading fields become ranges of
//! keys ([`crate::plan::index_bounds`]), and its order may be the one that is asked for. By their shape those are best that have the most fields bound to single
//! values, then a range, then the order; where that leaves several, it is measured what they find ([`crate::plan::index_choice`]). An `$or` takes an index
//! for each of its branches, or none.
//!
//! An index gives the order only while all its keys have a place of their own ([`column_key::ODD`]). The plan that counts on it is asked about
//! first, by a [`Planned::probe`].

use crate::catalog::id_text;
use crate::catalog::row_key::RowKey;
use crate::catalog::table::Table;
use crate::catalog::table_columns::{ID_KEY, ID_TEXT};
use crate::index::key_column::KeyColumn;
use crate::index::{Index, id_index};
use crate::plan::access::{Access, Choice, IndexScan, Rows};
use crate::plan::candidate::{self, Candidate};
use crate::plan::index_choice::{Asking, is_made_again};
use crate::plan::index_choice_cache::Question;
use crate::plan::plan_cache::Repeated;
use crate::plan::planner_query::{Order, Wanted};
use crate::plan::usable_indexes::branches_of;
use crate::plan::{
    MariaDbPlan, covered, index_choice as choice, key_sort, ordered_merge as merge, plan_cache as repeated, pushdown,
    side_index_scan,
};
use document::{Doc, Kind, Value};
use error::Error;
use index_keys::conditions;
use index_keys::partial::covers_query;
use query::predicate::{Node, Predicate, Test};
use std::sync::Arc;
use store::index_rules::same_key;
use store::{AllowedIndexes, Namespace, PlanFacts, Query, near};

/// More ids than this are looked for by reading everything.
const IDS_MAX: usize = 16_384;

/// A plan, on a condition.
pub(crate) struct Planned {
    pub plan: MariaDbPlan,
    /// A query that gives a row if the index has keys without a place. If it does, the plan is to be made again, not [`Order::ByIndex`].
    pub probe: Option<Arc<str>>,
    /// What MariaDB should be asked about its indexes, and then the plan be made again; it is a plan as it stands.
    pub questions: Vec<Question>,
}

/// Decides. `table` is the collection's, if it exists.
///
/// Error 2 for a hint at an index that there is not.
pub(crate) fn plan(
    namespace: &Namespace,
    table: Option<Arc<Table>>,
    query: &Query<'_>,
    order: Order,
) -> error::Result<Planned> {
    let Some(table) = table else {
        return Ok(Planned { plan: MariaDbPlan::of_nothing(namespace, None), probe: None, questions: Vec::new() });
    };
    query.check()?;
    let whole = table.clone();
    let (table, query) = match query.allowed() {
        Some(allowed) => (narrowed(&table, allowed), &Query { hint: None, ..*query }),
        None => (table, query),
    };
    let hinted = hinted(&table, query)?;
    let wanted = Wanted::of(query, order);
    check_distance(namespace, &table, query, &wanted)?;
    let root = query.predicate.root();
    if matches!(root, Node::Never) {
        return Ok(Planned {
            plan: MariaDbPlan::of_nothing(namespace, Some(table)),
            probe: None,
            questions: Vec::new(),
        });
    }
    let asking = Asking::default();
    let (access, facts, probe) = match hinted {
        Hinted::Index(index) => Candidate::new(index, &table, &wanted, true).into_access(&wanted, query.predicate),
        Hinted::Keyed(index) => side_index_scan::of_query(&table, query, Some(index))
            .map_or_else(|| natural(&table, query, &wanted), |rows| by_keys(rows, &wanted)),
        Hinted::Natural => natural(&table, query, &wanted),
        Hinted::Nothing => choose_again(&table, query, &wanted, order, &asking),
    };
    let mut plan = MariaDbPlan::new(namespace, Some(whole), access, facts);
    plan.chosen = asking.chosen.take();
    plan.written = asking.written.take();
    covered::cover(&mut plan, query);
    Ok(Planned { plan, probe, questions: asking.questions.take() })
}

/// The table as a query sees it that an index filter leaves but some of the indexes.
fn narrowed(table: &Table, allowed: AllowedIndexes<'_>) -> Arc<Table> {
    let mut table = table.clone();
    table.indexes.retain(|index| allowed.has(&index.spec.name, index.spec.key.as_doc()));
    table.has_id_key &= allowed.has_id();
    table.repeated = Repeated::default();
    Arc::new(table)
}

/// Errors 291 and 2 where no index tells the distance that the query asks for, or another order is asked for. What is found is sorted by
/// who asked: no index gives this order here.
fn check_distance(namespace: &Namespace, table: &Table, query: &Query<'_>, wanted: &Wanted<'_>) -> error::Result<()> {
    let Some(near) = query.predicate.near() else { return Ok(()) };
    if query.sort.and_then(query::Sort::natural).is_some() {
        return Err(near::not_natural("sort order"));
    }
    let hinted = |index: &Index| match query.hint {
        Some(hint) if hint.kind() == Kind::String => hint.as_name().is_some_and(|name| name == index.spec.name),
        Some(Value::Document(key)) if !key.is_empty() => same_key(key, index.spec.key.as_doc()),
        _ => index.side_index().is_none_or(|form| covers_query(&form.shape, &conditions::PlannerQuery::of(query))),
    };
    if wanted.natural.is_some() {
        return Err(near::not_natural("hint"));
    }
    let is_bound = |path: &str| wanted.conditions.iter().any(|(bound, _)| *bound == path);
    let mut shown = table.indexes.iter().filter(|index| !index.is_hidden());
    match shown.find(|index| near::serves(&index.spec, index.kind(), near, is_bound) && hinted(index)) {
        Some(index) => near::check_center(index.kind(), near),
        None => Err(near::no_index(namespace, near)),
    }
}

/// A plan that gives a document for each value of a path: one for each key of an index on it, and all whose key does not tell.
pub(crate) fn values(namespace: &Namespace, table: Arc<Table>, path: &str) -> Option<MariaDbPlan> {
    let mut shown = table.indexes.iter().filter(|index| !index.is_hidden() && index.has_column_keys());
    let index = shown.find(|index| index.fields().next() == Some(path) && index.has_all_matches(&[]))?;
    let access = Access::Union(candidate::of_values(index, &table).map(|rows| (None, rows)).into());
    let facts = PlanFacts { exact: true, sorted: false, view: false };
    Some(MariaDbPlan::new(namespace, Some(table), access, facts))
}

/// Rows of an index whose keys gateways compute.
fn by_keys(rows: Rows, wanted: &Wanted<'_>) -> Choice {
    (Access::Rows(rows), PlanFacts { exact: false, sorted: wanted.sort.is_none(), view: false }, None)
}

/// As [`choose`], by what was chosen when the same was asked before.
fn choose_again(table: &Arc<Table>, query: &Query<'_>, wanted: &Wanted<'_>, order: Order, asking: &Asking) -> Choice {
    let Some(key) = repeated::key(table.has_long_documents(), query, order) else {
        return choose(table, query, wanted, asking);
    };
    if let Some(remembered) = table.repeated.choice(&key)
        && remembered.decisions.iter().all(|decision| is_made_again(*decision, table, asking))
    {
        *asking.written.borrow_mut() = remembered.written.clone();
        return remembered.choice();
    }
    let choice = choose(table, query, wanted, asking);
    if asking.questions.borrow().is_empty() {
        table.repeated.note(key, &choice, asking.decisions.take());
    }
    choice
}

fn choose(table: &Arc<Table>, query: &Query<'_>, wanted: &Wanted<'_>, asking: &Asking) -> Choice {
    if let Some(rows) = side_index_scan::of_search(table, query) {
        return by_keys(rows, wanted);
    }
    if let Some(choice) = by_ids(table, query, wanted) {
        let several = matches!(&choice.0, Access::Rows(Rows { ids: Some(ids), .. }) if ids.len() > 1);
        return match several && is_in_order_of_ids(table, wanted) {
            true => by_cluster(table, query, wanted),
            false => choice,
        };
    }
    if wanted.natural.is_some() {
        return natural(table, query, wanted);
    }
    let best = choice::best(table, wanted, query.limit, asking);
    if wanted.sort.is_some()
        && !best.as_ref().is_some_and(|best| best.is_sorted() && best.is_bounded())
        && let Some(choice) = merge::in_order(table, query, wanted)
    {
        return choice;
    }
    if !best.as_ref().is_some_and(Candidate::is_bounded)
        && let Some(rows) = side_index_scan::of_query(table, query, None)
    {
        return by_keys(rows, wanted);
    }
    if let Some(best) = &best
        && let Some(choice) = by_branches(table, query, wanted, best, asking)
    {
        return choice;
    }
    if let Some(candidate) = best {
        if !candidate.is_sorted()
            && let Some(choice) = key_sort::in_order(&candidate, table, query, wanted)
        {
            return choice;
        }
        return candidate.into_access(wanted, query.predicate);
    }
    union(table, query, wanted, asking).unwrap_or_else(|| natural(table, query, wanted))
}

/// The table by row key, with what the server can check of the filter.
fn natural(table: &Table, query: &Query<'_>, wanted: &Wanted<'_>) -> Choice {
    if is_in_order_of_ids(table, wanted) {
        return by_cluster(table, query, wanted);
    }
    all(table, query, wanted)
}

fn all(table: &Table, query: &Query<'_>, wanted: &Wanted<'_>) -> Choice {
    let condition = pushdown::condition(query.predicate.root(), table.has_opaque_column).map(Arc::new);
    let rows = Rows { condition, ..Rows::all(wanted.natural.unwrap_or(true)) };
    let sorted = wanted.sort.is_none();
    (Access::Rows(rows), PlanFacts { exact: query.predicate.matches_everything(), sorted, view: false }, None)
}

/// Whether what is read is to come in the natural order of a clustered collection, as far as the table can tell it.
fn is_in_order_of_ids(table: &Table, wanted: &Wanted<'_>) -> bool {
    let clustered = table.rules.as_ref().is_some_and(|rules| rules.clustered);
    clustered && table.has_id_key && wanted.ordered && wanted.sort.is_none()
}

/// The natural order of a clustered collection: that of `_id`.
fn by_cluster(table: &Table, query: &Query<'_>, wanted: &Wanted<'_>) -> Choice {
    let direction = if wanted.natural == Some(false) { -1 } else { 1 };
    let order = document::doc! { "_id": direction };
    let Ok(sort) = query::Sort::parse(order.as_doc(), &query::Context::at(0)) else { return all(table, query, wanted) };
    let mut by_id = Wanted { sort: Some(&sort), ordered: true, ..Wanted::default() };
    by_id.read(query.predicate.root());
    Candidate::new(None, table, &by_id, true).into_access(&by_id, query.predicate)
}

fn by_ids(table: &Table, query: &Query<'_>, wanted: &Wanted<'_>) -> Option<Choice> {
    let root = query.predicate.root();
    let (ids, exact) = ids_in(root, table)?;
    let exact = exact && matches!(root, Node::Path { .. });
    // Beside other conditions, and by another collation, MongoDB sorts even the one document, and says so if it cannot be sorted.
    let is_one =
        ids.is_empty() || exact && ids.len() == 1 && wanted.sort.is_some_and(|it| *it.collation() == table.collation);
    let sorted = wanted.sort.is_none() || is_one;
    let facts = PlanFacts { exact, sorted, view: false };
    if ids.is_empty() {
        return Some((Access::Nothing, facts, None));
    }
    let index = (ids.len() > 1 && wanted.sort.is_none() && wanted.natural.is_none())
        .then(|| in_order(table))
        .flatten()
        .map(Arc::new);
    let rows = Rows { ids: Some(ids), index, ..Rows::all(wanted.natural.unwrap_or(true)) };
    Some((Access::Rows(rows), facts, None))
}

/// Several ids come in the order of the index on `_id`, as everything does that MongoDB finds by it. They are found by their texts all the
/// same, and put in order by their keys: the index by keys costs the server twice as much.
fn in_order(table: &Table) -> Option<IndexScan> {
    let can = table.has_id_key && table.row_key == RowKey::Sequence;
    can.then(|| IndexScan {
        key: ID_TEXT.to_owned(),
        spec: id_index().into(),
        arrays: 0,
        columns: vec![KeyColumn::named(ID_KEY, false)],
        covers: false,
        filter: None,
        hope: None,
        merged: None,
        counting: None,
    })
}

/// The ids that the filter pins `_id` to, and whether finding them says all about that condition.
fn ids_in(node: &Node, table: &Table) -> Option<(Vec<Vec<u8>>, bool)> {
    match node {
        Node::Path { path, test } if path.as_str() == "_id" => ids_of(test, table),
        Node::And(all) => all.iter().find_map(|node| ids_in(node, table)).map(|(texts, _)| (texts, false)),
        Node::Expression(expression) => {
            let (_, test) = expression.implied().iter().find(|(path, _)| path.as_str() == "_id")?;
            ids_of(test, table).map(|(texts, _)| (texts, false))
        }
        _ => None,
    }
}

fn ids_of(test: &Test, table: &Table) -> Option<(Vec<Vec<u8>>, bool)> {
    let (mut texts, mut exact) = (Vec::new(), true);
    match test {
        Test::Equal(value) => {
            let found = id_text::candidates(value.as_value(), table.id_form)?;
            return Some((found.texts, found.exact));
        }
        Test::In(list) if list.regexes().is_empty() => {
            for value in list.values() {
                steps::step();
                // Some may be the same; a longer list is not gone through to its end.
                if texts.len() > 2 * IDS_MAX {
                    texts.sort_unstable();
                    texts.dedup();
                    if texts.len() > IDS_MAX {
                        return None;
                    }
                }
                let found = id_text::candidates(value.as_value(), table.id_form)?;
                texts.extend(found.texts);
                exact &= found.exact;
            }
        }
        _ => return None,
    }
    texts.sort_unstable();
    texts.dedup();
    (texts.len() <= IDS_MAX).then_some((texts, exact))
}

/// An index for each branch of an `$or`. What else the filter says is left to the evaluator.
fn union(table: &Arc<Table>, query: &Query<'_>, wanted: &Wanted<'_>, asking: &Asking) -> Option<Choice> {
    let branches = branches_of(query.predicate.root())?;
    let mut parts = Vec::with_capacity(branches.len());
    for branch in branches {
        let part = Wanted::of_branch(branch);
        let all = match ids_in(branch, table) {
            Some((ids, _)) => vec![Rows { ids: Some(ids), ..Rows::all(true) }],
            None => match choice::best(table, &part, None, asking) {
                Some(best) => best.into_branch(&part),
                None => vec![side_index_scan::of_branch(table, branch)?],
            },
        };
        let own = std::iter::once(Some(Predicate::of(branch.clone()))).chain(std::iter::repeat(None));
        parts.extend(own.zip(all));
    }
    // What the branches look at is not told apart.
    asking.chosen.take();
    Some((Access::Union(parts), PlanFacts { exact: false, sorted: wanted.sort.is_none(), view: false }, None))
}

/// The union, where an index serves what stands beside the `$or` as well, but finds more documents.
fn by_branches(
    table: &Arc<Table>,
    query: &Query<'_>,
    wanted: &Wanted<'_>,
    best: &Candidate<'_>,
    asking: &Asking,
) -> Option<Choice> {
    if !best.is_bounded() || best.is_one_document() || wanted.sort.is_some() && best.is_sorted() {
        return None;
    }
    let branches: Vec<Wanted<'_>> = branches_of(query.predicate.root())?.iter().map(Wanted::of_branch).collect();
    let chosen = asking.chosen.take();
    let found = branches.iter().map(|branch| Some((choice::best(table, branch, None, asking)?, branch)));
    let found: Option<Vec<(Candidate<'_>, &Wanted<'_>)>> = found.collect();
    let better =
        found.is_some_and(|found| choice::is_better_by_branches(best, &found, table, wanted, query.limit, asking));
    if better {
        return union(table, query, wanted, asking);
    }
    asking.chosen.replace(chosen);
    None
}

/// What a hint names.
enum Hinted<'t> {
    Nothing,
    Natural,
    /// `None`: the index on `_id`.
    Index(Option<&'t Index>),
    /// One whose keys gateways compute.
    Keyed(&'t Index),
}

fn hinted<'t>(table: &'t Table, query: &Query<'_>) -> error::Result<Hinted<'t>> {
    let names = |name: &str, key: Doc<'_>| match query.hint {
        Some(hint) if hint.kind() == Kind::String => hint.as_name().is_some_and(|text| text == name),
        Some(Value::Document(pattern)) => same_key(pattern, key),
        _ => false,
    };
    match query.hint {
        None => return Ok(Hinted::Nothing),
        Some(Value::Document(pattern)) if pattern.is_empty() => return Ok(Hinted::Nothing),
        Some(Value::Document(pattern)) if pattern.get("$natural").is_some() => return Ok(Hinted::Natural),
        _ => {}
    }
    let id = id_index();
    if names(&id.name, id.key.as_doc()) {
        return Ok(if table.has_id_key { Hinted::Index(None) } else { Hinted::Nothing });
    }
    let mut shown = table.indexes.iter().filter(|index| !index.is_hidden());
    let found = shown.find(|index| names(&index.spec.name, index.spec.key.as_doc()));
    found.map_or(Ok(()), |index| index_keys::wildcard::check_hint(index.kind(), query))?;
    match found {
        Some(index) if index.serves_by_side_table() => Ok(Hinted::Keyed(index)),
        Some(index) if !index.has_column_keys() => Ok(Hinted::Nothing),
        Some(index) => Ok(Hinted::Index(Some(index))),
        None => Err(Error::bad_value(
            "error processing query: planner returned error :: caused by :: \
             hint provided does not correspond to an existing index",
        )),
    }
}
