//! Statements on the data servers, which the head sends: it has the accounts.

use crate::index::Index;
use crate::sharding::definition::{self, DATA_SCHEMA};
use crate::sharding::layout::Layout;
use error::{Code, Error};
use mariadb_client::{Connection, Result, quote};
use mariadb_wire::Param;

/// How long a statement may take: an index over many documents takes hours.
const TIMEOUT_SECONDS: u32 = 7 * 24 * 3600;

/// The least `max_allowed_packet` of a data server: a statement may have a document twice.
const PACKET_BYTES_MIN: u64 = 128 << 20;

/// An error that only a statement here signals.
const SIGNALED: u16 = 1644;

/// Executes a statement on a data server.
pub(crate) async fn execute(connection: &mut Connection, server: &str, sql: &str) -> Result<()> {
    // The current schema there is one that exists before any table.
    let server = format!(
        "srv \"{server}\", database \"information_schema\", net_read_timeout \"{TIMEOUT_SECONDS}\", net_write_timeout \"60\""
    );
    let params = [Param::Text(sql.as_bytes()), Param::Text(server.as_bytes())];
    // DO would make a warning of an error.
    connection.queue_execute(&"SELECT spider_direct_sql(?, '', ?)".into(), &params);
    connection.finish().await.map(drop)
}

/// Executes a statement on each data server of a collection, until one fails.
pub(crate) async fn execute_on_all(connection: &mut Connection, layout: &Layout, sql: &str) -> Result<()> {
    for server in &layout.shards {
        execute(connection, server, sql).await?;
    }
    Ok(())
}

/// Creates the tables on the data servers. Fails with 72 if the packets of one are too small.
pub(crate) async fn create(connection: &mut Connection, layout: &Layout, indexes: &[Index]) -> Result<()> {
    for server in &layout.shards {
        check_packets(connection, server).await?;
    }
    let schema = format!("CREATE SCHEMA IF NOT EXISTS {}", quote(DATA_SCHEMA));
    execute_on_all(connection, layout, &schema).await?;
    execute_on_all(connection, layout, &definition::data_table(layout)).await?;
    if indexes.is_empty() {
        return Ok(());
    }
    execute_on_all(connection, layout, &definition::add_columns(layout, indexes)).await?;
    execute_on_all(connection, layout, &definition::add_keys(layout, indexes)).await
}

async fn check_packets(connection: &mut Connection, server: &str) -> Result<()> {
    let sql = format!(
        "BEGIN NOT ATOMIC IF @@GLOBAL.max_allowed_packet < {PACKET_BYTES_MIN} THEN SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = {SIGNALED}; \
         END IF; END"
    );
    match execute(connection, server, &sql).await {
        Err(failure) if failure.sql_code() == Some(SIGNALED) => {
            let message = format!(
                "the data server {server:?} has too small a max_allowed_packet for documents of 16 MiB: set \
                 max_allowed_packet=128M in its configuration and restart it"
            );
            Err(Error::new(Code::INVALID_OPTIONS, message).into())
        }
        outcome => outcome,
    }
}

/// Fails unless all data servers answer.
pub(crate) async fn reach_all(connection: &mut Connection, layout: &Layout) -> Result<()> {
    execute_on_all(connection, layout, "DO 1").await
}

/// Drops the tables on the data servers, which no table of the head uses any more. One that cannot
/// be dropped stays, and is logged.
pub(crate) async fn drop_all(connection: &mut Connection, layout: &Layout) -> Result<()> {
    let sql = format!("DROP TABLE IF EXISTS {}", definition::quoted_data_table(layout));
    for server in &layout.shards {
        match execute(connection, server, &sql).await {
            Err(failure) if failure.is_lost() => return Err(failure),
            Err(failure) => tracing::warn!(server, sql, %failure, "a table of a dropped collection remains"),
            Ok(()) => {}
        }
    }
    Ok(())
}
