//! The document that describes a completed operation, and the line in the slow log.

use super::COLLECTION;
use super::levels::{DatabaseProfiling, milliseconds};
use crate::client_identity::ClientIdentity;
use crate::clock;
use crate::operation::{OperationContext, OperationKind, OperationStats, namespace_of};
use crate::worker::Worker;
use document::{Doc, DocBuf, DocWriter, Value};
use error::Error;
use mongo_wire::Request;
use mongo_wire::request::RequestKind;
use std::fmt::{self, Write};
use std::time::Duration;
use store::explain::{ExecutionStats, append_count};
use store::{AccessStats, Examined, ExplainContext, PlanSummary, StatementOutcome};

/// A request that has been carried out.
pub struct CompletedOperation<'d> {
    pub identity: &'d ClientIdentity,
    pub request: &'d Request,
    /// The command's body, without secrets.
    pub body: Doc<'d>,
    pub kind: OperationKind,
    pub context: &'d OperationContext,
    /// The reply's body.
    pub reply: &'d [u8],
    pub elapsed: Duration,
}

/// A completed operation with what its documents are made of.
struct Record<'d> {
    identity: &'d ClientIdentity,
    request: &'d Request,
    kind: OperationKind,
    body: Doc<'d>,
    reply: Doc<'d>,
    reply_bytes: usize,
    stats: &'d OperationStats,
    namespace: String,
    milliseconds: i64,
    now_ms: i64,
}

/// Profiles and logs a completed operation, as far as the settings of its database ask for it.
pub fn record(worker: &Worker, operation: &CompletedOperation<'_>) {
    let profiling = &worker.server.profiling;
    let body = operation.body;
    let namespace = namespace_of(body);
    let (database, collection) = namespace.split_once('.').unwrap_or_default();
    if collection == COLLECTION {
        return;
    }
    let stats = &operation.context.stats;
    let milliseconds = milliseconds(operation.elapsed.saturating_sub(stats.waited()));
    let DatabaseProfiling { level, filter } = profiling.of_database(database);
    let slow = milliseconds > profiling.slow_ms();
    let (mut profiled, mut logged) = match &filter {
        Some(_) => (level > 0, profiling.slow_log),
        None => {
            let sampled = slow && profiling.is_sampled();
            (level >= 2 || level == 1 && sampled, sampled && profiling.slow_log)
        }
    };
    profiled &= !collection.starts_with("$cmd");
    if !profiled && !logged {
        return;
    }
    let record = Record {
        identity: operation.identity,
        request: operation.request,
        kind: operation.kind,
        body,
        reply: Doc::from_bytes(operation.reply).unwrap_or(Doc::EMPTY),
        reply_bytes: operation.reply.len(),
        stats,
        namespace: namespace.clone(),
        milliseconds,
        now_ms: clock::now_ms(),
    };
    let passes = |document: Doc<'_>| {
        filter.as_ref().is_none_or(|(_, predicate)| predicate.matches(document).unwrap_or_default())
    };
    if logged {
        logged = filter.is_none() || passes(record.whole().as_doc());
    }
    if logged {
        record.log();
    }
    if profiled {
        let documents = record.records().into_iter().filter(|document| passes(document.as_doc()));
        profiling.queue.push(database, documents);
    }
}

/// The largest command that is shown whole; of a larger one the start is shown.
const COMMAND_BYTES_MAX: usize = 50_000;

/// The start of a text of any length: a command may have many megabytes.
struct TextPrefix(String);

impl Write for TextPrefix {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = COMMAND_BYTES_MAX - self.0.len();
        let end = (0..=room.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
        self.0.push_str(&text[..end]);
        if end < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

impl Record<'_> {
    /// Returns one document, or one for each statement of an update or a delete.
    fn records(&self) -> Vec<DocBuf> {
        let statements = self.stats.statements.borrow();
        let name = self.command_name();
        if statements.is_empty() || !matches!(name, "update" | "delete") {
            return vec![self.whole()];
        }
        let key = if name == "update" { "updates" } else { "deletes" };
        let inline = self.body.get(key).and_then(Value::as_array);
        let sent: Vec<Doc<'_>> = match self.request.sequence(key) {
            Some(sequence) => sequence.collect(),
            None => inline.into_iter().flat_map(Doc::values).filter_map(Value::as_document).collect(),
        };
        sent.iter()
            .zip(statements.iter())
            .map(|(sent, (outcome, access))| self.statement(*sent, outcome, access))
            .collect()
    }

