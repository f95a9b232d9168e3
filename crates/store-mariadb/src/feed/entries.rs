//! Makes entries of the events of the log, and counts positions.
//!
//! Each row that is inserted or deleted counts as one, each that is updated as two (a document
//! whose `_id` changes is a deleted and an inserted one). A statement counts as one, and one more
//! for each table that it drops or renames. An update is described as its statement's
//! [mark](UpdateMark) says; without one, by the difference of the two documents if that is smaller,
//! else as replaced.

use super::catalog_rows::{self, OwnTable};
use super::checkpoint::Checkpoint;
use super::known_tables::{CollectionTable, KnownTables, is_dropped};
use super::open_group::{OpenGroup, advanced, place};
use super::row_values::{self, bytes, lost, wall_ms};
use super::transaction_rows::{self, GroupTransaction};
use crate::catalog::update_mark::UpdateMark;
use crate::encoding;
use ::store::change_feed::INCREMENT_MAX;
use ::store::{FeedEntry, FeedPosition, LoggedChange, Namespace, Operation};
use document::{Doc, DocBuf, Value, doc};
use mariadb_binlog::{Definition, GroupEnd, Gtid, LogEvent, TableName};
use mariadb_client::{Result, TextConnection};
use mariadb_wire::binlog::rows::{Image, Row, RowsEvent};
use mariadb_wire::binlog::table_map::TableMap;
use std::collections::{BTreeMap, HashMap};

/// Limits of the XA transactions that are prepared and not completed.
const PREPARED_MAX: usize = 256;
const PREPARED_BYTES_MAX: usize = 32 << 20;

/// The most bytes of entries of a group that the tail keeps in memory.
const GROUP_BYTES_MAX: usize = 8 << 20;

/// Reads events of the log in order.
pub(super) struct Entries {
    pub tables: KnownTables,
    /// The position of the last group, or of a part of the open one.
    position: FeedPosition,
    /// When the file was created with which the reader has begun.
    created: Option<u32>,
    /// It is the first of all, or the reader has begun behind a checkpoint.
    is_exact: bool,
    /// The last transaction of each domain.
    gtids: BTreeMap<u32, Gtid>,
    open: OpenGroup,
    prepared: HashMap<Vec<u8>, Vec<FeedEntry>>,
    prepared_bytes: usize,
}

/// What an event has completed.
pub(super) enum Completed {
    Nothing,
    /// A part of a group that is too large to be taken at once: [`Entries::take_part`] takes it.
    Part,
    Group {
        entries: Vec<FeedEntry>,
        /// Entries of it were dropped.
        exceeds: bool,
    },
}

/// The reader of the log, which decides how a group is treated that is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadBy {
    /// Its entries are dropped.
    Tail,
    /// Its entries are taken in parts.
    Stream,
}

impl Entries {
    /// Begins behind a checkpoint.
    pub fn behind(checkpoint: &Checkpoint) -> Entries {
        Entries {
            tables: KnownTables::default(),
            position: checkpoint.position,
            created: None,
            is_exact: checkpoint.position != FeedPosition::default(),
            gtids: checkpoint.gtids.iter().map(|gtid| (gtid.domain, *gtid)).collect(),
            open: OpenGroup::default(),
            prepared: HashMap::new(),
            prepared_bytes: 0,
        }
    }

    /// Returns whether positions are those that all readers count.
    pub fn is_synchronized(&self) -> bool {
        self.is_exact || self.created.is_some_and(|created| self.position.time > created)
    }

    /// Returns a position behind which all are, once they are.
    pub fn synchronized_since(&self) -> FeedPosition {
        let increment = if self.is_exact { 0 } else { INCREMENT_MAX };
        FeedPosition { time: self.created.unwrap_or_default(), increment }
    }

    /// Returns a position behind everything that was read, and before everything else.
    pub fn end_position(&self) -> FeedPosition {
        let created = FeedPosition { time: self.created.unwrap_or_default(), increment: 0 };
        if self.position == FeedPosition::default() { created } else { self.position }
    }

