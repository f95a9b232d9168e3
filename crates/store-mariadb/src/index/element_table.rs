//! The values within arrays: a table beside an index, with a row for each element of an array, kept by triggers.
//!
//! It is made when the first array turns up in an indexed field: triggers cost every insert 3 µs of the server's time, and most
//! fields never have one. Until then (and where the server does not let us create triggers) an array is a key that every lookup reads.
//! What rows it has is said by [`definition`], what is looked up in it by the planner. A unique index gets a second one ([`unique`]).
//! Paths with numbers in them have none.

pub(crate) mod definition;
pub(crate) mod record;
mod unique;

use record::{ElementTable, ElementTableState, PREFIX};

use crate::catalog::own_schema;
use crate::catalog::row_key::RowKey;
use crate::catalog::table::Table;
use crate::index::{Index, column_key, has_number, meets_array};
use crate::store::MariaDbStore;
use document::Doc;
use mariadb_client::{Connection, Event, Result, named_lock, quote};
use mariadb_wire::Param;
use store::IndexKind;

/// How long to wait for somebody who makes the same table.
const WAIT_SECONDS: u32 = 600;

/// How long to wait for transactions that have the collection's table in use.
const TABLE_WAIT_SECONDS: u64 = 3;

/// Whether a table's name is that of one of these tables: what is written there is written beside a document.
pub(crate) fn is_name(table: &str) -> bool {
    let hash = [PREFIX, unique::PREFIX].iter().find_map(|prefix| table.strip_prefix(prefix));
    hash.is_some_and(|hash| hash.len() == 16)
}

/// Whether the values of arrays in this index can have a table.
pub(crate) fn is_suitable(index: &Index, table: &Table) -> bool {
    let can_have = index.has_column_keys() && *index.kind() == IndexKind::Ordered && table.row_key == RowKey::Sequence;
    can_have && !index.fields().any(has_number)
}

/// Makes the tables that these documents, which are about to be written, call for. That it cannot be done is no failure.
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
        match index.element_table() {
            _ if fields == 0 => {}
            Some(values) => {
                let values = ElementTable { fields: values.fields | fields, ..values.clone() };
                remember(connection, table, index, Some(values.record())).await?;
                store.catalog.invalidate_all();
            }
            // A unique index refuses the document without, so what may have been in the way is tried again.
            None if !index.spec.unique && store.no_triggers.borrow().contains(&table.quoted) => {}
            None => create(store, connection, table, index, fields).await?,
        }
    }
    Ok(())
}

/// Makes the tables that the documents of a new index call for.
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
            // Without its table it would not be unique.
            fields if index.spec.unique => create_locked(connection, table, index, fields).await?,
            fields => create(store, connection, table, index, fields).await?,
        }
    }
    Ok(())
}

/// Makes an index's table, unless somebody else has meanwhile. `fields`: those that have met an array.
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
    // Whoever waits for a table in use has all others wait behind it.
    connection.queue_query(&format!("SET lock_wait_timeout = {TABLE_WAIT_SECONDS}"));
    connection.finish().await?;
    let outcome = create_locked(connection, table, index, fields).await;
    connection.queue_query("SET lock_wait_timeout = DEFAULT");
    connection.finish().await?;
    named_lock::release(connection, &lock).await?;
    store.catalog.invalidate_all();
    match outcome {
        Err(failure) if !failure.is_lost() && index.pending_element_table().is_none() => {
            let what = if index.spec.unique { "refused" } else { "read by every lookup" };
            tracing::warn!("arrays in index '{}' of {} are {what}: {failure}", index.spec.name, table.quoted);
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
    // Who does not know of the tables reads more than need be, but nothing is missing.
    remember(connection, table, index, Some(values.record())).await
}

async fn remember(connection: &mut Connection, table: &Table, index: &Index, values: Option<String>) -> Result<()> {
    own_schema::set_index_table(connection, table.record_key(index), values).await
}

/// Drops an index's tables and their triggers.
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

/// Makes the tables of unique indexes again, which [`drop_all`] has dropped: these are needed.
pub(crate) async fn restore_unique(connection: &mut Connection, table: &Table) -> Result<()> {
    for index in &table.indexes {
        if let Some(pending) = index.pending_element_table() {
            create_locked(connection, table, index, pending.fields).await?;
        }
    }
    Ok(())
}

/// Drops the tables of these indexes; lookups do without them. Those of unique ones are owed from now on, while the index is there.
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
