//! A worker's connections to the servers that reads may go to beside the primary.

use crate::read_servers::ReadServers;
use mariadb_client::{Killer, Pool, PoolAccount, PoolAccounts, PoolOptions, PoolServers, ServerLocation, ServerUrl};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long connecting to a replica may take before another one is tried.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// The accounts on the servers, for all workers.
#[derive(Default)]
pub(crate) struct ReadAccounts(Mutex<Vec<(ServerUrl, Arc<PoolAccounts>)>>);

impl ReadAccounts {
    /// `documents_at`: how the account for statements under a role logs in.
    fn at(&self, url: &ServerUrl, documents_at: impl FnOnce(&ServerUrl) -> Option<ServerUrl>) -> Arc<PoolAccounts> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, accounts)) = known.iter().find(|(other, _)| other == url) {
            return accounts.clone();
        }
        // Reads leave nothing behind, so their sessions need no owner.
        let account = |url: ServerUrl| {
            let location = ServerLocation::Server(url);
            PoolAccount { killer: Arc::new(Killer::new(location.clone())), location, owner: None }
        };
        let (gateway, documents) = (account(url.clone()), documents_at(url).map(account));
        let accounts = Arc::new(PoolAccounts { gateway, documents, documents_name: None });
        known.push((url.clone(), accounts.clone()));
        accounts
    }
}

/// A worker's connections to the servers for reads.
pub(crate) struct ReadPools {
    pub servers: Arc<dyn ReadServers>,
    accounts: Arc<ReadAccounts>,
    options: PoolOptions,
    pools: RefCell<Vec<(ServerUrl, Rc<Pool>)>>,
}

impl ReadPools {
    pub fn new(servers: Arc<dyn ReadServers>, accounts: Arc<ReadAccounts>, options: &PoolOptions) -> ReadPools {
        let options =
            PoolOptions { connect_timeout: CONNECT_TIMEOUT, own_writes: None, last_writes: None, ..options.clone() };
        ReadPools { servers, accounts, options, pools: RefCell::default() }
    }

    /// Returns the connections to a server. `documents_at`: see [`ReadAccounts::at`].
    pub fn pool(&self, url: &ServerUrl, documents_at: impl FnOnce(&ServerUrl) -> Option<ServerUrl>) -> Rc<Pool> {
        let mut pools = self.pools.borrow_mut();
        if let Some((_, pool)) = pools.iter().find(|(known, _)| known == url) {
            return pool.clone();
        }
        let accounts = self.accounts.at(url, documents_at);
        let pool = Pool::new(PoolServers::fixed((*accounts).clone()), self.options.clone());
        pools.push((url.clone(), pool.clone()));
        pool
    }
}
