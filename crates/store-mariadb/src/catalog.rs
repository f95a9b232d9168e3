//! The catalog: the tables that hold collections, read from the server and cached for a moment.
//!
//! An entry has a table's definition, never its rows. Other clients may drop, create and alter
//! tables at any time. So an entry is read again after [`FRESH_FOR`], and at once if a statement
//! fails in a way that a changed definition explains. The server takes milliseconds to return a
//! table's columns. Therefore concurrent misses of one entry wait for the first of them, and a
//! stale entry is used while it is being read again.

pub(crate) mod attempts;
pub(crate) mod cluster_lock;
pub(crate) mod collections;
mod column_cache;
pub(crate) mod databases;
pub(crate) mod definition_lock;
pub(crate) mod exclusive_change;
pub(crate) mod id_text;
pub(crate) mod lasting_lock;
pub(crate) mod names;
pub(crate) mod own_schema;
pub(crate) mod row_key;
pub(crate) mod statistics;
pub(crate) mod table;
pub(crate) mod table_columns;
pub(crate) mod table_definitions;
pub(crate) mod update_mark;

use crate::accounts::new_schema;
use crate::catalog::table::Table;
use crate::index::{Index, records};
use ahash::AHashMap;
use cluster_lock::ClusterLocks;
use column_cache::{ColumnCache, TableDescription};
use document::Value;
use error::{Code, Error};
use mariadb_client::{Connection, Event, Failure, Result, quote, server_error};
use mariadb_wire::Param;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use store::{Namespace, Rules, views};
use tokio::sync::watch;

/// How long an entry is fresh.
const FRESH_FOR: Duration = Duration::from_secs(5);

/// How often a collection to write to is created while others drop it.
const CREATIONS_MAX: u32 = 20;

/// Entries cached; past this number all are evicted.
const ENTRIES_MAX: usize = 10_000;

pub(crate) struct Catalog {
    /// The server ignores case in names.
    ignores_case: bool,
    tables: RefCell<AHashMap<Namespace, (Arc<Table>, Instant)>>,
    /// Lookups in flight. A channel closes with the answer, and first yields whether there is no
    /// table.
    in_flight: RefCell<AHashMap<Namespace, watch::Receiver<bool>>>,
    /// Counts the changes of definitions by this process, and how many of them this catalog has
    /// seen.
    changes: Arc<AtomicU64>,
    seen: Cell<u64>,
    columns: ColumnCache,
    /// Locks on all nodes, if the server is a node of a Galera cluster.
    pub cluster_locks: Option<ClusterLocks>,
}

impl Catalog {
    pub fn new(ignores_case: bool, changes: Arc<AtomicU64>) -> Catalog {
        Catalog {
            ignores_case,
            tables: RefCell::default(),
            in_flight: RefCell::default(),
            changes,
            seen: Cell::new(0),
            columns: ColumnCache::new(),
            cluster_locks: None,
        }
    }

    pub fn ignores_case(&self) -> bool {
        self.ignores_case
    }

