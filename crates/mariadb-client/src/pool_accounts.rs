//! The accounts with which a pool logs in.

use crate::killer::Killer;
use crate::server_url::ServerLocation;
use crate::session_owner::SessionOwner;
use std::sync::Arc;

/// An account of MariaDB, and the killer of its sessions: a session may end those of its own
/// account without further privileges.
#[derive(Clone)]
pub struct PoolAccount {
    pub location: ServerLocation,
    pub killer: Arc<Killer>,
    /// The claim to the sessions of this gateway.
    pub owner: Option<Arc<SessionOwner>>,
}

/// The accounts of a pool.
#[derive(Clone)]
pub struct PoolAccounts {
    pub gateway: PoolAccount,
    /// The account for statements under a role. It has no rights on documents of its own.
    pub documents: Option<PoolAccount>,
    /// Its quoted name.
    pub documents_name: Option<Arc<str>>,
}
