//! A candidate: an index that may serve a query, and how well it does.

use crate::catalog::row_key::RowKey;
use crate::catalog::table::Table;
use crate::catalog::table_columns::{ID_KEY, ID_KEY_BYTES};
use crate::index::element_table::definition::has_array;
use crate::index::element_table::record::ElementTable;
use crate::index::key_column::KeyColumn;
use crate::index::{Index, column_key, id_index};
use crate::plan::access::{
    Access, AccessChoice, Counting, IndexScan, MergeBranch, OrderedMerge, RowKeyLookup, RowSource, indexed_table,
    merged_column,
};
use crate::plan::index_bounds::{IndexBounds, KeyRange};
use crate::plan::key_condition::in_ranges;
use crate::plan::pushdown::{Condition, Operand};
use crate::plan::{element_bounds as elements, sibling_index_filter as other_keys};
use access::conditions::PlannerQuery;
use access::covered;
use mariadb_client::quote;
use query::{Predicate, sort};
use std::sync::Arc;
use store::{ExaminedCounter, IndexSpec, PlanFacts};

#[derive(Clone)]
struct Field<'t> {
    path: &'t str,
    column: KeyColumn,
    bounds: Option<IndexBounds>,
    /// IndexBounds of a single array element, if there is an element table.
    element: Option<IndexBounds>,
}

impl Field<'_> {
    /// Returns the bounds that are looked up, in the element table or the index.
    fn effective_bounds(&self) -> Option<&IndexBounds> {
        self.element.as_ref().or(self.bounds.as_ref())
    }
}

#[derive(Clone)]
pub(crate) struct IndexCandidate<'t> {
    /// `None`: the index on `_id`.
    index: Option<&'t Index>,
    table: &'t Table,
    fields: Vec<Field<'t>>,
    /// The bounds represent the whole filter exactly.
    pub exact: bool,
    forward: bool,
    sorted: bool,
    pub score: u32,
    /// The plan is speculative: it may examine at most this many rows in the order of the index.
    pub speculative_rows: Option<u64>,
}

