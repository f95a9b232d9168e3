//! Which tables hold collections: asked of the server, remembered for a moment.
//!
//! What is remembered is a table's shape, never its rows. Others may drop, create and alter tables at any time: an entry is asked for
//! again after [`FRESH_FOR`], and at once when a statement fails in a way that a change of shape explains. The server takes milliseconds
//! to tell a table's columns, so that those who miss the same entry at once wait for the first of them, and those who have one that is no longer fresh make
//! do with it meanwhile.

pub(crate) mod collections;
mod column_cache;
pub(crate) mod databases;
pub(crate) mod definition_lock;
pub(crate) mod exclusive_change;
pub(crate) mod id_text;
pub(crate) mod names;
pub(crate) mod own_schema;
pub(crate) mod row_key;
pub(crate) mod statistics;
pub(crate) mod table;
pub(crate) mod table_columns;
pub(crate) mod table_definitions;

use crate::catalog::table::Table;
use crate::index::{Index, records};
use ahash::AHashMap;
use column_cache::{Columns, Described};
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

/// How long a table's shape is believed.
const FRESH_FOR: Duration = Duration::from_secs(5);

/// How often a collection to write to is created, while others drop it.
const CREATIONS_MAX: u32 = 20;

/// Entries remembered; past it everything is forgotten and asked for again.
const ENTRIES_MAX: usize = 10_000;

pub(crate) struct Catalog {
    /// The server does not tell upper from lower case in names.
    ignores_case: bool,
    tables: RefCell<AHashMap<Namespace, (Arc<Table>, Instant)>>,
    /// The server is being asked for these: the channels close with the answer, and tell before whether it is that there is no table.
    asked: RefCell<AHashMap<Namespace, watch::Receiver<bool>>>,
    /// Counts the changes of options that the process has made; and how many of them this catalog has seen.
    changes: Arc<AtomicU64>,
    seen: Cell<u64>,
    columns: Columns,
}

impl Catalog {
    pub fn new(ignores_case: bool, changes: Arc<AtomicU64>) -> Catalog {
        Catalog {
            ignores_case,
            tables: RefCell::default(),
            asked: RefCell::default(),
            changes,
            seen: Cell::new(0),
            columns: Columns::new(),
        }
    }

    pub fn ignores_case(&self) -> bool {
        self.ignores_case
    }