    /// Returns the collection's schema and table, whether they exist or not.
    pub fn names<'n>(&self, namespace: &'n Namespace) -> error::Result<(&'n str, String)> {
        names::schema_and_table(namespace, self.ignores_case)
    }

    /// Returns the cached table of the collection if it is fresh, or is being read again.
    pub fn cached(&self, namespace: &Namespace) -> Option<Arc<Table>> {
        let changes = self.changes.load(Ordering::Acquire);
        if self.seen.replace(changes) != changes {
            self.tables.borrow_mut().clear();
            self.in_flight.borrow_mut().clear();
        }
        let tables = self.tables.borrow();
        let (table, since) = tables.get(namespace)?;
        let age = since.elapsed();
        let is_asked = || age < 2 * FRESH_FOR && self.in_flight.borrow().contains_key(namespace);
        (age < FRESH_FOR || is_asked()).then(|| table.clone())
    }

    /// Invalidates the catalogs of all workers of the process.
    pub fn invalidate_all(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    /// Invalidates an entry, and a lookup of it in flight, which may be as old.
    pub fn invalidate(&self, namespace: &Namespace) {
        self.tables.borrow_mut().remove(namespace);
        self.in_flight.borrow_mut().remove(namespace);
    }

    /// Returns the collection's table; `None` if there is none, or none that holds documents.
    pub async fn table(&self, connection: &mut Connection, namespace: &Namespace) -> Result<Option<Arc<Table>>> {
        if let Some(table) = self.cached(namespace) {
            return Ok(Some(table));
        }
        // A lookup may be invalidated meanwhile and start again; failures are not awaited one by
        // one.
        for _ in 0..2 {
            let Some(mut asked) = self.in_flight.borrow().get(namespace).cloned() else { break };
            // A table that was missing for the other lookup may have been created since.
            let is_missing = asked.wait_for(|is_missing| *is_missing).await.is_ok();
            if let Some(table) = self.cached(namespace) {
                return Ok(Some(table));
            }
            if is_missing {
                break;
            }
        }
        match self.read(connection, namespace).await? {
            TableLookup::Collection(table) => Ok(Some(table)),
            TableLookup::Nothing | TableLookup::OtherTable => Ok(None),
        }
    }

    /// Returns the collection's table, creating it if missing, and whether it was created.
    pub async fn table_or_create(
        &self,
        connection: &mut Connection,
        namespace: &Namespace,
    ) -> Result<(Arc<Table>, bool)> {
        if let Some(table) = self.cached(namespace) {
            return Ok((table, false));
        }
        let mut created = false;
        // Other clients may drop or create it meanwhile.
        for attempt in 1..CREATIONS_MAX {
            match self.read(connection, namespace).await? {
                TableLookup::Collection(table) => return Ok((table, created)),
                TableLookup::OtherTable => return Err(not_a_collection(namespace).into()),
                TableLookup::Nothing if self.is_view(connection, namespace).await? => {
                    return Err(views::not_a_collection(namespace).into());
                }
                TableLookup::Nothing => match self.create_missing(connection, namespace).await {
                    Err(failure) if failure.is_lost_race() => attempts::pause(attempt).await,
                    outcome => created |= outcome?,
                },
            }
        }
        Err(Failure::Other(Error::new(Code::WRITE_CONFLICT, format!("collection {namespace} is being dropped"))))
    }

    /// Creates the collection unless another change has created it meanwhile; returns whether it
    /// was created here.
    async fn create_missing(&self, connection: &mut Connection, namespace: &Namespace) -> Result<bool> {
        let (schema, table) = self.names(namespace)?;
        let lock = [definition_lock::collection_lock(schema, &table)];
        definition_lock::locked(self.cluster_locks.as_ref(), connection, &lock, async |connection| {
            match self.read(connection, namespace).await? {
                TableLookup::Nothing => self.create(connection, namespace, &document::DocBuf::new()).await,
                TableLookup::Collection(_) | TableLookup::OtherTable => Ok(false),
            }
        })
        .await
    }

    /// Returns whether the database's `system.views` has a definition for this name.
    pub async fn is_view(&self, connection: &mut Connection, namespace: &Namespace) -> Result<bool> {
        if &*namespace.collection == views::COLLECTION {
            return Ok(false);
        }
        // A name that MariaDB cannot hold is no view's.
        if names::schema(&namespace.database, self.ignores_case).is_err() {
            return Ok(false);
        }
        let definitions = views::definitions(&namespace.database);
        // Boxed, because looking up a table calls this function.
        let Some(table) = Box::pin(self.table(connection, &definitions)).await? else { return Ok(false) };
        let name = namespace.to_string();
        let Some(ids) = id_text::candidates(Value::String(&name), table.id_form) else { return Ok(false) };
        let mut found = false;
        for id in &ids.texts {
            connection.queue_execute(&table.statements.by_id, &[Param::Text(id)]);
            loop {
                match connection.next().await {
                    Ok(Event::Row(_)) => found = true,
                    Ok(_) => break,
                    // Another worker has dropped the database meanwhile.
                    Err(failure) if failure.is_missing_table() => {
                        self.invalidate(&definitions);
                        return Ok(false);
                    }
                    Err(failure) => return Err(failure),
                }
            }
        }
        Ok(found)
    }

    /// Creates schema and table if missing; returns whether the table was created. The caller must
    /// hold the collection's lock.
    pub async fn create(
        &self,
        connection: &mut Connection,
        namespace: &Namespace,
        options: &document::DocBuf,
    ) -> Result<bool> {
        let (schema, table) = self.names(namespace)?;
        let lock = [definition_lock::database_lock(schema)];
        let create = async |connection: &mut Connection| {
            self.create_in_schema(connection, schema, &table, &namespace.collection, options).await
        };
        definition_lock::locked(self.cluster_locks.as_ref(), connection, &lock, create).await
    }

    async fn create_in_schema(
        &self,
        connection: &mut Connection,
        schema: &str,
        table: &str,
        collection: &str,
        options: &document::DocBuf,
    ) -> Result<bool> {
        // Options must be recorded before there are documents to which they apply.
        if names::is_made_up(table) || !options.as_doc().is_empty() {
            own_schema::record_collection(connection, schema, table, collection, options, false).await?;
        }
        let definition = Table::definition(schema, table);
        connection.queue_query(&definition);
        let outcome = match connection.finish().await {
            Err(failure) if failure.sql_code() == Some(server_error::UNKNOWN_SCHEMA) => {
                self.create_schema(connection, schema).await?;
                connection.queue_query(&definition);
                connection.finish().await
            }
            other => other,
        };
        match outcome {
            Ok(_) => {
                own_schema::record_collection(connection, schema, table, collection, options, true).await?;
                Ok(true)
            }
            Err(failure) if failure.sql_code() == Some(server_error::TABLE_EXISTS) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// Creates a database's schema if missing. Fails with 13297 if one exists whose name differs
    /// only in case.
    pub async fn create_schema(&self, connection: &mut Connection, schema: &str) -> Result<()> {
        let sql = "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE LOWER(SCHEMA_NAME) = LOWER(?)";
        connection.queue_execute(&sql.into(), &[Param::Text(schema.as_bytes())]);
        let mut others = Vec::new();
        while let Event::Row(range) = connection.next().await? {
            others.push(own_schema::text(connection.row(range)?.next_bytes()?.unwrap_or_default())?);
        }
        if others.iter().any(|other| other == schema) {
            return Ok(());
        }
        if let Some(other) = others.first() {
            let message =
                format!("db already exists with different case already have: [{other}] trying to create [{schema}]");
            return Err(Error::new(Code::DATABASE_DIFFER_CASE, message).into());
        }
        let character_set = names::SCHEMA_CHARACTER_SET;
        connection.queue_query(&format!("CREATE SCHEMA IF NOT EXISTS {} {character_set}", quote(schema)));
        connection.finish().await?;
        new_schema::grant(connection, schema).await
    }

    /// Invalidates all entries of a database.
    pub fn invalidate_database(&self, database: &str) {
        self.tables.borrow_mut().retain(|namespace, _| &*namespace.database != database);
        self.in_flight.borrow_mut().retain(|namespace, _| &*namespace.database != database);
    }

    /// Reads a table by its own name, without caching it.
    pub async fn by_table_name(&self, connection: &mut Connection, schema: &str, name: &str) -> Result<Option<Table>> {
        let TableDescription { columns, keys, shape } = &*self.columns.of(connection, schema, name).await?;
        let Some(shape) = *shape else { return Ok(None) };
        let indexes = records::load(connection, schema, name, columns, keys).await?;
        Ok(Some(Table::new(schema, name, shape, indexes, None)))
    }

    /// Reads the collection's table from the server.
    pub async fn read(&self, connection: &mut Connection, namespace: &Namespace) -> Result<TableLookup> {
        let (schema, name) = self.names(namespace)?;
        let lookup = LookupInFlight::begin(self, namespace);
        let Some(described) = self.columns.if_any(connection, schema, &name).await? else {
            lookup.report_missing();
            self.invalidate(namespace);
            return Ok(TableLookup::Nothing);
        };
        let TableDescription { columns, keys, shape } = &*described;
        let Some(shape) = *shape else {
            self.invalidate(namespace);
            return Ok(TableLookup::OtherTable);
        };
        let indexes: Vec<Index> = records::load(connection, schema, &name, columns, keys).await?;
        let known = own_schema::collections(connection, schema, Some(&name)).await?;
        let mut table = Table::new(schema, &name, shape, indexes, None);
        if let Some(known) = known.first() {
            table.rules = Rules::of(known.options.as_doc())?;
            table.collation = store::catalog::default_collation(known.options.as_doc())?;
        }
        let mut tables = self.tables.borrow_mut();
        if let Some((known, _)) = tables.get(namespace) {
            table.inherit_from(known);
        }
        let table = Arc::new(table);
        if !lookup.is_current() {
            return Ok(TableLookup::Collection(table));
        }
        if tables.len() >= ENTRIES_MAX {
            tables.clear();
        }
        tables.insert(namespace.clone(), (table.clone(), Instant::now()));
        Ok(TableLookup::Collection(table))
    }
}

/// A lookup of a collection's table in flight.
struct LookupInFlight<'c> {
    catalog: &'c Catalog,
    namespace: &'c Namespace,
    /// The channel on which other lookups wait, if they wait for this one.
    answer: Option<watch::Sender<bool>>,
}

impl<'c> LookupInFlight<'c> {
    fn begin(catalog: &'c Catalog, namespace: &'c Namespace) -> LookupInFlight<'c> {
        let mut asked = catalog.in_flight.borrow_mut();
        let answer = (!asked.contains_key(namespace)).then(|| {
            let (answer, others) = watch::channel(false);
            asked.insert(namespace.clone(), others);
            answer
        });
        LookupInFlight { catalog, namespace, answer }
    }

    /// Returns whether other lookups wait for this one, and the entry was not invalidated since.
    fn is_current(&self) -> bool {
        let asked = self.catalog.in_flight.borrow();
        let answer = self.answer.as_ref();
        answer.is_some_and(|own| asked.get(self.namespace).is_some_and(|others| others.same_channel(&own.subscribe())))
    }

    fn report_missing(&self) {
        self.answer.iter().for_each(|answer| answer.send_modify(|is_missing| *is_missing = true));
    }
}

impl Drop for LookupInFlight<'_> {
    fn drop(&mut self) {
        if self.is_current() {
            self.catalog.in_flight.borrow_mut().remove(self.namespace);
        }
    }
}

/// The result of looking up a collection's table.
pub(crate) enum TableLookup {
    Collection(Arc<Table>),
    /// A table that does not hold documents.
    OtherTable,
    Nothing,
}

/// Returns error 73 for a table that does not hold documents.
pub(crate) fn not_a_collection(namespace: &Namespace) -> Error {
    Error::new(
        Code::INVALID_NAMESPACE,
        format!(
            "the table of {namespace} is not a collection: it lacks the columns 'id' (generated from doc) and 'doc'"
        ),
    )
}
