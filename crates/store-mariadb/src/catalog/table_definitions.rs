//! Looks up definitions of tables for other parts of the process, with the gateway's own
//! privileges.

use ::store::Namespace;
use error::Error;
use mariadb_client::{Failure, Result, ServerUrl, TextConnection, quote};
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
    pub triggers: Vec<String>,
}

/// A thread with a connection that looks up definitions.
pub struct TableDefinitions {
    questions: mpsc::UnboundedSender<Request>,
}

struct Request {
    table: Namespace,
    /// Receives the definition; `None` if there is no such table.
    answer: oneshot::Sender<Result<Option<TableDefinition>>>,
}

impl TableDefinitions {
    /// Starts the thread, which connects with the first request.
    pub fn start(url: &str) -> error::Result<TableDefinitions> {
        let target = ServerUrl::parse(url)?;
        let (questions, asked) = mpsc::unbounded_channel();
        std::thread::Builder::new()
            .name("definitions".into())
            .spawn(move || answer_all(&target, asked))
            .map_err(|error| Error::internal(format!("cannot start a thread: {error}")))?;
        Ok(TableDefinitions { questions })
    }

    /// Returns a table's definition, `Some(None)` if there is no such table, `None` if the lookup
    /// failed.
    pub fn look_up(&self, table: Namespace) -> impl Future<Output = Option<Option<TableDefinition>>> + Send + 'static {
        let (answer, answered) = oneshot::channel();
        // Without the thread no answer arrives.
        let _ = self.questions.send(Request { table, answer });
        async move { answered.await.ok()?.ok() }
    }
}

fn answer_all(target: &ServerUrl, mut asked: mpsc::UnboundedReceiver<Request>) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    runtime.block_on(async {
        let mut connection: Option<Connection> = None;
        while let Some(Request { table, answer }) = asked.recv().await {
            let mut outcome = look_up(target, &mut connection, &table).await;
            if outcome.is_err() {
                // The connection may have been lost since it was last used.
                connection = None;
                outcome = look_up(target, &mut connection, &table).await;
            }
            if let Err(failure) = &outcome {
                tracing::debug!(%failure, "a table's definition cannot be looked up");
                connection = None;
            }
            let _ = answer.send(outcome);
        }
    });
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

const TRIGGERS: &str = "SELECT TRIGGER_NAME, ACTION_STATEMENT FROM information_schema.TRIGGERS \
     WHERE EVENT_OBJECT_SCHEMA = ? AND EVENT_OBJECT_TABLE = ?";

const VIEW: &str = "SELECT VIEW_DEFINITION FROM information_schema.VIEWS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?";

/// The connection, and the schemas whose definitions are visible, with when that was checked.
struct Connection {
    helper: TextConnection,
    visible: HashMap<Box<str>, Instant>,
}

/// The privileges are checked again after this time.
const PRIVILEGES_FOR: Duration = Duration::from_secs(5);

async fn look_up(
    target: &ServerUrl,
    connection: &mut Option<Connection>,
    table: &Namespace,
) -> Result<Option<TableDefinition>> {
    let Connection { helper, visible } = match connection {
        Some(connection) => connection,
        None => {
            let helper = TextConnection::connect(target, TIMEOUT).await?;
            connection.insert(Connection { helper, visible: HashMap::new() })
        }
    };
    let schema = || Param::Text(table.database.as_bytes());
    let names = || [schema(), Param::Text(table.collection.as_bytes())];
    if visible.get(&table.database).is_none_or(|since| since.elapsed() > PRIVILEGES_FOR) {
        let privileges = helper.look_up(&PRIVILEGES.into(), &[schema()], 1).await?;
        if privileges.first().and_then(|row| row.first()?.as_deref()) != Some("3") {
            static LOGGED: std::sync::Once = std::sync::Once::new();
            LOGGED.call_once(|| {
                tracing::warn!(
                    schema = &*table.database,
                    "few results of SQL clients are cached: GRANT SELECT, TRIGGER, SHOW VIEW ON *.* to Selkie's user, so that it \
                     sees what triggers and views change"
                );
            });
            return Err(Failure::Lost("the gateway has no privilege to see definitions".into()));
        }
        visible.insert(table.database.clone(), Instant::now());
    }
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
    let triggers = helper.look_up(&TRIGGERS.into(), &names(), 2).await?;
    let triggers = triggers
        .into_iter()
        .filter(|row| !row.first().is_some_and(|name| name.as_deref().is_some_and(|name| name.starts_with('~'))))
        .filter_map(|row| row.into_iter().nth(1))
        // A hidden body may do anything.
        .map(|body| body.unwrap_or_else(|| "CALL unseen()".into()))
        .collect();
    Ok(Some(TableDefinition { kind, engine, text: text.unwrap_or_default(), triggers }))
}
