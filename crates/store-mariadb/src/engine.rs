//! The half of the store that belongs to the process: the server's location and capabilities.

use crate::accounts::{AccountSettings, documents_account};
use crate::catalog::{Catalog, own_schema};
use crate::feed::{Feed, started};
use crate::options::{FeedStart, Options};
use crate::primary_accounts;
use crate::read_pools::ReadAccounts;
use crate::server_facts::ServerFacts;
use crate::sharding::servers;
use crate::store::MariaDbStore;
use crate::transaction::shared::SharedTransactions;
use error::{Code, Error};
use mariadb_binlog::Followed;
use mariadb_client::{
    Failure, Killer, PoolAccount, PoolAccounts, PoolServers, PrimarySource, Result, ServerLocation, ServerUrl,
    SessionOwner, establish,
};
use mariadb_wire::row::TextRow;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use store::{ChangeObserver, DocumentStore, Engine, ObserverSlot};

/// MariaDB in this process needs a large stack.
const STACK_BYTES: usize = 16 << 20;

/// The least `max_allowed_packet`: a document of 16 MiB as JSON, with the growth of ordinary
/// content.
const PACKET_BYTES_MIN: u64 = 32 << 20;
/// The recommended value: even text full of control characters fits.
const PACKET_BYTES_RECOMMENDED: &str = "128M";

/// The first MariaDB whose JSON paths support ranges (`$[last-9 to last]`).
const PATH_RANGES_SINCE: (u16, u16) = (10, 9);

/// A MariaDB server as an engine.
pub struct MariaDbEngine {
    options: Options,
    /// The server, with the accounts of the gateway there.
    servers: PoolServers,
    /// The server in this process, if it runs there.
    #[cfg(feature = "embedded")]
    database: Option<Arc<mariadb_embedded::Database>>,
    /// How accounts are kept beside users, if they are.
    accounts: Option<AccountSettings>,
    facts: ServerFacts,
    /// Counts changes of definitions, which invalidate the workers' catalogs.
    changes: Arc<AtomicU64>,
    read_accounts: Arc<ReadAccounts>,
    /// The observer of changes, which invalidates caches.
    change_observer: Arc<ObserverSlot>,
    transactions: Arc<SharedTransactions>,
    /// The change feed, if there is one.
    feed: Option<Arc<Feed>>,
}

impl MariaDbEngine {
    /// Connects once, checks that the server is suitable, and disconnects. Each worker opens its
    /// own connections later.
    ///
    /// Fails with 6 (no server), 18 (user or password refused), 12 (not MariaDB, or too old) or 72
    /// (read-only, or `max_allowed_packet` too small). The message says in one sentence what to do.
    pub fn connect(url: &str, options: Options) -> error::Result<Arc<dyn Engine>> {
        Self::at(ServerLocation::Server(ServerUrl::parse(url)?), options)
    }

    /// As [`MariaDbEngine::connect`], to the primary of servers that replicate, which is followed.
    /// Waits for it as long as an operation would.
    pub fn follow(primary: PrimarySource, options: Options) -> error::Result<Arc<dyn Engine>> {
        document::names::note_escaped();
        let keeps_accounts = options.keeps_accounts;
        let (url, facts, accounts) = in_thread(async || primary_accounts::examine_primary(&primary, &options).await)?;
        let documents_name = accounts.as_ref().map(|accounts| accounts.documents_account.clone());
        let feed = start_feed(Followed::Primary(primary.clone()), &options)?;
        let of_accounts = options.clone();
        let accounts_at = move |url: ServerUrl| {
            let place = ServerLocation::Server(url);
            // The password could be derived for the first one.
            let documents = keeps_accounts.then(|| documents_account::target(&place).ok()).flatten();
            pool_accounts(place, documents, documents_name.clone(), &of_accounts)
        };
        let servers = primary_accounts::follow(primary, url, accounts_at)
            .map_err(|error| Error::internal(format!("cannot start a thread: {error}")))?;
        Ok(Arc::new(MariaDbEngine {
            servers,
            #[cfg(feature = "embedded")]
            database: None,
            accounts,
            transactions: SharedTransactions::new(options.transactions_max),
            options,
            facts,
            changes: Arc::default(),
            read_accounts: Arc::default(),
            change_observer: Arc::default(),
            feed,
        }))
    }