    /// The collection's schema and table, whether they exist or not.
    pub fn names<'n>(&self, namespace: &'n Namespace) -> error::Result<(&'n str, String)> {
        let schema = names::schema(&namespace.database, self.ignores_case)?;
        Ok((schema, names::table(namespace, self.ignores_case)?))
    }

    /// What is remembered of the collection's table, if it is fresh, or somebody asks whether it still is.
    pub fn remembered(&self, namespace: &Namespace) -> Option<Arc<Table>> {
        let changes = self.changes.load(Ordering::Acquire);
        if self.seen.replace(changes) != changes {
            self.tables.borrow_mut().clear();
            self.asked.borrow_mut().clear();
        }
        let tables = self.tables.borrow();
        let (table, since) = tables.get(namespace)?;
        let age = since.elapsed();
        let is_asked = || age < 2 * FRESH_FOR && self.asked.borrow().contains_key(namespace);
        (age < FRESH_FOR || is_asked()).then(|| table.clone())
    }

    /// Has all workers of the process ask again.
    pub fn note_change(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    /// What is being asked for already may be as old as what is forgotten.
    pub fn forget(&self, namespace: &Namespace) {
        self.tables.borrow_mut().remove(namespace);
        self.asked.borrow_mut().remove(namespace);
    }

    /// The collection's table; `None` when there is none, or none that holds documents.
    pub async fn table(&self, connection: &mut Connection, namespace: &Namespace) -> Result<Option<Arc<Table>>> {
        if let Some(table) = self.remembered(namespace) {
            return Ok(Some(table));
        }
        // What is asked for may have to be asked again, when it changes meanwhile; failures are not waited for in a row.
        for _ in 0..2 {
            let Some(mut asked) = self.asked.borrow().get(namespace).cloned() else { break };
            // A table that was not there when somebody else asked may have come since.
            let is_missing = asked.wait_for(|is_missing| *is_missing).await.is_ok();
            if let Some(table) = self.remembered(namespace) {
                return Ok(Some(table));
            }
            if is_missing {
                break;
            }
        }
        match self.look(connection, namespace).await? {
            Look::Collection(table) => Ok(Some(table)),
            Look::Nothing | Look::OtherTable => Ok(None),
        }
    }

    /// The collection's table, created where there is none. Gives whether it was created.
    pub async fn table_or_create(
        &self,
        connection: &mut Connection,
        namespace: &Namespace,
    ) -> Result<(Arc<Table>, bool)> {
        if let Some(table) = self.remembered(namespace) {
            return Ok((table, false));
        }
        let mut created = false;
        // Others may drop or create it in between.
        for attempt in 1..CREATIONS_MAX {
            match self.look(connection, namespace).await? {
                Look::Collection(table) => return Ok((table, created)),
                Look::OtherTable => return Err(not_a_collection(namespace).into()),
                Look::Nothing if self.is_view(connection, namespace).await? => {
                    return Err(views::not_a_collection(namespace).into());
                }
                Look::Nothing => match self.create_missing(connection, namespace).await {
                    Err(failure) if failure.is_lost_race() => definition_lock::pause(attempt).await,
                    outcome => created |= outcome?,
                },
            }
        }
        Err(Failure::Other(Error::new(Code::WRITE_CONFLICT, format!("collection {namespace} is being dropped"))))
    }

    /// Creates the collection unless another change has created it meanwhile; returns whether it did.
    async fn create_missing(&self, connection: &mut Connection, namespace: &Namespace) -> Result<bool> {
        let (schema, table) = self.names(namespace)?;
        let lock = [definition_lock::of_collection(schema, &table)];
        definition_lock::locked(connection, &lock, async |connection| match self.look(connection, namespace).await? {
            Look::Nothing => self.create(connection, namespace, &document::DocBuf::new()).await,
            Look::Collection(_) | Look::OtherTable => Ok(false),
        })
        .await
    }

    /// Whether the database's `system.views` has a definition for this name.
    pub async fn is_view(&self, connection: &mut Connection, namespace: &Namespace) -> Result<bool> {
        if &*namespace.collection == views::COLLECTION {
            return Ok(false);
        }
        // Names that MariaDB cannot hold are nobody's.
        if names::schema(&namespace.database, self.ignores_case).is_err() {
            return Ok(false);
        }
        let definitions = views::definitions(&namespace.database);
        // Boxed, for a collection's table is looked for by way of this.
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
                    // Another worker has dropped the database since.
                    Err(failure) if failure.is_missing_table() => {
                        self.forget(&definitions);
                        return Ok(false);
                    }
                    Err(failure) => return Err(failure),
                }
            }
        }
        Ok(found)
    }

    /// Creates schema and table where they are missing; gives whether the table was. The caller holds the collection's lock.
    pub async fn create(
        &self,
        connection: &mut Connection,
        namespace: &Namespace,
        options: &document::DocBuf,
    ) -> Result<bool> {
        let (schema, table) = self.names(namespace)?;
        let lock = [definition_lock::of_database(schema)];
        let create = async |connection: &mut Connection| {
            self.create_in_schema(connection, schema, &table, &namespace.collection, options).await
        };
        definition_lock::locked(connection, &lock, create).await
    }

    async fn create_in_schema(
        &self,
        connection: &mut Connection,
        schema: &str,
        table: &str,
        collection: &str,
        options: &document::DocBuf,
    ) -> Result<bool> {
        // Rules have to be known before there is something they hold for.
        if names::is_made_up(table) || !options.as_doc().is_empty() {
            own_schema::remember_collection(connection, schema, table, collection, options, false).await?;
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
                own_schema::remember_collection(connection, schema, table, collection, options, true).await?;
                Ok(true)
            }
            Err(failure) if failure.sql_code() == Some(server_error::TABLE_EXISTS) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// Creates a database's schema where it is missing. Error 13297 when there is one whose name differs in case only.
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
        connection.queue_query(&format!(
            "CREATE SCHEMA IF NOT EXISTS {} CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
            quote(schema)
        ));
        connection.finish().await.map(|_| ())
    }

    pub fn forget_database(&self, database: &str) {
        self.tables.borrow_mut().retain(|namespace, _| &*namespace.database != database);
        self.asked.borrow_mut().retain(|namespace, _| &*namespace.database != database);
    }

    /// A table by its own name, not remembered.
    pub async fn by_table_name(&self, connection: &mut Connection, schema: &str, name: &str) -> Result<Option<Table>> {
        let Described { columns, keys, shape } = &*self.columns.of(connection, schema, name).await?;
        let Some(shape) = *shape else { return Ok(None) };
        let indexes = records::load(connection, schema, name, columns, keys).await?;
        Ok(Some(Table::new(schema, name, shape, indexes, None)))
    }

    /// Asks the server.
    pub async fn look(&self, connection: &mut Connection, namespace: &Namespace) -> Result<Look> {
        let (schema, name) = self.names(namespace)?;
        let asking = Asking::begin(self, namespace);
        let Some(described) = self.columns.if_any(connection, schema, &name).await? else {
            asking.tell_missing();
            self.forget(namespace);
            return Ok(Look::Nothing);
        };
        let Described { columns, keys, shape } = &*described;
        let Some(shape) = *shape else {
            self.forget(namespace);
            return Ok(Look::OtherTable);
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
            table.learn_from(known);
        }
        let table = Arc::new(table);
        if !asking.is_current() {
            return Ok(Look::Collection(table));
        }
        if tables.len() >= ENTRIES_MAX {
            tables.clear();
        }
        tables.insert(namespace.clone(), (table.clone(), Instant::now()));
        Ok(Look::Collection(table))
    }
}