impl<'t> IndexCandidate<'t> {
    /// Evaluates an index. `forced`: by a hint, so that even a sparse or partial index is used, as
    /// MongoDB does.
    pub fn new(
        index: Option<&'t Index>,
        table: &'t Table,
        wanted: &PlannerQuery<'_>,
        forced: bool,
    ) -> IndexCandidate<'t> {
        let mut fields = fields(index, wanted);
        if let Some(range) = wanted.range.filter(|_| forced) {
            keep_within(&mut fields, range);
        }
        let mut candidate = IndexCandidate {
            index,
            table,
            fields,
            exact: false,
            forward: true,
            sorted: wanted.sort.is_none(),
            score: 0,
            speculative_rows: None,
        };
        candidate.judge(wanted);
        if !forced && !candidate.has_all_matches(wanted) {
            candidate.score = 0;
        }
        candidate
    }

    fn judge(&mut self, wanted: &PlannerQuery<'_>) {
        let bounds = || self.fields.iter().map(|field| field.bounds.as_ref());
        let effective_bounds = || self.fields.iter().map(Field::effective_bounds);
        let points = effective_bounds().take_while(|bounds| bounds.is_some_and(IndexBounds::is_points)).count();
        let ranged = effective_bounds().nth(points).is_some_and(|bounds| bounds.is_some());
        let conditions: usize = bounds().flatten().map(|bounds| bounds.conditions).sum();
        self.exact = wanted.is_complete()
            && conditions == wanted.conditions.len()
            && bounds().flatten().all(|bounds| bounds.exact);
        let unique = self.index.is_none_or(|index| index.spec.unique) && points == self.fields.len();
        // Of equally good indexes, prefer one whose bounded fields are not just flags.
        let is_selective = points > 0 && !effective_bounds().flatten().take(points).any(IndexBounds::is_of_flags);
        self.score = 16 * points as u32 + 8 * u32::from(ranged) + 4 * u32::from(unique) + u32::from(is_selective);
        if let Some(forward) = self.order(wanted) {
            self.sorted = true;
            self.forward = forward;
            self.score += 2;
        }
    }

    /// Returns whether the index has every matching document.
    fn has_all_matches(&self, wanted: &PlannerQuery<'_>) -> bool {
        let Some(index) = self.index else { return true };
        let excludes_missing =
            || self.fields.iter().filter_map(|field| field.bounds.as_ref()).any(|bounds| bounds.excludes_missing);
        index.has_all_matches(wanted) && (!index.spec.sparse || excludes_missing())
    }

    /// Returns the direction in which the index has the requested order, if it has.
    fn order(&self, wanted: &PlannerQuery<'_>) -> Option<bool> {
        let sort = wanted.sort.filter(|sort| wanted.trusts_order && sort.collation().is_simple())?;
        let mut parts = sort.parts().iter();
        let mut part = parts.next();
        let mut forward = None;
        for field in &self.fields {
            let Some(wanted) = part else { break };
            if wanted.path.as_str() == field.path {
                let same = wanted.ascending != field.column.descends;
                if *forward.get_or_insert(same) != same {
                    return None;
                }
                part = parts.next();
                // `_id` is unique, so later fields of the sort do not matter.
                if self.index.is_none() {
                    return forward;
                }
            } else if !is_one_point(field) {
                return None;
            }
        }
        if part.is_none() { forward } else { None }
    }

    /// Returns whether rows are in the requested order.
    pub fn is_sorted(&self) -> bool {
        self.sorted
    }

    pub fn is_bounded(&self) -> bool {
        self.fields.iter().any(|field| field.bounds.is_some())
    }

    /// Returns whether its keys have all fields that are read.
    pub fn covers(&self, wanted: &PlannerQuery<'_>) -> bool {
        covered::covers_fields(self.fields.iter().map(|field| field.path), wanted.fields)
    }

    /// Returns whether its bounds have low selectivity, so that a full scan may be better.
    pub fn has_low_selectivity(&self) -> bool {
        self.leading().next().is_some_and(|(_, bounds)| bounds.low_selectivity)
    }

    /// Returns whether it finds at most one document, so that no index can be better.
    pub fn is_one_document(&self) -> bool {
        self.index.is_none_or(|index| index.spec.unique) && self.fields.iter().all(is_one_point)
    }

    /// Returns the leading fields that bound the key ranges: those bound to single values, and the
    /// next.
    pub fn leading(&self) -> impl Iterator<Item = (&str, &IndexBounds)> {
        let bounded = self.fields.iter().map_while(|field| Some((field.path, field.effective_bounds()?)));
        let mut ranged = false;
        bounded.take_while(move |(_, bounds)| !std::mem::replace(&mut ranged, !bounds.is_points()))
    }

    /// Returns whether its rows are among those of `other`, and in the requested order if those
    /// are.
    pub fn is_within(&self, other: &IndexCandidate<'_>) -> bool {
        let is_plain =
            |candidate: &IndexCandidate<'_>| candidate.index.is_none_or(|index| index.element_table().is_none());
        let leaves_out = other.index.is_some_and(Index::excludes_documents);
        let reads = |path: &str| self.leading().any(|(leading, _)| leading == path);
        is_plain(self)
            && is_plain(other)
            && !leaves_out
            && (self.sorted || !other.sorted)
            && other.leading().all(|(path, _)| reads(path))
    }

    /// Returns whether it only has the requested order, while the server can filter rows by keys.
    pub fn may_speculate(&self, wanted: &PlannerQuery<'_>) -> bool {
        let gives_order_alone = self.sorted && wanted.sort.is_some() && self.leading().next().is_none();
        gives_order_alone && other_keys::filter_regardless_of_length(self.index, self.table, wanted).is_some()
    }

    /// Returns the name of the index in MariaDB.
    pub fn name(&self) -> &str {
        self.key()
    }

    /// Returns the tables and conditions of its key ranges: in the index, and in the element table.
    pub fn key_ranges(&self, wanted: &PlannerQuery<'_>) -> Vec<(String, Condition)> {
        let of_index = |candidate: &IndexCandidate<'_>| {
            let condition = candidate.condition(IndexBounds::all).or_else(|| candidate.presence_condition());
            let all = || Condition::new("TRUE".into(), Vec::new());
            (indexed_table(&self.table.quoted, self.key()), condition.unwrap_or_else(all))
        };
        match self.element_lookup(wanted) {
            None => vec![of_index(self)],
            Some((values, within)) => {
                vec![of_index(&self.clone().without_arrays()), (values.named(&self.table.schema), within)]
            }
        }
    }

    /// Splits the candidate by the values of the fields before the sort's, into `most` parts at
    /// most, each in the requested order.
    pub fn split(self, wanted: &PlannerQuery<'_>, most: usize) -> Option<Vec<IndexCandidate<'t>>> {
        let first = wanted.sort?.parts().first()?.path.as_str();
        let leading = self.fields.iter().position(|field| field.path == first).filter(|position| *position > 0)?;
        let mut parts = vec![self];
        for position in 0..leading {
            let points = parts[0].fields[position].bounds.as_ref().filter(|bounds| bounds.is_points())?.ordered.clone();
            if points.is_empty() || parts.len() * points.len() > most {
                return None;
            }
            parts = parts.iter().flat_map(|part| points.iter().map(|point| part.at(position, point))).collect();
        }
        for part in &mut parts {
            (part.forward, part.sorted) = (part.order(wanted)?, true);
        }
        Some(parts)
    }

    fn at(&self, position: usize, point: &KeyRange) -> IndexCandidate<'t> {
        let mut part = self.clone();
        part.fields.iter_mut().skip(position).take(1).flat_map(|field| &mut field.bounds).for_each(|bounds| {
            bounds.ordered = vec![point.clone()];
        });
        part
    }

    /// Merges candidates that each have the requested order. Returns `None` if their rows differ in
    /// form.
    pub fn merged(candidates: Vec<IndexCandidate<'t>>, wanted: &PlannerQuery<'_>) -> Option<RowSource> {
        // Rows with equal keys are in the order of row keys, in the scan's direction.
        let forward = candidates.first()?.forward;
        if candidates.iter().any(|candidate| candidate.forward != forward) {
            return None;
        }
        let mut branches = Vec::with_capacity(candidates.len());
        for candidate in &candidates {
            let columns = wanted.sort?.parts().iter().map(|part| {
                let field = candidate.fields.iter().find(|field| field.path == part.path.as_str())?;
                Some(field.column.clone())
            });
            let columns = columns.collect::<Option<Vec<_>>>()?;
            let condition =
                candidate.condition(|bounds| bounds.ordered.clone()).or_else(|| candidate.presence_condition());
            branches.push(candidate.branch(columns, forward, condition.into_iter()));
        }
        let descends = wanted.sort?.parts().iter().map(|part| part.ascending != forward);
        Some(candidates.first()?.rows_of(OrderedMerge { branches, sorted: None }, descends, forward))
    }

    /// Returns its rows as branches that the server sorts by these columns, which may be of other
    /// indexes.
    pub fn branches_by(&self, columns: &[KeyColumn], wanted: &PlannerQuery<'_>) -> Option<Vec<MergeBranch>> {
        let index = self.index.filter(|index| index.has_column_keys())?;
        let filter = || other_keys::filter(index, self.table, wanted);
        let branch = |candidate: &IndexCandidate<'_>| {
            let condition = candidate.condition(IndexBounds::all).or_else(|| candidate.presence_condition());
            candidate.branch(columns.to_vec(), true, condition.into_iter().chain(filter()))
        };
        let Some((values, within)) = self.element_lookup(wanted) else { return Some(vec![branch(self)]) };
        let arrays = Condition::new(format!("({})", has_array(index, "k")), Vec::new());
        let arrays = self.branch(columns.to_vec(), true, [within, arrays].into_iter().chain(filter()));
        let source = values.joined(&self.table.schema, &self.table.quoted);
        Some(vec![branch(&self.clone().without_arrays()), MergeBranch { source, has_duplicates: true, ..arrays }])
    }

    fn branch(
        &self,
        columns: Vec<KeyColumn>,
        forward: bool,
        conditions: impl Iterator<Item = Condition>,
    ) -> MergeBranch {
        let conditions: Vec<Condition> = conditions.collect();
        let condition = (!conditions.is_empty()).then(|| Condition::joined(conditions, " AND "));
        let source = indexed_table(&self.table.quoted, self.key());
        MergeBranch { spec: self.spec(), source, has_duplicates: false, columns, forward, condition }
    }

    /// Returns merged branches as rows of this index.
    pub fn rows_of(&self, merged: OrderedMerge, descends: impl Iterator<Item = bool>, forward: bool) -> RowSource {
        let columns = descends.enumerate().map(|(position, descends)| merged_column(position, descends)).collect();
        let index = IndexScan { columns, merged: Some(merged), ..self.scan() };
        RowSource { index: Some(index.into()), ..RowSource::all(forward) }
    }

    /// Returns the query whether any of these indexes has unordered keys.
    pub fn common_probe(candidates: &[IndexCandidate<'_>]) -> Arc<str> {
        let mut probes: Vec<Arc<str>> = candidates.iter().map(IndexCandidate::probe).collect();
        probes.sort_unstable();
        probes.dedup();
        match probes.as_slice() {
            [probe] => probe.clone(),
            probes => {
                let all: Vec<String> = probes.iter().map(|probe| format!("({probe})")).collect();
                format!("{} LIMIT 1", all.join(" UNION ALL ")).into()
            }
        }
    }

    pub fn into_access(self, wanted: &PlannerQuery<'_>, predicate: &Predicate) -> AccessChoice {
        let probe = (self.sorted && wanted.sort.is_some()).then(|| self.probe());
        let facts = PlanFacts { exact: false, sorted: self.sorted, view: false };
        if probe.is_none()
            && let Some(within) = self.rows_within_arrays(wanted)
        {
            return (Access::Union(vec![(None, self.rows_without_arrays(wanted)), (None, within)]), facts, None);
        }
        (Access::Rows(self.into_rows(wanted, Some(predicate))), facts, probe)
    }

    /// Returns its row sources for a branch of an `$or`; documents with arrays apart, if there is
    /// an element table.
    pub fn into_branch(self, wanted: &PlannerQuery<'_>) -> Vec<RowSource> {
        match self.rows_within_arrays(wanted) {
            Some(within) => vec![self.rows_without_arrays(wanted), within],
            None => vec![self.into_rows(wanted, None)],
        }
    }

    /// Returns its rows. `predicate`: the whole filter, which counting may need.
    pub fn into_rows(self, wanted: &PlannerQuery<'_>, predicate: Option<&Predicate>) -> RowSource {
        // A plan in the order of the index is used only if there are no unordered keys.
        let in_order = self.sorted && wanted.sort.is_some();
        let condition = self.condition(|bounds| if in_order { bounds.ordered.clone() } else { bounds.all() });
        let counting = predicate.filter(|_| self.exact).map(|predicate| Box::new(self.counting(predicate)));
        let filter = match self.speculative_rows {
            Some(_) => other_keys::filter_regardless_of_length(self.index, self.table, wanted),
            None => self.index.filter(|_| !self.exact).and_then(|index| other_keys::filter(index, self.table, wanted)),
        };
        RowSource {
            ids: None,
            lookup: None,
            condition: condition.or_else(|| self.presence_condition()).map(Arc::new),
            index: Some(Arc::new(IndexScan {
                counting,
                sibling_filter: filter,
                speculative_rows: self.speculative_rows,
                ..self.scan()
            })),
            covered: None,
            forward: self.forward,
            tally: ExaminedCounter::default(),
        }
    }

    fn scan(&self) -> IndexScan {
        IndexScan {
            sql_name: self.key().to_owned(),
            spec: self.spec(),
            array_fields: self.index.and_then(Index::element_table).map_or(0, |values| values.fields),
            counting: None,
            sibling_filter: None,
            speculative_rows: None,
            merged: None,
            covers_condition: self.table.row_key == RowKey::Sequence,
            columns: self.fields.iter().map(|field| field.column.clone()).collect(),
        }
    }

    /// Returns the element table, and the condition on its rows.
    fn element_lookup(&self, wanted: &PlannerQuery<'_>) -> Option<(&'t ElementTable, Condition)> {
        let index = self.index?;
        let values = index.element_table()?;
        Some((values, elements::condition(index, values, wanted)?))
    }

    /// Returns the rows of documents with arrays, looked up in the element table.
    fn rows_within_arrays(&self, wanted: &PlannerQuery<'_>) -> Option<RowSource> {
        let (index, (values, condition)) = (self.index?, self.element_lookup(wanted)?);
        let spec = Some(index.spec.clone());
        let found = match other_keys::filter(index, self.table, wanted) {
            None => {
                let holds = Some(has_array(index, "documents"));
                RowKeyLookup {
                    table: values.named(&self.table.schema),
                    key: "seq",
                    group_by: None,
                    row_condition: holds,
                    spec,
                    side: None,
                }
            }
            Some(filter) => {
                let holds = Condition::new(format!("({})", has_array(index, "k")), Vec::new());
                let condition = Condition::joined(vec![condition, holds, filter], " AND ");
                let found = RowKeyLookup {
                    table: values.joined(&self.table.schema, &self.table.quoted),
                    key: "k.seq",
                    group_by: None,
                    row_condition: None,
                    spec,
                    side: None,
                };
                return Some(RowSource::looked_up(found, condition));
            }
        };
        Some(RowSource::looked_up(found, condition))
    }

    /// Returns the rows of documents without arrays.
    fn rows_without_arrays(self, wanted: &PlannerQuery<'_>) -> RowSource {
        self.without_arrays().into_rows(wanted, None)
    }

    fn without_arrays(mut self) -> IndexCandidate<'t> {
        for field in &mut self.fields {
            field.bounds =
                Some(field.bounds.take().map_or_else(IndexBounds::except_arrays, IndexBounds::without_arrays));
        }
        self
    }

    fn key(&self) -> &str {
        self.index.map_or(ID_KEY, |index| &index.sql_name)
    }

    fn spec(&self) -> Arc<IndexSpec> {
        self.index.map_or_else(|| Arc::new(id_index()), |index| index.spec.clone())
    }

    /// Returns the condition that excludes documents which a sparse or partial index does not have.
    fn presence_condition(&self) -> Option<Condition> {
        let leaves_out = self.index.is_some_and(Index::excludes_documents);
        let first = self.fields.first().filter(|_| leaves_out)?;
        Some(Condition::new(format!("{} IS NOT NULL", first.column.name), Vec::new()))
    }

    /// Returns the condition on all bounded fields; `None` if no field is bounded.
    fn condition(&self, ranges: impl Fn(&IndexBounds) -> Vec<KeyRange>) -> Option<Condition> {
        let bounded = self.fields.iter().filter_map(|field| Some((field, field.bounds.as_ref()?)));
        let parts: Vec<Condition> =
            bounded.map(|(field, bounds)| in_ranges(&field.column.name, &ranges(bounds))).collect();
        (!parts.is_empty()).then(|| Condition::joined(parts, " AND "))
    }

    fn counting(&self, predicate: &Predicate) -> Counting {
        let matching = self.condition(|bounds| bounds.ordered.clone()).or_else(|| self.presence_condition());
        let candidates = self.condition(IndexBounds::all);
        let bounded = self.fields.iter().filter_map(|field| Some((field, field.bounds.as_ref()?)));
        let unordered: Vec<Condition> =
            bounded.map(|(field, bounds)| in_ranges(&field.column.name, &bounds.unordered)).collect();
        let none = Condition::new("FALSE".into(), Vec::new());
        let unordered = if unordered.is_empty() { none } else { Condition::joined(unordered, " OR ") };
        let unordered = Condition::joined(candidates.into_iter().chain([unordered]).collect(), " AND ");
        Counting { matching, unordered, predicate: predicate.clone() }
    }

    /// Returns the order probe: a query that returns a row if the index has unordered keys.
    ///
    /// It selects the largest such key, which the server looks up while it optimizes the statement,
    /// in half the time of a scan for the first one. In a descending index it would read them all
    /// instead.
    fn probe(&self) -> Arc<str> {
        let (low, high) = (column_key::UNORDERED.0.escape_ascii(), column_key::UNORDERED.1.escape_ascii());
        if let Some(unordered) = self.index.and_then(Index::unordered_column) {
            return largest(&quote(unordered), &indexed_table(&self.table.quoted, unordered), "");
        }
        let source = indexed_table(&self.table.quoted, self.key());
        let Some(KeyColumn { name, descends }) = self.fields.first().map(|field| &field.column) else {
            return largest("NULL", &source, "");
        };
        let within = format!(" WHERE {name} >= '{low}' AND {name} < '{high}'");
        match descends {
            true => format!("SELECT 1 FROM {source}{within} LIMIT 1").into(),
            false => largest(name, &source, &within),
        }
    }
}

