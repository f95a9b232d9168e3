//! The half that serves one worker: the contract of crate `store`, carried out by the modules beside it.

use crate::catalog::table::Table;
use crate::catalog::{Catalog, definition_lock, names, own_schema};
use crate::options::Options;
use crate::read::result_set::ResultSet;
use crate::server_facts::Facts;
use ::store::{Namespace, ObserverSlot};
use ahash::AHashSet;
use cache::Cache;
use error::Error;
use mariadb_client::{Killer, Pool, Result, ServerLocation, SessionOwner, SharedConnection};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

pub(crate) struct MariaDbStore {
    pub pool: Rc<Pool>,
    /// For lookups by id.
    pub shared_connection: SharedConnection,
    pub catalog: Catalog,
    /// Changes of definitions that are under way or wait.
    pub definitions: definition_lock::ChangeQueue,
    /// `max_allowed_packet`.
    pub packet_bytes_max: u64,
    /// The server gives out row keys one after the other.
    pub counts_by_one: bool,
    /// Its JSON paths know ranges.
    pub has_ranges: bool,
    /// Why no documents can be written here.
    pub unsuitable: Option<Error>,
    /// The schema with Selkie's own tables has been there since this worker began.
    pub has_own_schema: Cell<bool>,
    /// When old records of retryable writes were last removed.
    pub tidied: Cell<Instant>,
    /// Tables on which the server did not let us create triggers; asked no more.
    pub no_triggers: RefCell<AHashSet<String>>,
    /// Rows that are kept.
    pub results: Option<Arc<Cache<ResultSet>>>,
    /// Who is told of what is written here.
    pub change_observer: Arc<ObserverSlot>,
    /// Tables of keys that are being brought up to date in the background, by their names.
    pub draining: Rc<RefCell<AHashSet<String>>>,
    /// Memory for the rows that come along with a plan.
    pub spare: Cell<Vec<u8>>,
}

impl MariaDbStore {
    pub fn open(
        place: ServerLocation,
        options: Options,
        (killer, session_owner): (Arc<Killer>, Option<Arc<SessionOwner>>),
        catalog: Catalog,
        facts: &Facts,
        change_observer: Arc<ObserverSlot>,
    ) -> Rc<MariaDbStore> {
        let results = options.results.clone();
        let pool = Pool::new(place, options.pool, killer, session_owner);
        Rc::new(MariaDbStore {
            shared_connection: SharedConnection::new(pool.clone()),
            pool,
            catalog,
            definitions: definition_lock::ChangeQueue::default(),
            packet_bytes_max: facts.packet_bytes_max,
            counts_by_one: facts.counts_by_one,
            has_ranges: facts.has_ranges,
            unsuitable: facts.unsuitable.clone(),
            has_own_schema: Cell::new(false),
            tidied: Cell::new(Instant::now()),
            no_triggers: RefCell::default(),
            results,
            change_observer,
            draining: Rc::default(),
            spare: Cell::default(),
        })
    }

    /// Fails if the server does not suit documents; makes the schema with Selkie's own tables where it is missing.
    pub async fn prepare(&self) -> Result<()> {
        if let Some(error) = &self.unsuitable {
            return Err(error.clone().into());
        }
        if !self.has_own_schema.get() {
            let mut lease = self.pool.lease().await?;
            let lock = [definition_lock::database_lock(names::OWN_SCHEMA)];
            definition_lock::locked(&mut lease, &lock, async |connection| {
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

    /// Whether a name is a view's; to be asked where there is no collection of that name.
    pub async fn is_view(&self, namespace: &Namespace) -> Result<bool> {
        let mut lease = self.pool.lease_for(namespace).await?;
        self.catalog.is_view(&mut lease, namespace).await
    }

    /// The collection's table, by what is remembered of it where that is fresh.
    pub async fn known_table(&self, namespace: &Namespace) -> Result<Option<Arc<Table>>> {
        match self.catalog.cached(namespace) {
            Some(table) => Ok(Some(table)),
            None => self.look_up(namespace).await,
        }
    }

    /// The collection's table, of which nothing fresh is remembered.
    pub async fn look_up(&self, namespace: &Namespace) -> Result<Option<Arc<Table>>> {
        let mut lease = self.pool.lease_for(namespace).await?;
        match self.catalog.table(&mut lease, namespace).await {
            // A connection that died in idleness; reading a second time does no harm.
            Err(failure) if failure.is_lost() => {
                drop(lease);
                self.catalog.table(&mut *self.pool.lease_fresh_for(namespace).await?, namespace).await
            }
            outcome => outcome,
        }
    }
}
