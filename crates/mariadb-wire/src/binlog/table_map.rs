//! TABLE_MAP: the table of the rows that follow, and its columns.
//!
//! Source: <https://mariadb.com/kb/en/table_map_event/>

use super::column::Column;
use super::event::kind;
use super::format::FormatDescription;
use crate::{Malformed, Reader};

/// A table as it was when its rows were logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableMap {
    /// The server's number for it, until the server reopens it.
    pub id: u64,
    pub database: String,
    pub table: String,
    pub columns: Vec<Column>,
    /// The signedness of each column, if the server sends it (`binlog_row_metadata` is MINIMAL or
    /// FULL).
    pub unsigned: Option<Vec<bool>>,
    /// The names of the columns, if the server sends them (`binlog_row_metadata` is FULL).
    pub names: Option<Vec<String>>,
    /// The columns of the primary key in its order; empty without one. Known if `names` are.
    pub primary_key: Vec<usize>,
}

impl TableMap {
    pub fn decode(body: &[u8], format: &FormatDescription) -> Result<Self, Malformed> {
        let mut reader = Reader::new(body, "TABLE_MAP");
        let id = table_id(&mut reader, format.table_id_bytes(kind::TABLE_MAP))?;
        reader.u16()?;
        let database = name(&mut reader)?;
        let table = name(&mut reader)?;
        let count = reader.length_encoded()?;
        let codes = reader.bytes(usize::try_from(count).map_err(|_| reader.malformed())?)?;
        let mut metadata = Reader::new(reader.length_encoded_bytes()?, "TABLE_MAP");
        let columns: Vec<Column> =
            codes.iter().map(|&code| Column::decode(code, &mut metadata)).collect::<Result<_, _>>()?;
        reader.bytes(columns.len().div_ceil(8))?;
        let mut map = TableMap { id, database, table, columns, unsigned: None, names: None, primary_key: Vec::new() };
        map.read_optional(&mut reader)?;
        Ok(map)
    }

    /// Type, length and value, repeated.
    fn read_optional(&mut self, reader: &mut Reader<'_>) -> Result<(), Malformed> {
        const SIGNEDNESS: u8 = 1;
        const COLUMN_NAME: u8 = 4;
        const SIMPLE_PRIMARY_KEY: u8 = 8;
        const PRIMARY_KEY_WITH_PREFIX: u8 = 9;
        while !reader.is_empty() {
            let field = reader.u8()?;
            let mut value = Reader::new(reader.length_encoded_bytes()?, "TABLE_MAP");
            match field {
                SIGNEDNESS => self.unsigned = Some(self.read_signs(value.rest())),
                COLUMN_NAME => {
                    let mut names = Vec::new();
                    while !value.is_empty() {
                        names.push(text(value.length_encoded_bytes()?)?);
                    }
                    if names.len() != self.columns.len() {
                        return Err(reader.malformed());
                    }
                    self.names = Some(names);
                }
                SIMPLE_PRIMARY_KEY | PRIMARY_KEY_WITH_PREFIX => {
                    while !value.is_empty() {
                        let index = usize::try_from(value.length_encoded()?).unwrap_or(usize::MAX);
                        if index >= self.columns.len() {
                            return Err(reader.malformed());
                        }
                        self.primary_key.push(index);
                        if field == PRIMARY_KEY_WITH_PREFIX {
                            value.length_encoded()?;
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A bit for each numeric column, the first one in the highest bit.
    fn read_signs(&self, bits: &[u8]) -> Vec<bool> {
        let mut at = 0;
        let sign = |column: &Column| {
            if !column.is_numeric() {
                return false;
            }
            let bit = bits.get(at / 8).is_some_and(|byte| byte & (0x80 >> (at % 8)) != 0);
            at += 1;
            bit
        };
        self.columns.iter().map(sign).collect()
    }
}

pub(super) fn table_id(reader: &mut Reader<'_>, bytes: usize) -> Result<u64, Malformed> {
    let mut id = [0; 8];
    id[..bytes].copy_from_slice(reader.bytes(bytes)?);
    Ok(u64::from_le_bytes(id))
}

/// A name with a length before it and a zero after it.
fn name(reader: &mut Reader<'_>) -> Result<String, Malformed> {
    let length = usize::try_from(reader.length_encoded()?).map_err(|_| reader.malformed())?;
    let name = text(reader.bytes(length)?)?;
    if reader.u8()? != 0 {
        return Err(reader.malformed());
    }
    Ok(name)
}

fn text(bytes: &[u8]) -> Result<String, Malformed> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| Malformed("TABLE_MAP"))
}
