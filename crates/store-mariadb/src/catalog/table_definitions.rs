//! Looks up definitions of tables for other parts of the process, with the gateway's own
//! privileges.

use ::store::Namespace;
use error::Error;
use mariadb_client::{Failure, PrimarySource, Result, ServerUrl, TextConnection, quote};
use mariadb_wire::Param;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A table's definition, in the server's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDefinition {
    /// `BASE TABLE`, `VIEW`, `SEQUENCE` and so on.
    pub kind: String,
    pub engine: String,
    /// The SELECT of a view, or the CREATE TABLE of a MERGE table.
    pub text: String,
    /// Bodies of triggers, except the gateway's own.
    pub triggers: Vec<Body>,
}

/// The body of a trigger or a stored routine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// `None`: it is hidden from the gateway.
    pub text: Option<String>,
    pub sql_mode: String,
}

/// A stored routine: its schema and name, and whether it is a procedure.
#[derive(Clone, Debug)]
pub struct Routine {
    pub name: Namespace,
    pub is_procedure: bool,
}

/// A thread with a connection that looks up definitions.
pub struct TableDefinitions {
    questions: mpsc::UnboundedSender<Request>,
}

enum Request {
    /// With the receiver of the definition; `None` if there is no such table.
    Table(Namespace, oneshot::Sender<Result<Option<TableDefinition>>>),
    /// With the receiver of the body; `None` if there is no such routine.
    Routine(Routine, oneshot::Sender<Result<Option<Body>>>),
}

impl TableDefinitions {
    /// Starts the thread, which connects with the first request.
    pub fn start(url: &str) -> error::Result<TableDefinitions> {
        let target = ServerUrl::parse(url)?;
        TableDefinitions::start_at(move || Some(target.clone()))
    }

    /// As [`start`](Self::start), for the definitions of the present primary. While there is none,
    /// lookups fail.
    pub fn follow_primary(primary: PrimarySource) -> error::Result<TableDefinitions> {
        TableDefinitions::start_at(move || primary.server.borrow().clone())
    }

    fn start_at(target: impl Fn() -> Option<ServerUrl> + Send + 'static) -> error::Result<TableDefinitions> {
        let (questions, asked) = mpsc::unbounded_channel();
        std::thread::Builder::new()
            .name("definitions".into())
            .spawn(move || answer_all(target, asked))
            .map_err(|error| Error::internal(format!("cannot start a thread: {error}")))?;
        Ok(TableDefinitions { questions })
    }

    /// Returns a table's definition, `Some(None)` if there is no such table, `None` if the lookup
    /// failed.
    pub fn look_up(&self, table: Namespace) -> impl Future<Output = Option<Option<TableDefinition>>> + Send + 'static {
        let (answer, answered) = oneshot::channel();
        // Without the thread no answer arrives.
        let _ = self.questions.send(Request::Table(table, answer));
        async move { answered.await.ok()?.ok() }
    }

    /// As [`look_up`](Self::look_up), for the body of a stored routine.
    pub fn look_up_routine(&self, routine: Routine) -> impl Future<Output = Option<Option<Body>>> + Send + 'static {
        let (answer, answered) = oneshot::channel();
        let _ = self.questions.send(Request::Routine(routine, answer));
        async move { answered.await.ok()?.ok() }
    }
}

fn answer_all(target: impl Fn() -> Option<ServerUrl>, mut asked: mpsc::UnboundedReceiver<Request>) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    runtime.block_on(async {
        let mut connection: Option<Connection> = None;
        let mut last = None;
        while let Some(request) = asked.recv().await {
            let Some(target) = target() else { continue };
            if last.as_ref() != Some(&target) {
                connection = None;
                last = Some(target.clone());
            }
            let target = &target;
            match request {
                Request::Table(table, answer) => {
                    let look_up = async |connection: &mut _| look_up(target, connection, &table).await;
                    let _ = answer.send(try_twice(&mut connection, look_up).await);
                }
                Request::Routine(routine, answer) => {
                    let look_up = async |connection: &mut _| look_up_routine(target, connection, &routine).await;
                    let _ = answer.send(try_twice(&mut connection, look_up).await);
                }
            }
        }
    });
}

/// Looks a definition up, again if the connection may have been lost since it was last used.
async fn try_twice<T>(
    connection: &mut Option<Connection>,
    look_up: impl AsyncFn(&mut Option<Connection>) -> Result<T>,
) -> Result<T> {
    let mut outcome = look_up(connection).await;
    if outcome.is_err() {
        *connection = None;
        outcome = look_up(connection).await;
    }
    if let Err(failure) = &outcome {
        tracing::debug!(%failure, "a definition cannot be looked up");
        *connection = None;
    }
    outcome
}

/// Counts the required privileges that the user holds. Without one of them the server hides
/// triggers, views or tables.
const PRIVILEGES: &str = "SELECT CAST(COUNT(DISTINCT PRIVILEGE_TYPE) AS CHAR) FROM (\
     SELECT PRIVILEGE_TYPE, GRANTEE FROM information_schema.USER_PRIVILEGES \
     UNION ALL SELECT PRIVILEGE_TYPE, GRANTEE FROM information_schema.SCHEMA_PRIVILEGES WHERE ? LIKE TABLE_SCHEMA) AS rights \
     WHERE PRIVILEGE_TYPE IN ('SELECT', 'TRIGGER', 'SHOW VIEW') \
     AND GRANTEE = (SELECT CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), ''''))";

