//! The entries of changes of the catalog that rows of Selkie's own schema show.

use super::known_tables::{KnownTables, Record, database};
use super::row_values::{blob, bytes, wall_ms};
use crate::catalog::names;
use ::store::{LoggedChange, Namespace, Operation};
use document::{Doc, DocBuf, DocWriter, Value, doc};
use mariadb_binlog::TableName;
use mariadb_client::{Result, TextConnection};
use mariadb_wire::binlog::rows::{Image, Row};
use mariadb_wire::binlog::table_map::TableMap;
use std::sync::Arc;

/// A table of Selkie's own schema that describes collections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnTable {
    /// Columns: schema, table, collection, UUID, options.
    Collections,
    /// Columns: schema, table, position, the index's name in MariaDB, specification.
    Indexes,
}

impl OwnTable {
    /// Returns which of them a table is.
    pub fn of(map: &TableMap) -> Option<OwnTable> {
        match (map.database.as_str(), map.table.as_str()) {
            (names::OWN_SCHEMA, "collections") if map.columns.len() == 5 => Some(OwnTable::Collections),
            (names::OWN_SCHEMA, "indexes") if map.columns.len() == 6 => Some(OwnTable::Indexes),
            _ => None,
        }
    }
}

/// A command of the catalog.
pub(super) struct CatalogChange {
    database: Box<str>,
    uuid: [u8; 16],
    command: DocBuf,
    details: Option<DocBuf>,
}

impl CatalogChange {
    pub fn as_logged(&self, time: u32) -> LoggedChange<'_> {
        let details = self.details.as_ref().map(DocBuf::as_doc);
        LoggedChange {
            namespace: Namespace::new(&self.database, "$cmd"),
            collection_uuid: Some(self.uuid),
            operation: Operation::Command { command: self.command.as_doc(), details },
            wall_ms: wall_ms(time),
            transaction: None,
        }
    }
}

/// Reads a row into the known tables. Returns the entry for it, if there is one.
pub(super) async fn read(
    own: OwnTable,
    row: &Row<'_>,
    map: &TableMap,
    tables: &mut KnownTables,
    queries: &mut TextConnection,
) -> Result<Option<CatalogChange>> {
    match own {
        OwnTable::Collections => {
            let (before, after) = (record(&row.before, map)?, record(&row.after, map)?);
            Ok(collection(before, after, tables))
        }
        OwnTable::Indexes => index(row, map, tables, queries).await,
    }
}

type Named = (Arc<TableName>, Record);

/// A record is inserted before the table if the collection has options or a made-up name, and
/// replaced behind it; otherwise it is inserted behind it.
fn collection(before: Option<Named>, after: Option<Named>, tables: &mut KnownTables) -> Option<CatalogChange> {
    match (before, after) {
        (None, Some((table, record))) => {
            let is_early = names::is_made_up(&table.table) || !record.options.as_doc().is_empty();
            let created = (!is_early).then(|| create(&table, &record));
            tables.set_record(&table, record);
            created
        }
        (Some((table, old)), None) => {
            tables.forget_record(&table, &old.uuid);
            None
        }
        (Some((before, old)), Some((table, record))) => {
            let change = if before != table {
                None
            } else if old.uuid != record.uuid {
                Some(create(&table, &record))
            } else if old.options != record.options {
                Some(modify(&table, &old, &record))
            } else {
                None
            };
            if before != table {
                tables.forget_record(&before, &old.uuid);
            }
            tables.set_record(&table, record);
            change
        }
        (None, None) => None,
    }
}

fn record(image: &Option<Image<'_>>, map: &TableMap) -> Result<Option<Named>> {
    let Some(image) = image else { return Ok(None) };
    let text = |column| Ok::<_, mariadb_client::Failure>(text(bytes(image, map, column)?));
    let mut uuid = [0; 16];
    // Zeros at the end are not logged.
    let logged = bytes(image, map, 3)?.unwrap_or_default();
    uuid.iter_mut().zip(logged).for_each(|(byte, logged)| *byte = *logged);
    let table = TableName::new(&text(0)?, &text(1)?);
    Ok(Some((table, Record { collection: text(2)?.into(), uuid, options: blob(bytes(image, map, 4)?) })))
}

fn text(bytes: Option<&[u8]>) -> String {
    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
}

