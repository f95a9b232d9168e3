//! `createIndexes`, `dropIndexes`, `listIndexes`.

use crate::catalog::table::Table;
use crate::catalog::{TableLookup, collections, exclusive_change};
use crate::encoding;
use crate::index::build::Build;
use crate::index::side_index::side_table::Duplicates;
use crate::index::{self, Index, alter_table, column_key, element_table, id_index, records, side_index};
use crate::sharding::{self, layout};
use crate::store::MariaDbStore;
use ahash::AHashSet;
use document::{Doc, DocBuf, Value};
use error::{Code, Error};
use index_keys::IndexShape;
use index_keys::keys::{self, Key};
use mariadb_client::{Connection, Event, Failure, Result, quote, server_error};
use std::sync::Arc;
use store::{
    CreateIndexesOutcome, IndexKind, IndexSelection, IndexSpec, Namespace, Progress, index_rules, index_selection,
};

pub(crate) async fn create(
    store: &MariaDbStore,
    namespace: &Namespace,
    specs: Vec<IndexSpec>,
    progress: &Progress,
) -> Result<CreateIndexesOutcome> {
    for spec in &specs {
        index_rules::check_key(spec)?;
    }
    if let Some(outcome) = all_there(store, namespace, &specs).await? {
        return Ok(outcome);
    }
    let mut created_collection = false;
    let outcome = exclusive_change::exclusively(store, &[namespace], async |connection| {
        let wanted = CreateRequest::find(store, connection, namespace, specs.clone()).await?;
        created_collection |= wanted.outcome.created_collection;
        create_locked(store, connection, namespace, wanted, progress).await
    })
    .await?;
    Ok(CreateIndexesOutcome { created_collection, ..outcome })
}

/// Returns the outcome if no index is new, which needs no lock; `None` otherwise.
pub(crate) async fn all_there(
    store: &MariaDbStore,
    namespace: &Namespace,
    specs: &[IndexSpec],
) -> Result<Option<CreateIndexesOutcome>> {
    let mut lease = store.pool.lease_for(namespace).await?;
    store.catalog.invalidate(namespace);
    let Some(table) = store.catalog.table(&mut lease, namespace).await? else { return Ok(None) };
    if !unfinished(&table, specs).is_empty() {
        return Ok(None);
    }
    let known = existing(&table);
    let nothing_new = index_rules::new_indexes(specs.to_vec(), &known).is_ok_and(|new| new.is_empty());
    let (indexes_before, indexes_after) = (known.len(), known.len());
    Ok(nothing_new.then_some(CreateIndexesOutcome { indexes_before, indexes_after, created_collection: false }))
}

/// Returns the indexes of these names that are being created, or that a killed gateway left
/// unfinished.
fn unfinished(table: &Table, specs: &[IndexSpec]) -> Vec<Index> {
    let is_meant = |index: &&Index| index.is_unfinished() && specs.iter().any(|spec| spec.name == index.spec.name);
    table.indexes.iter().filter(is_meant).cloned().collect()
}

/// The indexes to create.
struct CreateRequest {
    table: Arc<Table>,
    indexes: Vec<Index>,
    outcome: CreateIndexesOutcome,
}

impl CreateRequest {
    async fn find(
        store: &MariaDbStore,
        lease: &mut Connection,
        namespace: &Namespace,
        specs: Vec<IndexSpec>,
    ) -> Result<CreateRequest> {
        store.catalog.invalidate(namespace);
        if store.catalog.table(lease, namespace).await?.is_none() {
            // A refused request must not create the collection.
            index_rules::new_indexes(specs.clone(), &[id_index()])?;
        }
        let (mut table, created_collection) = store.catalog.table_or_create(lease, namespace).await?;
        // With the lock held, an unfinished index was left by a killed gateway.
        let left = unfinished(&table, &specs);
        if !left.is_empty() {
            drop_indexes(lease, &table, &left).await?;
            store.catalog.invalidate(namespace);
            table = store.catalog.table_or_create(lease, namespace).await?.0;
        }
        let known = existing(&table);
        let indexes_before = known.len();
        let new = match index_rules::new_indexes(specs, &known) {
            Err(error) if error.code() == Code::INDEX_ALREADY_EXISTS && holds_documents(lease, &table).await? => {
                return Err(index_rules::requested_twice(error).into());
            }
            new => new?,
        };
        let indexes: Vec<Index> = new.into_iter().map(Index::new).collect();
        indexes.iter().try_for_each(Index::check)?;
        index::check_column_names(&table.indexes, &indexes)?;
        if table.is_sharded {
            let layout = layout::of_sharded(lease, &table.schema, &table.name).await?;
            indexes.iter().try_for_each(|index| sharding::indexes::check(namespace, index, &layout))?;
        }
        if let Some(index) =
            indexes.iter().find(|index| index.needs_side_table() && !side_index::is_suitable(index, &table))
        {
            return Err(index.unsuitable_table(&table.quoted).into());
        }
        let indexes_after = indexes_before + indexes.len();
        let outcome = CreateIndexesOutcome { indexes_before, indexes_after, created_collection };
        Ok(CreateRequest { table, indexes, outcome })
    }
}