    /// Starts MariaDB in this process, with its data in this directory. May be called once per
    /// process.
    ///
    /// Fails with 72; the message says in one sentence what to do, and has MariaDB's own error.
    #[cfg(feature = "embedded")]
    pub fn embedded(path: &std::path::Path, options: Options) -> error::Result<Arc<dyn Engine>> {
        let database = mariadb_embedded::Database::open(path);
        let database = database.map_err(|message| Error::new(Code::INVALID_OPTIONS, message))?;
        Self::at(ServerLocation::Embedded(database), options)
    }

    fn at(place: ServerLocation, options: Options) -> error::Result<Arc<dyn Engine>> {
        // Other gateways may have written documents with escaped names.
        document::names::note_escaped();
        let documents = match options.keeps_accounts {
            true => Some(documents_account::target(&place)?),
            false => None,
        };
        let (facts, accounts) = in_thread(async || examine(&place, documents.as_ref(), &options).await)?;
        let documents_name = accounts.as_ref().map(|accounts| accounts.documents_account.clone());
        #[cfg(feature = "embedded")]
        let database = match &place {
            ServerLocation::Embedded(database) => Some(database.clone()),
            ServerLocation::Server(_) => None,
        };
        let feed = match &place {
            ServerLocation::Server(url) => start_feed(Followed::Server(url.clone()), &options)?,
            #[cfg(feature = "embedded")]
            ServerLocation::Embedded(_) => None,
        };
        Ok(Arc::new(MariaDbEngine {
            servers: PoolServers::fixed(pool_accounts(place, documents, documents_name, &options)),
            #[cfg(feature = "embedded")]
            database,
            accounts,
            transactions: SharedTransactions::new(options.transactions_max),
            options,
            facts,
            changes: Arc::default(),
            read_accounts: Arc::default(),
            change_observer: Arc::default(),
            feed,
        }))
    }
}

/// Prepares the connections to a server. `documents`: how the account for statements under a role
/// logs in, if there is one.
fn pool_accounts(
    place: ServerLocation,
    documents: Option<ServerUrl>,
    documents_name: Option<Arc<str>>,
    options: &Options,
) -> PoolAccounts {
    let documents = documents.map(|target| pool_account(ServerLocation::Server(target), " (documents)", options));
    PoolAccounts { gateway: pool_account(place, "", options), documents, documents_name }
}

/// Prepares the connections of an account. `suffix` distinguishes its sessions from those of the
/// gateway's other account, which may not end them.
fn pool_account(location: ServerLocation, suffix: &str, options: &Options) -> PoolAccount {
    let killer = Arc::new(Killer::new(location.clone()));
    let name = options.gateway.as_ref().map(|name| format!("{name}{suffix}"));
    let owner = name.map(|name| SessionOwner::claim(&location, &name, options.pool.connect_timeout));
    PoolAccount { location, killer, owner }
}

/// Prepares the change feed, if there is to be one.
fn start_feed(followed: Followed, options: &Options) -> error::Result<Option<Arc<Feed>>> {
    let Some(start) = options.feed else { return Ok(None) };
    let feed = Arc::new(Feed::new(followed));
    if start == FeedStart::AtOnce {
        in_thread(async || Ok(started(&feed).await?))?;
    }
    Ok(Some(feed))
}

/// Runs the start in a thread of its own, because the caller may be inside a runtime.
fn in_thread<T: Send>(work: impl AsyncFnOnce() -> Result<T> + Send) -> error::Result<T> {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Error::internal(format!("cannot start a runtime: {error}")))?;
        runtime.block_on(work()).map_err(|failure| match failure {
            Failure::Lost(message) | Failure::Full(message) => Error::new(Code::HOST_UNREACHABLE, message),
            other => other.into(),
        })
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, run);
        thread.ok().and_then(|thread| thread.join().ok()).unwrap_or_else(|| Err(Error::internal("start-up failed")))
    })
}

