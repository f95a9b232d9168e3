//! The tables that a reader of the log knows: which hold collections, and under which names and
//! UUIDs.
//!
//! The log has neither, and by default not even the names of columns. They are looked up on the
//! server when rows of a table are first read, and follow the log from then on. A stream that
//! reads old files may find that a table was dropped or replaced since. Then it recognizes tables
//! that Selkie has created by the types of their columns, and may show another UUID.

use super::row_values::lost;
use crate::catalog::names;
use crate::catalog::table_columns::{ColumnInfo, table_shape};
use crate::index::element_table::record;
use crate::index::side_index::side_table;
use ::store::Namespace;
use ::store::change_feed::keeps_images;
use ahash::AHashMap;
use document::DocBuf;
use mariadb_binlog::TableName;
use mariadb_client::{Result, TextConnection, TextValues};
use mariadb_wire::Param;
use mariadb_wire::binlog::table_map::TableMap;
use std::sync::Arc;

/// Tables known; past this number all are looked up again.
const TABLES_MAX: usize = 20_000;

/// The column of documents in a table that Selkie has created.
const NATIVE_DOC_COLUMN: usize = 2;

/// A collection's record in Selkie's own schema.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Record {
    pub collection: Box<str>,
    pub uuid: [u8; 16],
    pub options: DocBuf,
}

/// A table that holds a collection.
#[derive(Clone, Debug)]
pub(super) struct CollectionTable {
    pub namespace: Namespace,
    pub uuid: [u8; 16],
    pub keeps_images: bool,
    pub doc_column: usize,
}

/// The name and UUID of a collection.
pub(super) struct NamedCollection {
    pub namespace: Namespace,
    pub uuid: [u8; 16],
}

#[derive(Default)]
struct KnownTable {
    record: Option<Record>,
    /// The record was looked up, or has been read in the log.
    is_record_known: bool,
    /// The table, and the number of its columns; the table is `None` if it holds no collection.
    table: Option<(usize, Option<Arc<CollectionTable>>)>,
}

#[derive(Default)]
pub(super) struct KnownTables {
    tables: AHashMap<Arc<TableName>, KnownTable>,
    /// All records are known, so a table without one has none.
    is_complete: bool,
}

const RECORD: &str =
    "SELECT collection, HEX(uuid), HEX(options) FROM selkie.collections WHERE schema_name = ? AND table_name = ?";

const ALL_RECORDS: &str = "SELECT schema_name, table_name, collection, HEX(uuid), HEX(options) FROM selkie.collections";

const COLUMNS: &str = "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_KEY, EXTRA, GENERATION_EXPRESSION, IS_NULLABLE, \
     IF(COLUMN_DEFAULT IS NULL, '0', '1') FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? \
     ORDER BY ORDINAL_POSITION";

impl KnownTables {
    /// Reads the records of all collections.
    pub async fn load(&mut self, queries: &mut TextConnection) -> Result<()> {
        let rows = match queries.slow_rows(ALL_RECORDS).await {
            Err(failure) if failure.is_missing_table() => Vec::new(),
            rows => rows?,
        };
        self.tables.clear();
        for row in &rows {
            if let [Some(schema), Some(table), rest @ ..] = row.as_slice()
                && let Some(record) = read_record(rest)
            {
                self.set_record(&TableName::new(schema, table), record);
            }
        }
        self.is_complete = true;
        Ok(())
    }

    /// Returns the collection whose rows follow; `None` if the table holds none. Fails with 286 if
    /// its rows cannot be understood.
    pub async fn collection(
        &mut self,
        map: &TableMap,
        queries: &mut TextConnection,
    ) -> Result<Option<Arc<CollectionTable>>> {
        let name = TableName { database: map.database.as_str().into(), table: map.table.as_str().into() };
        if let Some((columns, table)) = self.tables.get(&name).and_then(|known| known.table.as_ref())
            && *columns == map.columns.len()
        {
            return Ok(table.clone());
        }
        let table = match names::namespace(&name.database, &name.table).filter(|_| !is_internal(&name)) {
            None => None,
            Some(_) => self.look_up(&name, map, queries).await?.map(Arc::new),
        };
        self.make_room();
        self.tables.entry(Arc::new(name)).or_default().table = Some((map.columns.len(), table.clone()));
        Ok(table)
    }