/// Creates indexes. The caller must hold the collection's lock.
async fn create_locked(
    store: &MariaDbStore,
    lease: &mut Connection,
    namespace: &Namespace,
    wanted: CreateRequest,
    progress: &Progress,
) -> Result<CreateIndexesOutcome> {
    let CreateRequest { table, indexes: wanted, outcome } = wanted;
    if wanted.is_empty() {
        return Ok(outcome);
    }
    // Delete records of earlier indexes of a table that SQL has dropped.
    records::delete(lease, &table.schema, &table.name, &wanted).await?;
    records::insert(lease, &table.schema, &table.name, outcome.indexes_before, &wanted).await?;
    let build = Build::begin(store, lease, &table, namespace, &wanted, progress).await?;
    let added = add(lease, namespace, &table, &wanted, &build).await;
    // Keep the records of indexes that exist already: the next lookup finds them by these.
    let exists =
        |failure: &Failure| matches!(failure.sql_code(), Some(server_error::COLUMN_EXISTS | server_error::KEY_EXISTS));
    if added.as_ref().is_err_and(|failure| !exists(failure)) {
        records::delete(lease, &table.schema, &table.name, &wanted).await?;
    }
    store.catalog.invalidate(namespace);
    let wanted = match added {
        Ok(added) => added,
        Err(failure) => return Err(build_failed(lease, namespace, &table, failure).await?),
    };
    let filled = async {
        check_added(lease, &table, &wanted).await?;
        element_table::prepare_new(store, lease, &table, &wanted).await?;
        side_index::make(store, lease, &table, &wanted, Duplicates::Refused, Some(progress)).await
    };
    if let Err(failure) = filled.await {
        store.catalog.invalidate(namespace);
        if failure.is_lost() {
            return Err(failure);
        }
        undo(store, lease, namespace, &wanted).await?;
        let is_duplicate =
            matches!(failure.sql_code(), Some(server_error::DUPLICATE_ENTRY | server_error::COLUMN_NOT_NULL));
        let reported = if is_duplicate { duplicate(lease, namespace, &table, &wanted).await? } else { None };
        return Err(build_failed(lease, namespace, &table, reported.unwrap_or(failure)).await?);
    }
    build.end();
    Ok(outcome)
}

/// Returns the failure for the client, which names the build that it ended.
async fn build_failed(
    lease: &mut Connection,
    namespace: &Namespace,
    table: &Table,
    failure: Failure,
) -> Result<Failure> {
    let Failure::Other(error) = failure else { return Ok(failure) };
    let uuid = collections::collection_info(lease, table).await?.uuid;
    Ok(index_rules::build_failed(namespace, uuid, error).into())
}

/// Drops new indexes of which some could not be created, with their tables.
async fn undo(
    store: &MariaDbStore,
    connection: &mut Connection,
    namespace: &Namespace,
    wanted: &[Index],
) -> Result<()> {
    let Some(table) = store.catalog.table(connection, namespace).await? else { return Ok(()) };
    let is_wanted = |index: &&Index| wanted.iter().any(|other| other.sql_name == index.sql_name);
    let indexes: Vec<Index> = table.indexes.iter().filter(is_wanted).cloned().collect();
    drop_indexes(connection, &table, &indexes).await
}