/// Suffix of a query for the largest value: no row if it is NULL.
const IF_ANY: &str = " HAVING largest IS NOT NULL";

/// Returns the query for the largest value of a column, if there is one.
fn largest(column: &str, source: &str, condition: &str) -> Arc<str> {
    format!("SELECT MAX({column}) AS largest FROM {source}{condition}{IF_ANY}").into()
}

/// Returns a probe as a value in another query. A query without a row is NULL there anyway, and the
/// server has less to do.
pub(crate) fn probe_value(probe: &str) -> String {
    format!("({})", probe.strip_suffix(IF_ANY).unwrap_or(probe))
}

/// Returns the rows for `distinct`: one document per key of an index's first field; all documents
/// whose key does not determine the value (unordered keys, and that of null, which missing fields
/// have too); and one document without the field.
pub(crate) fn distinct_rows(index: &Index, table: &Table) -> [RowSource; 3] {
    let (column, text) = (quote(index.column(0)), quote(index.text_column(0)));
    let edges = || {
        [column_key::NULLS.0, column_key::NULLS.1, column_key::UNORDERED.0, column_key::UNORDERED.1]
            .map(|key| Operand::Bytes(key.to_vec()))
            .to_vec()
    };
    let ordered_keys = format!("NOT ({column} >= ? AND {column} < ?) AND NOT ({column} >= ? AND {column} < ?)");
    let unordered_keys =
        format!("({column} >= ? AND {column} < ? AND {text} IS NOT NULL OR {column} >= ? AND {column} < ?)");
    let own = format!("{} FORCE INDEX ({})", table.quoted, quote(&index.sql_name));
    let missing = format!("{column} >= ? AND {column} < ? AND {text} IS NULL");
    let one_of_each = |condition: Condition| {
        let found = RowKeyLookup {
            table: own.clone(),
            key: "seq",
            group_by: Some(column.clone()),
            row_condition: None,
            spec: Some(index.spec.clone()),
            side: None,
        };
        RowSource::looked_up(found, condition)
    };
    let representatives = one_of_each(Condition::new(ordered_keys, edges()));
    let nulls = [column_key::NULLS.0, column_key::NULLS.1].map(|key| Operand::Bytes(key.to_vec())).to_vec();
    let missing = one_of_each(Condition::new(missing, nulls));
    let everything = IndexCandidate::new(Some(index), table, &PlannerQuery::default(), true);
    let mut unordered = RowSource {
        condition: Some(Condition::new(unordered_keys, edges()).into()),
        ..everything.into_rows(&PlannerQuery::default(), None)
    };
    // The text column is not in the index.
    unordered.index.iter_mut().for_each(|index| Arc::make_mut(index).covers_condition = false);
    [representatives, unordered, missing]
}

