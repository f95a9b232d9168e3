//! The columns of a collection's table, and the recognition of tables that hold documents.

use crate::catalog::id_text::{self, IdForm};
use crate::catalog::row_key::RowKey;
use mariadb_wire::Malformed;
use mariadb_wire::row::BinaryRow;

/// Expression of the column `opaque`: whether a document's text has escapes (a backslash) or blobs,
/// see `pushdown`. REPLACE takes time by the text's length times its matches, so a long text counts
/// as opaque without a search.
pub(crate) const OPAQUE: &str = "length(`doc`) > 8192 or length(replace(`doc`,'\\\\','')) < length(`doc`) or length(replace(`doc`,'\"$bson\"','')) < length(`doc`)";

/// The column with the text of `_id`, and the name of the index on it.
pub(crate) const ID_TEXT: &str = "id";

/// The column with the order keys of ids, and the name of the index on it.
pub(crate) const ID_KEY: &str = "id_key";

/// Its length without the type byte: every `_id` that the column `id` holds in full fits.
pub(crate) const ID_KEY_BYTES: usize = 4 * id_text::ID_CHARS_MAX;

/// What the columns say of a table that holds documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableShape {
    pub row_key: RowKey,
    pub id_form: IdForm,
    pub has_opaque_column: bool,
    pub has_id_key: bool,
    /// Its rows are on several servers: see [`crate::sharding`].
    pub is_sharded: bool,
}

/// A column as `information_schema.COLUMNS` describes it.
pub(crate) struct ColumnInfo {
    pub name: String,
    pub data_type: String,
    /// `PRI`, `UNI`, `MUL` or nothing.
    pub key: String,
    pub extra: String,
    pub generation: Option<String>,
    pub nullable: bool,
    pub has_default: bool,
}

impl ColumnInfo {
    /// Decodes a row of `information_schema.COLUMNS`, with columns in the order of the queries
    /// here.
    pub fn read(row: &mut BinaryRow<'_>) -> Result<ColumnInfo, Malformed> {
        let mut text = || -> Result<Option<String>, Malformed> {
            Ok(row.next_bytes()?.map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
        };
        Ok(ColumnInfo {
            name: text()?.unwrap_or_default(),
            data_type: text()?.unwrap_or_default(),
            key: text()?.unwrap_or_default(),
            extra: text()?.unwrap_or_default(),
            generation: text()?.filter(|expression| !expression.is_empty()),
            nullable: text()?.as_deref() == Some("YES"),
            has_default: row.next_u64()? != 0,
        })
    }
}

/// Returns whether a table with these columns is sharded.
pub(crate) fn is_sharded(columns: &[ColumnInfo]) -> bool {
    columns.iter().any(|column| column.name == "seq" && column.key == "MUL" && column.has_default)
}

/// Returns the shape of a table with these columns; `None` if it does not hold documents.
pub(crate) fn table_shape(columns: &[ColumnInfo]) -> Option<TableShape> {
    let find = |name: &str| columns.iter().find(|column| column.name == name);
    let doc = find("doc").filter(|column| column.generation.is_none() && column.data_type.ends_with("text"))?;
    let is_sharded = is_sharded(columns);
    let id = find("id").filter(|column| matches!(column.key.as_str(), "UNI" | "PRI"))?;
    let generation = id.generation.as_deref()?.to_ascii_lowercase();
    if !generation.contains("json_extract(`doc`") || !generation.contains("$._id") {
        return None;
    }
    let id_form = if generation.contains("regexp_replace") { IdForm::Canonical } else { IdForm::Plain };
    let sequence = find("seq").filter(|column| column.key == "PRI" && column.extra.contains("auto_increment"));
    // It must be possible to insert a row with only a document.
    let fills_itself = |column: &ColumnInfo| {
        column.nullable || column.has_default || column.generation.is_some() || column.extra.contains("auto_increment")
    };
    let others = columns.iter().filter(|column| column.name != doc.name);
    if !others.clone().all(fills_itself) {
        return None;
    }
    let row_key = if sequence.is_some() || is_sharded { RowKey::Sequence } else { RowKey::Id };
    let has_opaque_column = find("opaque").is_some_and(|column| {
        column.generation.as_deref().is_some_and(|it| it.contains("$bson") && it.contains("replace("))
    });
    let has_id_key = find(ID_KEY).is_some_and(|column| column.key == "MUL" && column.data_type == "varbinary");
    Some(TableShape { row_key, id_form, has_opaque_column, has_id_key, is_sharded })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, data_type: &str, key: &str, extra: &str, generation: Option<&str>) -> ColumnInfo {
        ColumnInfo {
            name: name.into(),
            data_type: data_type.into(),
            key: key.into(),
            extra: extra.into(),
            generation: generation.map(str::to_owned),
            nullable: extra.is_empty(),
            has_default: false,
        }
    }

    #[test]
    fn document_tables_are_recognized() {
        let plain = Some("json_compact(json_extract(`doc`,'$._id'))");
        let doc = || column("doc", "longtext", "", "", None);
        let id = |generation| column("id", "varchar", "UNI", "VIRTUAL GENERATED", generation);
        let seq = || column("seq", "bigint", "PRI", "auto_increment, INVISIBLE", None);
        let ours = id_text::expression();
        let plain_shape = TableShape {
            row_key: RowKey::Id,
            id_form: IdForm::Plain,
            has_opaque_column: false,
            has_id_key: false,
            is_sharded: false,
        };
        assert_eq!(table_shape(&[id(plain), doc()]), Some(plain_shape));
        let opaque = || column("opaque", "tinyint", "", "STORED GENERATED, INVISIBLE", Some(OPAQUE));
        let our_shape = TableShape {
            row_key: RowKey::Sequence,
            id_form: IdForm::Canonical,
            has_opaque_column: true,
            has_id_key: true,
            is_sharded: false,
        };
        let id_key = || column("id_key", "varbinary", "MUL", "STORED GENERATED, INVISIBLE", Some("…"));
        assert_eq!(table_shape(&[seq(), id(Some(&ours)), doc(), opaque(), id_key()]), Some(our_shape));
        let sharded = ColumnInfo { has_default: true, ..column("seq", "bigint", "MUL", "INVISIBLE", None) };
        let sharded_shape = TableShape { is_sharded: true, ..our_shape };
        assert_eq!(table_shape(&[sharded, id(Some(&ours)), doc(), opaque(), id_key()]), Some(sharded_shape));
        assert_eq!(table_shape(&[seq(), doc()]), None);
        assert_eq!(table_shape(&[id(None), doc()]), None);
        assert_eq!(table_shape(&[id(plain), doc(), column("must", "int", "", "NOT NULL", None)]), None);
    }
}
