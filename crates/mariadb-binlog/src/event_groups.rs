//! Assembles events into transactions.
//!
//! A group of events begins with a GTID and is committed as one. Rows are decoded as they arrive;
//! if they cannot be decoded, the whole table counts as changed.

use crate::changes::{Change, Doc, Image, Key, Row, Transaction};
use crate::statement_effect::{StatementEffect, classify};
use crate::tables::{Columns, TableFacts};
use bytes::Bytes;
use mariadb_client::Result;
use mariadb_wire::Malformed;
use mariadb_wire::binlog::column::Value;
use mariadb_wire::binlog::control::Rotate;
use mariadb_wire::binlog::query::QueryEvent;
use mariadb_wire::binlog::rows::{self, Field, Operation, RowsEvent};
use mariadb_wire::binlog::table_map::TableMap;
use mariadb_wire::binlog::{Checksum, Event, FormatDescription, Gtid, GtidEvent, kind};
use std::collections::HashMap;
use std::sync::Arc;

/// The largest size to which a compressed event may expand.
pub const EXPANDED_BYTES_MAX: usize = 256 << 20;

/// Table maps kept; the server numbers them anew all the time.
const TABLES_MAX: usize = 4096;

/// Prepared XA transactions kept; further ones count as having changed everything.
const PREPARED_MAX: usize = 1024;

/// The event may be skipped by readers that do not know it.
const FLAG_IGNORABLE: u16 = 0x80;

/// A transaction, and the facts that prove when readers see it.
#[derive(Debug)]
pub struct Group {
    pub transaction: Transaction,
    pub offset: LogOffset,
    /// The engine does not commit it in the log's order, so its offset in the log proves nothing.
    pub out_of_order: bool,
    pub probe: Option<RowProbe>,
    pub wants_acknowledgement: bool,
    pub bytes: usize,
}

impl Group {
    /// Returns a group of which only its end is known.
    pub fn at(offset: LogOffset) -> Group {
        Group {
            transaction: Transaction { gtid: None, changes: Vec::new() },
            offset,
            out_of_order: false,
            probe: None,
            wants_acknowledgement: false,
            bytes: 0,
        }
    }
}

/// The offset in the log at which a group ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogOffset {
    pub file: Arc<[u8]>,
    /// Truncated to 32 bits.
    pub end: u32,
}

/// A changed row, which can be read to prove that its change is visible.
#[derive(Clone, Debug)]
pub struct RowProbe {
    pub table: Arc<TableFacts>,
    pub key: Vec<Key>,
}

/// The result of feeding an event.
pub enum FedEvent {
    Nothing,
    /// Rows of an unknown table follow: call [`Groups::add_table`] first.
    UnknownTable(TableMap),
    Group(Group),
    /// As `Group`; the known tables are invalid.
    Definition(Group),
}

/// Assembles the events of a stream into groups.
pub struct Groups {
    format: FormatDescription,
    file: Arc<[u8]>,
    tables: HashMap<u64, (TableMap, Arc<TableFacts>)>,
    open: Open,
    prepared: HashMap<Vec<u8>, (Vec<Change>, Option<RowProbe>)>,
    /// The most bytes of rows kept of a transaction.
    bytes_max: usize,
}

/// The group that is arriving.
#[derive(Default)]
struct Open {
    gtid: Option<Gtid>,
    standalone: bool,
    transactional: bool,
    xa: Option<Vec<u8>>,
    changes: Vec<Change>,
    bytes: usize,
    probe: Option<RowProbe>,
    has_definition: bool,
}

impl Groups {
    /// `checksum`: that of events until a file header states another.
    pub fn new(checksum: Checksum, bytes_max: usize) -> Groups {
        Groups {
            format: FormatDescription::assumed(checksum),
            file: Arc::from(&b""[..]),
            tables: HashMap::new(),
            open: Open::default(),
            prepared: HashMap::new(),
            bytes_max,
        }
    }

    pub fn format(&self) -> &FormatDescription {
        &self.format
    }

    /// Adds the facts of a table whose rows follow.
    pub fn add_table(&mut self, map: TableMap, facts: TableFacts) {
        if self.tables.len() >= TABLES_MAX {
            self.tables.clear();
        }
        self.tables.insert(map.id, (map, Arc::new(facts)));
    }

