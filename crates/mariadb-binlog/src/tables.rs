//! TableFacts about a table that its row events need: the positions of the document and the primary
//! key, and the tables that change with it.

use crate::changes::TableName;
use mariadb_client::{Failure, Result, TextConnection, TextValues, quote};
use mariadb_wire::Param;
use mariadb_wire::binlog::table_map::TableMap;
use std::sync::Arc;

/// The column that holds a collection's documents.
const DOC: &str = "doc";

/// TableFacts about a table.
#[derive(Debug)]
pub struct TableFacts {
    pub name: Arc<TableName>,
    /// `None` if the table has changed since its rows were logged, or was dropped.
    pub columns: Option<Columns>,
    /// Tables whose rows the engine changes by foreign keys of this one, without logging that.
    pub dependents: Vec<Arc<TableName>>,
    /// The underlying tables of a MERGE table.
    pub merged: Vec<Arc<TableName>>,
}

/// The columns that matter of a row.
#[derive(Debug)]
pub struct Columns {
    pub doc: Option<usize>,
    /// The primary key, in its order.
    pub key: Vec<KeyColumn>,
}

/// A column of the primary key.
#[derive(Debug)]
pub struct KeyColumn {
    pub index: usize,
    pub name: String,
    pub unsigned: bool,
}

/// Looks up tables; caches the foreign keys that cascade.
#[derive(Default)]
pub struct Tables {
    /// Pairs of a table and one whose rows it changes. `None` if unknown.
    cascades: Option<Vec<(TableName, TableName)>>,
}

const COLUMNS: &str = "SELECT COLUMN_NAME, COLUMN_TYPE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? \
     ORDER BY ORDINAL_POSITION";

const PRIMARY_KEY: &str = "SELECT COLUMN_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? \
     AND INDEX_NAME = 'PRIMARY' ORDER BY SEQ_IN_INDEX";

/// Cheap, but needs the privilege PROCESS: the lower four bits say whether a foreign key cascades.
const ANY_CASCADE: &str = "SELECT COUNT(*) FROM information_schema.INNODB_SYS_FOREIGN WHERE TYPE & 15";

const CASCADES: &str = "SELECT UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME, CONSTRAINT_SCHEMA, TABLE_NAME \
     FROM information_schema.REFERENTIAL_CONSTRAINTS \
     WHERE UPDATE_RULE NOT IN ('RESTRICT', 'NO ACTION') OR DELETE_RULE NOT IN ('RESTRICT', 'NO ACTION')";

impl Tables {
    /// Invalidates the cached foreign keys, after a change of a definition.
    pub fn invalidate(&mut self) {
        self.cascades = None;
    }

    /// Looks up the facts about a table.
    pub async fn facts(&mut self, map: &TableMap, queries: &mut TextConnection) -> Result<TableFacts> {
        let name = TableName::new(&map.database, &map.table);
        let columns = match &map.names {
            Some(names) => Some(from_event(map, names)),
            None => from_schema(map, queries).await?,
        };
        let dependents = self.dependents(&name, queries).await?;
        let merged = merged(&name, queries).await?;
        Ok(TableFacts { name, columns, dependents, merged })
    }

    /// Returns the tables that change with this one, directly or through others.
    async fn dependents(&mut self, name: &TableName, queries: &mut TextConnection) -> Result<Vec<Arc<TableName>>> {
        if self.cascades.is_none() {
            self.cascades = Some(cascades(queries).await?);
        }
        let edges = self.cascades.as_deref().unwrap_or_default();
        let mut found: Vec<Arc<TableName>> = Vec::new();
        let mut open = vec![name.clone()];
        while let Some(parent) = open.pop() {
            for (_, child) in edges.iter().filter(|(from, _)| *from == parent) {
                if child != name && !found.iter().any(|known| **known == *child) {
                    found.push(Arc::new(child.clone()));
                    open.push(child.clone());
                }
            }
        }
        // A table may reference itself.
        if edges.iter().any(|(from, to)| from == to && from == name) {
            found.push(Arc::new(name.clone()));
        }
        Ok(found)
    }
}

const IS_MERGE: &str = "SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? \
     AND ENGINE = 'MRG_MyISAM'";

