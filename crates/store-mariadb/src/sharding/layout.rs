//! What the head's table says about a sharded collection. It is a comment of the column `doc`, so
//! that a definition and what it means change together.

use crate::catalog::own_schema::{self, text};
use document::{Doc, DocBuf, Value};
use error::Error;
use mariadb_client::{Connection, Result};
use mariadb_wire::Param;

/// How a collection is sharded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Layout {
    /// The shard key as the client gave it.
    pub key: DocBuf,
    /// The names of the data servers, in the order of the partitions.
    pub shards: Vec<String>,
    /// The name of the tables on the data servers.
    pub data_table: String,
}

/// The beginning of the comment.
const MARK: &str = "sharded ";

impl Layout {
    /// Returns the comment: the layout as JSON.
    pub fn comment(&self) -> String {
        let layout = DocBuf::build(|writer| {
            writer.append("key", Value::Document(self.key.as_doc()));
            let mut shards = writer.array("shards");
            self.shards.iter().for_each(|shard| shards.push(shard.as_str()));
            drop(shards);
            writer.append("table", self.data_table.as_str());
        });
        let mut comment = MARK.as_bytes().to_vec();
        document::json::bson_to_json(layout.as_doc(), &mut comment);
        // The encoder writes UTF-8.
        String::from_utf8_lossy(&comment).into_owned()
    }

    /// Reads the comment; `None` if it is not one.
    pub fn from_comment(comment: &str) -> Option<Layout> {
        let mut bson = Vec::new();
        document::json::json_to_bson(comment.strip_prefix(MARK)?.as_bytes(), &mut bson).ok()?;
        let layout = Doc::from_bytes(&bson)?;
        let Value::Array(shards) = layout.get("shards")? else { return None };
        let shards: Option<Vec<String>> = shards.values().map(|shard| shard.as_str().map(str::to_owned)).collect();
        Some(Layout {
            key: layout.get("key")?.as_document()?.to_owned(),
            shards: shards.filter(|shards| !shards.is_empty())?,
            data_table: layout.get("table")?.as_str()?.to_owned(),
        })
    }
}

const READ: &str = "SELECT COLUMN_COMMENT FROM information_schema.COLUMNS \
     WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND COLUMN_NAME = 'doc'";

const TABLES: &str = "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.COLUMNS \
     WHERE COLUMN_NAME = 'doc' AND COLUMN_COMMENT LIKE 'sharded %' ORDER BY TABLE_SCHEMA, TABLE_NAME";

/// Reads how a table is sharded; `None` if it is not.
pub(crate) async fn read(connection: &mut Connection, schema: &str, table: &str) -> Result<Option<Layout>> {
    let names = [Param::Text(schema.as_bytes()), Param::Text(table.as_bytes())];
    let mut layout = None;
    own_schema::query(connection, &READ.into(), &names, |row| {
        if let [Some(comment)] = row {
            layout = Layout::from_comment(&text(comment)?);
        }
        Ok(())
    })
    .await?;
    Ok(layout)
}

/// As [`read`], of a table that is known to be sharded.
pub(crate) async fn of_sharded(connection: &mut Connection, schema: &str, table: &str) -> Result<Layout> {
    let missing = || Error::internal(format!("the table {schema}.{table} does not say how it is sharded"));
    Ok(read(connection, schema, table).await?.ok_or_else(missing)?)
}

/// Lists schema and table of each sharded collection.
pub(crate) async fn tables(connection: &mut Connection) -> Result<Vec<(String, String)>> {
    let mut tables = Vec::new();
    own_schema::query(connection, &TABLES.into(), &[], |row| {
        if let [Some(schema), Some(table)] = row {
            tables.push((text(schema)?, text(table)?));
        }
        Ok(())
    })
    .await?;
    Ok(tables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_read_as_written() {
        let key = DocBuf::build(|writer| writer.append("it's a \\ \"key\"", "hashed"));
        let layout = Layout { key, shards: vec!["data1".into(), "data2".into()], data_table: "shop_orders_1f".into() };
        assert_eq!(Layout::from_comment(&layout.comment()), Some(layout));
        for odd in
            ["", "sharded ", "sharded {}", "a comment", "sharded {\"key\":{\"_id\":1},\"shards\":[],\"table\":\"x\"}"]
        {
            assert_eq!(Layout::from_comment(odd), None, "{odd}");
        }
    }
}
