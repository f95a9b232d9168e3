//! The cars in a plain table of MariaDB, accessed by prepared statements without a gateway.

use crate::dataset::cars;
use anyhow::{Result, bail};
use document::{DocBuf, Value};
use harness::sql_connection::{SqlConnection, SqlTarget};
use mariadb_wire::Param;

const DATABASE: &str = "selkie_bench_plain";
const COLUMNS: &str = "`_id`, `Year`, `Make`, `Model`, `Category`, `createdAt`, `updatedAt`";

pub struct PlainTable {
    connection: SqlConnection,
    /// Inserts `rows_per_insert` rows.
    insert: String,
    rows_per_insert: u64,
}

impl PlainTable {
    /// Creates the table, without secondary indexes, and loads it.
    pub fn load(target: &SqlTarget, documents: u64, rows_per_insert: u64) -> Result<PlainTable> {
        let mut connection = SqlConnection::open(target)?;
        connection.query(&format!("CREATE DATABASE IF NOT EXISTS {DATABASE}"))?;
        connection.query(&format!("DROP TABLE IF EXISTS {DATABASE}.cars"))?;
        connection.query(&format!(
            "CREATE TABLE {DATABASE}.cars (`_id` INT NOT NULL PRIMARY KEY, `Year` INT NOT NULL, `Make` VARCHAR(40) NOT NULL, \
             `Model` VARCHAR(40) NOT NULL, `Category` VARCHAR(40) NOT NULL, `createdAt` VARCHAR(40) NOT NULL, \
             `updatedAt` VARCHAR(40) NOT NULL) ENGINE = InnoDB CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin"
        ))?;
        let mut table = PlainTable { connection, insert: insert_of(rows_per_insert), rows_per_insert };
        for first in (0..documents).step_by(rows_per_insert as usize) {
            table.insert(&cars(first, rows_per_insert.min(documents - first)))?;
        }
        Ok(table)
    }

    pub fn create_indexes(&mut self) -> Result<()> {
        self.connection.query(&format!(
            "ALTER TABLE {DATABASE}.cars ADD KEY make (`Make`), ADD KEY year (`Year`, `Make`), ADD KEY created (`createdAt`)"
        ))
    }

    pub fn insert(&mut self, cars: &[DocBuf]) -> Result<()> {
        let values = cars.iter().flat_map(|car| car.as_doc().values()).map(param).collect::<Result<Vec<_>>>()?;
        let other = (cars.len() as u64 != self.rows_per_insert).then(|| insert_of(cars.len() as u64));
        self.connection.execute(other.as_ref().unwrap_or(&self.insert), &values).map(drop)
    }

    pub fn update(&mut self, id: i32, year: i32) -> Result<()> {
        let statement = format!("UPDATE {DATABASE}.cars SET `Year` = ? WHERE `_id` = ?");
        match self.connection.execute(&statement, &[Param::Signed(year.into()), Param::Signed(id.into())])? {
            1 => Ok(()),
            found => bail!("{found} rows of _id {id}"),
        }
    }

    /// Runs a SELECT and reads all its rows; `rest` follows the name of the table.
    pub fn query(&mut self, rest: &str) -> Result<()> {
        let mut rows = 0;
        self.connection.rows(&format!("SELECT {COLUMNS} FROM {DATABASE}.cars {rest}"), &[], |_| rows += 1)?;
        if rows == 0 { bail!("the query found nothing") } else { Ok(()) }
    }
}

fn insert_of(rows: u64) -> String {
    let rows = vec!["(?, ?, ?, ?, ?, ?, ?)"; rows as usize].join(", ");
    format!("INSERT INTO {DATABASE}.cars ({COLUMNS}) VALUES {rows}")
}

fn param(value: Value<'_>) -> Result<Param<'_>> {
    match value {
        Value::Int32(number) => Ok(Param::Signed(number.into())),
        Value::String(text) => Ok(Param::Text(text.as_bytes())),
        other => bail!("a car with {other:?}"),
    }
}
