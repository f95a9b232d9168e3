//! The records of a table's indexes in Selkie's own schema.

use crate::catalog::own_schema;
use crate::catalog::table_columns::{self, ColumnInfo};
use crate::index::Index;
use crate::index::element_table::record::ElementTableState;
use crate::index::form::IndexForm;
use crate::index::side_index::side_table::SideTable;
use document::DocBuf;
use index_keys::shape::index_spec;
use mariadb_client::{Connection, Result};
use mariadb_wire::Param;

/// Loads the indexes of a table: the recorded ones that exist, by the table's columns and the names
/// of its keys.
pub(crate) async fn load(
    connection: &mut Connection,
    schema: &str,
    table: &str,
    columns: &[ColumnInfo],
    keys: &[String],
) -> Result<Vec<Index>> {
    if !columns.iter().any(|column| column.name.contains('~')) {
        return Ok(Vec::new());
    }
    let sql = "SELECT spec, values_table FROM selkie.indexes WHERE schema_name = ? AND table_name = ? ORDER BY position, sql_name";
    // Tables beside an earlier table of the name, of which a record was left.
    let is_sharded = table_columns::is_sharded(columns);
    let mut indexes = Vec::new();
    let params = [Param::Text(schema.as_bytes()), Param::Text(table.as_bytes())];
    own_schema::query(connection, &sql.into(), &params, |row| {
        if let [Some(spec), values] = row {
            let spec = DocBuf::from_vec(spec.clone()).unwrap_or_default();
            let find = |name: &str| columns.iter().find(|column| column.name == name);
            let mut index = Index::new(index_spec(spec));
            if index.fields().next().is_none() {
                tracing::warn!("selkie.indexes has an invalid specification of an index of {schema}.{table}");
                return Ok(());
            }
            let has_key = keys.contains(&index.sql_name);
            let marker = find(&format!("{}.0", index.sql_name));
            if !has_key && marker.is_some_and(|marker| marker.extra.starts_with("VIRTUAL GENERATED")) {
                index = Index::spilled((*index.spec).clone()).unwrap_or(index);
            }
            let record = values.clone().map(own_schema::text_of).transpose()?;
            match &mut index.form {
                IndexForm::ColumnKey(form) => {
                    let record = record.as_deref().filter(|_| !is_sharded);
                    form.elements = record.map_or(ElementTableState::Absent, ElementTableState::read);
                }
                IndexForm::SideIndex(form) => form.table = record.as_deref().and_then(SideTable::read),
            }
            let first = find(index.column(0));
            if first.is_some_and(|column| column.data_type == "varbinary") && (has_key || !index.has_column_keys()) {
                indexes.push(index);
            }
        }
        Ok(())
    })
    .await?;
    Ok(indexes)
}

/// Records indexes that are about to be created.
pub(crate) async fn insert(
    connection: &mut Connection,
    schema: &str,
    table: &str,
    first: usize,
    indexes: &[Index],
) -> Result<()> {
    let sql = "INSERT INTO selkie.indexes (schema_name, table_name, position, sql_name, spec) VALUES (?, ?, ?, ?, ?) \
               ON DUPLICATE KEY UPDATE position = VALUES(position), spec = VALUES(spec)";
    for (position, index) in indexes.iter().enumerate() {
        let params = [
            Param::Text(schema.as_bytes()),
            Param::Text(table.as_bytes()),
            Param::Unsigned((first + position) as u64),
            Param::Text(index.sql_name.as_bytes()),
            Param::Bytes(index.spec.spec.as_bytes()),
        ];
        own_schema::execute(connection, &sql.into(), &params).await?;
    }
    Ok(())
}

/// Deletes the records of indexes.
pub(crate) async fn delete(connection: &mut Connection, schema: &str, table: &str, indexes: &[Index]) -> Result<()> {
    let sql = "DELETE FROM selkie.indexes WHERE schema_name = ? AND table_name = ? AND sql_name = ?";
    for index in indexes {
        let params = [schema, table, &index.sql_name].map(|text| Param::Text(text.as_bytes()));
        own_schema::execute(connection, &sql.into(), &params).await?;
    }
    Ok(())
}