    /// Returns the position at the end of the last group.
    pub fn completed_position(&self) -> FeedPosition {
        self.open.start.unwrap_or(self.position)
    }

    /// Returns the end of the last group.
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint { position: self.completed_position(), gtids: self.gtids.values().copied().collect() }
    }

    /// Forgets the group that was being read: it is read again from its beginning.
    pub fn abandon_group(&mut self) {
        self.position = self.completed_position();
        self.open = OpenGroup::default();
    }

    /// Processes an event. Fails with 286 if changes may be missing.
    pub async fn feed(&mut self, event: LogEvent<'_>, by: ReadBy, queries: &mut TextConnection) -> Result<Completed> {
        match event {
            LogEvent::Position(gtids) => {
                self.is_exact |= gtids.is_empty();
                self.gtids = gtids.into_iter().map(|gtid| (gtid.domain, gtid)).collect();
            }
            LogEvent::Begin { gtid, xa } => {
                // A group without an end belongs to a server that has crashed.
                self.open = OpenGroup::begin(gtid, xa, self.position);
            }
            LogEvent::Rows { time, table, rows, statement } => {
                self.rows(time, table, &rows, UpdateMark::of(statement), queries).await?
            }
            LogEvent::Statement { time, definition } => self.statement(time, definition, queries).await?,
            LogEvent::End(end) => return self.end(end),
            LogEvent::Gap => return Err(lost()),
            LogEvent::File { created } => {
                self.created.get_or_insert(created);
            }
            LogEvent::Other => {}
        }
        match by {
            ReadBy::Tail if self.open.bytes > GROUP_BYTES_MAX => self.open.exceed(),
            // It may never be committed.
            ReadBy::Stream if self.open.has_part() && self.open.xa.is_some() => return Err(lost()),
            ReadBy::Stream if self.open.has_part() => return Ok(Completed::Part),
            _ => {}
        }
        Ok(Completed::Nothing)
    }

    /// Returns the transaction whose part can be taken, if its record must be looked for first.
    pub fn unrecorded(&self) -> Option<Gtid> {
        self.open.gtid.filter(|_| !self.open.is_transaction_known)
    }

    /// Notes what the group that is being read records at its end.
    pub fn set_transaction(&mut self, transaction: Option<GroupTransaction>) {
        (self.open.transaction, self.open.is_transaction_known) = (transaction, true);
    }

    /// Takes the part of a group that has been completed.
    pub fn take_part(&mut self) -> Vec<FeedEntry> {
        self.open.take_parts()
    }

    fn end(&mut self, end: GroupEnd) -> Result<Completed> {
        let mut open = std::mem::take(&mut self.open);
        self.position = open.end_part(self.position);
        let (bytes, exceeds) = (open.bytes, open.exceeds);
        let entries = open.take_parts();
        let OpenGroup { gtid, xa, .. } = open;
        if let Some(gtid) = gtid {
            self.gtids.insert(gtid.domain, gtid);
        }
        let xa = xa.unwrap_or_default();
        let mut completed = match end {
            GroupEnd::Committed => entries,
            GroupEnd::RolledBack => Vec::new(),
            GroupEnd::XaRolledBack => {
                self.take_prepared(&xa);
                Vec::new()
            }
            GroupEnd::Prepared => {
                self.prepared_bytes += bytes;
                if exceeds || self.prepared.len() >= PREPARED_MAX || self.prepared_bytes > PREPARED_BYTES_MAX {
                    return Err(lost());
                }
                self.prepared.insert(xa, entries);
                Vec::new()
            }
            // It was prepared before the part of the log that was read.
            GroupEnd::XaCommitted => self.take_prepared(&xa).ok_or_else(lost)?,
        };
        if end == GroupEnd::XaCommitted {
            let time = self.position.time;
            self.position = advanced(self.position, time, completed.len() as u32);
            place(&mut completed, self.position, time, None);
        }
        Ok(Completed::Group { entries: completed, exceeds })
    }

    fn take_prepared(&mut self, xa: &[u8]) -> Option<Vec<FeedEntry>> {
        let entries = self.prepared.remove(xa)?;
        self.prepared_bytes = self.prepared_bytes.saturating_sub(entries.iter().map(FeedEntry::bytes).sum());
        Some(entries)
    }

    async fn rows(
        &mut self,
        time: u32,
        map: &TableMap,
        event: &RowsEvent<'_>,
        mark: UpdateMark,
        queries: &mut TextConnection,
    ) -> Result<()> {
        let own = OwnTable::of(map);
        let collection = match own {
            None => self.tables.collection(map, queries).await?,
            Some(_) => None,
        };
        let records_sessions = transaction_rows::is_table(map);
        for row in event.rows(map)? {
            let row = row?;
            if records_sessions {
                self.open.count(time, 0, 0);
                self.open.transaction = transaction_rows::read(&row, map)?.or(self.open.transaction.take());
                continue;
            }
            let positions = if row.before.is_some() && row.after.is_some() { 2 } else { 1 };
            self.open.count(time, positions, row_values::size(&row));
            match (own, &collection) {
                (Some(own), _) => {
                    let change = catalog_rows::read(own, &row, map, &mut self.tables, queries).await?;
                    if let Some(change) = change {
                        self.add(&change.as_logged(time), None);
                    }
                }
                (None, Some(collection)) => self.document(time, collection, &row, map, mark)?,
                (None, None) => {}
            }
            if self.open.is_full() {
                self.position = self.open.end_part(self.position);
            }
        }
        Ok(())
    }

    /// Adds the change of a document.
    fn document(
        &mut self,
        time: u32,
        table: &CollectionTable,
        row: &Row<'_>,
        map: &TableMap,
        mark: UpdateMark,
    ) -> Result<()> {
        let (before, after) = (document(&row.before, table, map)?, document(&row.after, table, map)?);
        if before == after {
            return Ok(());
        }
        let (before, after) = (before.as_ref(), after.as_ref());
        let image = || before.filter(|_| table.keeps_images).cloned();
        let change = |operation| LoggedChange {
            namespace: table.namespace.clone(),
            collection_uuid: Some(table.uuid),
            operation,
            wall_ms: wall_ms(time),
            transaction: None,
        };
        match (before.and_then(id), after.and_then(id), after) {
            (Some(old), Some(new), Some(after)) if old == new => {
                let difference = before.and_then(|before| difference(before.as_doc(), after.as_doc(), mark));
                let operation = match &difference {
                    Some(difference) => Operation::Update { id: new, difference: difference.as_doc() },
                    None => Operation::Replace { id: new, document: after.as_doc() },
                };
                self.add(&change(operation), image());
            }
            (old, new, after) => {
                if let Some(id) = old {
                    self.add(&change(Operation::Delete { id }), image());
                }
                if let (Some(_), Some(after)) = (new, after) {
                    self.add(&change(Operation::Insert { document: after.as_doc() }), None);
                }
            }
        }
        Ok(())
    }

    async fn statement(&mut self, time: u32, definition: Definition, queries: &mut TextConnection) -> Result<()> {
        self.open.count(time, 1, 0);
        match definition {
            Definition::CreateTable(table) | Definition::AlterTable(table) => self.tables.forget_columns(&table),
            Definition::TruncateTable(table) => self.drop_table(time, &table, queries).await?,
            Definition::DropTables(tables) => {
                for table in tables {
                    self.open.count(time, 1, 0);
                    self.drop_table(time, &table, queries).await?;
                    self.tables.forget(&table);
                }
            }
            Definition::RenameTables(renamed) => {
                let mut replaced = None;
                for (from, to) in renamed {
                    self.open.count(time, 1, 0);
                    if is_dropped(&to.table) {
                        replaced = self.tables.dropped(&from, queries).await?.map(|table| table.uuid);
                    } else {
                        self.rename_table(time, &from, &to, replaced.take(), queries).await?;
                    }
                    self.tables.rename(&from, &to);
                }
            }
            Definition::DropDatabase(database) => {
                self.tables.forget_database(&database);
                if !crate::catalog::names::is_hidden(&database) {
                    self.command(time, &database, None, &doc! { "dropDatabase": 1 });
                }
            }
            Definition::Rows => return Err(lost()),
            Definition::Other => {}
        }
        Ok(())
    }

    async fn drop_table(&mut self, time: u32, table: &TableName, queries: &mut TextConnection) -> Result<()> {
        let Some(dropped) = self.tables.dropped(table, queries).await? else { return Ok(()) };
        let command = doc! { "drop": &*dropped.namespace.collection };
        self.command(time, &dropped.namespace.database, Some(dropped.uuid), &command);
        Ok(())
    }

    async fn rename_table(
        &mut self,
        time: u32,
        from: &TableName,
        to: &TableName,
        replaced: Option<[u8; 16]>,
        queries: &mut TextConnection,
    ) -> Result<()> {
        let Some(table) = self.tables.dropped(from, queries).await? else { return Ok(()) };
        let Some(to) = self.tables.collection_name(to, queries).await? else { return Ok(()) };
        let (from, to) = (table.namespace.to_string(), to.to_string());
        let mut command = doc! { "renameCollection": from.as_str(), "to": to.as_str(), "stayTemp": false };
        if let Some(uuid) = &replaced {
            command.append("dropTarget", Value::Binary { subtype: 4, bytes: uuid });
        }
        self.command(time, &table.namespace.database, Some(table.uuid), &command);
        Ok(())
    }

    fn command(&mut self, time: u32, database: &str, uuid: Option<[u8; 16]>, command: &DocBuf) {
        let operation = Operation::Command { command: command.as_doc(), details: None };
        let namespace = Namespace::new(database, "$cmd");
        let change =
            LoggedChange { namespace, collection_uuid: uuid, operation, wall_ms: wall_ms(time), transaction: None };
        self.add(&change, None);
    }

    fn add(&mut self, change: &LoggedChange<'_>, before: Option<DocBuf>) {
        if !is_exempt(&change.namespace) {
            self.open.add(self.position, change, before);
        }
    }
}

