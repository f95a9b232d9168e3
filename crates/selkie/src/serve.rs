//! `selkie serve`: the parts put together, from the store to the sockets.

use crate::cli::presentable_arguments;
use crate::config::{self, Cache, CacheMode, Config, Store};
use crate::temporary_files::TemporaryFiles;
use commands::answers::{Answers, CachePolicy, CachedReply, Rules};
use commands::{Server, Settings, Topology};
use document::{DocBuf, doc};
use futures_util::future::Either;
use mariadb_client::{Address, Killer, OwnWrites, PoolOptions, ServerUrl};
use mongo_session::{MongoService, Patience, SessionWorker};
use selkie_runtime::process::Listening;
use selkie_runtime::{Connection, ListenAddress, Options, Service};
use shared_cache::Shared;
use sql_classify::{TableDefinition, TableKind};
use sql_session::{BackendAddress, DefinitionCache, DefinitionObserver, PrivilegeCache, SqlService};
use std::fmt;
use std::io::Write;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use store::{ChangeObserver, Engine, Namespace};
use store_mariadb::{ForeignWrites, MariaDbEngine, ResultSet, TableDefinitions};
use tokio::sync::Semaphore;

/// How long connecting to MariaDB may take for an SQL client.
const SQL_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// SQL clients that may have connected and not logged in yet, each of which takes one of MariaDB's
/// connections; and how long that may take, as in MariaDB (`connect_timeout`).
const SQL_LOGINS_MAX: usize = 24;
const SQL_LOGIN_TIMEOUT: Duration = Duration::from_secs(10);

/// How often workers look after idle cursors and large buffers.
const TICK: Duration = Duration::from_secs(5);

pub fn serve(config: Config) -> anyhow::Result<()> {
    crate::logging::start(&config.log);
    raise_open_files_limit();
    steps::memory::set_limits(config.limits.memory);
    crate::memory::reserve();
    let listening = Listening::bind(Options {
        listen: [config.listen.as_slice(), &config.sql_listen].concat(),
        workers: config.threads,
        drain_deadline: config.drain_deadline,
        tick: TICK,
        busy_poll: config.busy_poll,
        connections_max: config.limits.connections,
    })?;
    let (listen, sql_listen) = listening.addresses().split_at(config.listen.len());
    let config = Config { listen: listen.to_vec(), sql_listen: sql_listen.to_vec(), ..config };
    warn_of_open_doors(&config);
    let caches = Caches::new(&config)?;
    let engine = open_store(&config, &caches)?;
    let definitions = definitions(&config)?;
    let foreign_writes = caches.follow(&config, definitions.as_ref())?;
    let sql = sql_service(&config, &caches, definitions)?;
    let server = Server::new(settings(&config), engine.clone(), caches.begin(&config, &*engine));
    let patience = Patience { stalled: config.limits.stalled, idle: config.limits.idle };
    let mongo = MongoService::new(server).with_housekeeping(crate::memory::give_back).with_patience(patience);
    let service = Arc::new(Both { mongo, sql, mongo_addresses: config.listen.len() });
    let outcome = selkie_runtime::run(listening, service, |_| announce(&config, &engine.describe()));
    drop(foreign_writes);
    engine.close();
    outcome?;
    tracing::info!("stopped");
    Ok(())
}

/// Clients of both kinds, told apart by the address that they came to.
struct Both {
    mongo: MongoService,
    sql: Option<Arc<SqlService>>,
    /// The first addresses are MongoDB clients', the others SQL clients'.
    mongo_addresses: usize,
}

impl Service for Both {
    type Worker = SessionWorker;

    fn open(&self, index: usize) -> Result<Rc<SessionWorker>, String> {
        self.mongo.open(index)
    }

    fn serve(&self, worker: Rc<SessionWorker>, connection: Connection) -> impl Future<Output = ()> + 'static {
        match &self.sql {
            Some(sql) if connection.listener >= self.mongo_addresses => Either::Right(sql.clone().serve(connection)),
            _ => Either::Left(self.mongo.serve(worker, connection)),
        }
    }

    fn tick(&self, worker: &SessionWorker) {
        self.mongo.tick(worker);
    }

    fn drain(&self) {
        self.mongo.drain();
    }
}

