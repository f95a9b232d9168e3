//! Element tables: a table beside an index with a row for each element of an array, maintained by
//! triggers.
//!
//! It is created when the first array is written to an indexed field: triggers cost every insert 3
//! µs of the server's time, and most fields never have an array. Until then (and if the server does
//! not allow triggers) all arrays have one key, which every lookup reads. [`definition`] determines
//! its rows, the planner the lookups in it. A unique index has a second table ([`unique`]). Indexes
//! on paths with numbers have none.

pub(crate) mod definition;
pub(crate) mod record;
mod unique;

pub(crate) use record::is_name;
use record::{ElementTable, ElementTableState};

use crate::accounts::documents_account;
use crate::catalog::row_key::RowKey;
use crate::catalog::table::Table;
use crate::catalog::{cluster_lock, own_schema};
use crate::index::{Index, column_key, has_number, meets_array};
use crate::store::MariaDbStore;
use document::Doc;
use mariadb_client::{Connection, Event, Result, named_lock, quote};
use mariadb_wire::Param;
use store::IndexKind;
use store::transaction::write_conflict;

/// How long to wait while another session creates the same table.
const WAIT_SECONDS: u32 = 600;

/// How long to wait for transactions that use the collection's table.
const TABLE_WAIT_SECONDS: u64 = 3;

/// Returns whether an index may have an element table.
pub(crate) fn is_suitable(index: &Index, table: &Table) -> bool {
    let can_have = index.has_column_keys()
        && *index.kind() == IndexKind::Ordered
        && table.row_key == RowKey::Sequence
        && !table.is_sharded;
    can_have && !index.fields().any(has_number)
}

/// Creates the element tables that documents about to be written need. If that is impossible, it is
/// no failure.
pub(crate) async fn prepare<'d>(
    store: &MariaDbStore,
    connection: &mut Connection,
    table: &Table,
    documents: impl Iterator<Item = Doc<'d>> + Clone,
) -> Result<()> {
    for index in table.indexes.iter().filter(|index| is_suitable(index, table)) {
        let known = index.element_table().map_or(0, |values| values.fields);
        let unknown = index.fields().enumerate().filter(|(position, _)| known & 1 << position == 0);
        let met = unknown.filter(|(_, path)| documents.clone().any(|document| meets_array(document, path)));
        let pending = index.pending_element_table().map_or(0, |table| table.fields);
        let fields = met.fold(pending, |fields, (position, _)| fields | 1 << position);
        if fields == 0 {
            continue;
        }
        if let Some(inside) = &store.inside {
            // MariaDB cannot change definitions within a transaction. Arrays in other indexes are
            // read by every lookup until a write outside of one meets them.
            if index.spec.unique && index.element_table().is_none() {
                // The transaction must end for that; its repetition finds the table.
                inside.transaction.abort();
                store.transactions.wait_for_rollbacks().await;
                create(store, &mut *store.pool.lease().await?, table, index, fields).await?;
                return Err(write_conflict().into());
            }
            if index.element_table().is_none() {
                continue;
            }
        }
        // Definitions are not changed by the account for documents.
        let mut of_gateway = match store.accounts.is_some() || store.inside.is_some() {
            true => Some(store.pool.lease().await?),
            false => None,
        };
        let connection = of_gateway.as_deref_mut().unwrap_or(&mut *connection);
        match index.element_table() {
            Some(values) => {
                let values = ElementTable { fields: values.fields | fields, ..values.clone() };
                remember(connection, table, index, Some(values.record())).await?;
                store.catalog.invalidate_all();
            }
            // Without its table a unique index refuses the document, so creating it is tried again.
            None if !index.spec.unique && store.no_triggers.borrow().contains(&table.quoted) => {}
            None => create(store, connection, table, index, fields).await?,
        }
    }
    Ok(())
}

/// Creates the element tables that a new index needs.
pub(crate) async fn prepare_new(
    store: &MariaDbStore,
    connection: &mut Connection,
    table: &Table,
    indexes: &[Index],
) -> Result<()> {
    for index in indexes.iter().filter(|index| is_suitable(index, table)) {
        let array = column_key::ARRAY;
        let bit = |position| format!("COALESCE({} = {array}, 0) << {position}", quote(index.column(position)));
        let bits = (0..index.fields().count()).map(bit).collect::<Vec<_>>().join(" | ");
        let sql = format!("SELECT BIT_OR({bits}) FROM {} FORCE INDEX ({})", table.quoted, quote(&index.sql_name));
        connection.queue_execute(&sql.into(), &[]);
        match one_number(connection).await? {
            0 => {}
            // Without the table it would not be unique.
            fields if index.spec.unique => create_locked(connection, table, index, fields).await?,
            fields => create(store, connection, table, index, fields).await?,
        }
    }
    Ok(())
}

