//! The transaction that a store reads and writes within, for one statement.

use crate::transaction::pinned_lease::PinnedLease;
use crate::transaction::state::{self, MariaDbTransaction};
use mariadb_client::{Failure, Result};
use std::sync::Arc;
use store::transaction::aborted;
use store::{Changes, Namespace, Transaction};

pub(crate) struct Inside {
    pub transaction: Arc<dyn Transaction>,
}

impl Inside {
    /// Fails with 251 if the transaction is over.
    pub fn begin(transaction: &Arc<dyn Transaction>) -> error::Result<Inside> {
        match state::of(transaction)?.is_over() {
            true => Err(aborted()),
            false => Ok(Inside { transaction: transaction.clone() }),
        }
    }

    pub fn state(&self) -> error::Result<&MariaDbTransaction> {
        state::of(&self.transaction)
    }

    /// Adds changes to those that the commit reports.
    pub fn note(&self, describe: impl FnOnce(&mut Changes)) {
        if let Ok(transaction) = self.state() {
            describe(&mut transaction.uses().changes);
        }
    }

    /// Notes that a collection was created for the transaction. Its table is younger than the
    /// snapshot, so MariaDB refuses to read it; a transaction that has done nothing else takes a
    /// new snapshot.
    pub async fn created(&self, namespace: &Namespace) -> Result<()> {
        self.state()?.uses().created.insert(namespace.clone());
        self.begin_again_if_unused().await.map(drop)
    }

    /// Takes a new snapshot, which also frees the definitions of tables, if the transaction has
    /// only created collections so far. Returns whether it has.
    pub async fn begin_again_if_unused(&self) -> Result<bool> {
        let is_unused = {
            let used = self.state()?.uses();
            used.written.is_empty() && used.opened.is_subset(&used.created)
        };
        if is_unused {
            self.lease().await?.begin_again().await?;
            self.state()?.uses().opened.clear();
        }
        Ok(is_unused)
    }

    /// Lends the transaction's connection. Fails as a conflict does if the transaction has failed,
    /// and with 251 if it is over.
    async fn lease(&self) -> Result<PinnedLease> {
        let transaction = state::of(&self.transaction)?;
        transaction.shared.wait_for_rollbacks().await;
        let mut place = transaction.connection.clone().lock_owned().await;
        if transaction.is_over() {
            return Err(aborted().into());
        }
        let Some(connection) = place.take() else { return Err(aborted().into()) };
        let failure = match connection.is_current() {
            true => connection.transaction_failure().cloned(),
            false => Some(Failure::Lost("the MariaDB server is no longer the primary".into())),
        };
        match failure {
            None => Ok(PinnedLease::new(connection, place, self.transaction.clone())),
            Some(failure) => {
                *place = Some(connection);
                Err(failure)
            }
        }
    }

    /// Lends the connection for statements on a collection's documents.
    pub async fn lease_for(&self, namespace: &Namespace) -> Result<PinnedLease> {
        let lease = self.lease().await?;
        let mut used = self.state()?.uses();
        if !used.opened.contains(namespace) {
            used.opened.insert(namespace.clone());
        }
        Ok(lease)
    }
}
