//! What dispatch does for every command before its handler runs: read the envelope, and check what
//! all commands share.

use crate::authorization::check;
use crate::call::Call;
use crate::command::sessions::transactions;
use crate::default_concerns;
use crate::envelope::first_error::{FirstError, Phase};
use crate::envelope::{self, WriteConcern, internal_fields};
use crate::login;
use crate::table::fields;
use crate::table::spec::Spec;
use document::{Doc, DocWriter};
use error::{Code, Error, Result};
use server::cluster_clock::ClusterTime;
use server::{Topology, Worker, clock};
use store::FeedPosition;

/// Reads and checks what all commands share. Fails with the error that MongoDB reports first.
pub(super) fn begin<'a>(call: &mut Call<'a>, body: Doc<'a>) -> Result<()> {
    call.worker.expire_idle(call.steady_ms);
    let mut errors = FirstError::default();
    let user = call.session.user_digest();
    call.envelope.read(call.request, body, call.spec, &user, &mut errors);
    check_shared(call, &mut errors);
    if call.envelope.session.is_some_and(|session| session.user != user) {
        errors.record(Phase::SessionUse, check::check_foreign_session(call));
    }
    if !errors.is_before(Phase::Authorization) {
        errors.record(Phase::Authorization, check::check(call));
    }
    if let Some((phase, error)) = errors.into_inner() {
        if call.envelope.asks_for_help && phase > Phase::Internal {
            return Ok(());
        }
        if call.spec.parsing.as_ref().is_some_and(|parsing| phase >= parsing.phase) {
            internal_fields::take(call)?;
            call.parse_own()?;
        }
        return Err(error);
    }
    call.reads_elsewhere = call.preference_elsewhere();
    if let Some(session_id) = call.envelope.session {
        call.operation.set_session(session_id);
        call.session.touch_logical_session(call.worker, session_id, call.steady_ms);
    }
    if let Some(limit) = call.envelope.time_limit {
        call.operation.set_time_limit(limit.saturating_sub(call.delayed));
        if !call.delayed.is_zero() {
            call.operation.check_interrupt()?;
        }
    }
    Ok(())
}

/// Reads the envelope; returns whether it is right as far as MongoDB checks it before its fail
/// points.
pub(super) fn reaches_fail_point<'a>(call: &mut Call<'a>, body: Doc<'a>) -> bool {
    let mut errors = FirstError::default();
    let user = call.session.user_digest();
    call.envelope.read(call.request, body, call.spec, &user, &mut errors);
    check_shared(call, &mut errors);
    let parses_before = call.spec.parsing.as_ref().is_some_and(|parsing| parsing.phase == Phase::OwnFields);
    !errors.is_before(Phase::DatabaseName) && (!parses_before || call.parse_own().is_ok())
}

/// Returns the error to report beside the outcome of a write whose write concern cannot be
/// satisfied.
pub(super) fn unsatisfied<'c>(call: &'c Call<'_>) -> Option<&'c Error> {
    let writes = call.spec.writes(envelope::body(call.request).0);
    call.envelope.unsatisfied.as_ref().filter(|_| writes && !call.envelope.asks_for_help)
}

/// Writes the reply to `help: true`. Commands that MongoDB parses as a whole do not have it.
pub(super) fn write_help(spec: &Spec, writer: &mut DocWriter<'_>) {
    writer.append("help", &*format!("help for: {} {}", spec.name, spec.help));
}

/// Moves the clock forward to a time that a client has received, and the log of changes with it:
/// later writes have later times.
fn advance_clock(worker: &Worker, time: ClusterTime) -> Result<()> {
    let clock = &worker.server.cluster_clock;
    let is_ahead = time > clock.now();
    clock.advance(time, clock::now_seconds())?;
    if is_ahead && let Some(feed) = worker.store.change_feed() {
        feed.advance(FeedPosition { time: time.seconds(), increment: time.increment() });
    }
    Ok(())
}

/// Checks what all commands share.
fn check_shared(call: &mut Call<'_>, errors: &mut FirstError) {
    let Call { worker, spec, envelope, .. } = call;
    let topology = &worker.server.settings.topology;
    if spec.admin_database_only && envelope.database != "admin" {
        let message = format!("{} may only be run against the admin database.", spec.name);
        errors.record::<()>(Phase::AdminOnly, Err(Error::new(Code::UNAUTHORIZED, message)));
    }
    errors.record(Phase::AdminOnly, login::check(worker, call.session, spec));
    if let Some(gossip) = envelope.cluster_time.filter(|_| *topology != Topology::Standalone) {
        let received = envelope::read_cluster_time(gossip);
        let advanced = received.and_then(|time| advance_clock(worker, time));
        errors.record(Phase::Metadata, advanced);
    }
    if let Some(write_concern) = envelope.write_concern {
        if spec.takes_write_concern {
            let parsed = errors.record(Phase::WriteConcern, WriteConcern::parse_for(write_concern, topology));
            (envelope.durability, envelope.unsatisfied) = parsed.unwrap_or_default();
        } else {
            let unsupported = Error::new(Code::INVALID_OPTIONS, "Command does not support writeConcern");
            errors.record::<()>(Phase::WriteConcern, Err(unsupported));
        }
    }
    if envelope.write_concern.is_none() && spec.takes_write_concern && !envelope.in_transaction {
        let parsed = errors.record(Phase::WriteConcern, default_concerns::of_write(worker));
        (envelope.durability, envelope.unsatisfied) = parsed.unwrap_or_default();
    }
    if let Some(known) = spec.own_fields {
        let phase = spec.parsing.as_ref().map_or(Phase::Running, |parsing| parsing.phase);
        errors.record(phase, fields::check(spec.name, known, envelope.fields.iter().copied()));
    }
    if envelope.in_transaction {
        errors.record(Phase::SessionUse, transactions::check_concerns(spec, envelope));
        if let Some(read_concern) = envelope.read_concern.filter(|_| *topology != Topology::Standalone) {
            let waited = envelope::wait_for_read_concern(read_concern, &worker.server.cluster_clock);
            errors.record(Phase::ReadConcernWait, waited);
        }
    } else if let Some(read_concern) = envelope.read_concern {
        let checked = envelope::check_read_concern(read_concern, spec, topology);
        let waits = checked.as_ref().is_err_and(|error| error.code() == Code::NOT_A_REPLICA_SET);
        errors.record(if waits { Phase::ReadConcernWait } else { Phase::ReadConcern }, checked);
        if *topology != Topology::Standalone && !errors.is_before(Phase::ReadConcernWait) {
            let waited = envelope::wait_for_read_concern(read_concern, &worker.server.cluster_clock);
            errors.record(Phase::ReadConcernWait, waited);
        }
    }
    if envelope.txn_number.is_some() && envelope.session.is_none() {
        let message = "Transaction number requires a session ID to also be specified";
        errors.record::<()>(Phase::SessionUse, Err(Error::new(Code::INVALID_OPTIONS, message)));
    }
    errors.record(Phase::SessionUse, transactions::check(topology, spec, envelope));
}