/// What statements of SQL clients change beside the tables that they name; `None` without such
/// clients.
fn definitions(config: &Config) -> anyhow::Result<Option<Arc<DefinitionCache>>> {
    let Store::MariaDb(url) = &config.store else { return Ok(None) };
    if config.sql_listen.is_empty() {
        return Ok(None);
    }
    let definitions = TableDefinitions::start(url).map_err(sentence)?;
    Ok(Some(DefinitionCache::new(Box::new(MariaDbDefinitions(definitions)))))
}

/// Definitions in MariaDB's words, as sessions of SQL clients know them.
struct MariaDbDefinitions(TableDefinitions);

impl sql_session::DefinitionSource for MariaDbDefinitions {
    fn look_up(&self, table: Namespace) -> Pin<Box<dyn Future<Output = Option<TableDefinition>> + Send>> {
        let found = self.0.look_up(table);
        Box::pin(async move {
            let Some(store_mariadb::TableDefinition { kind, engine, text, triggers }) = found.await? else {
                return Some(TableDefinition { kind: TableKind::Absent, triggers: Vec::new() });
            };
            let kind = match kind.as_str() {
                "SEQUENCE" => TableKind::Sequence,
                "VIEW" => TableKind::View(text),
                _ if engine == "MRG_MyISAM" => TableKind::Merge(text),
                _ => TableKind::Base { engine },
            };
            Some(TableDefinition { kind, triggers })
        })
    }
}

/// What serves SQL clients; `None` where there are none.
fn sql_service(
    config: &Config,
    caches: &Caches,
    definitions: Option<Arc<DefinitionCache>>,
) -> anyhow::Result<Option<Arc<SqlService>>> {
    let backend = match &config.store {
        Store::MariaDb(url) => match ServerUrl::parse(url).map_err(sentence)?.address {
            Address::Tcp { host, port } => Some(BackendAddress { host, port }),
            Address::Socket(_) => None,
        },
        Store::Embedded(_) | Store::EmbeddedMariaDb(_) => None,
    };
    let killer = match &config.store {
        Store::MariaDb(url) => Some(Killer::at(url).map_err(sentence)?),
        Store::Embedded(_) | Store::EmbeddedMariaDb(_) => None,
    };
    let kill: sql_session::KillSession = Arc::new(move |session| {
        if let Some(killer) = &killer {
            killer.kill_session(session);
        }
    });
    let observer = (config.cache.mode != CacheMode::Off).then(|| caches.watch());
    Ok(backend.zip(definitions).map(|(backend, definitions)| {
        let privileges = PrivilegeCache::new(config.cache.sql.rights_age_max);
        let (connect_timeout, cache) = (SQL_CONNECT_TIMEOUT, caches.sql.clone());
        let cache_filter = sql_cache_filter(&config.cache);
        let listeners = config.cache.listeners.iter().map(|mode| mode.keeps_rows()).collect();
        let (logins, login_timeout) = (Arc::new(Semaphore::new(SQL_LOGINS_MAX)), SQL_LOGIN_TIMEOUT);
        Arc::new(SqlService {
            backend,
            connect_timeout,
            logins,
            login_timeout,
            kill,
            cache,
            cache_filter,
            listeners,
            observer,
            definitions,
            privileges,
        })
    }))
}

fn sql_cache_filter(cache: &Cache) -> sql_session::CacheFilter {
    // Those that cannot be read have been refused before.
    let patterns = |list: &[String]| list.iter().filter_map(|text| sql_session::pattern(text).ok()).collect();
    sql_session::CacheFilter {
        assume_pure: cache.sql.selects == config::Selects::AssumeCacheable,
        collections: cache::CollectionRules { only: cache.only.clone(), except: cache.except.clone() },
        only_users: cache.sql.only_users.clone(),
        except_users: cache.sql.except_users.clone(),
        only_statements: patterns(&cache.sql.only_statements),
        except_statements: patterns(&cache.sql.except_statements),
    }
}

/// What MongoDB shells show to whoever connects.
fn warn_of_open_doors(config: &Config) {
    for address in config.listen.iter().filter(|address| !address.is_local()) {
        let warning = format!("There is no authentication: whoever reaches {address} may read and write everything");
        tracing::warn!("{warning}");
        commands::log_lines::recent().push_startup_warning(&warning);
    }
}

