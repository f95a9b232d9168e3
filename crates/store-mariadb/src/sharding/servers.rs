//! The data servers: those that `CREATE SERVER` has defined on the head and the configuration
//! names.

use crate::catalog::own_schema::text;
use crate::options::ShardNames;
use error::{Code, Error};
use mariadb_client::{Connection, Event, Result};
use mariadb_wire::row::TextRow;
use store::Shard;

/// Checks at the start that the server has Spider and knows the data servers. Fails with 72.
pub(crate) async fn check(connection: &mut Connection, shards: &ShardNames) -> Result<()> {
    let refuse = |message: String| {
        let message = format!("{}: {message}", shards.written_at);
        Err(Error::new(Code::INVALID_OPTIONS, message).into())
    };
    let spider =
        "SELECT ENGINE FROM information_schema.ENGINES WHERE ENGINE = 'SPIDER' AND SUPPORT IN ('YES', 'DEFAULT')";
    if rows::<1>(connection, spider).await?.is_empty() {
        return refuse(
            "MariaDB lacks the storage engine Spider, which shards need: install its plugin ha_spider".into(),
        );
    }
    if let Some(odd) = shards.names.iter().find(|name| !is_plain(name)) {
        return refuse(format!("the server {odd:?} cannot be a shard: use letters, digits, - and _ in its name"));
    }
    let known = list(connection, &shards.names).await?;
    match shards.names.iter().find(|name| known.iter().all(|shard| shard.name != **name)) {
        Some(unknown) => refuse(format!("MariaDB knows no server {unknown:?}: define it with CREATE SERVER")),
        None => Ok(()),
    }
}

/// Returns whether a name can be part of Spider's comments without quoting.
fn is_plain(name: &str) -> bool {
    name.chars().all(|it| it.is_ascii_alphanumeric() || matches!(it, '-' | '_'))
}

/// Lists the servers of these names that are defined.
pub(crate) async fn list(connection: &mut Connection, names: &[String]) -> Result<Vec<Shard>> {
    let defined = rows::<4>(connection, "SELECT Server_name, Host, Port, Socket FROM mysql.servers").await?;
    let find = |name: &String| {
        let [_, host, port, socket] = defined.iter().find(|[defined, ..]| defined == name)?;
        let address = if socket.is_empty() { format!("{host}:{port}") } else { socket.clone() };
        Some(Shard { name: name.clone(), address })
    };
    Ok(names.iter().filter_map(find).collect())
}

async fn rows<const N: usize>(connection: &mut Connection, sql: &str) -> Result<Vec<[String; N]>> {
    connection.queue_query(sql);
    let mut rows = Vec::new();
    while let Event::Row(range) = connection.next().await? {
        let mut row = TextRow::new(connection.raw_row(range).0);
        let mut values = [const { String::new() }; N];
        for value in &mut values {
            *value = text(row.next_bytes()?.unwrap_or_default())?;
        }
        rows.push(values);
    }
    Ok(rows)
}
