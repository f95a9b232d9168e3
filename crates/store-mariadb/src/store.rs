//! The half that serves one worker: the contract of crate `store`, carried out by the modules beside it.

use crate::catalog::Catalog;
use crate::catalog::collections;
use crate::catalog::databases;
use crate::catalog::definition_lock;
use crate::catalog::names;
use crate::catalog::own_schema;
use crate::catalog::statistics;
use crate::catalog::table::Table;
use crate::engine::Facts;
use crate::index::build;
use crate::index::manage;
use crate::index::side_index;
use crate::options::Options;
use crate::plan::MariaDbPlan;
use crate::plan::index_choice_cache::Chosen;
use crate::plan::natural_order;
use crate::plan::planner::{self, Order, Planned};
use crate::read::count;
use crate::read::explain;
use crate::read::prefetch::{self, May};
use crate::read::result_cache::ResultSet;
use crate::read::sample;
use crate::read::scan;
use crate::write;
use ::store::{
    BatchOutcome, ChangeObserver, Changes, CollectionInfo, CollectionStats, CreateIndexesOutcome, DatabaseInfo,
    DatabaseStats, DocumentStore, IndexSelection, IndexSpec, Namespace, ObserverSlot, Plan, Position, Progress, Query,
    ScanEnd, Sink, SizeEstimate, Validation, WriteBatch, rules,
};
use ahash::AHashSet;
use cache::Cache;
use document::{Collation, Doc, DocBuf};
use error::Error;
use futures_util::future::LocalBoxFuture;
use mariadb_client::Killer;
use mariadb_client::Pool;
use mariadb_client::ServerLocation;
use mariadb_client::SessionOwner;
use mariadb_client::SharedConnection;
use mariadb_client::{Failure, Result};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often a cursor that waits for documents looks for them.
const LOOK_EVERY: Duration = Duration::from_millis(20);

pub(crate) struct MariaDbStore {
    pub pool: Rc<Pool>,
    /// For lookups by id.
    pub shared_connection: SharedConnection,
    pub catalog: Catalog,
    /// Changes of definitions that are under way or wait.
    pub definitions: definition_lock::Queue,
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
            definitions: definition_lock::Queue::default(),
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

    /// Does what changes collections, of whose documents nothing is known.
    async fn redefining<T>(&self, namespaces: &[&Namespace], work: impl Future<Output = Result<T>>) -> Result<T> {
        let note = |changes: &mut Changes, _: &dyn ChangeObserver| {
            namespaces.iter().for_each(|name| changes.add_unspecified(name))
        };
        self.change_observer.observe_write(note, Failure::is_lost, work).await
    }

    /// Does what changes a collection's indexes, which takes long and leaves answers as they are but for their order and for what
    /// is refused.
    async fn indexing<T>(&self, namespace: &Namespace, work: impl Future<Output = Result<T>>) -> Result<T> {
        let outcome = work.await;
        drop(self.change_observer.begin_unspecified_write(namespace));
        outcome
    }