/// What is kept: replies, rows, both or nothing.
struct Caches {
    replies: Option<Arc<cache::Cache<CachedReply>>>,
    results: Option<Arc<cache::Cache<ResultSet>>>,
    /// What SQL clients are answered.
    sql: Option<Arc<cache::Cache<sql_session::CachedResult>>>,
    own_writes: Option<Arc<OwnWrites>>,
    /// Replies that are shared with other gateways.
    shared: Option<Arc<Shared>>,
}

/// How long Redis keeps a reply, where no age is set.
const SHARED_TTL: Duration = Duration::from_secs(600);

impl Caches {
    /// Errors: the storage that replies are to be shared by cannot be reached.
    fn new(config: &Config) -> anyhow::Result<Caches> {
        let Cache { mode, bytes, soft_ttl_ms, hard_ttl_ms, stale_ms, invalidation, per_worker, .. } = config.cache;
        let settings = |bytes| cache::CacheSettings {
            bytes,
            shards: config::shards(config.threads, per_worker),
            per_thread: per_worker,
            soft_ttl_ms,
            hard_ttl_ms,
            stale_ms,
            invalidate_by_collection: invalidation == config::Invalidation::Collection,
            ignore_concurrent_writes: false,
        };
        let (replies, results) = match mode {
            CacheMode::Off => (None, None),
            CacheMode::Results => (None, Some(bytes)),
            CacheMode::Documents => (Some(bytes), None),
            // What is kept as a reply is not asked for as rows.
            CacheMode::Both => (Some(bytes - bytes / 2), Some(bytes / 2)),
        };
        // SQL clients share the memory for result sets.
        let shares = if config.sql_listen.is_empty() { 1 } else { 2 };
        let sql = results.filter(|_| shares > 1).map(|bytes| bytes / shares);
        let results = results.map(|bytes| bytes / shares);
        let shared = config.cache.storage.as_ref().map(|storage| {
            let ttl = hard_ttl_ms.map_or(SHARED_TTL, |ms| Duration::from_millis(ms as u64));
            let shared = Shared::new(storage.address.clone(), storage.timeout, ttl);
            let config::Storage { origin, address, .. } = storage;
            let unreachable =
                |why| anyhow::anyhow!("{origin}: cannot use Redis at {}:{}: {why}", address.host, address.port);
            shared.check().map(|()| shared).map_err(unreachable)
        });
        Ok(Caches {
            shared: shared.transpose()?,
            replies: replies.map(|bytes| cache::Cache::new(settings(bytes))),
            results: results.map(|bytes| cache::Cache::new(settings(bytes))),
            sql: sql.map(|bytes| cache::Cache::new(settings(bytes))),
            own_writes: (mode != CacheMode::Off).then(Arc::default),
        })
    }

    /// All who are told of changes.
    fn watch(&self) -> Arc<dyn ChangeObserver> {
        let replies =
            self.replies.clone().map(|cache| Arc::new(cache::CacheObserver(cache)) as Arc<dyn ChangeObserver>);
        let results =
            self.results.clone().map(|cache| Arc::new(cache::CacheObserver(cache)) as Arc<dyn ChangeObserver>);
        let sql = self.sql.clone().map(|cache| Arc::new(cache::CacheObserver(cache)) as Arc<dyn ChangeObserver>);
        let shared = self
            .shared
            .as_ref()
            .map(|shared| Arc::new(shared_cache::SharedCacheObserver(shared.view.clone())) as Arc<_>);
        Arc::new(store::change_observer::ChangeObservers(
            replies.into_iter().chain(results).chain(sql).chain(shared).collect(),
        ))
    }

