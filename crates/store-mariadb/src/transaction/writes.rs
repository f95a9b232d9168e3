//! Batches of writes within a transaction.

use crate::index::side_index::claims_table;
use crate::sharding::refused_in_transaction;
use crate::store::MariaDbStore;
use crate::transaction::conflicts;
use crate::transaction::inside::Inside;
use error::{Code, Error};
use store::transaction::write_conflict;
use store::{BatchOutcome, Statements, WriteBatch};

/// Executes a batch of writes within a transaction.
pub(crate) async fn write(store: &MariaDbStore, inside: &Inside, batch: WriteBatch) -> error::Result<BatchOutcome> {
    let namespace = batch.namespace.clone();
    if let Some(table) = store.known_table(&namespace).await? {
        if table.is_sharded {
            return Err(refused_in_transaction(&namespace));
        }
        if table.cap().is_some() {
            let deletes = matches!(batch.statements, Statements::Delete(_));
            let refused = Err(store::transaction::capped(&namespace, deletes));
            return Ok(BatchOutcome { statements: vec![refused], ..BatchOutcome::default() });
        }
        if claims_table::are_needed(&table) {
            let message = format!(
                "Collection '{namespace}' has a unique index whose keys MariaDB cannot compute. Writes in transactions \
                 are not allowed on it."
            );
            return Err(Error::new(Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, message));
        }
    }
    // The first error ends the transaction.
    let outcome = crate::write::write(store, WriteBatch { ordered: true, ..batch }).await?;
    inside.state()?.uses().written.insert(namespace.clone());
    for error in outcome.statements.iter().filter_map(|outcome| outcome.as_ref().err()) {
        if !conflicts::is_of_snapshot(store, &namespace, error).await? {
            return Err(write_conflict());
        }
    }
    Ok(outcome)
}