fn create(table: &TableName, record: &Record) -> CatalogChange {
    let command = DocBuf::build(|writer| {
        writer.append("create", &*record.collection);
        record.options.as_doc().elements().for_each(|option| writer.append_element(option));
        writer.append("idIndex", &doc! { "v": 2, "key": &doc! { "_id": 1 }, "name": "_id_" });
    });
    CatalogChange { database: database(table), uuid: record.uuid, command, details: None }
}

fn modify(table: &TableName, old: &Record, record: &Record) -> CatalogChange {
    let command = DocBuf::build(|writer| {
        writer.append("collMod", &*record.collection);
        append_changes(old.options.as_doc(), record.options.as_doc(), writer);
    });
    let details = DocBuf::build(|writer| append_old_options(&old.uuid, old.options.as_doc(), writer));
    CatalogChange { database: database(table), uuid: record.uuid, command, details: Some(details) }
}

/// Indexes have their records before they are built, and lose them when they are dropped. The
/// indexes of a collection that is dropped lose theirs after it.
async fn index(
    row: &Row<'_>,
    map: &TableMap,
    tables: &mut KnownTables,
    queries: &mut TextConnection,
) -> Result<Option<CatalogChange>> {
    let Some(image) = row.after.or(row.before) else { return Ok(None) };
    let table = TableName::new(&text(bytes(&image, map, 0)?), &text(bytes(&image, map, 1)?));
    let Some(record) = &tables.record(&table, queries).await? else { return Ok(None) };
    let spec = |image: &Image<'_>| Ok::<_, mariadb_client::Failure>(blob(bytes(image, map, 4)?));
    let collection = &*record.collection;
    let (command, details) = match (&row.before, &row.after) {
        (None, Some(after)) => {
            let spec = spec(after)?;
            let command = DocBuf::build(|writer| {
                writer.append("createIndexes", collection);
                spec.as_doc().elements().for_each(|option| writer.append_element(option));
            });
            (command, None)
        }
        (Some(before), None) => {
            let spec = spec(before)?;
            let name = spec.as_doc().get("name").unwrap_or(Value::Null);
            (doc! { "dropIndexes": collection, "index": name }, Some(spec))
        }
        (Some(before), Some(after)) => {
            let (old, new) = (spec(before)?, spec(after)?);
            if old == new || old.as_doc().get("name") != new.as_doc().get("name") {
                return Ok(None);
            }
            let (command, details) = modified_index(record, old.as_doc(), new.as_doc());
            (command, Some(details))
        }
        (None, None) => return Ok(None),
    };
    Ok(Some(CatalogChange { database: database(&table), uuid: record.uuid, command, details }))
}

fn modified_index(record: &Record, old: Doc<'_>, new: Doc<'_>) -> (DocBuf, DocBuf) {
    let is_hidden = |spec: Doc<'_>| spec.get("hidden").is_some_and(Value::is_truthy);
    let command = DocBuf::build(|writer| {
        writer.append("collMod", &*record.collection);
        let mut index = writer.document("index");
        index.append("name", new.get("name").unwrap_or(Value::Null));
        append_changes(old, new, &mut index);
        if old.get("hidden").is_some() && new.get("hidden").is_none() {
            index.append("hidden", false);
        }
    });
    let details = DocBuf::build(|writer| {
        append_old_options(&record.uuid, record.options.as_doc(), writer);
        let mut options = writer.document("indexOptions_old");
        if is_hidden(old) != is_hidden(new) {
            options.append("hidden", is_hidden(old));
        }
        let expiry = old.element("expireAfterSeconds");
        if let Some(expiry) = expiry.filter(|expiry| Some(expiry.value()) != new.get("expireAfterSeconds")) {
            options.append_element(expiry);
        }
    });
    (command, details)
}

/// Appends the fields of `after` that differ from those of `before`.
fn append_changes(before: Doc<'_>, after: Doc<'_>, writer: &mut DocWriter<'_>) {
    let changed = after.elements().filter(|option| before.get(option.key()) != Some(option.value()));
    changed.for_each(|option| writer.append_element(option));
}

fn append_old_options(uuid: &[u8; 16], old: Doc<'_>, writer: &mut DocWriter<'_>) {
    let mut options = writer.document("collectionOptions_old");
    options.append("uuid", Value::Binary { subtype: 4, bytes: uuid });
    old.elements().for_each(|option| options.append_element(option));
}
