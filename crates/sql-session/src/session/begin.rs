//! The beginning of a session: its connection to a server, and the client's login.

use super::filter_state::Filtering;
use super::split::IdleConnections;
use super::state::Session;
use super::text_prepared::TextPrepared;
use crate::backend_connection::{self, BackendConnection};
use crate::context::SqlContext;
use crate::in_flight_writes::InFlightWrites;
use crate::login::{self, AuditedClient};
use crate::packet_stream::PacketStream;
use crate::privileges::PrivilegeHistory;
use crate::reply_tracker::NO_BACKSLASH_ESCAPES;
use crate::running_command::RunningCommand;
use ahash::AHashMap;
use selkie_runtime::Stream;
use selkie_runtime::connection::Life;
use server::sql_statistics::SqlStatistics;
use service::{Assignment, ConnectError};
use sql_classify::ClassCache;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use tokio::time::timeout;

/// What a session shares with others: the state of its service, the classes of statements of its
/// worker, and the connections that no session uses.
pub type Shared = (Arc<SqlContext>, Rc<RefCell<ClassCache>>, Rc<IdleConnections>);

/// A session that has begun.
pub struct Begun {
    pub session: Session,
    pub running: RunningCommand,
    pub assignment: Assignment,
}

/// Connects a client to a server, and lets it log in. Returns `None` if it is refused.
pub async fn begin(
    (context, classes, idle_connections): Shared,
    (stream, described): (Stream, server::audit::Connection),
    life: &Life,
) -> io::Result<Option<Box<Begun>>> {
    life.set_busy(true);
    let listener_uses_cache = context.uses_cache(described.listener);
    let running = RunningCommand::new(&stream);
    let peer = described.client.map(|peer| peer.ip());
    let mut audited = AuditedClient::new(context.server.clone(), described);
    let mut client = PacketStream::new(stream, peer);
    idle_connections.make_room();
    let connected = backend_connection::connect(&context).await;
    life.set_busy(false);
    let (mut lease, logging_in, mut server): BackendConnection = match connected {
        Ok(connected) => connected,
        Err(error) => {
            refuse(&mut client, &error, &context.server.sql_statistics).await?;
            return Ok(None);
        }
    };
    let login = login::log_in(&mut client, &mut server, &mut audited, (&context, &mut lease));
    let Ok(login) = timeout(context.timeouts.login, login).await else {
        context.server.sql_statistics.logins_timed_out.increment();
        return Ok(None);
    };
    let Some(login) = login? else { return Ok(None) };
    client.stalled_after = Some(context.timeouts.stalled);
    drop(logging_in);
    let connection = running.connection();
    connection.set(login.session, lease.killer());
    let assignment = lease.assignment.clone();
    let status = login.status;
    let filtering = Filtering::new(context.service.states(), &login.response, client.peer);
    let mut session = Session {
        context,
        classes,
        idle_connections,
        client,
        server,
        login,
        lease,
        audited,
        status,
        backslash_escapes: status.is_some_and(|status| status & NO_BACKSLASH_ESCAPES == 0),
        settings: None,
        may_see_private_tables: false,
        in_flight: InFlightWrites::default(),
        has_next_transaction_settings: false,
        privileges: PrivilegeHistory::default(),
        server_used: Instant::now(),
        last_cached_select: None,
        found_rows: None,
        has_warnings: false,
        resets_warnings: false,
        definitions_version: None,
        delays_rows: false,
        prepared: AHashMap::default(),
        text_prepared: TextPrepared::default(),
        last_prepared: None,
        listener_uses_cache,
        client_uses_cache: true,
        split: None,
        is_split: false,
        filtering,
    };
    session.begin_split(&connection).await;
    if session.context.cache.is_some() && listener_uses_cache {
        // Reads the privileges that the login used, before they change.
        session.settings().await?;
    }
    session.is_split = session.split.is_some();
    Ok(Some(Box::new(Begun { session, running, assignment })))
}

/// Sends a client the error that says why it gets no server.
async fn refuse(client: &mut PacketStream, error: &ConnectError, statistics: &SqlStatistics) -> io::Result<()> {
    let too_many = |sentence: &str| login::error_packet(0, 1040, "08004", &format!("Too many connections: {sentence}"));
    let packet = match error {
        ConnectError::NotAdmitted => {
            statistics.logins_not_admitted.increment();
            tracing::warn!("too many SQL clients have not logged in yet: refusing a connection");
            too_many("others have not logged in yet")
        }
        ConnectError::Full(sentence) => {
            statistics.connections_rejected.increment();
            tracing::warn!("refusing an SQL client: {sentence}");
            too_many(sentence)
        }
        ConnectError::NoServer(_) | ConnectError::Failed { .. } => {
            statistics.logins_without_backend.increment();
            tracing::warn!(%error, "cannot connect an SQL client to the MariaDB server");
            login::error_packet(0, 2003, "HY000", &format!("Selkie cannot reach the MariaDB server behind it: {error}"))
        }
    };
    client.send(&packet).await
}
