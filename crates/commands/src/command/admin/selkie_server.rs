//! `selkieServer`: the state of the MariaDB servers that have a name, and what the administrator
//! allows on them.
//!
//! A command of Selkie's own: `{selkieServer: "db1"}`, `{selkieServer: "db1", mode: "drain"}`.

use crate::arguments::{self, unknown_field};
use crate::call::Call;
use document::{DocWriter, Value};
use error::{Code, Error, Result};
use service::observation::{Facts, IoThread, KindFacts};
use service::{BackendReport, Mode};

const WITHIN: &str = "selkieServer";

/// Fails with 7 if there is no server of that name, and with 2 for an unknown mode.
pub fn selkie_server(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let (name, mode) = parse_fields(call)?;
    let servers = &call.worker.server.sql_servers;
    let unknown = || Error::new(Code::HOST_NOT_FOUND, format!("there is no server {name:?}"));
    if let Some(mode) = mode
        && !servers.set_mode(&name, mode)
    {
        return Err(unknown());
    }
    let report = servers.reports().into_iter().find(|report| report.name == name).ok_or_else(unknown)?;
    write(&report, reply);
    Ok(())
}

/// Parses the fields.
pub fn parse(call: &Call<'_>) -> Result<()> {
    parse_fields(call).map(drop)
}

fn parse_fields(call: &Call<'_>) -> Result<(String, Option<Mode>)> {
    let name = arguments::string(WITHIN, call.first())?.to_owned();
    let mut mode = None;
    for field in call.fields() {
        match field.key() {
            "mode" => {
                let text = arguments::string(WITHIN, field)?;
                let known = Mode::from_name(text).ok_or_else(|| {
                    let names = Mode::ALL.map(Mode::name).join(", ");
                    Error::bad_value(format!("{text:?} is not a mode; there are {names}"))
                })?;
                mode = Some(known);
            }
            other => return Err(unknown_field(WITHIN, other)),
        }
    }
    Ok((name, mode))
}

/// Writes the counters of services that choose a server for each statement, or have filters, for
/// `serverStatus`.
pub fn write_services(call: &Call<'_>, writer: &mut DocWriter<'_>) {
    let services = call.worker.server.sql_servers.services();
    let mut services =
        services.iter().filter(|service| service.splits_statements() || service.has_filters()).peekable();
    if services.peek().is_none() {
        return;
    }
    let mut all = writer.document("services");
    for service in services {
        let (mut writer, counters) = (all.document(&service.name()), &service.statistics);
        if service.has_filters() {
            for (name, count) in service.filter_counters.all() {
                writer.append(name, i64::try_from(count).unwrap_or(i64::MAX));
            }
        }
        if !service.splits_statements() {
            continue;
        }
        for (name, counter) in [
            ("toPrimary", &counters.to_primary),
            ("toReplicas", &counters.to_replicas),
            ("readsRetried", &counters.reads_retried),
            ("causalWaits", &counters.causal_waits),
            ("causalTimeouts", &counters.causal_timeouts),
            ("primaryChanges", &counters.primary_changes),
            ("transactionsReplayed", &counters.transactions_replayed),
            ("replaysFailed", &counters.replays_failed),
            ("commitsFound", &counters.commits_found),
            ("commitsLost", &counters.commits_lost),
            ("connectionsTaken", &counters.connections_taken),
            ("sessionsOnPrimary", &counters.sessions_on_primary),
        ] {
            writer.append(name, i64::try_from(counter.get()).unwrap_or(i64::MAX));
        }
    }
}

/// Writes where the documents are, for `serverStatus`, if they are in the servers of a service.
pub fn write_store(call: &Call<'_>, writer: &mut DocWriter<'_>) {
    let Some(service) = &call.worker.server.settings.store_service else { return };
    let mut writer = writer.document("store");
    writer.append("service", service.name().as_str());
    if let Some(primary) = service.primary() {
        writer.append("primary", primary.backend.settings().name.as_str());
    }
    let reads = &service.document_reads;
    for (name, counter) in [
        ("readsOnReplicas", &reads.on_replicas),
        ("causalWaits", &reads.causal_waits),
        ("causalTimeouts", &reads.causal_timeouts),
    ] {
        writer.append(name, i64::try_from(counter.get()).unwrap_or(i64::MAX));
    }
}

/// Writes the state of all servers, for `serverStatus`.
pub fn write_all(call: &Call<'_>, writer: &mut DocWriter<'_>) {
    let reports = call.worker.server.sql_servers.reports();
    if reports.is_empty() {
        return;
    }
    let mut servers = writer.document("servers");
    for report in reports {
        write(&report, &mut servers.document(&report.name));
    }
}

fn write(report: &BackendReport, writer: &mut DocWriter<'_>) {
    writer.append("address", report.address.to_string().as_str());
    if let Some(monitor) = &report.monitor {
        writer.append("monitor", monitor.as_str());
        writer.append("state", report.state);
        writer.append("role", report.role);
    }
    for (name, text) in [("reason", report.reason), ("error", report.error.as_str())] {
        if !text.is_empty() {
            writer.append(name, text);
        }
    }
    writer.append("mode", report.mode.name());
    writer.append("changed", Value::DateTime(report.changed_ms));
    let mut connections = writer.document("connections");
    connections.append("current", report.connections as i64);
    if let Some(max) = report.connections_max {
        connections.append("max", max as i64);
        connections.append("queued", report.queued as i64);
    }
    drop(connections);
    writer.append("weight", i64::from(report.weight));
    if let Some(facts) = &report.facts {
        write_facts(facts, writer);
    }
}

/// Writes the facts of the last poll.
fn write_facts(facts: &Facts, writer: &mut DocWriter<'_>) {
    writer.append("version", facts.version.as_str());
    writer.append("serverId", i64::from(facts.server_id));
    writer.append("readOnly", facts.is_read_only);
    writer.append("gtidBinlogPos", facts.binlog.to_string().as_str());
    writer.append("gtidCurrentPos", facts.current.to_string().as_str());
    match &facts.kind {
        KindFacts::Replication(replication) => {
            if let Some(seconds) = facts.lag_seconds() {
                writer.append("lagSeconds", i64::try_from(seconds).unwrap_or(i64::MAX));
            }
            if let Some(replicas) = replication.semi_sync_replicas {
                writer.append("semiSyncReplicas", i64::try_from(replicas).unwrap_or(i64::MAX));
            }
            let mut sources = writer.array("sources");
            for source in &replication.sources {
                let mut writer = sources.document();
                writer.append("address", format!("{}:{}", source.host, source.port).as_str());
                let io = match source.io {
                    IoThread::Running => "running",
                    IoThread::Connecting => "connecting",
                    IoThread::Stopped => "stopped",
                };
                writer.append("io", io);
                writer.append("sql", if source.is_sql_running { "running" } else { "stopped" });
                if !source.error.is_empty() {
                    writer.append("error", source.error.as_str());
                }
            }
        }
        KindFacts::Galera(galera) => {
            writer.append("nodeState", galera.state.name());
            writer.append("primaryComponent", galera.is_in_primary_component);
            writer.append("clusterSize", i64::try_from(galera.cluster_size).unwrap_or(i64::MAX));
            writer.append("ready", galera.is_ready);
        }
    }
}
