//! `selkieMonitor`: the state of a monitor of MariaDB servers, and changes of their roles.
//!
//! A command of Selkie's own: `{selkieMonitor: "main"}`,
//! `{selkieMonitor: "main", switchover: "db2"}`, and likewise `failover` and `rejoin`.

use crate::arguments::{self, unknown_field};
use crate::call::{Call, Disposition};
use document::{DocWriter, Value};
use error::{Code, Error, Result};
use service::{MonitorReport, Order};

const WITHIN: &str = "selkieMonitor";

/// Replies when the change is made. Fails with 7 if there is no monitor of that name, and with 96
/// if the change is refused or a step of it fails.
pub async fn selkie_monitor(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let (name, order) = parse_fields(call)?;
    let servers = call.worker.server.sql_servers.clone();
    let unknown = || Error::new(Code::HOST_NOT_FOUND, format!("there is no monitor {name:?}"));
    if let Some(order) = order {
        let answer = servers.order(&name, order).ok_or_else(unknown)?;
        let outcome = answer.await.unwrap_or_else(|_| Err("the monitor was removed or changed meanwhile".into()));
        outcome.map_err(|reason| Error::new(Code::OPERATION_FAILED, reason))?;
    }
    let report = servers.monitor_reports().into_iter().find(|report| report.name == name).ok_or_else(unknown)?;
    write(&report, reply);
    Ok(Disposition::Reply)
}

/// Parses the fields.
pub fn parse(call: &Call<'_>) -> Result<()> {
    parse_fields(call).map(drop)
}

fn parse_fields(call: &Call<'_>) -> Result<(String, Option<Order>)> {
    let name = arguments::string(WITHIN, call.first())?.to_owned();
    let mut order = None;
    for field in call.fields() {
        let named: fn(String) -> Order = match field.key() {
            "switchover" => Order::Switchover,
            "failover" => Order::Failover,
            "rejoin" => Order::Rejoin,
            other => return Err(unknown_field(WITHIN, other)),
        };
        if order.is_some() {
            return Err(Error::bad_value("only one of switchover, failover and rejoin can be given"));
        }
        order = Some(named(arguments::string(WITHIN, field)?.to_owned()));
    }
    Ok((name, order))
}

/// Writes the state of all monitors, for `serverStatus`.
pub fn write_all(call: &Call<'_>, writer: &mut DocWriter<'_>) {
    let reports = call.worker.server.sql_servers.monitor_reports();
    if reports.is_empty() {
        return;
    }
    let mut monitors = writer.document("monitors");
    for report in reports {
        write(&report, &mut monitors.document(&report.name));
    }
}

fn write(report: &MonitorReport, writer: &mut DocWriter<'_>) {
    let MonitorReport { kind, allowed, majority_of, status, .. } = report;
    writer.append("kind", kind.name());
    if let Some(primary) = &status.primary {
        writer.append("primary", primary.as_str());
    }
    writer.append("failover", allowed.failover);
    writer.append("rejoin", allowed.rejoin);
    writer.append("enforceReadOnly", allowed.enforce_read_only);
    let mut locks = writer.document("locks");
    locks.append("held", status.votes.held as i64);
    locks.append("needed", status.votes.needed(*majority_of) as i64);
    locks.append("majority", status.votes.are_majority(*majority_of));
    drop(locks);
    if let Some(refusal) = &status.refusal {
        writer.append("noFailover", refusal.as_str());
    }
    if let Some(last) = &status.last {
        let mut action = writer.document("lastAction");
        action.append("what", last.what.as_str());
        action.append("ok", last.outcome.is_ok());
        if let Err(error) = &last.outcome {
            action.append("error", error.as_str());
        }
        action.append("ended", Value::DateTime(last.ended_ms));
    }
}
