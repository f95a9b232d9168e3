//! Executes statements on documents under the identity of the running operation.
//!
//! Users and roles are documents too, but in Selkie's own schema: the gateway's account reads and
//! writes them, and no role has rights on them.

use super::account_name;
use crate::catalog::names;
use crate::store::MariaDbStore;
use ::store::{Identity, Namespace, identity, read_preference};
use error::{Code, Error};
use mariadb_client::{Lease, LookupRow, Result};
use mariadb_wire::Param;
use std::sync::Arc;

impl MariaDbStore {
    /// Returns the role under which statements on a collection's documents are executed; `None`
    /// for the gateway's account. Fails with 13 if there is no user.
    pub fn documents_role(&self, namespace: &Namespace) -> Result<Option<Arc<str>>> {
        if self.documents_connection.is_none() || names::is_own(&namespace.database, &namespace.collection) {
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
                let message = format!("not authorized: no user has asked for the documents of {namespace}");
                Err(Error::new(Code::UNAUTHORIZED, message).into())
            }
        }
    }

    /// Lends a connection for statements on a collection's documents.
    pub async fn lease_documents(&self, namespace: &Namespace) -> Result<Lease> {
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
        if read_preference::is_elsewhere() {
            return self.look_up_elsewhere(namespace, sql, params).await;
        }
        match (self.documents_role(namespace)?, &self.documents_connection) {
            (Some(role), Some(connection)) => connection.lookup_under(&role, sql, params).await,
            _ => self.shared_connection.lookup(sql, params).await,
        }
    }

    /// As [`MariaDbStore::look_up_document`]; waits for locks.
    pub async fn look_up_document_waiting(
        &self,
        namespace: &Namespace,
        sql: &Arc<str>,
        params: &[Param<'_>],
    ) -> Result<Option<LookupRow>> {
        if read_preference::is_elsewhere() {
            return self.look_up_elsewhere(namespace, sql, params).await;
        }
        match (self.documents_role(namespace)?, &self.documents_connection) {
            (Some(role), Some(connection)) => connection.lookup_waiting(Some(&role), namespace, sql, params).await,
            _ => self.shared_connection.lookup_waiting(None, namespace, sql, params).await,
        }
    }
}