/// Drops indexes with their tables and records.
async fn drop_indexes(connection: &mut Connection, table: &Table, indexes: &[Index]) -> Result<()> {
    element_table::drop_all(connection, table, indexes).await?;
    side_index::drop_all(connection, table, indexes).await?;
    if table.is_sharded {
        sharding::indexes::drop(connection, table, indexes).await?;
    } else {
        connection.queue_query(&alter_table::drop_clause(table, indexes));
        connection.finish().await?;
    }
    records::delete(connection, &table.schema, &table.name, indexes).await
}

async fn holds_documents(connection: &mut Connection, table: &Table) -> Result<bool> {
    connection.queue_execute(&format!("SELECT 1 FROM {} LIMIT 1", table.quoted).into(), &[]);
    let mut found = false;
    while let Event::Row(_) = connection.next().await? {
        found = true;
    }
    Ok(found)
}

fn existing(table: &Table) -> Vec<IndexSpec> {
    std::iter::once(id_index()).chain(table.indexes.iter().map(|index| (*index.spec).clone())).collect()
}

/// Adds indexes to a table; returns them in their final form: see [`fitted`].
async fn add(
    connection: &mut Connection,
    namespace: &Namespace,
    table: &Arc<Table>,
    wanted: &[Index],
    build: &Build<'_>,
) -> Result<Vec<Index>> {
    for index in wanted.iter().filter(|index| index.may_refuse_documents() && !is_checked_by_columns(index)) {
        check_documents(connection, table, index, &index.refused_condition()).await?;
    }
    if table.is_sharded {
        return match build.run(sharding::indexes::add(connection, table, wanted)).await {
            Err(failure) if has_no_room(&failure) => Err(no_room(&failure)),
            outcome => outcome.map(|()| wanted.to_vec()),
        };
    }
    let mut wanted = wanted.to_vec();
    connection.queue_query(&alter_table::create_clause(&table.quoted, &wanted, &[]));
    let mut made = build.run(connection.finish()).await;
    if made.as_ref().is_err_and(has_no_room) {
        wanted = fitted(connection, table, &wanted).await?;
        connection.queue_query(&alter_table::create_clause(&table.quoted, &wanted, &[]));
        made = build.run(connection.finish()).await;
    }
    let has_table = |index: &Index| !index.spec.unique || element_table::is_suitable(index, table);
    if made.as_ref().is_err_and(|failure| failure.sql_code() == Some(server_error::CHECK_VIOLATED))
        && wanted.iter().all(has_table)
    {
        // Uniqueness of indexes with arrays is ensured by `element_table`.
        let mut relaxed = Vec::new();
        for index in wanted.iter().filter(|index| index.spec.unique) {
            if check_documents(connection, table, index, &index.refused_condition()).await? {
                relaxed.push(index.sql_name.as_str());
            }
        }
        connection.queue_query(&alter_table::create_clause(&table.quoted, &wanted, &relaxed));
        made = build.run(connection.finish()).await;
    }
    match made {
        Err(failure) if failure.sql_code() == Some(server_error::DUPLICATE_ENTRY) => {
            Err(duplicate(connection, namespace, table, &wanted).await?.unwrap_or(failure))
        }
        Err(failure) if failure.sql_code() == Some(server_error::CHECK_VIOLATED) => {
            Err(index::array_in_unique().into())
        }
        Err(failure) if has_no_room(&failure) => Err(no_room(&failure)),
        outcome => outcome.map(|_| wanted),
    }
}

fn has_no_room(failure: &Failure) -> bool {
    matches!(
        failure.sql_code(),
        Some(server_error::DEFINITION_TOO_LARGE | server_error::ROW_TOO_LARGE | server_error::TOO_MANY_KEYS)
    )
}

fn no_room(failure: &Failure) -> Failure {
    let message = format!("a table in MariaDB has no room for so many indexes: {failure}");
    Error::new(Code::CANNOT_CREATE_INDEX, message).into()
}