fn fields<'t>(index: Option<&'t Index>, wanted: &PlannerQuery<'_>) -> Vec<Field<'t>> {
    let Some(index) = index else {
        let column = KeyColumn::named(ID_KEY, false);
        let bounds = IndexBounds::of(wanted.tests_of("_id"), ID_KEY_BYTES);
        return vec![Field { path: "_id", column, bounds, element: None }];
    };
    let field = |(path, column): (&'t str, &KeyColumn)| {
        let element = index.element_table().and_then(|_| elements::bounds_of(path, wanted, index.bytes()));
        let bounds = IndexBounds::of(wanted.tests_of(path), index.bytes());
        Field {
            path,
            column: column.clone(),
            // A value that must be an array has a key that every lookup reads.
            bounds: bounds.or_else(|| element.as_ref().map(|_| IndexBounds::of_arrays())),
            element,
        }
    };
    index.fields().zip(index.key_columns()).map(field).collect()
}

/// Narrows the bounds of the hinted index to those of `min` and `max`. Array elements are not
/// looked up then, since the range depends on all fields together.
fn keep_within(fields: &mut [Field<'_>], range: &sort::KeyRange) {
    let bounds = IndexBounds::of_range_hint(range, fields.len());
    fields.iter_mut().for_each(|field| field.element = None);
    for (field, bounds) in fields.iter_mut().zip(bounds) {
        field.bounds = Some(match field.bounds.take() {
            Some(own) => own.and(bounds),
            None => bounds,
        });
    }
}

fn is_one_point(field: &Field<'_>) -> bool {
    let ranges = field.bounds.as_ref().map(|bounds| bounds.ordered.as_slice());
    matches!(ranges, Some([range]) if range.is_point())
}