    /// Returns the document of the whole operation.
    fn whole(&self) -> DocBuf {
        DocBuf::build(|writer| {
            writer.append("op", self.kind.name());
            writer.append("ns", self.namespace.as_str());
            self.write_command(writer);
            self.write_cursor(writer);
            self.write_examined(self.stats.examined(), writer);
            self.write_written(writer);
            self.write_middle(writer);
            if let Some(returned) = self.returned() {
                append_count("nreturned", returned, writer);
            }
            self.write_failure(writer);
            append_count("responseLength", self.reply_bytes as u64, writer);
            writer.append("protocol", self.protocol());
            writer.append("millis", self.milliseconds as i32);
            self.write_plan(&self.stats.summary(), writer);
            if let Some(plan) = self.stats.plan() {
                let ran = ExecutionStats {
                    found: self.returned().unwrap_or_default(),
                    milliseconds: self.milliseconds as i32,
                };
                let about = ExplainContext { counted: self.stats.counted(), ran: Some(ran), predicate: None };
                writer.append("execStats", &plan.stages(&about));
            }
            self.write_end(writer);
        })
    }

    fn statement(&self, sent: Doc<'_>, outcome: &Result<StatementOutcome, Error>, access: &AccessStats) -> DocBuf {
        let updates = self.command_name() == "update";
        DocBuf::build(|writer| {
            writer.append("op", self.kind.name());
            writer.append("ns", self.namespace.as_str());
            {
                let mut command = writer.document("command");
                sent.elements().for_each(|element| command.append_element(element));
                for key in ["multi", "upsert"] {
                    if updates && sent.get(key).is_none() {
                        command.append(key, false);
                    }
                }
            }
            self.write_examined(access.examined, writer);
            if let Ok(done) = outcome {
                match updates {
                    true => {
                        append_count("nMatched", done.matched, writer);
                        append_count("nModified", done.modified, writer);
                        append_count("nUpserted", u64::from(done.upserted.is_some()), writer);
                    }
                    false => append_count("ndeleted", done.matched, writer),
                }
            }
            self.write_middle(writer);
            if let Err(error) = outcome {
                write_error(error.message(), error.code().0, None, writer);
            }
            writer.append("millis", self.milliseconds as i32);
            self.write_plan(&access.summary, writer);
            self.write_end(writer);
        })
    }

    /// Writes a log line like MongoDB's.
    fn log(&self) {
        let attr = DocBuf::build(|writer| {
            writer.append("type", if self.command_name() == "getMore" { "getmore" } else { "command" });
            writer.append("ns", self.namespace.as_str());
            if let Some(name) = self.application() {
                writer.append("appName", name);
            }
            self.write_command(writer);
            if let plan @ Some(_) = self.stats.summary().as_str() {
                writer.append("planSummary", plan.unwrap_or_default());
            }
            self.write_cursor(writer);
            self.write_examined(self.stats.examined(), writer);
            self.write_written(writer);
            if let Some(returned) = self.returned() {
                append_count("nreturned", returned, writer);
            }
            self.write_failure(writer);
            append_count("reslen", self.reply_bytes as u64, writer);
            if let Some(client) = self.identity.client {
                writer.append("remote", client.to_string().as_str());
            }
            writer.append("protocol", self.protocol());
            writer.append("durationMillis", self.milliseconds as i32);
        });
        let mut json = Vec::new();
        document::json::bson_to_json(attr.as_doc(), &mut json);
        let attr = String::from_utf8_lossy(&json);
        tracing::info!(target: "slow", "Slow query conn{} {attr}", self.identity.connection_id);
    }

    fn command_name(&self) -> &str {
        self.body.first().map_or("", |first| first.key())
    }

