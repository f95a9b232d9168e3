//! How to find a query's documents: which rows, in which order, by which statement.

use crate::id_text;
use crate::index::id_index;
use crate::names::quote;
use crate::pushdown::{self, Condition};
use crate::table::{RowKey, Table};
use document::{DocBuf, Value};
use error::Error;
use mariadb_wire::Param;
use query::predicate::{Node, Test};
use std::any::Any;
use std::sync::Arc;
use store::index_rules::same_key;
use store::{Namespace, Plan, PlanFacts, Query};

/// More ids than this are looked for by reading everything.
const IDS_MAX: usize = 16_384;

#[derive(Debug)]
pub(crate) struct MariaDbPlan {
    pub namespace: Namespace,
    /// `None`: there is no such collection.
    pub table: Option<Arc<Table>>,
    pub access: Access,
    facts: PlanFacts,
    /// A scan stops behind the last row, to go on from there.
    pub tailable: bool,
}

/// Which rows are read, and in which order.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// Only rows with one of these ids.
    pub ids: Option<Vec<Vec<u8>>>,
    /// The key (in MariaDB's words) that the condition is looked up in.
    pub index: Option<String>,
    /// Only rows for which this holds: all documents that match, and perhaps others.
    pub condition: Option<Condition>,
    /// By row key, upward or downward.
    pub forward: bool,
    /// No row at all.
    pub nothing: bool,
}

/// Decides. `table` is the collection's, if it exists.
///
/// Error 2 for a hint at an index that there is not.
pub(crate) fn make(namespace: &Namespace, table: Option<Arc<Table>>, query: &Query<'_>) -> error::Result<MariaDbPlan> {
    if let (Some(table), Some(hint)) = (&table, query.hint) {
        check_hint(table, hint)?;
    }
    let root = query.predicate.root();
    let mut access = Access {
        ids: None,
        index: None,
        condition: None,
        forward: !is_backward(query),
        nothing: matches!(root, Node::Never),
    };
    let mut exact = query.predicate.matches_everything();
    if let Some(table) = &table {
        if let Some((texts, ids_exact)) = ids_in(root, table) {
            exact = ids_exact && matches!(root, Node::Path { .. });
            access.nothing |= texts.is_empty();
            access.ids = Some(texts);
        } else if let Some((index, condition)) = pushdown::by_index(root, table) {
            access.index = Some(index);
            access.condition = Some(condition);
        } else {
            access.condition = pushdown::condition(root, table.tells_opaque);
        }
    }
    let any_order = |sort: &query::Sort| sort.is_empty() || sort.natural().is_some();
    let sorted = query.sort.is_none_or(any_order) || access.ids.as_ref().is_some_and(|ids| ids.len() <= 1);
    Ok(MariaDbPlan {
        namespace: namespace.clone(),
        table,
        access,
        facts: PlanFacts { exact, sorted, view: false },
        tailable: false,
    })
}

/// The plan for a name that is a view's: it gives nothing but that.
pub(crate) fn view(namespace: &Namespace) -> MariaDbPlan {
    let access = Access { ids: None, index: None, condition: None, forward: true, nothing: true };
    let facts = PlanFacts { exact: false, sorted: false, view: true };
    MariaDbPlan { namespace: namespace.clone(), table: None, access, facts, tailable: false }
}

/// The plan that follows a capped collection.
pub(crate) fn tail(namespace: &Namespace, table: Arc<Table>) -> MariaDbPlan {
    let access = Access { ids: None, index: None, condition: None, forward: true, nothing: false };
    let facts = PlanFacts { exact: false, sorted: true, view: false };
    MariaDbPlan { namespace: namespace.clone(), table: Some(table), access, facts, tailable: true }
}

fn check_hint(table: &Table, hint: Value<'_>) -> error::Result<()> {
    let shown = || table.indexes.iter().filter(|index| !index.is_hidden());
    let specs = || std::iter::once(id_index()).chain(shown().map(|index| index.spec.clone()));
    let known = match hint {
        Value::String(name) => specs().any(|spec| spec.name == name),
        Value::Document(key) => {
            key.is_empty() || key.get("$natural").is_some() || specs().any(|spec| same_key(spec.key.as_doc(), key))
        }
        _ => false,
    };
    if known {
        return Ok(());
    }
    Err(Error::bad_value(
        "error processing query: planner returned error :: caused by :: \
         hint provided does not correspond to an existing index",
    ))
}

/// `{$natural: -1}`, as a sort or a hint.
fn is_backward(query: &Query<'_>) -> bool {
    let by_hint =
        query.hint.and_then(Value::as_document).and_then(|hint| hint.get("$natural")).is_some_and(|direction| {
            matches!(direction, Value::Int32(-1) | Value::Int64(-1))
                || matches!(direction, Value::Double(number) if number < 0.0)
        });
    query.sort.and_then(query::Sort::natural).map_or(by_hint, |forward| !forward)
}