/// Returns the difference that an update is described by; `None` if it replaces the document.
fn difference(before: Doc<'_>, after: Doc<'_>, mark: UpdateMark) -> Option<DocBuf> {
    match mark {
        UpdateMark::Operators => update::diff::compare(before, after),
        UpdateMark::Replacement => None,
        UpdateMark::Unmarked => update::diff::compute(before, after),
    }
}

fn id(document: &DocBuf) -> Option<Value<'_>> {
    document.as_doc().get("_id")
}

/// Returns whether changes in this collection are never logged, as by the embedded store.
fn is_exempt(namespace: &Namespace) -> bool {
    &*namespace.database == "local" || &*namespace.collection == "system.profile"
}

/// Returns the document of a row; `None` if there is no row, or it has no document. Fails with 286
/// if the log omits it.
fn document(image: &Option<Image<'_>>, table: &CollectionTable, map: &TableMap) -> Result<Option<DocBuf>> {
    let Some(image) = image else { return Ok(None) };
    let Some(json) = bytes(image, map, table.doc_column)? else { return Ok(None) };
    let mut bson = Vec::new();
    match encoding::decode(json, &mut bson) {
        Ok(()) => Ok(DocBuf::from_vec(bson).filter(|document| document.as_doc().get("_id").is_some())),
        // SQL may write such text into a table without constraints; it is no document for readers
        // either.
        Err(_) => Ok(None),
    }
}

/// Returns an entry without a change, so that the stream goes on from this position.
pub(super) fn nothing_until(position: FeedPosition) -> FeedEntry {
    let note = doc! { "msg": "periodic noop" };
    let operation = Operation::Note { note: note.as_doc() };
    let change = LoggedChange {
        namespace: Namespace::new("", ""),
        collection_uuid: None,
        operation,
        wall_ms: wall_ms(position.time),
        transaction: None,
    };
    FeedEntry { position, operation: 0, document: change.encode(position), before: None }
}
