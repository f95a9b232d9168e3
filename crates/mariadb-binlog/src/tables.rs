//! What has to be known of a table to read its rows: where the document and the primary key are, and which tables change with it.

use crate::changes::TableName;
use mariadb_client::{Failure, Result, TextConnection, TextValues, quote};
use mariadb_wire::Param;
use mariadb_wire::binlog::table_map::TableMap;
use std::sync::Arc;

/// The column that holds a collection's documents.
const DOC: &str = "doc";

#[derive(Debug)]
pub struct Facts {
    pub name: Arc<TableName>,
    /// `None` when the table is not as it was when its rows were logged, or is gone.
    pub columns: Option<Columns>,
    /// Tables whose rows the engine changes or deletes along with this one's, by foreign keys, without logging that.
    pub dependents: Vec<Arc<TableName>>,
    /// Of a MERGE table, the tables that have its rows.
    pub merged: Vec<Arc<TableName>>,
}

#[derive(Debug)]
pub struct Columns {
    pub doc: Option<usize>,
    /// The primary key, in its order.
    pub key: Vec<KeyColumn>,
}

#[derive(Debug)]
pub struct KeyColumn {
    pub index: usize,
    pub name: String,
    pub unsigned: bool,
}

/// Looks tables up; remembers what all of them share.
#[derive(Default)]
pub struct Tables {
    /// From a table to one whose rows follow it. `None`: not known, or no longer.
    cascades: Option<Vec<(TableName, TableName)>>,
}

const COLUMNS: &str = "SELECT COLUMN_NAME, COLUMN_TYPE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? \
     ORDER BY ORDINAL_POSITION";

const PRIMARY_KEY: &str = "SELECT COLUMN_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? \
     AND INDEX_NAME = 'PRIMARY' ORDER BY SEQ_IN_INDEX";

/// Cheap, but needs the right PROCESS: the lower four bits are what happens to rows that refer to one.
const ANY_CASCADE: &str = "SELECT COUNT(*) FROM information_schema.INNODB_SYS_FOREIGN WHERE TYPE & 15";

const CASCADES: &str = "SELECT UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME, CONSTRAINT_SCHEMA, TABLE_NAME \
     FROM information_schema.REFERENTIAL_CONSTRAINTS \
     WHERE UPDATE_RULE NOT IN ('RESTRICT', 'NO ACTION') OR DELETE_RULE NOT IN ('RESTRICT', 'NO ACTION')";

impl Tables {
    /// A definition has changed.
    pub fn forget(&mut self) {
        self.cascades = None;
    }

    pub async fn facts(&mut self, map: &TableMap, helper: &mut TextConnection) -> Result<Facts> {
        let name = TableName::new(&map.database, &map.table);
        let columns = match &map.names {
            Some(names) => Some(from_event(map, names)),
            None => from_schema(map, helper).await?,
        };
        let dependents = self.dependents(&name, helper).await?;
        let merged = merged(&name, helper).await?;
        Ok(Facts { name, columns, dependents, merged })
    }

    /// Tables that change with this one, directly or by others.
    async fn dependents(&mut self, name: &TableName, helper: &mut TextConnection) -> Result<Vec<Arc<TableName>>> {
        if self.cascades.is_none() {
            self.cascades = Some(cascades(helper).await?);
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
        // A table may refer to itself.
        if edges.iter().any(|(from, to)| from == to && from == name) {
            found.push(Arc::new(name.clone()));
        }
        Ok(found)
    }
}

const IS_MERGE: &str = "SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? \
     AND ENGINE = 'MRG_MyISAM'";

/// The tables under a MERGE table, as its CREATE TABLE has them behind `UNION=`.
async fn merged(name: &TableName, helper: &mut TextConnection) -> Result<Vec<Arc<TableName>>> {
    let params = [Param::Text(name.database.as_bytes()), Param::Text(name.table.as_bytes())];
    if helper.look_up(&IS_MERGE.into(), &params, 1).await?.is_empty() {
        return Ok(Vec::new());
    }
    let question = format!("SHOW CREATE TABLE {}.{}", quote(&name.database), quote(&name.table));
    let created = match helper.rows(&question).await {
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

async fn cascades(helper: &mut TextConnection) -> Result<Vec<(TableName, TableName)>> {
    match helper.slow_rows(ANY_CASCADE).await {
        Ok(rows) if first(&rows) == Some("0") => return Ok(Vec::new()),
        Ok(_) | Err(Failure::Sql { .. }) => {}
        Err(failure) => return Err(failure),
    }
    let table = |database: &Option<String>, table: &Option<String>| TableName {
        database: database.as_deref().unwrap_or_default().into(),
        table: table.as_deref().unwrap_or_default().into(),
    };
    let rows = helper.slow_rows(CASCADES).await?;
    Ok(rows
        .iter()
        .filter_map(|row| match row.as_slice() {
            [to_schema, to, from_schema, from] => Some((table(to_schema, to), table(from_schema, from))),
            _ => None,
        })
        .collect())
}

/// `binlog_row_metadata` is FULL: the log says all of it.
fn from_event(map: &TableMap, names: &[String]) -> Columns {
    let unsigned = |index: usize| map.unsigned.as_ref().is_some_and(|signs| signs.get(index) == Some(&true));
    let key = |index: &usize| KeyColumn {
        index: *index,
        name: names.get(*index).cloned().unwrap_or_default(),
        unsigned: unsigned(*index),
    };
    Columns { doc: names.iter().position(|name| name == DOC), key: map.primary_key.iter().map(key).collect() }
}

/// The log numbers columns; the names are those of today. A definition that has changed in between is further down in the log, and then the whole
/// table counts as changed.
async fn from_schema(map: &TableMap, helper: &mut TextConnection) -> Result<Option<Columns>> {
    let params = [Param::Text(map.database.as_bytes()), Param::Text(map.table.as_bytes())];
    let columns = helper.look_up(&COLUMNS.into(), &params, 2).await?;
    if columns.len() != map.columns.len() {
        return Ok(None);
    }
    let position = |name: &str| columns.iter().position(|row| matches!(row.first(), Some(Some(it)) if it == name));
    let key = helper.look_up(&PRIMARY_KEY.into(), &params, 1).await?;
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
    fn a_merge_table_names_the_tables_under_it() {
        let created = "CREATE TABLE `m` (\n  `a` int\n) ENGINE=MRG_MyISAM INSERT_METHOD=LAST UNION=(`t`,`e`.`u`)";
        assert_eq!(union(created, "d"), [TableName::new("d", "t"), TableName::new("e", "u")]);
        assert!(union("CREATE TABLE `m` (\n  `a` int\n) ENGINE=MRG_MyISAM", "d").is_empty());
    }
}