    fn protocol(&self) -> &'static str {
        match self.request.kind {
            RequestKind::Query { .. } => "op_query",
            _ => "op_msg",
        }
    }

    fn application(&self) -> Option<&str> {
        let metadata = self.identity.metadata.get().and_then(|metadata| Doc::from_bytes(metadata))?;
        metadata.get("application")?.as_document()?.get("name")?.as_str()
    }

    /// Appends the command without its documents or statements.
    fn write_command(&self, writer: &mut DocWriter<'_>) {
        let is_shown = |key: &str| !matches!(key, "documents" | "updates" | "deletes");
        let command = DocBuf::build(|writer| {
            let shown = self.body.elements().filter(|element| is_shown(element.key()));
            shown.for_each(|element| writer.append_element(element));
        });
        if command.as_bytes().len() <= COMMAND_BYTES_MAX {
            return writer.append("command", &command);
        }
        let mut text = TextPrefix(String::new());
        // Fails when the prefix is complete.
        let _ = write!(text, "{}", values::text::document(command.as_doc()));
        writer.document("command").append("$truncated", text.0.as_str());
    }

    fn write_cursor(&self, writer: &mut DocWriter<'_>) {
        let id = self.cursor().and_then(|cursor| cursor.get("id"));
        match id {
            Some(Value::Int64(0)) => writer.append("cursorExhausted", true),
            Some(id) => writer.append("cursorid", id),
            None => {}
        }
    }

    fn cursor(&self) -> Option<Doc<'_>> {
        self.reply.get("cursor")?.as_document()
    }

    fn returned(&self) -> Option<u64> {
        let cursor = self.cursor()?;
        let batch = ["firstBatch", "nextBatch"].into_iter().find_map(|key| cursor.get(key)?.as_array())?;
        Some(batch.elements().count() as u64)
    }

    fn write_examined(&self, examined: Examined, writer: &mut DocWriter<'_>) {
        let has_plan = self.stats.plan().is_some() || self.stats.summary() != PlanSummary::None;
        if has_plan {
            append_count("keysExamined", examined.keys, writer);
            append_count("docsExamined", examined.documents, writer);
        }
        if self.stats.sorted() {
            writer.append("hasSortStage", true);
        }
    }

    fn write_written(&self, writer: &mut DocWriter<'_>) {
        let number = |document: Doc<'_>, key| document.get(key).and_then(Value::to_i64);
        let n = number(self.reply, "n").unwrap_or_default().unsigned_abs();
        let upserted =
            self.reply.get("upserted").and_then(Value::as_array).map_or(0, |array| array.elements().count() as u64);
        match self.command_name() {
            "insert" => append_count("ninserted", n, writer),
            "delete" => append_count("ndeleted", n, writer),
            "update" => {
                append_count("nMatched", n.saturating_sub(upserted), writer);
                append_count("nModified", number(self.reply, "nModified").unwrap_or_default().unsigned_abs(), writer);
                append_count("nUpserted", upserted, writer);
            }
            "findAndModify" | "findandmodify" => {
                let Some(last) = self.reply.get("lastErrorObject").and_then(Value::as_document) else { return };
                let n = number(last, "n").unwrap_or_default().unsigned_abs();
                let upserted = u64::from(last.get("upserted").is_some());
                match last.get("updatedExisting") {
                    Some(_) => {
                        append_count("nMatched", n.saturating_sub(upserted), writer);
                        append_count("nUpserted", upserted, writer);
                    }
                    None => append_count("ndeleted", n, writer),
                }
            }
            _ => {}
        }
    }

    fn write_middle(&self, writer: &mut DocWriter<'_>) {
        writer.append("numYield", 0);
        drop(writer.document("locks"));
        drop(writer.document("flowControl"));
    }

    fn write_failure(&self, writer: &mut DocWriter<'_>) {
        if let Some(Value::String(message)) = self.reply.get("errmsg") {
            let code = self.reply.get("code").and_then(Value::to_i64).unwrap_or_default();
            write_error(message, code as i32, self.reply.get("codeName").and_then(Value::as_str), writer);
        }
    }

    fn write_plan(&self, summary: &PlanSummary, writer: &mut DocWriter<'_>) {
        if let Some(summary) = summary.as_str() {
            writer.append("planSummary", summary);
        }
    }

    fn write_end(&self, writer: &mut DocWriter<'_>) {
        writer.append("ts", Value::DateTime(self.now_ms));
        if let Some(client) = self.identity.client {
            writer.append("client", client.ip().to_string().as_str());
        }
        if let Some(name) = self.application() {
            writer.append("appName", name);
        }
        let user = self.identity.user();
        let mut all = writer.array("allUsers");
        user.iter().for_each(|user| user.write(&mut all.document()));
        drop(all);
        writer.append("user", user.map_or_else(String::new, |user| user.at_database()).as_str());
    }
}

fn write_error(message: &str, code: i32, name: Option<&str>, writer: &mut DocWriter<'_>) {
    writer.append("ok", 0.0);
    writer.append("errMsg", message);
    if let Some(name) = name {
        writer.append("errName", name);
    }
    writer.append("errCode", code);
}
