//! The facts about each command, in one table. Dispatch, `listCommands`, the statistics and the reference page come from it.

use crate::command;
use crate::dispatch::{Call, Disposition};
use document::DocWriter;
use error::Result;
use futures_util::future::LocalBoxFuture;
use hashbrown::HashMap;
use std::sync::LazyLock;

/// How a command is carried out. A handler appends its fields to the reply; `ok: 1` is added behind them.
pub enum Handler {
    /// Answers at once.
    Immediate(fn(&mut Call<'_>, &mut DocWriter<'_>) -> Result<()>),
    /// May wait, for the store or for something to happen.
    Waiting(WaitingHandler),
}

pub type WaitingHandler =
    for<'a, 'b> fn(&'a mut Call<'b>, &'a mut DocWriter<'b>) -> LocalBoxFuture<'a, Result<Disposition>>;

/// What a command touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Neither documents nor the catalog.
    Nothing,
    Read,
    Write,
    /// The catalog or the server itself.
    Admin,
}

/// What dispatch and the documentation need to know about a command.
pub struct Spec {
    pub name: &'static str,
    /// Other spellings that are answered, by old clients mostly.
    pub aliases: &'static [&'static str],
    pub handler: Handler,
    pub access: Access,
    /// Refused before login, once there are users.
    pub needs_authentication: bool,
    /// Only on the database `admin`.
    pub admin_database_only: bool,
    /// Whether a `writeConcern` beside it has a meaning.
    pub takes_write_concern: bool,
    /// Its reply may come from the document cache.
    pub cacheable: bool,
    pub in_transaction: bool,
    /// A driver may send it again with the same `txnNumber`.
    pub retryable: bool,
    pub help: &'static str,
}

const NOTHING: Spec = Spec {
    name: "",
    aliases: &[],
    handler: Handler::Immediate(command::ping::ping),
    access: Access::Nothing,
    needs_authentication: true,
    admin_database_only: false,
    takes_write_concern: false,
    cacheable: false,
    in_transaction: false,
    retryable: false,
    help: "",
};
#[allow(dead_code)]
const READ: Spec = Spec { access: Access::Read, cacheable: true, in_transaction: true, ..NOTHING };
const WRITE: Spec =
    Spec { access: Access::Write, takes_write_concern: true, in_transaction: true, retryable: true, ..NOTHING };
const CATALOG_READ: Spec = Spec { access: Access::Read, ..NOTHING };
const CATALOG_WRITE: Spec = Spec { access: Access::Admin, takes_write_concern: true, ..NOTHING };
const SERVER: Spec = Spec { access: Access::Admin, ..NOTHING };
const HANDSHAKE: Spec = Spec { needs_authentication: false, ..NOTHING };

macro_rules! waiting {
    ($handler:path) => {
        Handler::Waiting(|call, reply| Box::pin($handler(call, reply)))
    };
}

macro_rules! immediate {
    ($handler:path) => {
        Handler::Immediate($handler)
    };
}

/// The commands, by name.
pub static COMMANDS: &[Spec] = &[
    Spec {
        name: "buildInfo",
        aliases: &["buildinfo"],
        handler: immediate!(command::build_info::build_info),
        help: "Version and build of the server.",
        ..HANDSHAKE
    },
    Spec {
        name: "connectionStatus",
        handler: immediate!(command::connection_status::connection_status),
        help: "Who is logged in on this connection.",
        ..HANDSHAKE
    },
    Spec {
        name: "getCmdLineOpts",
        handler: immediate!(command::get_cmd_line_opts::get_cmd_line_opts),
        admin_database_only: true,
        help: "The command line and the configuration in effect.",
        ..SERVER
    },
    Spec {
        name: "getLog",
        handler: immediate!(command::get_log::get_log),
        admin_database_only: true,
        help: "The most recent lines of the log.",
        ..SERVER
    },
    Spec {
        name: "getParameter",
        handler: immediate!(command::parameters::get_parameter),
        admin_database_only: true,
        help: "Values of server parameters.",
        ..SERVER
    },
    Spec {
        name: "hello",
        handler: waiting!(command::hello::hello),
        help: "Handshake: what this server is and can do.",
        ..HANDSHAKE
    },
    Spec {
        name: "hostInfo",
        handler: immediate!(command::host_info::host_info),
        help: "The machine and operating system.",
        ..SERVER
    },
    Spec {
        name: "isMaster",
        aliases: &["ismaster"],
        handler: waiting!(command::hello::hello),
        help: "Handshake, as old clients spell it.",
        ..HANDSHAKE
    },
    Spec {
        name: "listCommands",
        handler: immediate!(command::list_commands::list_commands),
        help: "The commands of this table.",
        ..HANDSHAKE
    },
    Spec {
        name: "logout",
        handler: immediate!(command::connection_status::logout),
        help: "Ends the login of this connection.",
        ..HANDSHAKE
    },
    Spec { name: "ping", handler: immediate!(command::ping::ping), help: "Whether the server answers.", ..HANDSHAKE },
    Spec {
        name: "setParameter",
        handler: immediate!(command::parameters::set_parameter),
        admin_database_only: true,
        help: "Changes a server parameter.",
        ..SERVER
    },
    Spec {
        name: "whatsmyuri",
        handler: immediate!(command::connection_status::whats_my_uri),
        help: "The client's address as the server sees it.",
        ..HANDSHAKE
    },
];

static BY_NAME: LazyLock<HashMap<&'static [u8], usize, ahash::RandomState>> = LazyLock::new(|| {
    COMMANDS
        .iter()
        .enumerate()
        .flat_map(|(index, spec)| {
            std::iter::once(&spec.name).chain(spec.aliases).map(move |name| (name.as_bytes(), index))
        })
        .collect()
});

/// The command's place in [`COMMANDS`].
pub fn find(name: &[u8]) -> Option<usize> {
    BY_NAME.get(name).copied()
}
