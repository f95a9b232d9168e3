//! Queries for the identity of the server's binary log, and for its end.

use mariadb_client::{Result, TextConnection, TextValues};
use mariadb_wire::binlog::Gtid;

/// Returns a text that identifies the server's log among those of other servers.
pub async fn log_identity(connection: &mut TextConnection) -> Result<String> {
    let rows = connection.rows("SELECT CONCAT_WS('|', @@hostname, @@port, @@server_id, @@datadir)").await?;
    Ok(first_text(rows))
}

/// Returns the end of the server's log: it contains every transaction whose COMMIT has returned.
pub async fn log_end(connection: &mut TextConnection) -> Result<Vec<Gtid>> {
    let rows = connection.rows("SELECT @@global.gtid_binlog_pos").await?;
    Ok(Gtid::parse_list(&first_text(rows))?)
}

/// Returns whether the server's log has the last transactions of a position, and thus those before
/// them.
pub async fn log_has(connection: &mut TextConnection, position: &[Gtid]) -> Result<bool> {
    let rows = connection.rows("SELECT @@global.gtid_binlog_state").await?;
    let state = Gtid::parse_list(&first_text(rows))?;
    let has = |wanted: &Gtid| {
        let same = |known: &&Gtid| (known.domain, known.server) == (wanted.domain, wanted.server);
        state.iter().find(same).is_some_and(|known| known.sequence >= wanted.sequence)
    };
    Ok(position.iter().all(has))
}

/// Returns whether the server is read-only, as replicas are.
pub async fn is_read_only(connection: &mut TextConnection) -> Result<bool> {
    let rows = connection.rows("SELECT CONCAT(@@global.read_only)").await?;
    Ok(!matches!(first_text(rows).as_str(), "0" | "OFF"))
}

fn first_text(rows: Vec<TextValues>) -> String {
    rows.into_iter().flatten().next().flatten().unwrap_or_default()
}
