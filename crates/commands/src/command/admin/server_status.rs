//! `serverStatus`: the statistics of the process.

use crate::call::{Call, Disposition};
use crate::command::admin::build_info::{MONGODB_VERSION, SELKIE_VERSION};
use crate::command::admin::catalog_counts;
use crate::command::admin::selkie_cache;
use crate::command::admin::{selkie_monitor, selkie_server};
use auth::LoginMechanism;
use document::{DocWriter, Value};
use error::Result;
use server::Server;
use server::host;
use server::login_statistics::{Attempts, MechanismStatistics};
use server::sql_statistics::SqlStatistics;
use server::statistics::{Counter, Statistics};
use server::usage;
use service::SharedCounter;

type Section = (&'static str, fn(&Call<'_>, &Statistics, &mut DocWriter<'_>));

/// The section about collections and views.
const CATALOG: &str = "catalogStats";

/// The sections, in MongoDB's order. A client may leave one out with `{<section>: 0}`.
const SECTIONS: &[Section] = &[
    ("asserts", asserts),
    (CATALOG, |call, _, writer| call.worker.server.catalog_counts.write(writer)),
    ("connections", connections),
    ("extra_info", extra_info),
    ("globalLock", global_lock),
    ("logicalSessionRecordCache", logical_sessions),
    ("network", network),
    ("opLatencies", operation_latencies),
    ("opcounters", operation_counters),
    ("opcountersRepl", replicated_counters),
    ("security", security),
    ("storageEngine", storage_engine),
    ("transactions", transactions),
    ("transportSecurity", transport_security),
    ("mem", memory),
    ("metrics", metrics),
    ("selkie", selkie),
    ("cache", cache),
];

pub async fn server_status(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    if !is_left_out(call, CATALOG) {
        catalog_counts::refresh(call).await;
    }
    write(call, reply);
    Ok(Disposition::Reply)
}

/// Returns whether the client excludes a section.
fn is_left_out(call: &Call<'_>, section: &str) -> bool {
    call.fields().any(|field| field.key() == section && !field.value().is_truthy())
}

/// Appends the statistics, without the sections that the command excludes.
pub fn write(call: &Call<'_>, reply: &mut DocWriter<'_>) {
    let server = &*call.worker.server;
    let statistics = server.statistics();
    let uptime = server.started.elapsed();
    reply.append("host", server::host::cached_name());
    reply.append("version", MONGODB_VERSION);
    reply.append("process", "selkie");
    reply.append("pid", i64::from(std::process::id()));
    reply.append("uptime", uptime.as_secs() as f64);
    reply.append("uptimeMillis", uptime.as_millis() as i64);
    reply.append("uptimeEstimate", uptime.as_secs() as i64);
    reply.append("localTime", Value::DateTime(server::clock::now_ms()));
    for (name, write) in SECTIONS {
        if !is_left_out(call, name) {
            write(call, &statistics, &mut reply.document(name));
        }
    }
}

/// Writes the statistics of the caches, if there are any.
fn cache(call: &Call<'_>, _: &Statistics, writer: &mut DocWriter<'_>) {
    let server = &*call.worker.server;
    selkie_cache::write_statistics(server, writer);
}

fn operation_latencies(call: &Call<'_>, _: &Statistics, writer: &mut DocWriter<'_>) {
    let server = &*call.worker.server;
    let workers = server.workers();
    let latencies = usage::latencies(workers.iter().map(|worker| &worker.usage), None);
    usage::write_latencies(&latencies, false, writer);
}

/// A snapshot keeps the store's log, so its age is reported.
fn transactions(call: &Call<'_>, _: &Statistics, writer: &mut DocWriter<'_>) {
    let counts = call.worker.server.transactions.counts(call.steady_ms);
    writer.append("currentActive", counts.active);
    writer.append("currentInactive", counts.open - counts.active);
    writer.append("currentOpen", counts.open);
    writer.append("totalStarted", counts.started as i64);
    writer.append("totalCommitted", counts.committed as i64);
    writer.append("totalAborted", counts.aborted as i64);
    let (_, oldest_kept_ms) = call.worker.server.snapshots.counts(call.steady_ms);
    writer.append("oldestSnapshotMillis", counts.oldest_ms.max(oldest_kept_ms));
}

/// `top`: the use of collections.
pub fn top(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let workers = call.worker.server.workers();
    let mut totals = reply.document("totals");
    totals.append("note", "all times in microseconds");
    usage::write(workers.iter().map(|worker| &worker.usage), &mut totals);
    Ok(())
}

fn long(counter: &Counter) -> i64 {
    counter.get() as i64
}

fn asserts(_: &Call<'_>, statistics: &Statistics, writer: &mut DocWriter<'_>) {
    writer.append("regular", long(&statistics.asserts_regular) as i32);
    writer.append("warning", 0);
    writer.append("msg", 0);
    writer.append("user", long(&statistics.asserts_user) as i32);
    writer.append("tripwire", 0);
    writer.append("rollovers", 0);
}

fn connections(call: &Call<'_>, statistics: &Statistics, writer: &mut DocWriter<'_>) {
    let server = &*call.worker.server;
    let current = statistics.connections_current.get();
    writer.append("current", current as i32);
    let connections_max = server.settings.connections_max as u64;
    writer.append("available", connections_max.saturating_sub(current) as i32);
    writer.append("totalCreated", long(&statistics.connections_created) as i32);
    writer.append("rejected", long(&statistics.connections_rejected) as i32);
    writer.document("establishmentRateLimit").append("rejected", long(&statistics.connections_rejected_by_rate));
    writer.append("active", (current - statistics.hello_awaiting.get().min(current)) as i32);
    writer.append("awaitingTopologyChanges", long(&statistics.hello_awaiting) as i32);
}

fn extra_info(_: &Call<'_>, _: &Statistics, writer: &mut DocWriter<'_>) {
    let (user, system) = host::process_cpu_micros();
    let (voluntary, involuntary) = host::context_switches();
    writer.append("note", "fields vary by platform");
    writer.append("user_time_us", user);
    writer.append("system_time_us", system);
    let (major, minor, resident) = host::page_faults();
    writer.append("maximum_resident_set_kb", resident);
    writer.append("page_reclaims", minor);
    writer.append("page_faults", major);
    writer.append("voluntary_context_switches", voluntary as i64);
    writer.append("involuntary_context_switches", involuntary as i64);
}

/// There is no global lock; operations under way count as active.
fn global_lock(call: &Call<'_>, _: &Statistics, writer: &mut DocWriter<'_>) {
    let server = &*call.worker.server;
    let active: usize = server.workers().iter().map(|worker| worker.operations.list().len()).sum();
    writer.append("totalTime", server.started.elapsed().as_micros() as i64);
    for (key, total) in [("currentQueue", 0), ("activeClients", active as i32)] {
        let mut counts = writer.document(key);
        counts.append("total", total);
        counts.append("readers", total);
        counts.append("writers", 0);
    }
}

fn logical_sessions(call: &Call<'_>, _: &Statistics, writer: &mut DocWriter<'_>) {
    let server = &*call.worker.server;
    let mut ids: Vec<_> = server.workers().iter().flat_map(|worker| worker.sessions.list()).map(|(id, _)| id).collect();
    ids.sort_unstable();
    ids.dedup();
    writer.append("activeSessionsCount", ids.len() as i32);
}

fn network(_: &Call<'_>, statistics: &Statistics, writer: &mut DocWriter<'_>) {
    writer.append("bytesIn", long(&statistics.network_bytes_in));
    writer.append("bytesOut", long(&statistics.network_bytes_out));
    writer.append("physicalBytesIn", long(&statistics.network_bytes_in));
    writer.append("physicalBytesOut", long(&statistics.network_bytes_out));
    writer.append("numRequests", long(&statistics.network_requests));
}

fn operation_counters(_: &Call<'_>, statistics: &Statistics, writer: &mut DocWriter<'_>) {
    writer.append("insert", long(&statistics.operations_insert));
    writer.append("query", long(&statistics.operations_query));
    writer.append("update", long(&statistics.operations_update));
    writer.append("delete", long(&statistics.operations_delete));
    writer.append("getmore", long(&statistics.operations_getmore));
    writer.append("command", long(&statistics.operations_command));
}

/// There is no replication.
fn replicated_counters(_: &Call<'_>, _: &Statistics, writer: &mut DocWriter<'_>) {
    for kind in ["insert", "query", "update", "delete", "getmore", "command"] {
        writer.append(kind, 0_i64);
    }
}

fn storage_engine(call: &Call<'_>, _: &Statistics, writer: &mut DocWriter<'_>) {
    let server = &*call.worker.server;
    writer.append("name", &server.engine.describe());
    writer.append("supportsCommittedReads", true);
    writer.append("persistent", true);
    writer.append("readOnly", false);
}

/// Logins by mechanism, and the certificate of the listeners, if clients can use TLS.
fn security(call: &Call<'_>, _: &Statistics, writer: &mut DocWriter<'_>) {
    logins(&call.worker.server, &mut writer.document("authentication"));
    if let Some(tls) = &call.worker.server.settings.tls {
        let loaded = tls.certificates.current();
        writer.append("SSLServerSubjectName", loaded.facts.subject.as_str());
        writer.append("SSLServerHasCertificateAuthority", loaded.has_authorities);
        let expires_ms = loaded.facts.not_after.saturating_mul(1000);
        writer.append("SSLServerCertificateExpirationDate", Value::DateTime(expires_ms));
    }
}

/// Logins since the start. The members of a cluster do not log in to each other.
fn logins(server: &Server, writer: &mut DocWriter<'_>) {
    let statistics = &server.login_statistics;
    let number = |counter: &SharedCounter| i64::try_from(counter.get()).unwrap_or(i64::MAX);
    writer.append("saslSupportedMechsReceived", number(&statistics.mechanisms_asked));
    let mut mechanisms = writer.document("mechanisms");
    let offered = &server.settings.login_mechanisms;
    for mechanism in LoginMechanism::ALL.into_iter().rev().filter(|mechanism| offered.contains(*mechanism)) {
        let MechanismStatistics { all, speculative } = statistics.of(mechanism);
        let mut writer = mechanisms.document(mechanism.name());
        for (name, attempts) in [
            ("speculativeAuthenticate", speculative),
            ("clusterAuthenticate", &Attempts::default()),
            ("authenticate", all),
        ] {
            let mut writer = writer.document(name);
            writer.append("received", number(&attempts.received));
            writer.append("successful", number(&attempts.successful));
        }
    }
}

/// TLS connections since the start, by version. The versions below 1.2 are never spoken.
fn transport_security(_: &Call<'_>, statistics: &Statistics, writer: &mut DocWriter<'_>) {
    writer.append("1.0", 0_i64);
    writer.append("1.1", 0_i64);
    writer.append("1.2", long(&statistics.tls_1_2));
    writer.append("1.3", long(&statistics.tls_1_3));
    writer.append("unknown", 0_i64);
}

fn memory(_: &Call<'_>, _: &Statistics, writer: &mut DocWriter<'_>) {
    let (resident, virtual_size) = host::process_memory_bytes();
    writer.append("bits", usize::BITS as i32);
    writer.append("resident", (resident / (1024 * 1024)) as i32);
    writer.append("virtual", (virtual_size / (1024 * 1024)) as i32);
    writer.append("supported", true);
}

fn metrics(call: &Call<'_>, statistics: &Statistics, writer: &mut DocWriter<'_>) {
    let server = &*call.worker.server;
    {
        let mut commands = writer.document("commands");
        for (spec, (total, failed)) in call.table.specs().iter().zip(&statistics.commands) {
            let mut entry = commands.document(spec.name);
            entry.append("failed", long(failed));
            entry.append("total", long(total));
        }
    }
    {
        let (pinned, no_timeout) = server.cursors.pinned_and_no_timeout();
        let mut cursor = writer.document("cursor");
        cursor.append("timedOut", long(&statistics.cursors_timed_out));
        cursor.append("totalOpened", long(&statistics.cursors_opened));
        let mut open = cursor.document("open");
        open.append("noTimeout", no_timeout);
        open.append("pinned", pinned);
        open.append("total", server.cursors.open());
    }
    let mut document = writer.document("document");
    document.append("deleted", long(&statistics.documents_deleted));
    document.append("inserted", long(&statistics.documents_inserted));
    document.append("returned", long(&statistics.documents_returned));
    document.append("updated", long(&statistics.documents_updated));
}

fn selkie(call: &Call<'_>, statistics: &Statistics, writer: &mut DocWriter<'_>) {
    let server = &*call.worker.server;
    writer.append("version", SELKIE_VERSION);
    writer.append("store", &server.engine.describe());
    writer.append("workers", server.settings.workers as i32);
    writer.append("requestsRejected", long(&statistics.requests_rejected));
    selkie_server::write_all(call, writer);
    selkie_monitor::write_all(call, writer);
    selkie_server::write_services(call, writer);
    selkie_server::write_store(call, writer);
    let limits = steps::memory::limits();
    let mut memory = writer.document("memory");
    memory.append("bytes", steps::memory::live());
    memory.append("bytesMax", limits.process);
    memory.append("requestBytesMax", limits.request);
    memory.append("cursorBytes", server.cursors.bytes());
    memory.append("cursorBytesMax", server.cursors.limits().bytes);
    drop(memory);
    sql_clients(&server.sql_statistics, &mut writer.document("sqlClients"));
}

fn sql_clients(statistics: &SqlStatistics, writer: &mut DocWriter<'_>) {
    let long = |counter: &SharedCounter| counter.get() as i64;
    writer.append("current", long(&statistics.connections_current));
    writer.append("totalCreated", long(&statistics.connections_created));
    writer.append("rejected", long(&statistics.connections_rejected));
    writer.document("establishmentRateLimit").append("rejected", long(&statistics.connections_rejected_by_rate));
    writer.append("idleTimeouts", long(&statistics.idle));
    writer.append("stalledTimeouts", long(&statistics.stalled));
    let mut logins = writer.document("logins");
    logins.append("failed", long(&statistics.logins_failed));
    logins.append("throttled", long(&statistics.logins_throttled));
    logins.append("withoutTls", long(&statistics.logins_without_tls));
    logins.append("timeouts", long(&statistics.logins_timed_out));
    logins.append("notAdmitted", long(&statistics.logins_not_admitted));
    logins.append("mariadbUnreachable", long(&statistics.logins_without_backend));
}
