//! Opens the cursor of a read that outlives its first batch.

use crate::authorization;
use crate::call::Call;
use crate::read::Reader;
use document::DocWriter;
use error::Result;
use server::cursor::{CursorHistory, CursorOwner, QuotaHolder};
use store::Namespace;

/// The default size of a first batch.
pub const FIRST_BATCH_DOCUMENTS: u64 = 101;

/// Registers the cursor of a read that continues; returns its id. `cursor`: the document that is
/// being written in the reply. A client that wants no reply would not learn the id, and gets no
/// cursor.
pub fn open_cursor(
    call: &Call<'_>,
    namespace: &Namespace,
    reader: Reader,
    no_timeout: bool,
    cursor: &DocWriter<'_>,
) -> Result<i64> {
    if call.request.is_silent() {
        return Ok(0);
    }
    let held = call.held_beside(cursor).unwrap_or_else(|| estimated_size(call));
    register_cursor(call, namespace, reader, no_timeout, held)
}

/// Registers a cursor that holds this much memory; returns its id. Fails with 146 if a limit would
/// be exceeded.
pub fn register_cursor(
    call: &Call<'_>,
    namespace: &Namespace,
    mut reader: Reader,
    no_timeout: bool,
    held: i64,
) -> Result<i64> {
    reader.time_left = call.operation.time_left();
    reader.read_preference = store::read_preference::current();
    let session = call.envelope.session;
    let holder = session.map_or(QuotaHolder::Connection(call.session.connection_id), QuotaHolder::Session);
    let cursors = &call.worker.server.cursors;
    let user = call.session.login().map(|login| login.name.to_string());
    let charge = cursors.charge(holder, user.as_deref(), held.max(CURSOR_BYTES_MIN))?;
    call.worker.statistics().cursors_opened.add(1);
    let history = CursorHistory::of(call.request.body(), call.steady_ms);
    let owner = CursorOwner {
        namespace: namespace.clone(),
        session,
        transaction: call.envelope.transaction(),
        snapshot: call.snapshot.clone(),
        user: call.session.with_login(|login, _| login.map(|login| login.name.clone())),
        privileges: authorization::check::required_privileges(call),
        outlives_collection: reader.follows_changes(),
    };
    Ok(cursors.insert(owner, charge, Box::new(reader), no_timeout, history))
}

/// The smallest charge of a cursor: itself, its plan and its entry.
const CURSOR_BYTES_MIN: i64 = 4096;

/// Estimates the memory of a cursor that was not measured: it holds no documents, and a parsed
/// filter takes about twice the size of its BSON.
pub fn estimated_size(call: &Call<'_>) -> i64 {
    call.request.body().size() as i64 * 2
}