    /// Notices what others write in MariaDB, as long as what is given lives. Until that is so, nothing is kept.
    fn follow(
        &self,
        config: &Config,
        definitions: Option<&Arc<DefinitionCache>>,
    ) -> anyhow::Result<Option<ForeignWrites>> {
        let (Store::MariaDb(url), Some(own_writes)) = (&config.store, &self.own_writes) else { return Ok(None) };
        let strict = match config.cache.foreign_writes {
            config::ForeignWrites::None => return Ok(None),
            config::ForeignWrites::Follow => false,
            config::ForeignWrites::Strict => true,
        };
        let (replies, results, sql) = (self.replies.clone(), self.results.clone(), self.sql.clone());
        let shared = self.shared.clone();
        let set_follower_lost = move |blind: bool| {
            replies.iter().for_each(|cache| cache.set_follower_lost(blind));
            results.iter().for_each(|cache| cache.set_follower_lost(blind));
            sql.iter().for_each(|cache| cache.set_follower_lost(blind));
            shared.iter().for_each(|shared| shared.view.set_follower_lost(blind));
        };
        set_follower_lost(true);
        let tell: store_mariadb::Tell = Box::new(move |noticed| {
            match noticed {
                Ok(()) => tracing::info!("writes of others in MariaDB are followed: answers are kept"),
                Err(why) => {
                    tracing::warn!("writes of others in MariaDB cannot be followed, and no answers are kept: {why}")
                }
            }
            set_follower_lost(noticed.is_err());
        });
        let forgetting =
            definitions.map(|known| Arc::new(DefinitionObserver(known.clone())) as Arc<dyn ChangeObserver>);
        let watch =
            Arc::new(store::change_observer::ChangeObservers(forgetting.into_iter().chain([self.watch()]).collect()));
        let foreign_writes = ForeignWrites::follow(url, strict, watch, own_writes.clone(), tell);
        let foreign_writes = foreign_writes.map_err(|error| {
            let message = error.message();
            anyhow::anyhow!("{message}; or, if nobody else writes there, say --foreign-writes none (foreign-writes = \"none\" in [cache])")
        });
        let foreign_writes = foreign_writes?;
        if let Some(shared) = &self.shared {
            shared.view.set_behind(foreign_writes.behind());
        }
        Ok(Some(foreign_writes))
    }

    /// Has the store tell them of what changes.
    fn begin(self, config: &Config, engine: &dyn Engine) -> commands::answers::Caches {
        if self.own_writes.is_some() {
            engine.observe_changes(self.watch());
        }
        let Cache { only, except, commands, listeners, .. } = config.cache.clone();
        let uses = |mode: CacheMode| CachePolicy { replies: mode.keeps_replies(), rows: mode.keeps_rows() };
        let collections = cache::CollectionRules { only, except };
        commands::answers::Caches {
            listeners: listeners.into_iter().map(uses).collect(),
            answers: self.replies.map(|cache| Answers {
                cache,
                rules: Rules { collections, commands },
                shared: self.shared,
            }),
            results: self.results.map(|cache| Box::new(move || cache.statistics()) as Box<_>),
            sql: self.sql.map(|cache| Box::new(move || cache.statistics()) as Box<_>),
        }
    }
}

fn settings(config: &Config) -> Settings {
    Settings {
        topology: config.topology.clone(),
        cursor_timeout: config.cursor_timeout,
        cursor_limits: config.limits.cursors,
        connections_max: config.limits.connections,
        slow_ms: config.slow_ms,
        slow_log: config.slow_log,
        argv: presentable_arguments(),
        parsed: parsed(config),
        compressors: config.compressors.iter().map(|compressor| compressor.name().to_owned()).collect(),
        workers: config.threads,
        disk: Some(Arc::new(TemporaryFiles::beside(&config.store))),
    }
}

/// The configuration in the shape in which `getCmdLineOpts` shows it.
fn parsed(config: &Config) -> DocBuf {
    let mut net = DocBuf::new();
    let tcp = config.listen.iter().filter_map(|address| match address {
        ListenAddress::Tcp(address) => Some(*address),
        ListenAddress::Unix(_) => None,
    });
    let hosts: Vec<String> = tcp.clone().map(|address| address.ip().to_string()).collect();
    net.append("bindIp", hosts.join(",").as_str());
    if let Some(first) = tcp.clone().next() {
        net.append("port", i32::from(first.port()));
    }
    let mut parsed = doc! { "net": &net };
    if let Store::Embedded(path) | Store::EmbeddedMariaDb(path) = &config.store {
        parsed.append("storage", &doc! { "dbPath": path.to_string_lossy().as_ref() });
    }
    if let Topology::ReplicaSet { name, .. } = &config.topology {
        parsed.append("replication", &doc! { "replSet": name.as_str() });
    }
    parsed
}

