//! Grants on a schema that has just been created, for users with privileges on all databases.

use super::grants::{self, GrantTarget};
use super::record;
use mariadb_client::{Connection, Result, quote};

/// Grants what users have on all databases. A change of accounts that runs at the same time records
/// first what it grants on all databases, and then lists the schemas, so that one of the two finds
/// the other.
pub(crate) async fn grant(connection: &mut Connection, schema: &str) -> Result<()> {
    if connection.documents_account.is_none() || !grants::is_ordinary(schema) {
        return Ok(());
    }
    for (name, record) in record::load(connection).await? {
        if record.any.is_empty() {
            continue;
        }
        let target = GrantTarget::Schema(schema.to_owned());
        connection.queue_query(&format!("GRANT {} ON {target} TO {}", record.any, quote(&name)));
        match connection.finish().await {
            Err(failure) if failure.is_lost() => return Err(failure),
            // The user is being dropped.
            Err(failure) => tracing::debug!("nothing is granted to {name} on {schema}: {failure}"),
            Ok(_) => record::add_granted(connection, &name, target, record.any).await?,
        }
    }
    Ok(())
}