/// Checks that a server is suitable, and prepares it.
pub(crate) async fn examine(
    place: &ServerLocation,
    documents: Option<&ServerUrl>,
    options: &Options,
) -> Result<(ServerFacts, Option<AccountSettings>)> {
    let (mut connection, server) = establish(place, options.pool.connect_timeout).await?;
    connection.queue_query(
        "SELECT @@max_allowed_packet, @@lower_case_table_names, @@log_bin, @@binlog_format, @@auto_increment_increment, \
         @@GLOBAL.read_only, (SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_VARIABLES WHERE VARIABLE_NAME = 'WSREP_ON')",
    );
    let mut values = Vec::new();
    while let mariadb_client::Event::Row(range) = connection.next().await? {
        let mut row = TextRow::new(connection.raw_row(range).0);
        for _ in 0..7 {
            values.push(String::from_utf8_lossy(row.next_bytes()?.unwrap_or_default()).into_owned());
        }
    }
    let [packet, case, log, format, step, read_only, galera] = values.as_slice() else {
        return Err(Failure::Lost("MariaDB did not return its settings".into()));
    };
    let packet_bytes_max = packet.parse().unwrap_or(0);
    let unsuitable = if packet_bytes_max < PACKET_BYTES_MIN {
        Some(format!(
            "MariaDB's max_allowed_packet is {packet} bytes, too small for documents of 16 MiB as JSON: set \
             max_allowed_packet={PACKET_BYTES_RECOMMENDED} in the [mariadbd] section of its configuration and restart it, or run \
             SET GLOBAL max_allowed_packet = 134217728"
        ))
    } else if log == "1" && format.eq_ignore_ascii_case("STATEMENT") {
        let message = "MariaDB's binlog_format is STATEMENT, which cannot replicate what Selkie writes: set binlog_format=MIXED or ROW";
        Some(message.to_owned())
    } else {
        None
    };
    let unsuitable = unsuitable.map(|message| Error::new(Code::INVALID_OPTIONS, message));
    match &unsuitable {
        Some(error) if options.has_sql_clients => tracing::info!("MongoDB clients cannot write: {}", error.message()),
        Some(error) => return Err(error.clone().into()),
        None => {}
    }
    let is_read_only = !matches!(read_only.as_str(), "0" | "OFF");
    if is_read_only && !options.has_sql_clients {
        let message = "MariaDB is read-only (read_only is on), as replicas are: give Selkie the address of the primary, or run \
                       SET GLOBAL read_only = OFF if this server is the primary";
        return Err(Error::new(Code::INVALID_OPTIONS, message).into());
    }
    // A server that also serves SQL clients gets the schema with the first write of a MongoDB
    // client. Otherwise it is created now: once the binary log is followed, a commit may wait for
    // the follower.
    if !is_read_only && (!options.has_sql_clients || own_schema::exists(&mut connection).await?) {
        own_schema::create_if_allowed(&mut connection).await?;
    }
    if let Some(shards) = &options.shards {
        servers::check(&mut connection, shards).await?;
    }
    let accounts = match documents {
        Some(target) => Some(documents_account::set_up(&mut connection, target).await?),
        None => None,
    };
    let facts = ServerFacts {
        has_ranges: server.series >= PATH_RANGES_SINCE,
        version: server.version,
        ignores_case: case != "0",
        packet_bytes_max,
        counts_by_one: step == "1",
        is_galera: galera == "ON",
        unsuitable,
    };
    Ok((facts, accounts))
}

impl Engine for MariaDbEngine {
    fn open(self: Arc<Self>) -> error::Result<Rc<dyn DocumentStore>> {
        Ok(MariaDbStore::open(
            self.options.clone(),
            (self.servers.clone(), self.accounts.clone(), self.read_accounts.clone()),
            Catalog::new(self.facts.ignores_case, self.changes.clone()),
            &self.facts,
            self.change_observer.clone(),
            self.transactions.clone(),
            self.feed.clone(),
        ))
    }

    fn observe_changes(&self, observer: Arc<dyn ChangeObserver>) {
        self.change_observer.set(observer);
    }

    fn close(&self) {
        self.transactions.close();
        if let Some(feed) = &self.feed {
            feed.stop();
        }
        #[cfg(feature = "embedded")]
        if let Some(database) = &self.database
            && database.close() == mariadb_embedded::Closed::StillBusy
        {
            tracing::warn!("MariaDB did not end its statements in time: it will recover at the next start");
        }
    }

    fn describe(&self) -> String {
        #[cfg(feature = "embedded")]
        if self.database.is_some() {
            return format!("MariaDB {} (embedded)", self.facts.version);
        }
        format!("MariaDB {}", self.facts.version)
    }
}
