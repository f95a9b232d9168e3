//! The name of an index's element table, and what its record says of it.

use mariadb_client::quote;

/// Begins the names of these tables.
pub(crate) const PREFIX: &str = "~elements~";

/// Begins what is remembered of the tables of a unique index while they come or go. Where it stays, that was cut off: who writes next makes
/// them, for without them the index is a plain one.
const OWED_PREFIX: &str = "~owed~";

/// Begins the names of those that earlier versions made.
pub(crate) const EARLIER_PREFIX: &str = "~values~";

/// The table of an index, as it is remembered.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    pub name: String,
    /// The fields in which gateways have met arrays, as bits. It decides which way is the shorter one, not what is found.
    pub fields: u64,
}

impl Values {
    pub fn new(fields: u64) -> Values {
        Values { name: format!("{PREFIX}{:016x}", rand::random::<u64>()), fields }
    }

    /// Reads what [`Values::remembered`] spells. `None` for a table that an earlier version made, which had the first field alone.
    pub fn read(text: &str) -> Option<Values> {
        let (name, fields) = text.split_once(' ').filter(|(name, _)| name.starts_with(PREFIX))?;
        Some(Values { name: name.to_owned(), fields: u64::from_str_radix(fields, 16).unwrap_or(u64::MAX) })
    }

    pub fn remembered(&self) -> String {
        format!("{} {:x}", self.name, self.fields)
    }

    /// Reads what [`Values::owed`] spells.
    pub fn read_owed(text: &str) -> Option<Values> {
        Values::read(&format!("{PREFIX}{}", text.strip_prefix(OWED_PREFIX)?))
    }

    /// What is remembered of it while it is not, or not surely, there.
    pub fn owed(&self) -> String {
        self.remembered().replacen(PREFIX, OWED_PREFIX, 1)
    }

    pub fn quoted(&self, schema: &str) -> String {
        format!("{}.{}", quote(schema), quote(&self.name))
    }

    /// As it stands in lookups: `e`.
    pub fn named(&self, schema: &str) -> String {
        format!("{} AS e", self.quoted(schema))
    }

    /// With the rows of the documents that the elements belong to: `k`.
    pub fn joined(&self, schema: &str, main: &str) -> String {
        format!("{} STRAIGHT_JOIN {main} AS k ON k.seq = e.seq", self.named(schema))
    }
}