    /// Fails if the server does not suit documents; makes the schema with Selkie's own tables where it is missing.
    pub async fn prepare(&self) -> Result<()> {
        if let Some(error) = &self.unsuitable {
            return Err(error.clone().into());
        }
        if !self.has_own_schema.get() {
            let mut lease = self.pool.lease().await?;
            let lock = [definition_lock::of_database(names::OWN_SCHEMA)];
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
    async fn is_view(&self, namespace: &Namespace) -> Result<bool> {
        let mut lease = self.pool.lease_for(namespace).await?;
        self.catalog.is_view(&mut lease, namespace).await
    }

    async fn make_plan(&self, namespace: &Namespace, query: Query<'_>) -> Result<Arc<dyn Plan>> {
        let table = self.known_table(namespace).await?;
        if table.is_none() && self.is_view(namespace).await? {
            return Ok(Arc::new(MariaDbPlan::view(namespace)));
        }
        let mut plan = self.plan_on(namespace, table, &query).await?;
        side_index::bring_up(self, &plan).await?;
        if self.results.is_some() {
            plan.reads = Some(Box::new(query.predicate.clone()));
        }
        Ok(Arc::new(plan))
    }

    /// The plan for a query on a collection's table, if there is one.
    pub async fn plan_on(
        &self,
        namespace: &Namespace,
        table: Option<Arc<Table>>,
        query: &Query<'_>,
    ) -> Result<MariaDbPlan> {
        // Where a hope turns out to be in vain, the next plan has none.
        loop {
            let Planned { mut plan, probe, .. } = self.planned(namespace, table.clone(), query, Order::ByIndex).await?;
            let Some(probe) = probe else { return Ok(plan) };
            let in_natural_order = natural_order::natural_order(table.as_deref(), query);
            match self.may_be_in_order(&plan, &probe, query).await {
                Ok(May::Yes) => {
                    // The index goes by the bytes of strings.
                    plan.natural_order = in_natural_order.filter(|sort| !sort.collation().is_simple());
                    return Ok(plan);
                }
                Ok(May::InVain) if plan.chosen.as_ref().is_some_and(Chosen::fail) => {}
                // Reading tells what the matter is.
                _ => {
                    let mut plan = self.planned(namespace, table, query, Order::ByNone).await?.plan;
                    plan.natural_order = in_natural_order;
                    return Ok(plan);
                }
            }
        }
    }

    async fn may_be_in_order(&self, plan: &MariaDbPlan, probe: &Arc<str>, query: &Query<'_>) -> Result<May> {
        // Rows that are kept are in vain to read, and those to keep have to be read while changes are being watched for.
        let keeps = self.results.is_some();
        if keeps && !plan.hopes() {
            let odd = self.shared_connection.lookup(probe, &[]).await?;
            return Ok(if odd.is_none() { May::Yes } else { May::No });
        }
        let may = prefetch::ask(self, plan, probe, query.limit).await;
        if keeps {
            plan.ahead.take();
        }
        may
    }

    /// The plan by the index that MariaDB says is best, where it has to be asked.
    async fn planned(
        &self,
        namespace: &Namespace,
        table: Option<Arc<Table>>,
        query: &Query<'_>,
        order: Order,
    ) -> Result<Planned> {
        let planned = planner::plan(namespace, table.clone(), query, order)?;
        let Some(known) = table.as_ref().filter(|_| !planned.questions.is_empty()) else { return Ok(planned) };
        let mut lease = self.pool.lease_for(namespace).await?;
        match known.choices.ask(&mut lease, &planned.questions).await {
            Ok(()) => Ok(planner::plan(namespace, table, query, order)?),
            // Reading tells what the matter is.
            Err(_) => Ok(planned),
        }
    }

    /// The collection's table, by what is remembered of it where that is fresh.
    pub async fn known_table(&self, namespace: &Namespace) -> Result<Option<Arc<Table>>> {
        match self.catalog.remembered(namespace) {
            Some(table) => Ok(Some(table)),
            None => self.look_up(namespace).await,
        }
    }

    /// The collection's table, of which nothing fresh is remembered.
    async fn look_up(&self, namespace: &Namespace) -> Result<Option<Arc<Table>>> {
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

fn own(plan: &dyn Plan) -> error::Result<&MariaDbPlan> {
    plan.as_any().downcast_ref().ok_or_else(|| Error::internal("a plan of another store"))
}

/// Runs `future` and puts its failure in MongoDB's terms.
fn told<'a, T: 'a>(future: impl Future<Output = Result<T>> + 'a) -> LocalBoxFuture<'a, error::Result<T>> {
    Box::pin(async move { future.await.map_err(Error::from) })
}

impl DocumentStore for MariaDbStore {
    fn default_collation<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, error::Result<Collation>> {
        if let Some(table) = self.catalog.remembered(namespace) {
            return Box::pin(std::future::ready(Ok(table.collation.clone())));
        }
        told(async move {
            let table = match self.catalog.names(namespace) {
                Ok(_) => self.look_up(namespace).await?,
                // Names that MariaDB cannot hold are nobody's.
                Err(_) => None,
            };
            Ok(table.map_or(Collation::SIMPLE, |table| table.collation.clone()))
        })
    }

    fn plan<'a>(
        &'a self,
        namespace: &'a Namespace,
        query: Query<'a>,
    ) -> LocalBoxFuture<'a, error::Result<Arc<dyn Plan>>> {
        told(self.make_plan(namespace, query))
    }

    fn plan_distinct<'a>(
        &'a self,
        namespace: &'a Namespace,
        query: Query<'a>,
        path: &'a str,
        collation: &'a Collation,
    ) -> LocalBoxFuture<'a, error::Result<Arc<dyn Plan>>> {
        told(async move {
            if query.predicate.matches_everything() && query.hint.is_none() && collation.is_simple() {
                let table = self.known_table(namespace).await?;
                if let Some(plan) = table.and_then(|table| planner::values(namespace, table, path)) {
                    return Ok(Arc::new(plan) as Arc<dyn Plan>);
                }
            }
            self.make_plan(namespace, query).await
        })
    }

    fn scan<'a>(
        &'a self,
        plan: &'a dyn Plan,
        after: Option<&'a Position>,
        wanted: usize,
        sink: &'a mut dyn Sink,
    ) -> LocalBoxFuture<'a, error::Result<ScanEnd>> {
        told(async move { scan::scan(self, own(plan)?, after, wanted, sink).await })
    }

    fn sample<'a>(&'a self, plan: &'a dyn Plan, size: usize) -> LocalBoxFuture<'a, error::Result<Option<Vec<DocBuf>>>> {
        told(async move { sample::sample(self, own(plan)?, size).await })
    }

    fn count<'a>(&'a self, plan: &'a dyn Plan, enough: Option<u64>) -> LocalBoxFuture<'a, error::Result<Option<u64>>> {
        told(async move { count::count(self, own(plan)?, enough).await })
    }

    fn explain<'a>(
        &'a self,
        plan: &'a dyn Plan,
        counted: bool,
    ) -> LocalBoxFuture<'a, error::Result<Option<(&'static str, DocBuf)>>> {
        told(async move { Ok(explain::ask(self, own(plan)?, counted).await?.map(|said| ("mariadb", said))) })
    }

    fn tail<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, error::Result<Option<Arc<dyn Plan>>>> {
        told(async move {
            let mut lease = self.pool.lease_for(namespace).await?;
            let Some(table) = self.catalog.table(&mut lease, namespace).await? else { return Ok(None) };
            if table.cap().is_none() {
                return Err(rules::not_capped().into());
            }
            Ok(Some(Arc::new(MariaDbPlan::tail(namespace, table)) as Arc<dyn Plan>))
        })
    }

    fn additions(&self, _: &dyn Plan) -> LocalBoxFuture<'static, ()> {
        // Anybody may write, other gateways and SQL clients among them, so it is looked again and again.
        Box::pin(async { tokio::time::sleep(LOOK_EVERY).await })
    }

    fn write<'a>(&'a self, batch: WriteBatch) -> LocalBoxFuture<'a, error::Result<BatchOutcome>> {
        Box::pin(async move {
            let namespace = batch.namespace.clone();
            let outcome = write::write(self, batch).await;
            side_index::bring_up_later(self, &namespace);
            outcome
        })
    }

    fn create_collection<'a>(
        &'a self,
        namespace: &'a Namespace,
        options: Doc<'a>,
    ) -> LocalBoxFuture<'a, error::Result<()>> {
        told(async move {
            self.prepare().await?;
            self.redefining(&[namespace], collections::create(self, namespace, options)).await
        })
    }

    fn modify_collection<'a>(
        &'a self,
        namespace: &'a Namespace,
        options: Doc<'a>,
    ) -> LocalBoxFuture<'a, error::Result<()>> {
        told(async move { self.redefining(&[namespace], collections::modify(self, namespace, options)).await })
    }

    fn drop_collection<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, error::Result<Option<usize>>> {
        told(async move { self.redefining(&[namespace], collections::drop(self, namespace)).await })
    }

    fn rename_collection<'a>(
        &'a self,
        from: &'a Namespace,
        to: &'a Namespace,
        drop_target: bool,
    ) -> LocalBoxFuture<'a, error::Result<()>> {
        told(async move { self.redefining(&[from, to], collections::rename(self, from, to, drop_target)).await })
    }

    fn collections<'a>(&'a self, database: &'a str) -> LocalBoxFuture<'a, error::Result<Vec<CollectionInfo>>> {
        told(collections::list(self, database))
    }

    fn collection<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, error::Result<Option<CollectionInfo>>> {
        told(collections::one(self, namespace))
    }

    fn databases<'a>(&'a self) -> LocalBoxFuture<'a, error::Result<Vec<DatabaseInfo>>> {
        told(databases::list(self))
    }

    fn drop_database<'a>(&'a self, database: &'a str) -> LocalBoxFuture<'a, error::Result<bool>> {
        told(async move {
            let everything = Namespace::new(database, "");
            self.redefining(&[&everything], collections::drop_database(self, database)).await
        })
    }

    fn build_indexes<'a>(
        &'a self,
        namespace: &'a Namespace,
        indexes: Vec<IndexSpec>,
        progress: Arc<Progress>,
    ) -> LocalBoxFuture<'a, error::Result<CreateIndexesOutcome>> {
        told(async move {
            let work = async {
                self.prepare().await?;
                self.indexing(namespace, manage::create(self, namespace, indexes, &progress)).await
            };
            build::until_stopped(&progress, work).await
        })
    }

    fn modify_index<'a>(&'a self, namespace: &'a Namespace, index: IndexSpec) -> LocalBoxFuture<'a, error::Result<()>> {
        told(async move { self.indexing(namespace, manage::modify(self, namespace, index)).await })
    }

    fn drop_indexes<'a>(
        &'a self,
        namespace: &'a Namespace,
        which: IndexSelection,
    ) -> LocalBoxFuture<'a, error::Result<usize>> {
        told(async move { self.indexing(namespace, manage::drop(self, namespace, which)).await })
    }

    fn indexes<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, error::Result<Option<Vec<IndexSpec>>>> {
        told(manage::list(self, namespace))
    }

    fn cached_indexes<'a>(
        &'a self,
        namespace: &'a Namespace,
    ) -> LocalBoxFuture<'a, error::Result<Option<Vec<IndexSpec>>>> {
        told(manage::known(self, namespace))
    }

    fn collection_stats<'a>(
        &'a self,
        namespace: &'a Namespace,
    ) -> LocalBoxFuture<'a, error::Result<Option<CollectionStats>>> {
        told(statistics::collection(self, namespace))
    }

    fn estimated_size<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, error::Result<SizeEstimate>> {
        told(statistics::rough(self, namespace))
    }

    fn database_stats<'a>(&'a self, database: &'a str) -> LocalBoxFuture<'a, error::Result<DatabaseStats>> {
        told(statistics::database(self, database))
    }

    fn validate<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, error::Result<Validation>> {
        told(statistics::validate(self, namespace))
    }
}
