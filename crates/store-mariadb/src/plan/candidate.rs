//! An index that might serve a query, and how well.

use crate::catalog::row_key::RowKey;
use crate::catalog::table::Table;
use crate::catalog::table_columns::{ID_KEY, ID_KEY_BYTES};
use crate::index::element_table::definition::has_array;
use crate::index::element_table::record::ElementTable;
use crate::index::key_column::KeyColumn;
use crate::index::{Index, column_key, id_index};
use crate::plan::access::{Access, Branch, Choice, Counting, Found, IndexScan, Merged, Rows, merged_column, source};
use crate::plan::index_bounds::{Bounds, KeyRange};
use crate::plan::key_condition::within;
use crate::plan::planner_query::Wanted;
use crate::plan::pushdown::{Condition, Operand};
use crate::plan::{element_bounds as elements, sibling_index_filter as other_keys};
use index_keys::covered;
use mariadb_client::quote;
use query::{Predicate, sort};
use std::sync::Arc;
use store::{ExaminedCounter, IndexSpec, PlanFacts};

#[derive(Clone)]
struct Field<'t> {
    path: &'t str,
    column: KeyColumn,
    bounds: Option<Bounds>,
    /// What an element of an array has to meet, where there is a table to look for it.
    element: Option<Bounds>,
}

impl Field<'_> {
    /// What is looked up for, wherever that is.
    fn sought(&self) -> Option<&Bounds> {
        self.element.as_ref().or(self.bounds.as_ref())
    }
}

#[derive(Clone)]
pub(crate) struct Candidate<'t> {
    /// `None`: the index on `_id`.
    index: Option<&'t Index>,
    table: &'t Table,
    fields: Vec<Field<'t>>,
    /// The bounds are all there is to the filter, and each says all about its conditions.
    pub exact: bool,
    forward: bool,
    sorted: bool,
    pub score: u32,
    /// Chosen in the hope that enough of those that come first in its order match: as long as no more rows than this have been looked at.
    pub hope: Option<u64>,
}

