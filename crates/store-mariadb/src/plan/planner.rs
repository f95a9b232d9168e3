//! Plans a query.
//!
//! A plan returns every document that matches. Each index is a candidate: conditions on its leading
//! fields become key ranges ([`crate::plan::index_bounds`]), and it may have the requested order.
//! By shape, the best candidate has the most fields bound to single values, then a range, then the
//! order. If several are left, MariaDB estimates what they find ([`crate::plan::index_choice`]). An
//! `$or` uses an index for each of its branches, or none.
//!
//! An index has the order only while all its keys are ordered
//! ([`crate::index::column_key::UNORDERED`]). A plan that relies on it has an order probe
//! ([`PlannedQuery::order_probe`]), which must be executed first.

use crate::catalog::id_text;
use crate::catalog::row_key::RowKey;
use crate::catalog::table::Table;
use crate::catalog::table_columns::{ID_KEY, ID_TEXT};
use crate::index::key_column::KeyColumn;
use crate::index::{Index, id_index};
use crate::plan::access::{Access, AccessChoice, IndexScan, RowSource};
use crate::plan::candidate::{self, IndexCandidate};
use crate::plan::index_choice::{ChoiceContext, is_still_valid};
use crate::plan::index_choice_cache::EstimateRequest;
use crate::plan::plan_cache::CachedPlans;
use crate::plan::planner_query::{IndexOrder, planner_query};
use crate::plan::usable_indexes::branches_of;
use crate::plan::{
    MariaDbPlan, covered, index_choice as choice, key_sort, ordered_merge as merge, plan_cache as repeated, pushdown,
    side_index_scan,
};
use access::conditions::PlannerQuery;
use access::partial::covers_query;
use query::predicate::{Node, Predicate, Test};
use std::sync::Arc;
use store::{AllowedIndexes, Hint, Namespace, PlanFacts, Query, hint, near};

/// More ids than this are found by a full scan.
const IDS_MAX: usize = 16_384;

/// A plan, and the checks required before it is used.
pub(crate) struct PlannedQuery {
    pub plan: MariaDbPlan,
    /// A query that returns a row if the index has unordered keys. If it does, the query must be
    /// planned again with [`IndexOrder::Untrusted`].
    pub order_probe: Option<Arc<str>>,
    /// Estimates to request from MariaDB, after which the query should be planned again. The plan
    /// is valid without them.
    pub requests: Vec<EstimateRequest>,
}

/// Plans a query. `table` is the collection's, if it exists.
///
/// Fails with 2 if a hint names an index that does not exist.
pub(crate) fn plan(
    namespace: &Namespace,
    table: Option<Arc<Table>>,
    query: &Query<'_>,
    order: IndexOrder,
) -> error::Result<PlannedQuery> {
    let Some(table) = table else {
        return Ok(PlannedQuery {
            plan: MariaDbPlan::of_nothing(namespace, None),
            order_probe: None,
            requests: Vec::new(),
        });
    };
    query.check()?;
    let whole = table.clone();
    let (table, query) = match query.allowed() {
        Some(allowed) => (with_allowed_indexes(&table, allowed), &Query { hint: None, ..*query }),
        None => (table, query),
    };
    let hint = hint_target(&table, query)?;
    let wanted = planner_query(query, order);
    check_distance(namespace, &table, query, &wanted)?;
    let root = query.predicate.root();
    if matches!(root, Node::Never) {
        return Ok(PlannedQuery {
            plan: MariaDbPlan::of_nothing(namespace, Some(table)),
            order_probe: None,
            requests: Vec::new(),
        });
    }
    let context = ChoiceContext::default();
    let (access, facts, probe) = match hint {
        HintTarget::Index(index) => {
            IndexCandidate::new(index, &table, &wanted, true).into_access(&wanted, query.predicate)
        }
        HintTarget::SideIndexScan(index) => side_index_scan::of_query(&table, query, &wanted, Some(index))
            .map_or_else(|| natural(&table, query, &wanted), |rows| by_side_index(rows, &wanted)),
        HintTarget::Natural => natural(&table, query, &wanted),
        HintTarget::Nothing => choose_cached(&table, query, &wanted, order, &context),
    };
    let mut plan = MariaDbPlan::new(namespace, Some(whole), access, facts);
    plan.feedback = context.feedback.take();
    plan.texts = context.written.take();
    covered::apply_covered(&mut plan, query);
    Ok(PlannedQuery { plan, order_probe: probe, requests: context.requests.take() })
}

