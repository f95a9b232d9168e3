//! The document that tells of an operation.

use super::{Done, PlanSummary};
use crate::command::options;
use document::{Doc, DocBuf, DocWriter, Value};
use error::Error;
use mongo_wire::request::RequestKind;
use std::fmt::{self, Write};
use store::explain::{ExecutionStats, append_count};
use store::{AccessStats, Examined, ExplainContext, StatementOutcome};

/// A larger command is shown by its beginning.
const COMMAND_BYTES_MAX: usize = 50_000;

/// The beginning of a text, whatever would follow: a command may have many megabytes.
struct Beginning(String);

impl Write for Beginning {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = COMMAND_BYTES_MAX - self.0.len();
        let end = (0..=room.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
        self.0.push_str(&text[..end]);
        if end < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

impl Done<'_> {
    /// One document, or one for each of the statements of an update or a delete.
    pub fn records(&self) -> Vec<DocBuf> {
        let statements = self.facts.statements.borrow();
        let name = self.command_name();
        if statements.is_empty() || !matches!(name, "update" | "delete") {
            return vec![self.whole()];
        }
        let key = if name == "update" { "updates" } else { "deletes" };
        let inline = self.body.get(key).and_then(Value::as_array);
        let asked: Vec<Doc<'_>> = match self.request.sequence(key) {
            Some(sequence) => sequence.collect(),
            None => inline.into_iter().flat_map(Doc::values).filter_map(Value::as_document).collect(),
        };
        asked
            .iter()
            .zip(statements.iter())
            .map(|(asked, (outcome, access))| self.statement(*asked, outcome, access))
            .collect()
    }

    /// The operation as a whole.
    pub fn whole(&self) -> DocBuf {
        DocBuf::build(|writer| {
            writer.append("op", self.kind());
            writer.append("ns", self.namespace.as_str());
            self.write_command(writer);
            self.write_cursor(writer);
            self.write_examined(self.facts.examined.get(), writer);
            self.write_written(writer);
            self.write_middle(writer);
            if let Some(returned) = self.returned() {
                append_count("nreturned", returned, writer);
            }
            self.write_failure(writer);
            append_count("responseLength", self.reply_bytes as u64, writer);
            writer.append("protocol", self.protocol());
            writer.append("millis", self.milliseconds as i32);
            self.write_plan(&self.facts.summary(), writer);
            if let Some(plan) = self.facts.plan.get() {
                let ran = ExecutionStats {
                    found: self.returned().unwrap_or_default(),
                    milliseconds: self.milliseconds as i32,
                };
                let about = ExplainContext { counted: self.facts.counted.get(), ran: Some(ran), predicate: None };
                writer.append("execStats", &plan.stages(&about));
            }
            self.write_end(writer);
        })
    }

    fn statement(&self, asked: Doc<'_>, outcome: &Result<StatementOutcome, Error>, access: &AccessStats) -> DocBuf {
        let updates = self.command_name() == "update";
        DocBuf::build(|writer| {
            writer.append("op", self.kind());
            writer.append("ns", self.namespace.as_str());
            {
                let mut command = writer.document("command");
                asked.elements().for_each(|element| command.append_element(element));
                for key in ["multi", "upsert"] {
                    if updates && asked.get(key).is_none() {
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

    /// Writes a line like MongoDB's.
    pub fn log(&self) {
        let attr = DocBuf::build(|writer| {
            writer.append("type", if self.command_name() == "getMore" { "getmore" } else { "command" });
            writer.append("ns", self.namespace.as_str());
            if let Some(name) = self.application() {
                writer.append("appName", name);
            }
            self.write_command(writer);
            if let plan @ Some(_) = self.facts.summary().as_str() {
                writer.append("planSummary", plan.unwrap_or_default());
            }
            self.write_cursor(writer);
            self.write_examined(self.facts.examined.get(), writer);
            self.write_written(writer);
            if let Some(returned) = self.returned() {
                append_count("nreturned", returned, writer);
            }
            self.write_failure(writer);
            append_count("reslen", self.reply_bytes as u64, writer);
            if let Some(client) = self.session.client {
                writer.append("remote", client.to_string().as_str());
            }
            writer.append("protocol", self.protocol());
            writer.append("durationMillis", self.milliseconds as i32);
        });
        let mut json = Vec::new();
        document::json::bson_to_json(attr.as_doc(), &mut json);
        let attr = String::from_utf8_lossy(&json);
        tracing::info!(target: "slow", "Slow query conn{} {attr}", self.session.connection_id);
    }

    fn command_name(&self) -> &str {
        self.body.first().map_or("", |first| first.key())
    }

    fn kind(&self) -> &'static str {
        crate::command::current_op::kind(self.body)
    }

    fn protocol(&self) -> &'static str {
        match self.request.kind {
            RequestKind::Query { .. } => "op_query",
            _ => "op_msg",
        }
    }

    fn application(&self) -> Option<&str> {
        let metadata = self.session.identity.metadata.get().and_then(|metadata| Doc::from_bytes(metadata))?;
        metadata.get("application")?.as_document()?.get("name")?.as_str()
    }

    /// The command, without the documents that it inserts.
    fn write_command(&self, writer: &mut DocWriter<'_>) {
        let command = options::without(self.body, |key| matches!(key, "documents" | "updates" | "deletes"));
        if command.as_bytes().len() <= COMMAND_BYTES_MAX {
            return writer.append("command", &command);
        }
        let mut text = Beginning(String::new());
        // It fails where there is no more room.
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
        let found = self.facts.plan.get().is_some() || self.facts.summary() != PlanSummary::None;
        if found {
            append_count("keysExamined", examined.keys, writer);
            append_count("docsExamined", examined.documents, writer);
        }
        if self.facts.sorted.get() {
            writer.append("hasSortStage", true);
        }
    }

    fn write_written(&self, writer: &mut DocWriter<'_>) {
        let number = |document: Doc<'_>, key| document.get(key).and_then(crate::arguments::number_to_i64);
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
            let code = self.reply.get("code").and_then(crate::arguments::number_to_i64).unwrap_or_default();
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
        if let Some(client) = self.session.client {
            writer.append("client", client.ip().to_string().as_str());
        }
        if let Some(name) = self.application() {
            writer.append("appName", name);
        }
        drop(writer.array("allUsers"));
        writer.append("user", "");
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