/// Creates an index's table, unless another session has. `fields`: those that have met an array.
async fn create(
    store: &MariaDbStore,
    connection: &mut Connection,
    table: &Table,
    index: &Index,
    fields: u64,
) -> Result<()> {
    let lock = format!("selkie {:.50}", format!("{}{}", index.sql_name, table.quoted));
    if !named_lock::take(connection, &lock, WAIT_SECONDS).await? {
        return Ok(());
    }
    // Other sessions wait behind a statement that waits for the table.
    connection.queue_query(&format!("SET lock_wait_timeout = {TABLE_WAIT_SECONDS}"));
    connection.finish().await?;
    let creating = async |connection: &mut Connection| create_locked(connection, table, index, fields).await;
    let cluster = store.catalog.cluster_locks.as_ref();
    let outcome = cluster_lock::across_nodes(cluster, connection, std::slice::from_ref(&lock), creating).await;
    connection.queue_query("SET lock_wait_timeout = DEFAULT");
    connection.finish().await?;
    named_lock::release(connection, &lock).await?;
    store.catalog.invalidate_all();
    match outcome {
        Err(failure) if !failure.is_lost() && index.pending_element_table().is_none() => {
            let treatment = if index.spec.unique { "refused" } else { "read by every lookup" };
            tracing::warn!("arrays in index '{}' of {} are {treatment}: {failure}", index.spec.name, table.quoted);
            store.no_triggers.borrow_mut().insert(table.quoted.clone());
            Ok(())
        }
        outcome => outcome,
    }
}

async fn create_locked(connection: &mut Connection, table: &Table, index: &Index, fields: u64) -> Result<()> {
    let id = [&table.schema, &table.name, &index.sql_name].map(|text| Param::Text(text.as_bytes()));
    let sql = "SELECT values_table FROM selkie.indexes WHERE schema_name = ? AND table_name = ? AND sql_name = ?";
    let mut known = None;
    own_schema::query(connection, &sql.into(), &id, |row| {
        if let [Some(text)] = row {
            known = Some(own_schema::text_of(text.clone())?);
        }
        Ok(())
    })
    .await?;
    let state = known.as_deref().map_or(ElementTableState::Absent, ElementTableState::read);
    let pending = match state {
        ElementTableState::Present(_) => return Ok(()),
        ElementTableState::PendingRepair(pending) => Some(pending),
        ElementTableState::Absent => None,
    };
    if let Some(pending) = &pending {
        drop_table(connection, &table.schema, &pending.name).await?;
    }
    let values = ElementTable::new(fields | pending.as_ref().map_or(0, |pending| pending.fields));
    let mut statements = definition::statements(table, index, &values);
    if index.spec.unique {
        statements.extend(unique::statements(table, index, &values));
        remember(connection, table, index, Some(values.pending_record())).await?;
    }
    for sql in statements {
        connection.queue_query(&sql);
        if let Err(failure) = connection.finish().await {
            if !failure.is_lost() {
                drop_table(connection, &table.schema, &values.name).await?;
                remember(connection, table, index, pending.as_ref().map(ElementTable::pending_record)).await?;
            }
            return Err(failure);
        }
    }
    for name in [values.name.clone(), unique::table_name(&values.name)] {
        documents_account::grant_on_table_beside(connection, &table.schema, &name).await?;
    }
    // A gateway that does not know the table yet reads more than needed, but misses nothing.
    remember(connection, table, index, Some(values.record())).await
}

async fn remember(connection: &mut Connection, table: &Table, index: &Index, values: Option<String>) -> Result<()> {
    own_schema::set_index_table(connection, table.record_key(index), values).await
}

/// Drops an index's element tables and their triggers.
pub(crate) async fn drop_table(connection: &mut Connection, schema: &str, name: &str) -> Result<()> {
    for name in [name, &unique::table_name(name)] {
        for event in ["insert", "update", "delete"] {
            let trigger = quote(&format!("{name}.{event}"));
            connection.queue_query(&format!("DROP TRIGGER IF EXISTS {}.{trigger}", quote(schema)));
            connection.finish().await?;
        }
        connection.queue_query(&format!("DROP TABLE IF EXISTS {}.{}", quote(schema), quote(name)));
        connection.finish().await?;
    }
    Ok(())
}

/// Creates the tables of unique indexes again, after [`drop_all`]: they are required.
pub(crate) async fn restore_unique(connection: &mut Connection, table: &Table) -> Result<()> {
    for index in &table.indexes {
        if let Some(pending) = index.pending_element_table() {
            create_locked(connection, table, index, pending.fields).await?;
        }
    }
    Ok(())
}

/// Drops the tables of these indexes; lookups work without them. Those of unique indexes are
/// pending repair from now on, while the index exists.
pub(crate) async fn drop_all(connection: &mut Connection, table: &Table, indexes: &[Index]) -> Result<()> {
    for index in indexes {
        let Some(values) = index.element_table().or(index.pending_element_table()) else { continue };
        remember(connection, table, index, index.spec.unique.then(|| values.pending_record())).await?;
        drop_table(connection, &table.schema, &values.name).await?;
    }
    Ok(())
}

async fn one_number(connection: &mut Connection) -> Result<u64> {
    let mut number = 0;
    while let Event::Row(range) = connection.next().await? {
        number = connection.row(range)?.next_u64()?;
    }
    Ok(number)
}