    async fn look_up(
        &mut self,
        name: &TableName,
        map: &TableMap,
        queries: &mut TextConnection,
    ) -> Result<Option<CollectionTable>> {
        let record = self.record_of(name, queries).await?;
        let logged = map.names.as_ref().map(|names| names.iter().position(|name| name == "doc"));
        let doc_column = match (&record, logged) {
            (Some(_), Some(position)) => position,
            (Some(_), None) if is_native(map) => Some(NATIVE_DOC_COLUMN),
            _ => {
                let columns = columns(name, queries).await?;
                let position = columns.iter().position(|column| column.name == "doc");
                match columns.is_empty() {
                    // It was dropped since.
                    true => logged.flatten().or_else(|| is_native(map).then_some(NATIVE_DOC_COLUMN)),
                    false if table_shape(&columns).is_none() => return Ok(None),
                    false => logged.flatten().or(position.filter(|_| columns.len() == map.columns.len())),
                }
            }
        };
        let Some(doc_column) = doc_column else {
            return if record.is_some() { Err(lost()) } else { Ok(None) };
        };
        let NamedCollection { namespace, uuid } = named(name, record.as_ref());
        let keeps_images = record.is_some_and(|record| keeps_images(record.options.as_doc()));
        Ok(Some(CollectionTable { namespace, uuid, keeps_images, doc_column }))
    }

    /// Returns the collection's record; `None` if the table has none.
    async fn record_of(&mut self, name: &TableName, queries: &mut TextConnection) -> Result<Option<Record>> {
        if let Some(known) = self.tables.get(name).filter(|known| known.is_record_known) {
            return Ok(known.record.clone());
        }
        let params = [Param::Text(name.database.as_bytes()), Param::Text(name.table.as_bytes())];
        let rows = match queries.look_up(&RECORD.into(), &params, 3).await {
            Err(failure) if failure.is_missing_table() => Vec::new(),
            rows => rows?,
        };
        let record = rows.first().and_then(|row| read_record(row));
        self.make_room();
        let known = self.tables.entry(Arc::new(name.clone())).or_default();
        (known.record, known.is_record_known) = (record.clone(), true);
        Ok(record)
    }

    /// Returns the record as known from the log, or looked up.
    pub async fn record(&mut self, name: &TableName, queries: &mut TextConnection) -> Result<Option<Record>> {
        self.record_of(name, queries).await
    }

    /// Returns the collection that a table held that may not exist any more; `None` if it held
    /// none, as far as is known.
    pub async fn dropped(&mut self, name: &TableName, queries: &mut TextConnection) -> Result<Option<NamedCollection>> {
        if names::namespace(&name.database, &name.table).is_none() || is_internal(name) {
            return Ok(None);
        }
        let table = self.tables.get(name).and_then(|known| known.table.as_ref()).map(|(_, table)| table.clone());
        match table {
            Some(None) => Ok(None),
            Some(Some(table)) => Ok(Some(NamedCollection { namespace: table.namespace.clone(), uuid: table.uuid })),
            None => {
                let known = self.tables.get(name).and_then(|known| known.record.clone());
                let record = match known {
                    Some(record) => Some(record),
                    None if self.is_complete => return Ok(None),
                    None => self.record_of(name, queries).await?,
                };
                Ok(Some(named(name, record.as_ref())))
            }
        }
    }

    /// Returns the name of the collection that a table holds.
    pub async fn collection_name(
        &mut self,
        name: &TableName,
        queries: &mut TextConnection,
    ) -> Result<Option<Namespace>> {
        if names::namespace(&name.database, &name.table).is_none() || is_internal(name) {
            return Ok(None);
        }
        if !names::is_made_up(&name.table) {
            return Ok(Some(Namespace::new(&database(name), &name.table)));
        }
        // Its record may be that of a collection that had the name before.
        self.tables.remove(name);
        let record = self.record_of(name, queries).await?;
        self.tables.remove(name);
        Ok(Some(named(name, record.as_ref()).namespace))
    }

    /// Notes a record that has been read in the log.
    pub fn set_record(&mut self, name: &Arc<TableName>, record: Record) {
        self.make_room();
        let known = self.tables.entry(name.clone()).or_default();
        if let Some((_, Some(table))) = &mut known.table {
            let NamedCollection { namespace, uuid } = named(name, Some(&record));
            let keeps_images = keeps_images(record.options.as_doc());
            *table = Arc::new(CollectionTable { namespace, uuid, keeps_images, doc_column: table.doc_column });
        }
        (known.record, known.is_record_known) = (Some(record), true);
    }

