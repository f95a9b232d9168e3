//! The half of the store that serves one worker: its connections, catalog and state.

use crate::accounts::AccountSettings;
use crate::catalog::cluster_lock::ClusterLocks;
use crate::catalog::table::Table;
use crate::catalog::{Catalog, definition_lock, names, own_schema};
use crate::feed::{Feed, PastReaders};
use crate::options::Options;
use crate::read::content_version::KnownHashes;
use crate::read::result_set::ResultSet;
use crate::read_pools::{ReadAccounts, ReadPools};
use crate::server_facts::ServerFacts;
use crate::transaction::inside::Inside;
use crate::transaction::shared::SharedTransactions;
use ::store::{ChangeObserver, Changes, Namespace, ObserverSlot, views};
use ahash::AHashSet;
use cache::Cache;
use error::Error;
use mariadb_client::{Failure, LastWrites, Lease, Pool, PoolServers, Result, SharedConnection};
use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

/// The store of a worker, or of one statement of a transaction.
pub(crate) struct MariaDbStore {
    worker: Rc<WorkerState>,
    /// The transaction to which the statement belongs.
    pub inside: Option<Inside>,
}

impl Deref for MariaDbStore {
    type Target = WorkerState;
    fn deref(&self) -> &WorkerState {
        &self.worker
    }
}

/// The connections, catalog and state of a worker.
pub(crate) struct WorkerState {
    pub pool: Rc<Pool>,
    /// Connections for reads elsewhere, if there are servers for that.
    pub read_pools: Option<ReadPools>,
    /// The last writes of the process, if there are servers for reads.
    pub last_writes: Option<Arc<LastWrites>>,
    /// For lookups by id.
    pub shared_connection: SharedConnection,
    /// For lookups by id under the roles of users, if there are accounts.
    pub documents_connection: Option<SharedConnection>,
    pub accounts: Option<AccountSettings>,
    pub catalog: Catalog,
    /// Changes of definitions that are running or waiting.
    pub definitions: definition_lock::ChangeQueue,
    /// `max_allowed_packet`.
    pub packet_bytes_max: u64,
    /// The server assigns row keys in steps of 1.
    pub counts_by_one: bool,
    /// Its JSON paths support ranges.
    pub has_ranges: bool,
    /// The servers over which collections are distributed; none if they are not.
    pub shards: Box<[String]>,
    /// Why documents cannot be written, if the server is unsuitable.
    pub unsuitable: Option<Error>,
    /// Selkie's own schema is known to exist.
    pub has_own_schema: Cell<bool>,
    /// When old records of retryable writes were last deleted.
    pub cleaned_at: Cell<Instant>,
    /// Tables on which creating triggers failed; not tried again.
    pub no_triggers: RefCell<AHashSet<String>>,
    /// The result-set cache.
    pub results: Option<Arc<Cache<ResultSet>>>,
    /// The observer of changes, if there is one.
    pub change_observer: Arc<ObserverSlot>,
    /// The change feed, if the server's binary log is read for one.
    pub feed: Option<Arc<Feed>>,
    pub past_readers: PastReaders,
    /// Hashes of collections whose changes are polled.
    pub known_hashes: RefCell<KnownHashes>,
    /// Names of side tables that are being refreshed in the background.
    pub refreshing: Rc<RefCell<AHashSet<String>>>,
    /// A buffer for prefetched rows.
    pub row_buffer: Cell<Vec<u8>>,
    /// What the transactions of all workers share.
    pub transactions: Arc<SharedTransactions>,
}

impl MariaDbStore {
    pub fn open(
        options: Options,
        (servers, accounts, read_accounts): (PoolServers, Option<AccountSettings>, Arc<ReadAccounts>),
        mut catalog: Catalog,
        facts: &ServerFacts,
        change_observer: Arc<ObserverSlot>,
        transactions: Arc<SharedTransactions>,
        feed: Option<Arc<Feed>>,
    ) -> Rc<MariaDbStore> {
        let results = options.results.clone();
        let last_writes = options.pool.last_writes.clone();
        let read_pools = options.read_servers.map(|servers| ReadPools::new(servers, read_accounts, &options.pool));
        let pool = Pool::new(servers, options.pool);
        catalog.cluster_locks = facts.is_galera.then(|| ClusterLocks::new(pool.clone()));
        let worker = Rc::new(WorkerState {
            shared_connection: SharedConnection::new(pool.clone()),
            documents_connection: accounts.as_ref().map(|_| SharedConnection::with_roles(pool.clone())),
            accounts,
            pool,
            read_pools,
            last_writes,
            catalog,
            definitions: definition_lock::ChangeQueue::default(),
            packet_bytes_max: facts.packet_bytes_max,
            counts_by_one: facts.counts_by_one,
            has_ranges: facts.has_ranges,
            shards: options.shards.map(|shards| shards.names.into()).unwrap_or_default(),
            unsuitable: facts.unsuitable.clone(),
            has_own_schema: Cell::new(false),
            cleaned_at: Cell::new(Instant::now()),
            no_triggers: RefCell::default(),
            results,
            change_observer,
            feed,
            past_readers: PastReaders::default(),
            known_hashes: RefCell::default(),
            refreshing: Rc::default(),
            row_buffer: Cell::default(),
            transactions,
        });
        Rc::new(MariaDbStore { worker, inside: None })
    }

