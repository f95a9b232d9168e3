//! A session's state of its service's filters.

use super::com;
use super::mirror::MirrorLink;
use ahash::{AHashMap, AHashSet};
use mariadb_wire::client_login::ClientLogin;
use service::ServerSettings;
use service::targets::State;
use sql_classify::{Lexis, SessionSettings};
use sql_filter::{Action, Call, Client, Pipeline, ResultEditor, Statement};
use std::cell::Cell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// The id that stands for the statement prepared last.
const LAST_PREPARED: u32 = u32::MAX;

/// How long the views of a server are taken to be the same.
const VIEWS_RECENT: Duration = Duration::from_secs(5);

/// A session's state of its service's filters.
pub struct Filtering {
    states: watch::Receiver<Arc<State>>,
    service: String,
    pub pipeline: Pipeline,
    pub client: Client,
    /// The prepared statements, by the client's ids.
    pub prepared: AHashMap<u32, Rc<Statement>>,
    pub last_prepared: u32,
    /// The editors of open cursors, by the client's ids of their statements.
    pub cursors: AHashMap<u32, Vec<Box<dyn ResultEditor>>>,
    /// The session's settings, until a statement may change them.
    pub settings: Option<Rc<SessionSettings>>,
    pub running: Option<Running>,
    /// The copies of the session's statements for a second server.
    pub mirror: Option<MirrorLink>,
    /// The session's statements are not mirrored: the gateway cannot log in there.
    pub has_no_mirror: bool,
    /// When the server was asked for views.
    pub views_read: Option<Instant>,
}

/// A command that is being executed.
pub struct Running {
    /// The schema that COM_INIT_DB chooses.
    pub schema: Option<String>,
    pub started: Instant,
    /// `None`: a command without a statement.
    pub call: Option<(Rc<Statement>, Action)>,
    /// The client's id of the prepared statement.
    pub id: u32,
    /// The command for the second server, and the digest of the rows.
    pub copy: Option<(Vec<u8>, Rc<Cell<u64>>)>,
    /// So many filters have seen the statement.
    pub seen: usize,
}

impl Filtering {
    /// `login`: the client's response to the handshake.
    pub fn new(mut states: watch::Receiver<Arc<State>>, login: &[u8], peer: Option<IpAddr>) -> Filtering {
        let (service, pipeline) = {
            let state = states.borrow_and_update();
            (state.settings.name.clone(), state.pipeline.clone())
        };
        let schema = ClientLogin::decode(login.get(4..).unwrap_or_default()).map(|login| login.database);
        let client = Client {
            user: String::new(),
            host: peer.map_or_else(|| "localhost".to_owned(), |address| address.to_string()),
            schema: String::from_utf8_lossy(schema.unwrap_or_default()).into_owned(),
            views: None,
        };
        let (prepared, last_prepared, cursors) = Default::default();
        Filtering {
            states,
            service,
            pipeline,
            client,
            prepared,
            last_prepared,
            cursors,
            settings: None,
            running: None,
            views_read: None,
            mirror: None,
            has_no_mirror: false,
        }
    }

    /// Returns whether the service has filters now.
    pub fn has_filters(&mut self) -> bool {
        // An error means that the service is gone, and its last filters apply.
        if self.states.has_changed().unwrap_or_default() {
            self.pipeline = self.states.borrow_and_update().pipeline.clone();
            // Their editors are those of the filters before.
            self.cursors.clear();
        }
        self.is_active()
    }

    /// As [`Filtering::has_filters`], for the command that is being executed.
    pub fn is_active(&self) -> bool {
        !self.pipeline.is_empty()
    }

    pub fn call<'c>(&'c self, statement: &'c Statement, action: Action) -> Call<'c> {
        let Filtering { client, service, pipeline, .. } = self;
        Call { statement, action, client, service, counters: &pipeline.counters }
    }

    /// Returns the server that also executes the statements.
    pub fn mirror_server(&self) -> Option<Arc<ServerSettings>> {
        self.pipeline.filters.iter().find_map(|filter| filter.mirror())?;
        Some(self.states.borrow().mirror.as_ref()?.settings())
    }

    /// Returns the id of the statement that an id in a command stands for.
    pub fn statement_id(&self, number: u32) -> u32 {
        if number == LAST_PREPARED { self.last_prepared } else { number }
    }

    /// Returns the editors of the rows that a command's reply will have.
    pub fn editors(&mut self, running: &Running, command: u8) -> Vec<Box<dyn ResultEditor>> {
        let kept = if command == com::STMT_FETCH { self.cursors.remove(&running.id) } else { None };
        let editors = |statement: &Statement, action| -> Vec<Box<dyn ResultEditor>> {
            let call = self.call(statement, action);
            self.pipeline.filters.iter().filter_map(|filter| filter.results(&call)).collect()
        };
        match &running.call {
            // A cursor that was opened before the filters has none.
            None if command == com::STMT_FETCH => {
                kept.unwrap_or_else(|| editors(&Statement::unknown(Lexis::default()), Action::Execute))
            }
            None | Some((_, Action::Prepare)) => Vec::new(),
            Some((statement, action)) => editors(statement, *action),
        }
    }

    /// Returns whether the views of the server are known, and were asked for a short time ago.
    pub fn has_recent_views(&self) -> bool {
        self.client.views.is_some() && self.views_read.is_some_and(|read| read.elapsed() < VIEWS_RECENT)
    }

    pub fn set_views(&mut self, views: Option<AHashSet<String>>) {
        self.client.views = views.map(Arc::new);
        self.views_read = Some(Instant::now());
    }

    /// Forgets what COM_RESET_CONNECTION and COM_CHANGE_USER reset.
    pub fn reset(&mut self) {
        self.prepared.clear();
        self.cursors.clear();
        self.client.views = None;
        self.settings = None;
    }
}