    /// Processes one event.
    pub fn feed(&mut self, event: &Event<'_>, wants_acknowledgement: bool) -> Result<FedEvent> {
        let header = event.header;
        match header.kind {
            kind::ROTATE => self.file = Rotate::decode(event.body)?.file.into(),
            kind::FORMAT_DESCRIPTION => self.format = FormatDescription::decode(event.body)?,
            kind::GTID => self.begin(&GtidEvent::decode(event.body, header.server)?),
            kind::TABLE_MAP => {
                let map = TableMap::decode(event.body, &self.format)?;
                if self.tables.get(&map.id).is_none_or(|(known, _)| *known != map) {
                    return Ok(FedEvent::UnknownTable(map));
                }
            }
            kind::QUERY | kind::QUERY_COMPRESSED => {
                let is_compressed = header.kind == kind::QUERY_COMPRESSED;
                let query = QueryEvent::decode(event.body, is_compressed, EXPANDED_BYTES_MAX)?;
                return Ok(self.statement(&query, header.end, wants_acknowledgement));
            }
            kind::XID => return Ok(self.end(header.end, wants_acknowledgement, false)),
            // The first byte is set if it was prepared and committed in one.
            kind::XA_PREPARE if event.body.first() != Some(&0) => {
                return Ok(self.end(header.end, wants_acknowledgement, true));
            }
            kind::XA_PREPARE => return Ok(self.prepare(header.end, wants_acknowledgement)),
            kind::INCIDENT => {
                self.add(Change::Everything);
                if self.open.gtid.is_none() {
                    return Ok(self.end(header.end, wants_acknowledgement, true));
                }
            }
            _ => match RowsEvent::decode(event, &self.format, EXPANDED_BYTES_MAX)? {
                Some(rows) => self.rows(&rows),
                None if is_harmless(header.kind) || header.flags & FLAG_IGNORABLE != 0 => {}
                None => self.add(Change::Everything),
            },
        }
        Ok(FedEvent::Nothing)
    }

    fn begin(&mut self, event: &GtidEvent<'_>) {
        // Changes of a group without an end (the server crashed) are added to the next group.
        let Open { changes, bytes, .. } = std::mem::take(&mut self.open);
        self.open = Open {
            gtid: Some(event.gtid),
            standalone: event.is_standalone(),
            transactional: event.is_transactional(),
            xa: event.xa.map(<[u8]>::to_vec),
            changes,
            bytes,
            ..Open::default()
        };
    }

    fn statement(&mut self, query: &QueryEvent<'_>, end: u32, wants_acknowledgement: bool) -> FedEvent {
        match classify(&String::from_utf8_lossy(query.database), &query.sql) {
            StatementEffect::Mark if !self.open.standalone => return FedEvent::Nothing,
            StatementEffect::Mark => {}
            // Rows of several engines, or of one without transactions. Several engines commit in an
            // order of their own.
            StatementEffect::End => {
                let out_of_order = self.open.transactional;
                return self.end(end, wants_acknowledgement, out_of_order);
            }
            StatementEffect::XaCommit => {
                let (changes, probe) = self.take_prepared().unwrap_or_else(|| (vec![Change::Everything], None));
                changes.into_iter().for_each(|change| self.add(change));
                self.open.probe = probe;
                return self.end(end, wants_acknowledgement, true);
            }
            StatementEffect::XaRollback => {
                self.take_prepared();
                return self.end(end, wants_acknowledgement, false);
            }
            StatementEffect::Changes(changes) => {
                self.tables.clear();
                self.open.has_definition = true;
                changes.into_iter().for_each(|change| self.add(change));
            }
        }
        if self.open.standalone || self.open.gtid.is_none() {
            return self.end(end, wants_acknowledgement, false);
        }
        FedEvent::Nothing
    }

    fn take_prepared(&mut self) -> Option<(Vec<Change>, Option<RowProbe>)> {
        self.prepared.remove(self.open.xa.as_deref()?)
    }

    /// Keeps the changes of a prepared XA transaction, which another session may complete at any
    /// later time.
    fn prepare(&mut self, end: u32, wants_acknowledgement: bool) -> FedEvent {
        let changes = std::mem::take(&mut self.open.changes);
        let probe = self.open.probe.take();
        if let Some(xa) = self.open.xa.take()
            && self.prepared.len() < PREPARED_MAX
        {
            // Only its tables, since that may take long.
            let mut tables: Vec<Change> = Vec::new();
            for change in changes {
                add(&mut tables, to_table(change));
            }
            self.prepared.insert(xa, (tables, probe));
        }
        self.end(end, wants_acknowledgement, false)
    }

    fn end(&mut self, end: u32, wants_acknowledgement: bool, out_of_order: bool) -> FedEvent {
        let open = std::mem::take(&mut self.open);
        let group = Group {
            transaction: Transaction { gtid: open.gtid, changes: open.changes },
            offset: LogOffset { file: self.file.clone(), end },
            out_of_order,
            probe: open.probe,
            wants_acknowledgement,
            bytes: open.bytes,
        };
        if open.has_definition { FedEvent::Definition(group) } else { FedEvent::Group(group) }
    }

    fn add(&mut self, change: Change) {
        self.open.bytes += change.bytes();
        add(&mut self.open.changes, change);
        if self.open.bytes > self.bytes_max {
            let mut tables = Vec::new();
            for change in std::mem::take(&mut self.open.changes) {
                add(&mut tables, to_table(change));
            }
            self.open.bytes = tables.iter().map(Change::bytes).sum();
            self.open.changes = tables;
        }
    }

