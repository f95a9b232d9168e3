//! The name of an index's element table, and what its record says of it.

use mariadb_client::quote;

/// Prefix of the names of element tables.
pub(crate) const PREFIX: &str = "~elements~";

/// Prefix of the names of the second tables of unique indexes.
pub(super) const UNIQUE_PREFIX: &str = "~unique~";

/// Prefix of the record of a unique index while its tables are created or dropped. If it stays,
/// that was interrupted: the next write creates them, since without them the index is not unique.
const PENDING_PREFIX: &str = "~owed~";

/// The element table of an index.
#[derive(Clone, Debug)]
pub(crate) struct ElementTable {
    pub name: String,
    /// The fields in which gateways have met arrays, as bits. It affects the choice of access
    /// paths, not results.
    pub fields: u64,
}

impl ElementTable {
    pub fn new(fields: u64) -> ElementTable {
        ElementTable { name: format!("{PREFIX}{:016x}", rand::random::<u64>()), fields }
    }

    /// Parses what [`ElementTable::record`] formats.
    pub fn read(text: &str) -> Option<ElementTable> {
        let (name, fields) = text.split_once(' ').filter(|(name, _)| name.starts_with(PREFIX))?;
        Some(ElementTable { name: name.to_owned(), fields: u64::from_str_radix(fields, 16).unwrap_or(u64::MAX) })
    }

    pub fn record(&self) -> String {
        format!("{} {:x}", self.name, self.fields)
    }

    /// Reads what [`ElementTable::pending_record`] formats.
    pub fn read_pending(text: &str) -> Option<ElementTable> {
        ElementTable::read(&format!("{PREFIX}{}", text.strip_prefix(PENDING_PREFIX)?))
    }

    /// Returns the record while the table may not exist.
    pub fn pending_record(&self) -> String {
        self.record().replacen(PREFIX, PENDING_PREFIX, 1)
    }

    pub fn quoted(&self, schema: &str) -> String {
        format!("{}.{}", quote(schema), quote(&self.name))
    }

    /// Returns the quoted table as `e`, for lookups.
    pub fn named(&self, schema: &str) -> String {
        format!("{} AS e", self.quoted(schema))
    }

    /// Returns the table joined to the rows of its documents, as `k`.
    pub fn joined(&self, schema: &str, main: &str) -> String {
        format!("{} STRAIGHT_JOIN {main} AS k ON k.seq = e.seq", self.named(schema))
    }
}

/// Whether an index has its element table.
#[derive(Clone, Debug)]
pub(crate) enum ElementTableState {
    /// No field has met an array, or triggers cannot be created.
    Absent,
    Present(ElementTable),
    /// Creating or dropping it was interrupted; the next write repairs it.
    PendingRepair(ElementTable),
}

impl ElementTableState {
    /// Parses the record of an index.
    pub fn read(record: &str) -> ElementTableState {
        match (ElementTable::read(record), ElementTable::read_pending(record)) {
            (Some(table), _) => ElementTableState::Present(table),
            (None, Some(table)) => ElementTableState::PendingRepair(table),
            (None, None) => ElementTableState::Absent,
        }
    }

    pub fn present(&self) -> Option<&ElementTable> {
        match self {
            ElementTableState::Present(table) => Some(table),
            _ => None,
        }
    }

    pub fn pending_repair(&self) -> Option<&ElementTable> {
        match self {
            ElementTableState::PendingRepair(table) => Some(table),
            _ => None,
        }
    }
}
/// Returns whether a table is an element table: its rows are written with a document.
pub(crate) fn is_name(table: &str) -> bool {
    let hash = [PREFIX, UNIQUE_PREFIX].iter().find_map(|prefix| table.strip_prefix(prefix));
    hash.is_some_and(|hash| hash.len() == 16)
}
