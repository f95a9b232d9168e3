//! Collections and indexes that a transaction creates.
//!
//! MariaDB cannot create a table within a transaction, so they are created at once, over another
//! connection: other sessions see an empty collection, and it stays if the transaction is aborted.
//! A collection without documents may therefore be created again.

use crate::catalog::collections;
use crate::index::manage;
use crate::store::MariaDbStore;
use crate::transaction::inside::Inside;
use document::Doc;
use error::{Code, Error};
use mariadb_client::{Event, Failure, Result};
use store::{CreateIndexesOutcome, IndexSpec, Namespace, Progress};

/// Returns error 263 for a change of definitions that no transaction can make.
pub(crate) fn refused() -> Error {
    let message = "Cannot change collections or indexes in a multi-document transaction, except for creating them";
    Error::new(Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, message)
}

/// Creates a collection. Fails with 48 if there is one with documents or with other options.
pub(crate) async fn create_collection(
    store: &MariaDbStore,
    inside: &Inside,
    namespace: &Namespace,
    options: Doc<'_>,
) -> Result<()> {
    match collections::create(store, namespace, options).await {
        Ok(()) => {
            drop(store.change_observer.begin_unspecified_write(namespace));
            inside.created(namespace).await
        }
        Err(Failure::Other(error)) if error.code() == Code::NAMESPACE_EXISTS => {
            let is_same =
                collections::one(store, namespace).await?.is_some_and(|info| info.options.as_doc() == options);
            if !is_same || !is_empty(store, namespace).await? {
                return Err(error.into());
            }
            inside.state()?.uses().created.insert(namespace.clone());
            Ok(())
        }
        outcome => outcome,
    }
}

/// Creates indexes on a collection that the transaction has created and not written to, or that
/// does not exist. Fails with 263 for another one that lacks one of them.
pub(crate) async fn create_indexes(
    store: &MariaDbStore,
    inside: &Inside,
    namespace: &Namespace,
    specs: Vec<IndexSpec>,
    progress: &Progress,
) -> Result<CreateIndexesOutcome> {
    if let Some(outcome) = manage::all_there(store, namespace, &specs).await? {
        return Ok(outcome);
    }
    let refuse = |what: &str| {
        let message =
            format!("Cannot create new indexes on {what} collection {namespace} in a multi-document transaction.");
        Err(Error::new(Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, message).into())
    };
    if store.known_table(namespace).await?.is_some() {
        if !inside.state()?.uses().created.contains(namespace) {
            return refuse("existing");
        }
        if inside.state()?.uses().written.contains(namespace) {
            return refuse("non-empty");
        }
        let has_opened = inside.state()?.uses().opened.contains(namespace);
        if has_opened && !inside.begin_again_if_unused().await? {
            return create_and_conflict(store, inside, namespace, specs, progress).await;
        }
    }
    let outcome = manage::create(store, namespace, specs, progress).await?;
    drop(store.change_observer.begin_unspecified_write(namespace));
    inside.created(namespace).await?;
    Ok(outcome)
}

/// Creates indexes on a collection whose definition the transaction holds: ends it, so that it
/// finds the indexes when the client repeats it.
async fn create_and_conflict(
    store: &MariaDbStore,
    inside: &Inside,
    namespace: &Namespace,
    specs: Vec<IndexSpec>,
    progress: &Progress,
) -> Result<CreateIndexesOutcome> {
    inside.transaction.abort();
    store.transactions.wait_for_rollbacks().await;
    manage::create(store, namespace, specs, progress).await?;
    Err(store::transaction::write_conflict().into())
}

async fn is_empty(store: &MariaDbStore, namespace: &Namespace) -> Result<bool> {
    let Some(table) = store.known_table(namespace).await? else { return Ok(true) };
    let mut lease = store.lease_documents(namespace).await?;
    lease.queue_query(&format!("SELECT 1 FROM {} LIMIT 1", table.quoted));
    let mut is_empty = true;
    while let Event::Row(_) = lease.next().await? {
        is_empty = false;
    }
    Ok(is_empty)
}