/// The ids that the filter pins `_id` to, and whether finding them says all about that condition.
fn ids_in(node: &Node, table: &Table) -> Option<(Vec<Vec<u8>>, bool)> {
    match node {
        Node::Path { path, test } if path.as_str() == "_id" => ids_of(test, table),
        Node::And(all) => all.iter().find_map(|node| ids_in(node, table)).map(|(texts, _)| (texts, false)),
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

impl Access {
    /// The statement that reads a page of `table`. Parameters: ids, the condition's, the row key to go on behind if `after`, and how
    /// many rows.
    pub fn statement(&self, table: &Table, after: bool) -> Arc<str> {
        let key = table.row_key.column();
        let mut conditions = Vec::new();
        if let Some(ids) = &self.ids {
            conditions.push(format!("id IN (?{})", ",?".repeat(padded(ids.len()) - 1)));
        }
        if let Some(condition) = &self.condition {
            conditions.push(condition.sql.clone());
        }
        if after {
            conditions.push(format!("{key} {} ?", if self.forward { ">" } else { "<" }));
        }
        let filter = if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) };
        let direction = if self.forward { "" } else { " DESC" };
        // Left alone, the server would rather read the rows in order, in the hope of meeting enough of them soon.
        let force = self.index.as_deref().map_or(String::new(), |index| format!(" FORCE INDEX ({})", quote(index)));
        format!("SELECT {key}, doc FROM {}{force}{filter} ORDER BY {key}{direction} LIMIT ?", table.quoted).into()
    }

    /// The parameters of [`Access::statement`].
    pub fn params<'p>(&'p self, table: &Table, after: Option<&'p [u8]>, limit: u64) -> Vec<Param<'p>> {
        let mut params = Vec::new();
        if let Some(ids) = &self.ids {
            // Lists are made of a few lengths, so that few statements need preparing.
            let last = ids.last().map(Vec::as_slice).unwrap_or_default();
            params.extend(ids.iter().map(|id| Param::Text(id)));
            params.resize(padded(ids.len()), Param::Text(last));
        }
        if let Some(condition) = &self.condition {
            params.extend(condition.params());
        }
        params.extend(after.map(|key| key_param(table.row_key, key)));
        params.push(Param::Unsigned(limit));
        params
    }

    /// The statement that counts the rows, and its parameters. A condition is not part of it.
    pub fn count_statement(&self, table: &Table) -> (Arc<str>, Vec<Param<'_>>) {
        let Some(ids) = &self.ids else { return (table.statements.count.clone(), Vec::new()) };
        let params = ids.iter().map(|id| Param::Text(id)).collect();
        let marks = vec!["?"; ids.len()].join(",");
        (format!("SELECT COUNT(*) FROM {} WHERE id IN ({marks})", table.quoted).into(), params)
    }

    /// The one id asked for, where nothing else narrows the rows.
    pub fn single_id(&self) -> Option<&[u8]> {
        match self.ids.as_deref() {
            Some([id]) if self.condition.is_none() => Some(id),
            _ => None,
        }
    }
}

fn padded(length: usize) -> usize {
    length.max(1).next_power_of_two()
}

/// A row key's bytes, as positions keep them, as a parameter.
pub(crate) fn key_param(row_key: RowKey, key: &[u8]) -> Param<'_> {
    match row_key {
        RowKey::Sequence => Param::Unsigned(key.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))),
        RowKey::Id => Param::Text(key),
    }
}

impl Plan for MariaDbPlan {
    fn facts(&self) -> &PlanFacts {
        &self.facts
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn winning_plan(&self) -> DocBuf {
        DocBuf::build(|writer| match &self.access {
            access if access.nothing || self.table.is_none() => writer.append("stage", "EOF"),
            access if access.ids.is_some() => writer.append("stage", "IDHACK"),
            access if access.index.is_some() => {
                writer.append("stage", "FETCH");
                let mut input = writer.document("inputStage");
                input.append("stage", "IXSCAN");
                let name = self
                    .table
                    .as_ref()
                    .and_then(|table| table.indexes.iter().find(|it| Some(&it.sql_name) == access.index.as_ref()));
                if let Some(index) = name {
                    input.append("keyPattern", &index.spec.key);
                    input.append("indexName", index.spec.name.as_str());
                }
            }
            access => {
                writer.append("stage", "COLLSCAN");
                if let Some(condition) = &access.condition {
                    writer.append("serverFilter", condition.sql.as_str());
                }
                writer.append("direction", if access.forward { "forward" } else { "backward" });
            }
        })
    }
}