/// Tells whoever started the program what there is now. A closed standard output is no reason to stop.
fn announce(config: &Config, engine: &str) {
    let mut out = std::io::stdout().lock();
    let _ = write!(out, "Selkie {} on {engine}\n{}{}", env!("CARGO_PKG_VERSION"), Summary(config), TryIt(config));
    let _ = out.flush();
}

/// Where it listens and where data lies, a line each.
pub struct Summary<'c>(pub &'c Config);

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for address in &self.0.listen {
            writeln!(f, "  listening on  {address}")?;
        }
        for address in &self.0.sql_listen {
            writeln!(f, "  SQL clients   {address}")?;
        }
        match &self.0.store {
            Store::Embedded(path) | Store::EmbeddedMariaDb(path) => {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                writeln!(f, "  data in       {}", path.display())
            }
            Store::MariaDb(url) => {
                writeln!(f, "  data in       MariaDB at {}", url.rsplit('@').next().unwrap_or_default())
            }
        }
    }
}

struct TryIt<'c>(&'c Config);

impl fmt::Display for TryIt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let uri = match self.0.listen.first() {
            Some(ListenAddress::Tcp(address)) if address.ip().is_unspecified() => {
                format!("mongodb://127.0.0.1:{}", address.port())
            }
            Some(ListenAddress::Tcp(address)) => format!("mongodb://{address}"),
            Some(ListenAddress::Unix(path)) => {
                format!("mongodb://{}", path.to_string_lossy().replace('%', "%25").replace('/', "%2F"))
            }
            None => return Ok(()),
        };
        writeln!(f, "  try           mongosh {uri} --eval 'db.cars.insertOne({{Make: \"Toyota\"}})'")
    }
}

/// Every connection is a file descriptor, and the usual limit of 1,024 is meant for other programs.
fn raise_open_files_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }) {
        tracing::warn!(%error, "the limit of open files stays at {:?}", limit.current);
    }
}

/// A name that no other gateway has and that stays when this one is started again: nobody else
/// listens to these addresses of the host.
fn default_gateway_name(config: &Config) -> String {
    let host = rustix::system::uname();
    let addresses = config.listen.iter().map(|address| format!(" {address}")).collect::<String>();
    format!("{}{addresses}", host.nodename().to_string_lossy())
}

fn open_store(config: &Config, caches: &Caches) -> anyhow::Result<Arc<dyn Engine>> {
    let engine = match &config.store {
        Store::Embedded(path) => {
            let accept_lost_writes = config.accept_lost_writes;
            store_sqlite::open(path, store_sqlite::Options { accept_lost_writes, ..Default::default() })
        }
        Store::MariaDb(url) => {
            // A trigger of a collection's table may write to tables that SQL clients read: only the log tells.
            let own_writes = caches.own_writes.clone().filter(|_| caches.sql.is_none());
            let results = caches.results.clone();
            let has_sql_clients = !config.sql_listen.is_empty();
            let options = store_mariadb::Options {
                pool: PoolOptions {
                    connections_max: config.mariadb.connections,
                    lease_timeout: config.mariadb.wait,
                    own_writes,
                    ..Default::default()
                },
                gateway: Some(config.mariadb.gateway_name.clone().unwrap_or_else(|| default_gateway_name(config))),
                results,
                has_sql_clients,
            };
            MariaDbEngine::connect(url, options)
        }
        #[cfg(feature = "embedded-mariadb")]
        Store::EmbeddedMariaDb(path) => {
            let results = caches.results.clone();
            MariaDbEngine::embedded(path, store_mariadb::Options { results, ..Default::default() })
        }
        #[cfg(not(feature = "embedded-mariadb"))]
        Store::EmbeddedMariaDb(_) => return Err(anyhow::Error::msg("this Selkie has no MariaDB built in")),
    };
    engine.map_err(sentence)
}

/// A store's refusal, without the code that a client would get.
fn sentence(error: error::Error) -> anyhow::Error {
    anyhow::Error::msg(error.message().to_owned())
}