/// Returns the table with only the indexes that an index filter allows.
fn with_allowed_indexes(table: &Table, allowed: AllowedIndexes<'_>) -> Arc<Table> {
    let mut table = table.clone();
    table.indexes.retain(|index| allowed.has(&index.spec.name, index.spec.key.as_doc()));
    table.has_id_key &= allowed.has_id();
    table.plan_cache.plans = CachedPlans::default();
    Arc::new(table)
}

/// Fails with 291 or 2 if no index supports the query's search by distance, or if another order is
/// requested. The caller sorts the documents: no index gives this order here.
fn check_distance(
    namespace: &Namespace,
    table: &Table,
    query: &Query<'_>,
    wanted: &PlannerQuery<'_>,
) -> error::Result<()> {
    let Some(near) = query.predicate.near() else { return Ok(()) };
    if query.sort.and_then(query::Sort::natural).is_some() {
        return Err(near::not_natural("sort order"));
    }
    let hint = Hint::of(query.hint);
    let hinted = |index: &Index| match hint {
        Some(hint) => hint.names(&index.spec.name, index.spec.key.as_doc()),
        None => index.side_index().is_none_or(|form| covers_query(&form.shape, wanted)),
    };
    if wanted.natural.is_some() {
        return Err(near::not_natural("hint"));
    }
    let is_bound = |path: &str| wanted.document_conditions().any(|(bound, _)| bound == path);
    let mut shown = table.indexes.iter().filter(|index| !index.is_hidden());
    match shown.find(|index| near::serves(&index.spec, index.kind(), near, is_bound) && hinted(index)) {
        Some(index) => near::check_center(index.kind(), near),
        None => Err(near::no_index(namespace, near)),
    }
}

/// Plans a `distinct`: one document per key of an index on the path, and all documents whose key
/// does not determine the value.
pub(crate) fn plan_distinct(namespace: &Namespace, table: Arc<Table>, path: &str) -> Option<MariaDbPlan> {
    let mut shown = table.indexes.iter().filter(|index| !index.is_hidden() && index.has_column_keys());
    let index =
        shown.find(|index| index.fields().next() == Some(path) && index.has_all_matches(&PlannerQuery::default()))?;
    let access = Access::Union(candidate::distinct_rows(index, &table).map(|rows| (None, rows)).into());
    let facts = PlanFacts { exact: true, sorted: false, view: false };
    Some(MariaDbPlan::new(namespace, Some(table), access, facts))
}

/// Returns the access path of a side index.
fn by_side_index(rows: RowSource, wanted: &PlannerQuery<'_>) -> AccessChoice {
    (Access::Rows(rows), PlanFacts { exact: false, sorted: wanted.sort.is_none(), view: false }, None)
}

/// As [`choose`], with the plan cache.
fn choose_cached(
    table: &Arc<Table>,
    query: &Query<'_>,
    wanted: &PlannerQuery<'_>,
    order: IndexOrder,
    context: &ChoiceContext,
) -> AccessChoice {
    let Some(key) = repeated::key(table.has_long_documents(), query, order) else {
        return choose(table, query, wanted, context);
    };
    if let Some(cached) = table.plan_cache.plans.choice(&key)
        && cached.decisions.iter().all(|decision| is_still_valid(*decision, table, context))
    {
        *context.written.borrow_mut() = cached.written.clone();
        return cached.choice();
    }
    let choice = choose(table, query, wanted, context);
    if context.requests.borrow().is_empty() {
        table.plan_cache.plans.note(key, &choice, context.decisions.take());
    }
    choice
}