impl<'t> Candidate<'t> {
    /// `forced`: by a hint, so that even an index that leaves documents out is used, as MongoDB does.
    pub fn new(index: Option<&'t Index>, table: &'t Table, wanted: &Wanted<'_>, forced: bool) -> Candidate<'t> {
        let mut fields = fields(index, wanted);
        if let Some(stretch) = wanted.stretch.filter(|_| forced) {
            keep_within(&mut fields, stretch);
        }
        let mut candidate = Candidate {
            index,
            table,
            fields,
            exact: false,
            forward: true,
            sorted: wanted.sort.is_none(),
            score: 0,
            hope: None,
        };
        candidate.judge(wanted);
        if !forced && !candidate.has_all_matches(wanted) {
            candidate.score = 0;
        }
        candidate
    }

    fn judge(&mut self, wanted: &Wanted<'_>) {
        let bounds = || self.fields.iter().map(|field| field.bounds.as_ref());
        let sought = || self.fields.iter().map(Field::sought);
        let points = sought().take_while(|bounds| bounds.is_some_and(Bounds::is_points)).count();
        let ranged = sought().nth(points).is_some_and(|bounds| bounds.is_some());
        let conditions: usize = bounds().flatten().map(|bounds| bounds.conditions).sum();
        self.exact = !wanted.incomplete
            && conditions == wanted.conditions.len()
            && bounds().flatten().all(|bounds| bounds.exact);
        let unique = self.index.is_none_or(|index| index.spec.unique) && points == self.fields.len();
        // Of indexes that do as well, one is taken that leads with more than a flag.
        let telling = points > 0 && !sought().flatten().take(points).any(Bounds::is_of_flags);
        self.score = 16 * points as u32 + 8 * u32::from(ranged) + 4 * u32::from(unique) + u32::from(telling);
        if let Some(forward) = self.order(wanted) {
            self.sorted = true;
            self.forward = forward;
            self.score += 2;
        }
    }

    /// Whether no document that matches is missing from the index.
    fn has_all_matches(&self, wanted: &Wanted<'_>) -> bool {
        let Some(index) = self.index else { return true };
        let excludes_missing =
            || self.fields.iter().filter_map(|field| field.bounds.as_ref()).any(|bounds| bounds.excludes_missing);
        index.has_all_matches(&wanted.conditions) && (!index.spec.sparse || excludes_missing())
    }

    /// The direction in which the index gives the order wanted, if it does.
    fn order(&self, wanted: &Wanted<'_>) -> Option<bool> {
        let sort = wanted.sort.filter(|sort| wanted.ordered && sort.collation().is_simple())?;
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
                // No two documents share an `_id`, so nothing behind it matters.
                if self.index.is_none() {
                    return forward;
                }
            } else if !is_one_point(field) {
                return None;
            }
        }
        if part.is_none() { forward } else { None }
    }

    /// Whether rows come in the order wanted.
    pub fn is_sorted(&self) -> bool {
        self.sorted
    }

    pub fn is_bounded(&self) -> bool {
        self.fields.iter().any(|field| field.bounds.is_some())
    }

    /// Whether its keys have all that is looked at.
    pub fn covers(&self, wanted: &Wanted<'_>) -> bool {
        covered::covers_fields(self.fields.iter().map(|field| field.path), wanted.fields)
    }

    /// Whether most documents may lie in the stretches that are read, so that reading all of them is better.
    pub fn is_wide(&self) -> bool {
        self.leading().next().is_some_and(|(_, bounds)| bounds.wide)
    }

    /// Whether there is a document at the most that it finds, so that nothing can be better.
    pub fn is_one_document(&self) -> bool {
        self.index.is_none_or(|index| index.spec.unique) && self.fields.iter().all(is_one_point)
    }

    /// The fields that say which stretches of the index are read: those bound to single values, and the one behind them.
    pub fn leading(&self) -> impl Iterator<Item = (&str, &Bounds)> {
        let bounded = self.fields.iter().map_while(|field| Some((field.path, field.sought()?)));
        let mut ranged = false;
        bounded.take_while(move |(_, bounds)| !std::mem::replace(&mut ranged, !bounds.is_points()))
    }

    /// Whether what it reads is among what `other` reads, and comes in the order wanted if that does.
    pub fn is_within(&self, other: &Candidate<'_>) -> bool {
        let is_plain = |candidate: &Candidate<'_>| candidate.index.is_none_or(|index| index.element_table().is_none());
        let leaves_out = other.index.is_some_and(Index::leaves_out);
        let reads = |path: &str| self.leading().any(|(leading, _)| leading == path);
        is_plain(self)
            && is_plain(other)
            && !leaves_out
            && (self.sorted || !other.sorted)
            && other.leading().all(|(path, _)| reads(path))
    }

    /// Whether all it does is to give the order wanted, while the server can tell by keys which rows may match.
    pub fn may_hope(&self, wanted: &Wanted<'_>) -> bool {
        let gives_order_alone = self.sorted && wanted.sort.is_some() && self.leading().next().is_none();
        gives_order_alone && other_keys::filter_of_any(self.index, self.table, wanted).is_some()
    }

    /// The name of the index in MariaDB.
    pub fn name(&self) -> &str {
        self.key()
    }

    /// Where it looks for rows, and by which condition: in the index, and among the elements of arrays.
    pub fn stretches(&self, wanted: &Wanted<'_>) -> Vec<(String, Condition)> {
        let of_index = |candidate: &Candidate<'_>| {
            let condition = candidate.condition(Bounds::all).or_else(|| candidate.present());
            let all = || Condition::new("TRUE".into(), Vec::new());
            (source(&self.table.quoted, self.key()), condition.unwrap_or_else(all))
        };
        match self.within_arrays(wanted) {
            None => vec![of_index(self)],
            Some((values, within)) => {
                vec![of_index(&self.clone().without_arrays()), (values.named(&self.table.schema), within)]
            }
        }
    }

    /// The same for each of the values that the fields in front of the sort's are bounded to, `most` in all; each gives the order wanted.
    pub fn split(self, wanted: &Wanted<'_>, most: usize) -> Option<Vec<Candidate<'t>>> {
        let first = wanted.sort?.parts().first()?.path.as_str();
        let leading = self.fields.iter().position(|field| field.path == first).filter(|position| *position > 0)?;
        let mut places = vec![self];
        for position in 0..leading {
            let points = places[0].fields[position].bounds.as_ref().filter(|bounds| bounds.is_points())?.plain.clone();
            if points.is_empty() || places.len() * points.len() > most {
                return None;
            }
            places = places.iter().flat_map(|place| points.iter().map(|point| place.at(position, point))).collect();
        }
        for place in &mut places {
            (place.forward, place.sorted) = (place.order(wanted)?, true);
        }
        Some(places)
    }

    fn at(&self, position: usize, point: &KeyRange) -> Candidate<'t> {
        let mut place = self.clone();
        place.fields.iter_mut().skip(position).take(1).flat_map(|field| &mut field.bounds).for_each(|bounds| {
            bounds.plain = vec![point.clone()];
        });
        place
    }

    /// Candidates that each give the order wanted, as one. `None` where their rows would not be of one kind.
    pub fn merged(candidates: Vec<Candidate<'t>>, wanted: &Wanted<'_>) -> Option<Rows> {
        // Rows with equal keys come in the order of their own, which is that of the direction.
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
            let condition = candidate.condition(|bounds| bounds.plain.clone()).or_else(|| candidate.present());
            branches.push(candidate.branch(columns, forward, condition.into_iter()));
        }
        let descends = wanted.sort?.parts().iter().map(|part| part.ascending != forward);
        Some(candidates.first()?.rows_of(Merged { branches, sorted: None }, descends, forward))
    }

    /// All rows, for the server to put in the order of these columns, which need not be the index's.
    pub fn branches_by(&self, columns: &[KeyColumn], wanted: &Wanted<'_>) -> Option<Vec<Branch>> {
        let index = self.index.filter(|index| index.has_column_keys())?;
        let filter = || other_keys::filter(index, self.table, wanted);
        let branch = |candidate: &Candidate<'_>| {
            let condition = candidate.condition(Bounds::all).or_else(|| candidate.present());
            candidate.branch(columns.to_vec(), true, condition.into_iter().chain(filter()))
        };
        let Some((values, within)) = self.within_arrays(wanted) else { return Some(vec![branch(self)]) };
        let arrays = Condition::new(format!("({})", has_array(index, "k")), Vec::new());
        let arrays = self.branch(columns.to_vec(), true, [within, arrays].into_iter().chain(filter()));
        let source = values.joined(&self.table.schema, &self.table.quoted);
        Some(vec![branch(&self.clone().without_arrays()), Branch { source, repeats: true, ..arrays }])
    }

    fn branch(&self, columns: Vec<KeyColumn>, forward: bool, conditions: impl Iterator<Item = Condition>) -> Branch {
        let conditions: Vec<Condition> = conditions.collect();
        let condition = (!conditions.is_empty()).then(|| Condition::joined(conditions, " AND "));
        let source = source(&self.table.quoted, self.key());
        Branch { spec: self.spec(), source, repeats: false, columns, forward, condition }
    }

    /// Branches as the rows of this index.
    pub fn rows_of(&self, merged: Merged, descends: impl Iterator<Item = bool>, forward: bool) -> Rows {
        let columns = descends.enumerate().map(|(position, descends)| merged_column(position, descends)).collect();
        let index = IndexScan { columns, merged: Some(merged), ..self.scan() };
        Rows { index: Some(index.into()), ..Rows::all(forward) }
    }

    /// The query for whether any key of these indexes has no place.
    pub fn common_probe(candidates: &[Candidate<'_>]) -> Arc<str> {
        let mut probes: Vec<Arc<str>> = candidates.iter().map(Candidate::probe).collect();
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

    pub fn into_access(self, wanted: &Wanted<'_>, predicate: &Predicate) -> Choice {
        let probe = (self.sorted && wanted.sort.is_some()).then(|| self.probe());
        let facts = PlanFacts { exact: false, sorted: self.sorted, view: false };
        if probe.is_none()
            && let Some(within) = self.rows_within_arrays(wanted)
        {
            return (Access::Union(vec![(None, self.beside_arrays(wanted)), (None, within)]), facts, None);
        }
        (Access::Rows(self.into_rows(wanted, Some(predicate))), facts, probe)
    }

    /// All rows, for a branch of an `$or`: those of documents with arrays by themselves, if they are looked up elsewhere.
    pub fn into_branch(self, wanted: &Wanted<'_>) -> Vec<Rows> {
        match self.rows_within_arrays(wanted) {
            Some(within) => vec![self.beside_arrays(wanted), within],
            None => vec![self.into_rows(wanted, None)],
        }
    }

    /// `predicate`: the whole filter, where documents may have to be counted by it.
    pub fn into_rows(self, wanted: &Wanted<'_>, predicate: Option<&Predicate>) -> Rows {
        // In the order of the index nothing is odd, or the plan would be another one.
        let in_order = self.sorted && wanted.sort.is_some();
        let condition = self.condition(|bounds| if in_order { bounds.plain.clone() } else { bounds.all() });
        let counting = predicate.filter(|_| self.exact).map(|predicate| Box::new(self.counting(predicate)));
        let filter = match self.hope {
            Some(_) => other_keys::filter_of_any(self.index, self.table, wanted),
            None => self.index.filter(|_| !self.exact).and_then(|index| other_keys::filter(index, self.table, wanted)),
        };
        Rows {
            ids: None,
            found: None,
            condition: condition.or_else(|| self.present()).map(Arc::new),
            index: Some(Arc::new(IndexScan { counting, filter, hope: self.hope, ..self.scan() })),
            covered: None,
            forward: self.forward,
            tally: ExaminedCounter::default(),
        }
    }

    fn scan(&self) -> IndexScan {
        IndexScan {
            key: self.key().to_owned(),
            spec: self.spec(),
            arrays: self.index.and_then(Index::element_table).map_or(0, |values| values.fields),
            counting: None,
            filter: None,
            hope: None,
            merged: None,
            covers: self.table.row_key == RowKey::Sequence,
            columns: self.fields.iter().map(|field| field.column.clone()).collect(),
        }
    }

    /// The table with the elements of arrays, and what to look up there.
    fn within_arrays(&self, wanted: &Wanted<'_>) -> Option<(&'t ElementTable, Condition)> {
        let index = self.index?;
        let values = index.element_table()?;
        Some((values, elements::condition(index, values, wanted)?))
    }

    /// The rows of documents with arrays, by way of the table with their elements.
    fn rows_within_arrays(&self, wanted: &Wanted<'_>) -> Option<Rows> {
        let (index, (values, condition)) = (self.index?, self.within_arrays(wanted)?);
        let spec = Some(index.spec.clone());
        let found = match other_keys::filter(index, self.table, wanted) {
            None => {
                let holds = Some(has_array(index, "documents"));
                Found { table: values.named(&self.table.schema), key: "seq", group: None, holds, spec, keyed: None }
            }
            Some(filter) => {
                let holds = Condition::new(format!("({})", has_array(index, "k")), Vec::new());
                let condition = Condition::joined(vec![condition, holds, filter], " AND ");
                let found = Found {
                    table: values.joined(&self.table.schema, &self.table.quoted),
                    key: "k.seq",
                    group: None,
                    holds: None,
                    spec,
                    keyed: None,
                };
                return Some(Rows::found_in(found, condition));
            }
        };
        Some(Rows::found_in(found, condition))
    }

    /// The rows of the other documents.
    fn beside_arrays(self, wanted: &Wanted<'_>) -> Rows {
        self.without_arrays().into_rows(wanted, None)
    }

    fn without_arrays(mut self) -> Candidate<'t> {
        for field in &mut self.fields {
            field.bounds = Some(field.bounds.take().map_or_else(Bounds::but_arrays, Bounds::without_arrays));
        }
        self
    }

    fn key(&self) -> &str {
        self.index.map_or(ID_KEY, |index| &index.sql_name)
    }

    fn spec(&self) -> Arc<IndexSpec> {
        self.index.map_or_else(|| Arc::new(id_index()), |index| index.spec.clone())
    }

    /// Leaves out the rows of documents that a sparse or partial index does not have.
    fn present(&self) -> Option<Condition> {
        let leaves_out = self.index.is_some_and(Index::leaves_out);
        let first = self.fields.first().filter(|_| leaves_out)?;
        Some(Condition::new(format!("{} IS NOT NULL", first.column.name), Vec::new()))
    }

    /// The ranges of all bounded fields; `None` where no field is bounded.
    fn condition(&self, ranges: impl Fn(&Bounds) -> Vec<KeyRange>) -> Option<Condition> {
        let bounded = self.fields.iter().filter_map(|field| Some((field, field.bounds.as_ref()?)));
        let parts: Vec<Condition> =
            bounded.map(|(field, bounds)| within(&field.column.name, &ranges(bounds))).collect();
        (!parts.is_empty()).then(|| Condition::joined(parts, " AND "))
    }

    fn counting(&self, predicate: &Predicate) -> Counting {
        let matching = self.condition(|bounds| bounds.plain.clone()).or_else(|| self.present());
        let candidates = self.condition(Bounds::all);
        let bounded = self.fields.iter().filter_map(|field| Some((field, field.bounds.as_ref()?)));
        let odd: Vec<Condition> = bounded.map(|(field, bounds)| within(&field.column.name, &bounds.odd)).collect();
        let none = Condition::new("FALSE".into(), Vec::new());
        let odd = if odd.is_empty() { none } else { Condition::joined(odd, " OR ") };
        let odd = Condition::joined(candidates.into_iter().chain([odd]).collect(), " AND ");
        Counting { matching, odd, predicate: predicate.clone() }
    }

    /// The query for whether any key has no place: a row if there is one.
    ///
    /// It asks for the largest such key: that the server looks up while it optimizes the statement, in half the time that executing a
    /// scan for the first one takes it. In an index that descends it would read them all instead.
    fn probe(&self) -> Arc<str> {
        let (low, high) = (column_key::ODD.0.escape_ascii(), column_key::ODD.1.escape_ascii());
        if let Some(odd) = self.index.and_then(Index::unordered_column) {
            return largest(&quote(odd), &source(&self.table.quoted, odd), "");
        }
        let source = source(&self.table.quoted, self.key());
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

/// Behind a query for the largest value: no row if there is none but NULL.
const IF_ANY: &str = " HAVING largest IS NOT NULL";

/// The query for the largest value of a column, if there is one.
fn largest(column: &str, source: &str, condition: &str) -> Arc<str> {
    format!("SELECT MAX({column}) AS largest FROM {source}{condition}{IF_ANY}").into()
}

/// A probe as a value in another query: what gives no row is NULL there in any case, and the server has less to do.
pub(crate) fn probe_value(probe: &str) -> String {
    format!("({})", probe.strip_suffix(IF_ANY).unwrap_or(probe))
}

/// The rows of one document for each key of an index's first field, those of all whose key does not tell (it has no place, or is that
/// of null, which missing fields have too), and that of one without the field.
pub(crate) fn of_values(index: &Index, table: &Table) -> [Rows; 3] {
    let (column, text) = (quote(index.column(0)), quote(index.text_column(0)));
    let edges = || {
        [column_key::NULLS.0, column_key::NULLS.1, column_key::ODD.0, column_key::ODD.1]
            .map(|key| Operand::Bytes(key.to_vec()))
            .to_vec()
    };
    let plain = format!("NOT ({column} >= ? AND {column} < ?) AND NOT ({column} >= ? AND {column} < ?)");
    let odd = format!("({column} >= ? AND {column} < ? AND {text} IS NOT NULL OR {column} >= ? AND {column} < ?)");
    let own = format!("{} FORCE INDEX ({})", table.quoted, quote(&index.sql_name));
    let missing = format!("{column} >= ? AND {column} < ? AND {text} IS NULL");
    let one_of_each = |condition: Condition| {
        let found = Found {
            table: own.clone(),
            key: "seq",
            group: Some(column.clone()),
            holds: None,
            spec: Some(index.spec.clone()),
            keyed: None,
        };
        Rows::found_in(found, condition)
    };
    let representatives = one_of_each(Condition::new(plain, edges()));
    let nulls = [column_key::NULLS.0, column_key::NULLS.1].map(|key| Operand::Bytes(key.to_vec())).to_vec();
    let missing = one_of_each(Condition::new(missing, nulls));
    let everything = Candidate::new(Some(index), table, &Wanted::default(), true);
    let mut odd =
        Rows { condition: Some(Condition::new(odd, edges()).into()), ..everything.into_rows(&Wanted::default(), None) };
    // The text is no column of the index.
    odd.index.iter_mut().for_each(|index| Arc::make_mut(index).covers = false);
    [representatives, odd, missing]
}

fn fields<'t>(index: Option<&'t Index>, wanted: &Wanted<'_>) -> Vec<Field<'t>> {
    let Some(index) = index else {
        let column = KeyColumn::named(ID_KEY, false);
        let bounds = Bounds::of("_id", &wanted.conditions, ID_KEY_BYTES);
        return vec![Field { path: "_id", column, bounds, element: None }];
    };
    let field = |(path, column): (&'t str, &KeyColumn)| {
        let element = index.element_table().and_then(|_| elements::bounds_of(path, wanted, index.bytes()));
        let bounds = Bounds::of(path, &wanted.conditions, index.bytes());
        Field {
            path,
            column: column.clone(),
            // What has to be an array lies among what every lookup reads.
            bounds: bounds.or_else(|| element.as_ref().map(|_| Bounds::of_arrays())),
            element,
        }
    };
    index.fields().zip(index.key_columns()).map(field).collect()
}

/// Narrows the fields of the hinted index to what `min` and `max` leave. Elements of arrays are no longer looked up: which of them has to
/// lie there the fields together tell.
fn keep_within(fields: &mut [Field<'_>], stretch: &sort::KeyRange) {
    let bounds = Bounds::of_stretch(stretch, fields.len());
    fields.iter_mut().for_each(|field| field.element = None);
    for (field, bounds) in fields.iter_mut().zip(bounds) {
        field.bounds = Some(match field.bounds.take() {
            Some(own) => own.and(bounds),
            None => bounds,
        });
    }
}

fn is_one_point(field: &Field<'_>) -> bool {
    let ranges = field.bounds.as_ref().map(|bounds| bounds.plain.as_slice());
    matches!(ranges, Some([range]) if range.is_point())
}