/// Returns the underlying tables of a MERGE table, as its CREATE TABLE lists them in `UNION=`.
async fn merged(name: &TableName, queries: &mut TextConnection) -> Result<Vec<Arc<TableName>>> {
    let params = [Param::Text(name.database.as_bytes()), Param::Text(name.table.as_bytes())];
    if queries.look_up(&IS_MERGE.into(), &params, 1).await?.is_empty() {
        return Ok(Vec::new());
    }
    let question = format!("SHOW CREATE TABLE {}.{}", quote(&name.database), quote(&name.table));
    let created = match queries.rows(&question).await {
        Ok(rows) => rows.into_iter().flatten().nth(1).flatten().unwrap_or_default(),
        Err(Failure::Sql { .. }) => String::new(),
        Err(failure) => return Err(failure),
    };
    Ok(union(&created, &name.database))
}

fn union(created: &str, database: &str) -> Vec<Arc<TableName>> {
    let list = created.rsplit_once("UNION=(").map_or("", |(_, list)| list);
    let list = list.rsplit_once(')').map_or("", |(list, _)| list);
    let names = list.split(',').map(|name| name.trim_matches('`')).filter(|name| !name.is_empty());
    names
        .map(|name| match name.split_once("`.`") {
            Some((schema, table)) => TableName::new(schema, table),
            None => TableName::new(database, name),
        })
        .collect()
}

async fn cascades(queries: &mut TextConnection) -> Result<Vec<(TableName, TableName)>> {
    match queries.slow_rows(ANY_CASCADE).await {
        Ok(rows) if first(&rows) == Some("0") => return Ok(Vec::new()),
        Ok(_) | Err(Failure::Sql { .. }) => {}
        Err(failure) => return Err(failure),
    }
    let table = |database: &Option<String>, table: &Option<String>| TableName {
        database: database.as_deref().unwrap_or_default().into(),
        table: table.as_deref().unwrap_or_default().into(),
    };
    let rows = queries.slow_rows(CASCADES).await?;
    Ok(rows
        .iter()
        .filter_map(|row| match row.as_slice() {
            [to_schema, to, from_schema, from] => Some((table(to_schema, to), table(from_schema, from))),
            _ => None,
        })
        .collect())
}

/// Reads the columns from a table map; `binlog_row_metadata` is FULL.
fn from_event(map: &TableMap, names: &[String]) -> Columns {
    let unsigned = |index: usize| map.unsigned.as_ref().is_some_and(|signs| signs.get(index) == Some(&true));
    let key = |index: &usize| KeyColumn {
        index: *index,
        name: names.get(*index).cloned().unwrap_or_default(),
        unsigned: unsigned(*index),
    };
    Columns { doc: names.iter().position(|name| name == DOC), key: map.primary_key.iter().map(key).collect() }
}

/// Reads the columns from the schema: the log only numbers them. If the definition has changed
/// since, that change follows in the log, and the whole table counts as changed then.
async fn from_schema(map: &TableMap, queries: &mut TextConnection) -> Result<Option<Columns>> {
    let params = [Param::Text(map.database.as_bytes()), Param::Text(map.table.as_bytes())];
    let columns = queries.look_up(&COLUMNS.into(), &params, 2).await?;
    if columns.len() != map.columns.len() {
        return Ok(None);
    }
    let position = |name: &str| columns.iter().position(|row| matches!(row.first(), Some(Some(it)) if it == name));
    let key = queries.look_up(&PRIMARY_KEY.into(), &params, 1).await?;
    let key = key.iter().map(|row| {
        let name = row.first()?.clone()?;
        let index = position(&name)?;
        let unsigned = columns[index].get(1)?.as_ref()?.contains("unsigned");
        Some(KeyColumn { index, name, unsigned })
    });
    Ok(key.collect::<Option<Vec<_>>>().map(|key| Columns { doc: position(DOC), key }))
}

fn first(rows: &[TextValues]) -> Option<&str> {
    rows.first()?.first()?.as_deref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_of_a_merge_table_lists_its_tables() {
        let created = "CREATE TABLE `m` (\n  `a` int\n) ENGINE=MRG_MyISAM INSERT_METHOD=LAST UNION=(`t`,`e`.`u`)";
        assert_eq!(union(created, "d"), [TableName::new("d", "t"), TableName::new("e", "u")]);
        assert!(union("CREATE TABLE `m` (\n  `a` int\n) ENGINE=MRG_MyISAM", "d").is_empty());
    }
}