/// Returns indexes in forms that fit into a table: the first ones keep their columns, the others
/// become side indexes. That is tried with an empty table, which is fast. Fails with 67 if an index
/// must have columns.
async fn fitted(connection: &mut Connection, table: &Table, wanted: &[Index]) -> Result<Vec<Index>> {
    let trial = format!("{}.{}", quote(&table.schema), quote(TRIAL));
    let outcome = fitted_into(connection, table, wanted, &trial).await;
    if outcome.as_ref().is_err_and(Failure::is_lost) {
        return outcome;
    }
    connection.queue_query(&format!("DROP TEMPORARY TABLE IF EXISTS {trial}"));
    connection.finish().await?;
    outcome
}

/// The name of a temporary table, which other connections do not see.
const TRIAL: &str = "~trial~";

async fn fitted_into(connection: &mut Connection, table: &Table, wanted: &[Index], trial: &str) -> Result<Vec<Index>> {
    connection.queue_query(&format!("CREATE TEMPORARY TABLE {trial} LIKE {}", table.quoted));
    connection.finish().await?;
    let mut fitted = Vec::with_capacity(wanted.len());
    for index in wanted {
        connection.queue_query(&alter_table::create_clause(trial, std::slice::from_ref(index), &[]));
        fitted.push(match connection.finish().await {
            Ok(_) => index.clone(),
            Err(failure) if has_no_room(&failure) => Index::spilled((*index.spec).clone())
                .filter(|index| side_index::is_suitable(index, table))
                .ok_or_else(|| no_room(&failure))?,
            Err(failure) => return Err(failure),
        });
    }
    Ok(fitted)
}

/// Returns whether refused documents, those with two parallel arrays, can be found by the index's
/// columns once they exist: finding them in the documents before takes a tenth of a build.
fn is_checked_by_columns(index: &Index) -> bool {
    let is_compound = *index.kind() == IndexKind::Ordered && index.fields().nth(1).is_some();
    is_compound && !index.spec.unique && !index.fields().any(index::has_number)
}

/// Fails for the first document that one of these new indexes refuses.
async fn check_added(connection: &mut Connection, table: &Table, added: &[Index]) -> Result<()> {
    for index in added.iter().filter(|index| index.may_refuse_documents() && is_checked_by_columns(index)) {
        let condition = match index.has_column_keys() {
            true => {
                let is_array =
                    |position| format!("COALESCE({} = {}, 0)", quote(index.column(position)), column_key::ARRAY);
                let arrays = (0..index.fields().count()).map(is_array);
                format!("{} >= 2", arrays.collect::<Vec<_>>().join(" + "))
            }
            // It has become a side index.
            false => index.refused_condition(),
        };
        check_documents(connection, table, index, &condition).await?;
    }
    Ok(())
}

/// Fails for the first document that an index refuses; returns whether any documents had to be
/// checked.
async fn check_documents(connection: &mut Connection, table: &Table, index: &Index, condition: &str) -> Result<bool> {
    let key = table.row_key.column();
    let sql = format!("SELECT doc FROM {} WHERE {condition} ORDER BY {key}", table.quoted);
    connection.queue_execute(&sql.into(), &[]);
    let (mut bson, mut refused, mut any) = (Vec::new(), Ok(()), false);
    while let Event::Row(range) = connection.next().await? {
        any = true;
        let mut row = connection.row(range)?;
        let (Some(json), true) = (row.next_bytes()?, refused.is_ok()) else { continue };
        bson.clear();
        encoding::decode(json, &mut bson)?;
        refused = index.check_document(Doc::from_bytes(&bson).unwrap_or(Doc::EMPTY));
    }
    refused?;
    Ok(any)
}

/// Returns the error of the first of these unique indexes with a duplicate key.
async fn duplicate(
    connection: &mut Connection,
    namespace: &Namespace,
    table: &Table,
    wanted: &[Index],
) -> Result<Option<Failure>> {
    for index in wanted.iter().filter(|index| index.spec.unique) {
        if let Some(error) = first_duplicate(connection, namespace, table, index).await? {
            return Ok(Some(error.into()));
        }
    }
    Ok(None)
}

