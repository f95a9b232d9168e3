//! Row events: rows before and after a change.
//!
//! Source: <https://mariadb.com/kb/en/rows_event_v1v2-rows_compressed_event_v1/>

use super::column::Column;
use super::compressed;
use super::event::{Event, kind};
use super::format::FormatDescription;
use super::table_map::{TableMap, table_id};
use crate::{Malformed, Reader};
use std::borrow::Cow;

/// The kind of change of an event's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Insert,
    Update,
    Delete,
}

impl Operation {
    /// Returns the kind of change of a type of row events, and whether they are compressed; `None`
    /// for other events.
    pub fn of(event: u8) -> Option<(Operation, bool)> {
        Some(match event {
            kind::WRITE_ROWS_V1 | kind::WRITE_ROWS => (Operation::Insert, false),
            kind::UPDATE_ROWS_V1 | kind::UPDATE_ROWS => (Operation::Update, false),
            kind::DELETE_ROWS_V1 | kind::DELETE_ROWS => (Operation::Delete, false),
            kind::WRITE_ROWS_COMPRESSED_V1 | kind::WRITE_ROWS_COMPRESSED => (Operation::Insert, true),
            kind::UPDATE_ROWS_COMPRESSED_V1 | kind::UPDATE_ROWS_COMPRESSED => (Operation::Update, true),
            kind::DELETE_ROWS_COMPRESSED_V1 | kind::DELETE_ROWS_COMPRESSED => (Operation::Delete, true),
            _ => return None,
        })
    }
}

/// A row event, whose rows are not parsed yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowsEvent<'a> {
    pub table_id: u64,
    pub operation: Operation,
    width: usize,
    /// The columns of the images; for an update, of the image before.
    present: &'a [u8],
    /// The columns of an update's image after.
    present_after: &'a [u8],
    rows: Cow<'a, [u8]>,
}

impl<'a> RowsEvent<'a> {
    /// Parses the event. Returns `None` for other events. `limit`: the most bytes of rows to
    /// accept.
    pub fn decode(event: &Event<'a>, format: &FormatDescription, limit: usize) -> Result<Option<Self>, Malformed> {
        let Some((operation, is_compressed)) = Operation::of(event.header.kind) else { return Ok(None) };
        let mut reader = Reader::new(event.body, "row event");
        let table_id = table_id(&mut reader, format.table_id_bytes(event.header.kind))?;
        reader.u16()?;
        if FormatDescription::has_extra(event.header.kind) {
            let length = usize::from(reader.u16()?).checked_sub(2).ok_or(reader.malformed())?;
            reader.bytes(length)?;
        }
        let width = usize::try_from(reader.length_encoded()?).map_err(|_| reader.malformed())?;
        let present = reader.bytes(width.div_ceil(8))?;
        let present_after = match operation {
            Operation::Update => reader.bytes(width.div_ceil(8))?,
            _ => present,
        };
        let rest = reader.rest();
        let rows = if is_compressed { Cow::Owned(compressed::expand(rest, limit)?) } else { Cow::Borrowed(rest) };
        Ok(Some(RowsEvent { table_id, operation, width, present, present_after, rows }))
    }

    /// Returns an iterator over the rows. Fails if the map belongs to another table.
    pub fn rows<'r>(&'r self, table: &'r TableMap) -> Result<RowChanges<'r>, Malformed> {
        if table.columns.len() != self.width || table.id != self.table_id {
            return Err(Malformed("row event"));
        }
        let is_blank = (0..self.width).all(|index| !bit(self.present, index) && !bit(self.present_after, index));
        Ok(RowChanges {
            rest: Reader::new(&self.rows, "row event"),
            operation: self.operation,
            columns: &table.columns,
            present: self.present,
            present_after: self.present_after,
            is_blank,
        })
    }
}

/// A row's change: `before` for updates and deletes, `after` for updates and inserts.
#[derive(Clone, Copy, Debug)]
pub struct Row<'r> {
    pub before: Option<Image<'r>>,
    pub after: Option<Image<'r>>,
}

/// An iterator over an event's rows. It ends after the first row that is malformed.
#[derive(Clone, Debug)]
pub struct RowChanges<'r> {
    rest: Reader<'r>,
    operation: Operation,
    columns: &'r [Column],
    present: &'r [u8],
    present_after: &'r [u8],
    /// No column is in any image, so rows have no bytes: it yields one row, since their number is
    /// unknown.
    is_blank: bool,
}

impl<'r> Iterator for RowChanges<'r> {
    type Item = Result<Row<'r>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() && !self.is_blank {
            return None;
        }
        let row = self.row();
        if row.is_err() || self.is_blank {
            self.rest.rest();
            self.is_blank = false;
        }
        Some(row)
    }
}

impl<'r> RowChanges<'r> {
    fn row(&mut self) -> Result<Row<'r>, Malformed> {
        let before = match self.operation {
            Operation::Insert => None,
            _ => Some(self.image(self.present)?),
        };
        let after = match self.operation {
            Operation::Delete => None,
            _ => Some(self.image(self.present_after)?),
        };
        Ok(Row { before, after })
    }

    /// Measures an image and takes it off.
    fn image(&mut self, present: &'r [u8]) -> Result<Image<'r>, Malformed> {
        let count = (0..self.columns.len()).filter(|&index| bit(present, index)).count();
        let nulls = self.rest.bytes(count.div_ceil(8))?;
        let image = Image { columns: self.columns, present, nulls, values: self.rest };
        let mut fields = image.fields();
        for field in fields.by_ref() {
            field?;
        }
        self.rest = fields.values;
        Ok(image)
    }
}

/// One image of a change, as bytes.
#[derive(Clone, Copy, Debug)]
pub struct Image<'r> {
    columns: &'r [Column],
    present: &'r [u8],
    nulls: &'r [u8],
    /// The image's first value and everything after it.
    values: Reader<'r>,
}

/// A column in an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field<'r> {
    /// Not logged: `binlog_row_image` is not FULL.
    Absent,
    Null,
    /// The bytes for [`Column::value`].
    Value(&'r [u8]),
}

impl<'r> Image<'r> {
    /// Returns an iterator with a field for each of the table's columns.
    pub fn fields(&self) -> Fields<'r> {
        Fields { image: *self, values: self.values, index: 0, logged: 0 }
    }
}

#[derive(Clone, Debug)]
pub struct Fields<'r> {
    image: Image<'r>,
    values: Reader<'r>,
    index: usize,
    /// The number of columns present so far.
    logged: usize,
}

impl<'r> Iterator for Fields<'r> {
    type Item = Result<Field<'r>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let column = self.image.columns.get(self.index)?;
        let is_present = bit(self.image.present, self.index);
        self.index += 1;
        if !is_present {
            return Some(Ok(Field::Absent));
        }
        let is_null = bit(self.image.nulls, self.logged);
        self.logged += 1;
        if is_null {
            return Some(Ok(Field::Null));
        }
        Some(column.take(&mut self.values).map(Field::Value))
    }
}

fn bit(bits: &[u8], index: usize) -> bool {
    bits.get(index / 8).is_some_and(|byte| byte & (1 << (index % 8)) != 0)
}

#[cfg(test)]
mod tests;