/// The server is being asked for a collection's table.
struct Asking<'c> {
    catalog: &'c Catalog,
    namespace: &'c Namespace,
    /// What others wait on, if they wait for this one.
    answer: Option<watch::Sender<bool>>,
}

impl<'c> Asking<'c> {
    fn begin(catalog: &'c Catalog, namespace: &'c Namespace) -> Asking<'c> {
        let mut asked = catalog.asked.borrow_mut();
        let answer = (!asked.contains_key(namespace)).then(|| {
            let (answer, others) = watch::channel(false);
            asked.insert(namespace.clone(), others);
            answer
        });
        Asking { catalog, namespace, answer }
    }

    /// Whether others wait for this one, and nothing has been forgotten since it began.
    fn is_current(&self) -> bool {
        let asked = self.catalog.asked.borrow();
        let answer = self.answer.as_ref();
        answer.is_some_and(|own| asked.get(self.namespace).is_some_and(|others| others.same_channel(&own.subscribe())))
    }

    fn tell_missing(&self) {
        self.answer.iter().for_each(|answer| answer.send_modify(|is_missing| *is_missing = true));
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        if self.is_current() {
            self.catalog.asked.borrow_mut().remove(self.namespace);
        }
    }
}

pub(crate) enum Look {
    Collection(Arc<Table>),
    /// A table, but not one that holds documents.
    OtherTable,
    Nothing,
}

pub(crate) fn not_a_collection(namespace: &Namespace) -> Error {
    Error::new(
        Code::INVALID_NAMESPACE,
        format!(
            "the table of {namespace} is not a collection: it lacks the columns 'id' (generated from doc) and 'doc'"
        ),
    )
}