fn choose(table: &Arc<Table>, query: &Query<'_>, wanted: &PlannerQuery<'_>, context: &ChoiceContext) -> AccessChoice {
    if let Some(rows) = side_index_scan::of_search(table, query, wanted) {
        return by_side_index(rows, wanted);
    }
    if let Some(choice) = by_ids(table, query, wanted) {
        let several = matches!(&choice.0, Access::Rows(RowSource { ids: Some(ids), .. }) if ids.len() > 1);
        return match several && needs_id_order(table, wanted) {
            true => in_id_order(table, query, wanted),
            false => choice,
        };
    }
    if wanted.natural.is_some() {
        return natural(table, query, wanted);
    }
    let best = choice::best(table, wanted, context);
    if wanted.sort.is_some()
        && !best.as_ref().is_some_and(|best| best.is_sorted() && best.is_bounded())
        && let Some(choice) = merge::in_order(table, wanted)
    {
        return choice;
    }
    if !best.as_ref().is_some_and(IndexCandidate::is_bounded)
        && let Some(rows) = side_index_scan::of_query(table, query, wanted, None)
    {
        return by_side_index(rows, wanted);
    }
    if let Some(best) = &best
        && let Some(choice) = by_union(table, wanted, best, context)
    {
        return choice;
    }
    if let Some(candidate) = best {
        if !candidate.is_sorted()
            && let Some(choice) = key_sort::in_order(&candidate, table, wanted)
        {
            return choice;
        }
        return candidate.into_access(wanted, query.predicate);
    }
    union(table, wanted, context).unwrap_or_else(|| natural(table, query, wanted))
}

/// Returns the full scan in natural order, with the conditions that the server can check.
fn natural(table: &Table, query: &Query<'_>, wanted: &PlannerQuery<'_>) -> AccessChoice {
    if needs_id_order(table, wanted) {
        return in_id_order(table, query, wanted);
    }
    full_scan(table, query, wanted)
}

/// Returns the full scan in the order of row keys.
fn full_scan(table: &Table, query: &Query<'_>, wanted: &PlannerQuery<'_>) -> AccessChoice {
    let condition = pushdown::condition(query.predicate.root(), table.has_opaque_column).map(Arc::new);
    let rows = RowSource { condition, ..RowSource::all(wanted.natural.unwrap_or(true)) };
    let sorted = wanted.sort.is_none();
    (Access::Rows(rows), PlanFacts { exact: query.predicate.matches_everything(), sorted, view: false }, None)
}

/// Returns whether rows must be in the natural order of a clustered collection, and an index has
/// it.
fn needs_id_order(table: &Table, wanted: &PlannerQuery<'_>) -> bool {
    let clustered = table.rules.as_ref().is_some_and(|rules| rules.clustered);
    clustered && table.has_id_key && wanted.trusts_order && wanted.sort.is_none()
}

/// Returns the access path in the natural order of a clustered collection: that of `_id`.
fn in_id_order(table: &Table, query: &Query<'_>, wanted: &PlannerQuery<'_>) -> AccessChoice {
    let direction = if wanted.natural == Some(false) { -1 } else { 1 };
    let order = document::doc! { "_id": direction };
    let Ok(sort) = query::Sort::parse(order.as_doc(), &query::Context::at(0)) else {
        return full_scan(table, query, wanted);
    };
    let mut by_id = PlannerQuery::of_node(query.predicate.root());
    by_id.sort = Some(&sort);
    IndexCandidate::new(None, table, &by_id, true).into_access(&by_id, query.predicate)
}

/// Returns the access path by the ids that the filter names, if it does.
fn by_ids(table: &Table, query: &Query<'_>, wanted: &PlannerQuery<'_>) -> Option<AccessChoice> {
    let root = query.predicate.root();
    let (ids, exact) = ids_in(root, table)?;
    let exact = exact && matches!(root, Node::Path { .. });
    // With other conditions, or another collation, MongoDB sorts even a single document, and fails
    // if it cannot be sorted.
    let is_one =
        ids.is_empty() || exact && ids.len() == 1 && wanted.sort.is_some_and(|it| *it.collation() == table.collation);
    let sorted = wanted.sort.is_none() || is_one;
    let facts = PlanFacts { exact, sorted, view: false };
    if ids.is_empty() {
        return Some((Access::Nothing, facts, None));
    }
    let index = (ids.len() > 1 && wanted.sort.is_none() && wanted.natural.is_none())
        .then(|| id_text_scan(table))
        .flatten()
        .map(Arc::new);
    let rows = RowSource { ids: Some(ids), index, ..RowSource::all(wanted.natural.unwrap_or(true)) };
    Some((Access::Rows(rows), facts, None))
}