/// Returns the error of the least duplicate key of an index.
async fn first_duplicate(
    connection: &mut Connection,
    namespace: &Namespace,
    table: &Table,
    index: &Index,
) -> Result<Option<Error>> {
    let shape = IndexShape::new((*index.spec).clone())?;
    connection.queue_execute(&format!("SELECT doc FROM {}", table.quoted).into(), &[]);
    let (mut seen, mut bson, mut found) = (AHashSet::new(), Vec::new(), None::<(Key, DocBuf)>);
    while let Event::Row(range) = connection.next().await? {
        let mut row = connection.row(range)?;
        let Some(json) = row.next_bytes()? else { continue };
        bson.clear();
        encoding::decode(json, &mut bson)?;
        let document = Doc::from_bytes(&bson).unwrap_or(Doc::EMPTY);
        // A document without keys is refused for another reason.
        for key in keys::index_keys(document, &shape).unwrap_or_default() {
            if !seen.contains(&key) {
                seen.insert(key);
            } else if found.as_ref().is_none_or(|(least, _)| key < *least) {
                let values = keys::key_values(document, &shape, &key);
                found = Some((key, values));
            }
        }
    }
    Ok(found.map(|(_, values)| {
        let (name, pattern) = (&index.spec.name, index.spec.key.as_doc());
        store::duplicate::duplicate_key(namespace, name, pattern, values.as_doc(), &index.collation())
    }))
}

/// Sets the specification of an index. Fails with 26 or 27 if the collection or index does not
/// exist.
pub(crate) async fn modify(store: &MariaDbStore, namespace: &Namespace, spec: IndexSpec) -> Result<()> {
    let modify = async |connection: &mut Connection| {
        let TableLookup::Collection(table) = store.catalog.read(connection, namespace).await? else {
            return Err(Error::new(Code::NAMESPACE_NOT_FOUND, format!("ns not found {namespace}")).into());
        };
        let Some(position) = table.indexes.iter().position(|index| index.spec.name == spec.name) else {
            let message = format!("cannot find index {} for ns {namespace}", spec.name);
            return Err(Error::new(Code::INDEX_NOT_FOUND, message).into());
        };
        if spec.spec.as_doc().get("prepareUnique").is_some_and(Value::is_truthy) {
            let message = "indexes cannot be prepared to be unique on MariaDB: drop the index and create a unique one";
            return Err(Error::new(Code::NOT_IMPLEMENTED, message).into());
        }
        records::insert(connection, &table.schema, &table.name, position + 1, &[Index::new(spec.clone())]).await
    };
    exclusive_change::exclusively(store, &[namespace], modify).await
}

/// Drops indexes; returns how many there were before.
pub(crate) async fn drop(store: &MariaDbStore, namespace: &Namespace, which: IndexSelection) -> Result<usize> {
    exclusive_change::exclusively(store, &[namespace], async |connection| {
        drop_locked(store, connection, namespace, &which).await
    })
    .await
}

async fn drop_locked(
    store: &MariaDbStore,
    lease: &mut Connection,
    namespace: &Namespace,
    which: &IndexSelection,
) -> Result<usize> {
    let TableLookup::Collection(table) = store.catalog.read(lease, namespace).await? else {
        return Err(Error::new(Code::NAMESPACE_NOT_FOUND, format!("ns not found {namespace}")).into());
    };
    let specs: Vec<&IndexSpec> = table.indexes.iter().map(|index| &*index.spec).collect();
    let selected = index_selection::select(&specs, which)?;
    let chosen: Vec<Index> = selected.into_iter().filter_map(|position| table.indexes.get(position).cloned()).collect();
    if !chosen.is_empty() {
        drop_indexes(lease, &table, &chosen).await?;
    }
    Ok(table.indexes.len() + 1)
}

pub(crate) async fn list(store: &MariaDbStore, namespace: &Namespace) -> Result<Option<Vec<IndexSpec>>> {
    let mut lease = store.pool.lease_for(namespace).await?;
    store.catalog.invalidate(namespace);
    Ok(store.catalog.table(&mut lease, namespace).await?.map(|table| existing(&table)))
}

/// As [`list`], from the catalog.
pub(crate) async fn known(store: &MariaDbStore, namespace: &Namespace) -> Result<Option<Vec<IndexSpec>>> {
    Ok(store.known_table(namespace).await?.map(|table| existing(&table)))
}