    /// Returns a store for a statement of a transaction.
    pub fn inside(&self, inside: Inside) -> MariaDbStore {
        MariaDbStore { worker: self.worker.clone(), inside: Some(inside) }
    }

    /// Executes a write of documents, reported to the observer of changes: before it is executed;
    /// within a transaction before that is committed.
    pub async fn observe_write<T>(
        &self,
        describe: impl FnOnce(&mut Changes, &dyn ChangeObserver),
        write: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        match &self.inside {
            None => self.change_observer.observe_write(describe, Failure::is_lost, write).await,
            Some(inside) => {
                if let Some(observer) = self.change_observer.get() {
                    inside.note(|changes| describe(changes, observer));
                }
                write.await
            }
        }
    }

    /// Prepares a write of documents: fails if the server is unsuitable, and creates Selkie's own
    /// schema if missing.
    pub async fn prepare(&self) -> Result<()> {
        if let Some(error) = &self.unsuitable {
            return Err(error.clone().into());
        }
        if !self.has_own_schema.get() {
            let mut lease = self.pool.lease().await?;
            let lock = [definition_lock::database_lock(names::OWN_SCHEMA)];
            definition_lock::locked_on_server(&mut lease, &lock, async |connection| {
                match own_schema::exists(connection).await? {
                    true => Ok(()),
                    false => own_schema::create_if_allowed(connection).await,
                }
            })
            .await?;
            self.has_own_schema.set(true);
        }
        Ok(())
    }

    /// Returns whether a name is a view's. To be called if there is no collection of that name.
    pub async fn is_view(&self, namespace: &Namespace) -> Result<bool> {
        let mut lease = self.lease_for_planning(namespace).await?;
        let outcome = self.catalog.is_view(&mut lease, namespace).await;
        self.forget_definition(&lease, &views::definitions(&namespace.database));
        outcome
    }

    /// Returns the collection's table, from the catalog's cache if it is fresh.
    pub async fn known_table(&self, namespace: &Namespace) -> Result<Option<Arc<Table>>> {
        match self.catalog.cached(namespace) {
            Some(table) => Ok(Some(table)),
            None => self.look_up(namespace).await,
        }
    }

    /// Returns the collection's table, creating it if missing.
    pub async fn table_or_create(&self, namespace: &Namespace) -> Result<Arc<Table>> {
        if let Some(table) = self.catalog.cached(namespace) {
            return Ok(table);
        }
        let mut lease = self.pool.lease_for(namespace).await?;
        let (table, created) = self.catalog.table_or_create(&mut lease, namespace).await?;
        drop(lease);
        if let (Some(inside), true) = (&self.inside, created) {
            inside.created(namespace).await?;
        }
        Ok(table)
    }

    /// Reads the collection's table, which is not cached.
    pub async fn look_up(&self, namespace: &Namespace) -> Result<Option<Arc<Table>>> {
        let mut lease = self.lease_for_planning(namespace).await?;
        let outcome = match self.catalog.table(&mut lease, namespace).await {
            // The idle connection was dead; a second read is safe.
            Err(failure) if failure.is_lost() => {
                lease.close_idle();
                drop(lease);
                lease = self.lease_for_planning(namespace).await?;
                self.catalog.table(&mut lease, namespace).await
            }
            outcome => outcome,
        };
        self.forget_definition(&lease, namespace);
        outcome
    }

    /// Invalidates a definition that was read from a replica: it may be older than a change that
    /// was acknowledged.
    fn forget_definition(&self, lease: &Lease, namespace: &Namespace) {
        if !lease.is_of(&self.pool) {
            self.catalog.invalidate(namespace);
        }
    }
}