/// Returns the scan that puts several ids in the order of the index on `_id`, as in MongoDB. They
/// are found by their texts and sorted by their keys: the index of keys costs the server twice as
/// much.
fn id_text_scan(table: &Table) -> Option<IndexScan> {
    let can = table.has_id_key && table.row_key == RowKey::Sequence;
    can.then(|| IndexScan {
        sql_name: ID_TEXT.to_owned(),
        spec: id_index().into(),
        array_fields: 0,
        columns: vec![KeyColumn::named(ID_KEY, false)],
        covers_condition: false,
        sibling_filter: None,
        speculative_rows: None,
        merged: None,
        counting: None,
    })
}

/// Returns the id texts to which the filter restricts `_id`, and whether they decide that
/// condition.
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
                // Texts may repeat; a longer list is not read to its end.
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

/// Returns the union of an index scan per branch of an `$or`. The evaluator checks other
/// conditions.
fn union(table: &Arc<Table>, wanted: &PlannerQuery<'_>, context: &ChoiceContext) -> Option<AccessChoice> {
    let branches = branches_of(wanted)?;
    let mut parts = Vec::with_capacity(branches.len());
    for branch in branches {
        let part = PlannerQuery::of_node(branch);
        let all = match ids_in(branch, table) {
            Some((ids, _)) => vec![RowSource { ids: Some(ids), ..RowSource::all(true) }],
            None => match choice::best(table, &part, context) {
                Some(best) => best.into_branch(&part),
                None => vec![side_index_scan::of_branch(table, branch)?],
            },
        };
        let own = std::iter::once(Some(Predicate::of(branch.clone()))).chain(std::iter::repeat(None));
        parts.extend(own.zip(all));
    }
    // The documents examined by the branches are not counted separately.
    context.feedback.take();
    Some((Access::Union(parts), PlanFacts { exact: false, sorted: wanted.sort.is_none(), view: false }, None))
}

/// Returns the union of branches if an index on other conditions finds more documents.
fn by_union(
    table: &Arc<Table>,
    wanted: &PlannerQuery<'_>,
    best: &IndexCandidate<'_>,
    context: &ChoiceContext,
) -> Option<AccessChoice> {
    if !best.is_bounded() || best.is_one_document() || wanted.sort.is_some() && best.is_sorted() {
        return None;
    }
    let branches: Vec<PlannerQuery<'_>> = branches_of(wanted)?.iter().map(PlannerQuery::of_node).collect();
    let chosen = context.feedback.take();
    let found = branches.iter().map(|branch| Some((choice::best(table, branch, context)?, branch)));
    let found: Option<Vec<(IndexCandidate<'_>, &PlannerQuery<'_>)>> = found.collect();
    let better = found.is_some_and(|found| choice::is_better_by_branches(best, &found, table, wanted, context));
    if better {
        return union(table, wanted, context);
    }
    context.feedback.replace(chosen);
    None
}

/// The target of a hint.
enum HintTarget<'t> {
    Nothing,
    Natural,
    /// `None`: the index on `_id`.
    Index(Option<&'t Index>),
    /// One whose keys gateways compute.
    SideIndexScan(&'t Index),
}

/// Resolves a hint. Fails with 2 if it names no index.
fn hint_target<'t>(table: &'t Table, query: &Query<'_>) -> error::Result<HintTarget<'t>> {
    let Some(hint) = Hint::of(query.hint) else { return Ok(HintTarget::Nothing) };
    if hint.natural().is_some() {
        return Ok(HintTarget::Natural);
    }
    let id = id_index();
    if hint.names(&id.name, id.key.as_doc()) {
        return Ok(if table.has_id_key { HintTarget::Index(None) } else { HintTarget::Nothing });
    }
    let mut shown = table.indexes.iter().filter(|index| !index.is_hidden());
    let found = shown.find(|index| hint.names(&index.spec.name, index.spec.key.as_doc()));
    found.map_or(Ok(()), |index| access::wildcard::check_hint(index.kind(), query))?;
    match found {
        Some(index) if index.serves_by_side_table() => Ok(HintTarget::SideIndexScan(index)),
        Some(index) if !index.has_column_keys() => Ok(HintTarget::Nothing),
        Some(index) => Ok(HintTarget::Index(Some(index))),
        None => Err(hint::missing_index()),
    }
}
