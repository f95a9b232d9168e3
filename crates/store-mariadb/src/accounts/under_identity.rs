//! Executes statements on documents under the identity of the running operation.
//!
//! Users and roles are documents too, but in Selkie's own schema: the gateway's account reads and
//! writes them, and no role has rights on them.

use super::account_name;
use crate::catalog::names;
use crate::store::MariaDbStore;
use crate::transaction::inside::Inside;
use crate::transaction::pinned_lease::DocumentsLease;
use ::store::{Identity, Namespace, identity, read_preference};
use error::{Code, Error};
use mariadb_client::{Event, Lease, LookupRow, Result};
use mariadb_wire::Param;
use std::fmt;
use std::sync::Arc;

impl MariaDbStore {
    /// Returns the role under which statements on a collection's documents are executed; `None`
    /// for the gateway's account. Fails with 13 if there is no user.
    pub fn documents_role(&self, namespace: &Namespace) -> Result<Option<Arc<str>>> {
        if self.documents_connection.is_none() || names::is_own(&namespace.database, &namespace.collection) {
            return Ok(None);
        }
        self.role_for(&format_args!("the documents of {namespace}"))
    }

    /// As [`MariaDbStore::documents_role`], for documents of any collection but Selkie's own.
    pub fn role_for(&self, what: &dyn fmt::Display) -> Result<Option<Arc<str>>> {
        if self.documents_connection.is_none() {
            return Ok(None);
        }
        match identity::current() {
            Identity::Gateway => Ok(None),
            Identity::User(name) if account_name::check(&name).is_ok() => Ok(Some(name)),
            Identity::User(name) => {
                let message = format!("not authorized: the user '{name}' can have no role in MariaDB");
                Err(Error::new(Code::UNAUTHORIZED, message).into())
            }
            Identity::Nobody => {
                let message = format!("not authorized: no user has asked for {what}");
                Err(Error::new(Code::UNAUTHORIZED, message).into())
            }
        }
    }

    /// Returns the transaction to which statements on a collection's documents belong.
    fn inside_for(&self, namespace: &Namespace) -> Option<&Inside> {
        self.inside.as_ref().filter(|_| !names::is_own(&namespace.database, &namespace.collection))
    }

    /// Lends a connection for statements on a collection's documents: that of the transaction, if
    /// they belong to one.
    pub async fn lease_documents(&self, namespace: &Namespace) -> Result<DocumentsLease> {
        if let Some(inside) = self.inside_for(namespace) {
            return inside.lease_for(namespace).await.map(DocumentsLease::Pinned);
        }
        self.lease_pooled(namespace).await.map(DocumentsLease::Pooled)
    }

    async fn lease_pooled(&self, namespace: &Namespace) -> Result<Lease> {
        let role = self.documents_role(namespace)?;
        if let Some(lease) = self.lease_elsewhere(namespace, role.as_ref()).await? {
            return Ok(lease);
        }
        match role {
            None => self.pool.lease_for(namespace).await,
            Some(role) => self.pool.lease_under(&role, namespace).await,
        }
    }

    /// Executes a statement that returns one document at most.
    pub async fn look_up_document(
        &self,
        namespace: &Namespace,
        sql: &Arc<str>,
        params: &[Param<'_>],
    ) -> Result<Option<LookupRow>> {
        if self.inside_for(namespace).is_some() || read_preference::is_elsewhere() {
            return self.look_up_on_lease(namespace, sql, params).await;
        }
        match (self.documents_role(namespace)?, &self.documents_connection) {
            (Some(role), Some(connection)) => connection.lookup_under(&role, sql, params).await,
            _ => self.shared_connection.lookup(sql, params).await,
        }
    }

    /// As [`MariaDbStore::look_up_document`], on a connection of the operation's own.
    async fn look_up_on_lease(
        &self,
        namespace: &Namespace,
        sql: &Arc<str>,
        params: &[Param<'_>],
    ) -> Result<Option<LookupRow>> {
        let mut lease = self.lease_documents(namespace).await?;
        lease.queue_execute(sql, params);
        let mut found = None;
        while let Event::Row(range) = lease.next().await? {
            let (payload, types) = lease.raw_row(range);
            found = Some((payload.to_vec(), types.clone()));
        }
        Ok(found)
    }

    /// As [`MariaDbStore::look_up_document`]; waits for locks.
    pub async fn look_up_document_waiting(
        &self,
        namespace: &Namespace,
        sql: &Arc<str>,
        params: &[Param<'_>],
    ) -> Result<Option<LookupRow>> {
        if self.inside_for(namespace).is_some() || read_preference::is_elsewhere() {
            return self.look_up_on_lease(namespace, sql, params).await;
        }
        match (self.documents_role(namespace)?, &self.documents_connection) {
            (Some(role), Some(connection)) => connection.lookup_waiting(Some(&role), namespace, sql, params).await,
            _ => self.shared_connection.lookup_waiting(None, namespace, sql, params).await,
        }
    }
}