const TABLE: &str =
    "SELECT TABLE_TYPE, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?";

const TRIGGERS: &str = "SELECT TRIGGER_NAME, ACTION_STATEMENT, SQL_MODE FROM information_schema.TRIGGERS \
     WHERE EVENT_OBJECT_SCHEMA = ? AND EVENT_OBJECT_TABLE = ?";

const VIEW: &str = "SELECT VIEW_DEFINITION FROM information_schema.VIEWS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?";

const ROUTINE: &str = "SELECT ROUTINE_DEFINITION, SQL_MODE FROM information_schema.ROUTINES \
     WHERE ROUTINE_SCHEMA = ? AND ROUTINE_NAME = ? AND ROUTINE_TYPE = ?";

/// The connection, and the schemas whose definitions are visible, with when that was checked.
struct Connection {
    helper: TextConnection,
    visible: HashMap<Box<str>, Instant>,
}

/// The privileges are checked again after this time.
const PRIVILEGES_FOR: Duration = Duration::from_secs(5);

impl Connection {
    /// Returns the connection, with which the definitions of a schema are visible.
    async fn to_see<'c>(
        connection: &'c mut Option<Connection>,
        target: &ServerUrl,
        database: &str,
    ) -> Result<&'c mut TextConnection> {
        let Connection { helper, visible } = match connection {
            Some(connection) => connection,
            None => {
                let helper = TextConnection::connect(target, TIMEOUT).await?;
                connection.insert(Connection { helper, visible: HashMap::new() })
            }
        };
        if visible.get(database).is_none_or(|since| since.elapsed() > PRIVILEGES_FOR) {
            let privileges = helper.look_up(&PRIVILEGES.into(), &[Param::Text(database.as_bytes())], 1).await?;
            if privileges.first().and_then(|row| row.first()?.as_deref()) != Some("3") {
                static LOGGED: std::sync::Once = std::sync::Once::new();
                LOGGED.call_once(|| {
                    tracing::warn!(
                        schema = database,
                        "few results of SQL clients are cached: GRANT SELECT, TRIGGER, SHOW VIEW ON *.* to Selkie's user, so \
                         that it sees what triggers, views and routines change"
                    );
                });
                return Err(Failure::Lost("the gateway has no privilege to see definitions".into()));
            }
            visible.insert(database.into(), Instant::now());
        }
        Ok(helper)
    }
}

async fn look_up(
    target: &ServerUrl,
    connection: &mut Option<Connection>,
    table: &Namespace,
) -> Result<Option<TableDefinition>> {
    let helper = Connection::to_see(connection, target, &table.database).await?;
    let names = || [Param::Text(table.database.as_bytes()), Param::Text(table.collection.as_bytes())];
    let found = helper.look_up(&TABLE.into(), &names(), 2).await?;
    let Some([kind, engine]) = found.first().map(Vec::as_slice) else { return Ok(None) };
    let (kind, engine) = (kind.clone().unwrap_or_default(), engine.clone().unwrap_or_default());
    let text = match kind.as_str() {
        "VIEW" => helper.look_up(&VIEW.into(), &names(), 1).await?.into_iter().flatten().next().flatten(),
        _ if engine == "MRG_MyISAM" => {
            let question = format!("SHOW CREATE TABLE {}.{}", quote(&table.database), quote(&table.collection));
            helper.rows(&question).await?.into_iter().flatten().nth(1).flatten()
        }
        _ => None,
    };
    let triggers = helper.look_up(&TRIGGERS.into(), &names(), 3).await?;
    let is_own = |row: &[Option<String>]| {
        row.first().is_some_and(|name| name.as_deref().is_some_and(|name| name.starts_with('~')))
    };
    let triggers = triggers
        .iter()
        .filter(|row| !is_own(row))
        .map(|row| Body::from_columns(row.get(1..).unwrap_or_default()))
        .collect();
    Ok(Some(TableDefinition { kind, engine, text: text.unwrap_or_default(), triggers }))
}

async fn look_up_routine(
    target: &ServerUrl,
    connection: &mut Option<Connection>,
    routine: &Routine,
) -> Result<Option<Body>> {
    let Namespace { database, collection } = &routine.name;
    let helper = Connection::to_see(connection, target, database).await?;
    let kind = if routine.is_procedure { "PROCEDURE" } else { "FUNCTION" };
    let names = [database.as_bytes(), collection.as_bytes(), kind.as_bytes()].map(Param::Text);
    let found = helper.look_up(&ROUTINE.into(), &names, 2).await?;
    Ok(match found.as_slice() {
        [] => None,
        [one] => Some(Body::from_columns(one)),
        // Names that differ by accents alone.
        _ => Some(Body { text: None, sql_mode: String::new() }),
    })
}

impl Body {
    /// Reads the columns with the text and the mode.
    fn from_columns(columns: &[Option<String>]) -> Body {
        let column = |at: usize| columns.get(at).cloned().flatten();
        Body { text: column(0), sql_mode: column(1).unwrap_or_default() }
    }
}