    fn rows(&mut self, event: &RowsEvent<'_>) {
        let Some((map, facts)) = self.tables.get(&event.table_id) else {
            // A server always sends the table map first.
            return self.add(Change::Everything);
        };
        let (facts, rows) = (facts.clone(), read_rows(event, map, facts));
        self.add_rows(rows, &facts);
        facts.merged.iter().for_each(|table| self.add(Change::Table(table.clone())));
        if event.operation != Operation::Insert {
            facts.dependents.iter().for_each(|table| self.add(Change::Table(table.clone())));
        }
    }

    fn add_rows(&mut self, rows: Result<Vec<Row>, Malformed>, facts: &Arc<TableFacts>) {
        let Ok(rows) = rows else { return self.add(Change::Table(facts.name.clone())) };
        for row in rows {
            if let Some(key) = row.after.as_ref().or(row.before.as_ref()).and_then(|image| image.key.clone())
                && !key.is_empty()
            {
                self.open.probe = Some(RowProbe { table: facts.clone(), key });
            }
            self.add(Change::Row(row));
        }
    }
}

/// Adds a change unless a larger one includes it.
fn add(changes: &mut Vec<Change>, change: Change) {
    match &change {
        Change::Everything => changes.clear(),
        Change::Table(table) => {
            if changes.contains(&change) {
                return;
            }
            changes.retain(|other| !matches!(other, Change::Row(row) if row.table == *table));
        }
        Change::Row(row) => {
            // Tables come first in a transaction that grew too large, so only the front is
            // searched.
            let covers = |other: &Change| matches!(other, Change::Table(table) if *table == row.table);
            if changes.iter().take_while(|other| !matches!(other, Change::Row(_))).any(covers) {
                return;
            }
        }
        Change::Database(_) => {}
    }
    if changes.first() != Some(&Change::Everything) {
        changes.push(change);
    }
}

fn to_table(change: Change) -> Change {
    match change {
        Change::Row(row) => Change::Table(row.table),
        other => other,
    }
}

/// Decodes the rows of an event. Fails if they do not fit the table.
fn read_rows(event: &RowsEvent<'_>, map: &TableMap, facts: &TableFacts) -> Result<Vec<Row>, Malformed> {
    let Some(columns) = &facts.columns else { return Err(Malformed("row event")) };
    let image = |image: Option<rows::Image<'_>>| image.map(|image| read_image(&image, map, columns)).transpose();
    event
        .rows(map)?
        .map(|row| {
            let row = row?;
            Ok(Row { table: facts.name.clone(), before: image(row.before)?, after: image(row.after)? })
        })
        .collect()
}

fn read_image(image: &rows::Image<'_>, map: &TableMap, columns: &Columns) -> Result<Image, Malformed> {
    let fields: Vec<Field<'_>> = image.fields().collect::<Result<_, _>>()?;
    let value = |index: usize, unsigned: bool| match (fields.get(index), map.columns.get(index)) {
        (Some(Field::Value(bytes)), Some(column)) => Some(column.value(bytes, unsigned)),
        _ => None,
    };
    let doc = match columns.doc.map(|index| (index, fields.get(index))) {
        None => Doc::Absent,
        Some((_, Some(Field::Null))) => Doc::Null,
        Some((index, _)) => match value(index, false) {
            Some(Value::Bytes(text)) => Doc::Text(Bytes::copy_from_slice(text)),
            _ => Doc::Unknown,
        },
    };
    let key = columns.key.iter().map(|column| {
        Some(match value(column.index, column.unsigned)? {
            Value::Signed(number) => Key::Signed(number),
            Value::Unsigned(number) => Key::Unsigned(number),
            Value::Bytes(bytes) => Key::Bytes(Bytes::copy_from_slice(bytes)),
            Value::Packed(bytes) => Key::Packed(Bytes::copy_from_slice(bytes)),
            Value::Float(number) => Key::Packed(Bytes::copy_from_slice(&number.to_le_bytes())),
            Value::Double(number) => Key::Packed(Bytes::copy_from_slice(&number.to_le_bytes())),
        })
    });
    Ok(Image { key: key.collect(), doc })
}

/// Returns whether an event changes nothing: it accompanies a statement, or concerns the log
/// itself.
pub fn is_harmless(event: u8) -> bool {
    const INTVAR: u8 = 5;
    const RAND: u8 = 13;
    const USER_VAR: u8 = 14;
    const BEGIN_LOAD_QUERY: u8 = 17;
    const APPEND_BLOCK: u8 = 9;
    matches!(
        event,
        kind::STOP
            | kind::HEARTBEAT
            | kind::ANNOTATE_ROWS
            | kind::BINLOG_CHECKPOINT
            | kind::GTID_LIST
            | kind::START_ENCRYPTION
            | INTVAR
            | RAND
            | USER_VAR
            | BEGIN_LOAD_QUERY
            | APPEND_BLOCK
    )
}

#[cfg(test)]
mod tests;