    /// Notes that a record was deleted, unless the name is another collection's by now.
    pub fn forget_record(&mut self, name: &TableName, uuid: &[u8; 16]) {
        if self.tables.get(name).and_then(|known| known.record.as_ref()).is_some_and(|record| record.uuid == *uuid) {
            self.tables.remove(name);
        }
    }

    /// Forgets the columns of a table.
    pub fn forget_columns(&mut self, name: &TableName) {
        if let Some(known) = self.tables.get_mut(name) {
            known.table = None;
        }
    }

    /// Forgets a table that was dropped.
    pub fn forget(&mut self, name: &TableName) {
        self.tables.remove(name);
    }

    pub fn forget_database(&mut self, database: &str) {
        self.tables.retain(|name, _| &*name.database != database);
    }

    /// Notes a table's new name.
    pub fn rename(&mut self, from: &TableName, to: &Arc<TableName>) {
        if let Some(mut known) = self.tables.remove(from) {
            known.table = None;
            if let Some(record) = known.record.as_mut().filter(|_| !names::is_made_up(&to.table)) {
                record.collection = to.table.clone();
            }
            self.tables.insert(to.clone(), known);
        } else {
            self.tables.remove(to);
        }
    }

    fn make_room(&mut self) {
        // The records must stay if all are to be known.
        if self.tables.len() >= TABLES_MAX && !self.is_complete {
            self.tables.clear();
        }
    }
}

/// Returns whether a table belongs to an index, or was moved aside to be dropped.
fn is_internal(name: &TableName) -> bool {
    record::is_name(&name.table) || side_table::is_name(&name.table) || is_dropped(&name.table)
}

/// Returns whether a table was moved aside to be dropped.
pub(super) fn is_dropped(table: &str) -> bool {
    table.starts_with("~dropped~")
}

/// Returns the database of a table.
pub(super) fn database(name: &TableName) -> Box<str> {
    match names::namespace(&name.database, &name.table) {
        Some(namespace) => (*namespace.database).into(),
        None => name.database.clone(),
    }
}

fn named(name: &TableName, record: Option<&Record>) -> NamedCollection {
    let collection = record.map_or(&*name.table, |record| &record.collection);
    let uuid = record.map_or_else(|| names::derived_uuid(&name.database, &name.table), |record| record.uuid);
    NamedCollection { namespace: Namespace::new(&database(name), collection), uuid }
}

/// Returns whether the columns have the types of those of a table that Selkie has created.
fn is_native(map: &TableMap) -> bool {
    let is = |index: usize, check: fn(mariadb_wire::binlog::column::Column) -> bool| {
        map.columns.get(index).copied().is_some_and(check)
    };
    is(0, |column| column.is_numeric()) && is(1, |column| column.is_varchar()) && is(2, |column| column.is_blob())
}

async fn columns(name: &TableName, queries: &mut TextConnection) -> Result<Vec<ColumnInfo>> {
    let params = [Param::Text(name.database.as_bytes()), Param::Text(name.table.as_bytes())];
    let rows = queries.look_up(&COLUMNS.into(), &params, 7).await?;
    Ok(rows.into_iter().filter_map(read_column).collect())
}

fn read_column(row: TextValues) -> Option<ColumnInfo> {
    let [name, data_type, key, extra, generation, nullable, has_default] = <[_; 7]>::try_from(row).ok()?;
    Some(ColumnInfo {
        name: name?,
        data_type: data_type?,
        key: key.unwrap_or_default(),
        extra: extra.unwrap_or_default(),
        generation: generation.filter(|expression| !expression.is_empty()),
        nullable: nullable.as_deref() == Some("YES"),
        has_default: has_default.as_deref() == Some("1"),
    })
}

/// Reads a record: collection, UUID and options, the latter two in hexadecimal.
fn read_record(row: &[Option<String>]) -> Option<Record> {
    let [Some(collection), Some(uuid), Some(options)] = row else { return None };
    Some(Record {
        collection: collection.as_str().into(),
        uuid: from_hex(uuid)?.try_into().ok()?,
        options: DocBuf::from_vec(from_hex(options)?).unwrap_or_default(),
    })
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.as_bytes().chunks_exact(2);
    pairs.map(|pair| Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8)).collect()
}
