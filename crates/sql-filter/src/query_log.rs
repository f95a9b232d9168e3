//! A query log: a line of JSON for each statement.

use crate::filter::{Call, Filter, Outcome};
use crate::line_file::LineFile;
use crate::settings::QueryLogSettings;
use serde::Serialize;
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

/// A query log.
#[derive(Debug)]
pub struct QueryLog {
    settings: QueryLogSettings,
    file: LineFile,
}

/// A line of the log.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'l> {
    /// When the statement ended.
    time: String,
    service: &'l str,
    user: &'l str,
    host: &'l str,
    schema: &'l str,
    server: Option<&'l str>,
    command: &'static str,
    duration_us: u64,
    rows: u64,
    error: Option<u16>,
    /// `None`: it is too long, or cannot be read as the server reads it.
    statement: Option<&'l str>,
}

impl QueryLog {
    pub fn open(settings: QueryLogSettings) -> io::Result<QueryLog> {
        Ok(QueryLog { file: LineFile::open(&settings.path)?, settings })
    }
}

impl Filter for QueryLog {
    fn finished(&self, call: &Call<'_>, outcome: &Outcome<'_>) {
        if outcome.duration < self.settings.duration_min && outcome.error.is_none() {
            return;
        }
        let redacted = if self.settings.shows_literals { None } else { call.statement.redacted() };
        let statement = if self.settings.shows_literals { call.statement.text() } else { redacted.as_deref() };
        let line = Line {
            time: values::calendar::iso_text(now_ms()),
            service: call.service,
            user: &call.client.user,
            host: &call.client.host,
            schema: &call.client.schema,
            server: outcome.server,
            command: call.action.name(),
            duration_us: u64::try_from(outcome.duration.as_micros()).unwrap_or(u64::MAX),
            rows: outcome.rows,
            error: outcome.error,
            statement,
        };
        match serde_json::to_string(&line).is_ok_and(|line| self.file.push(line)) {
            true => call.counters.logged.increment(),
            false => call.counters.dropped.increment(),
        }
    }

    fn reopen(&self) {
        self.file.reopen();
    }
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Counters;
    use crate::filter::{Action, Client};
    use crate::statement::Statement;
    use sql_classify::Lexis;
    use std::sync::Arc;
    use std::time::Duration;

    #[test]
    fn a_line_hides_literals() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let counters = Arc::new(Counters::default());
        for shows_literals in [false, true] {
            let duration_min = Duration::from_millis(1);
            let log = QueryLog::open(QueryLogSettings { path: path.clone(), shows_literals, duration_min }).unwrap();
            let statement = Statement::classify("SELECT 'secret'", Lexis::default(), false);
            let client = Client { user: "j\"oe".into(), host: "::1".into(), schema: "d".into(), views: None };
            let (service, action) = ("app", Action::Execute);
            let call = Call { statement: &statement, action, client: &client, service, counters: &counters };
            for (micros, error) in [(1500, None), (10, Some(1064)), (10, None)] {
                let duration = Duration::from_micros(micros);
                log.finished(&call, &Outcome { duration, server: Some("db1"), rows: 1, error });
            }
        }
        let text = std::fs::read_to_string(path).unwrap();
        let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((lines.len(), counters.logged.get()), (4, 4), "fast statements are left out");
        assert_eq!((&lines[0]["statement"], &lines[2]["statement"]), (&"SELECT ?".into(), &"SELECT 'secret'".into()));
        assert_eq!((&lines[0]["user"], &lines[1]["error"]), (&"j\"oe".into(), &1064.into()));
        assert_eq!((&lines[0]["durationUs"], &lines[0]["command"]), (&1500.into(), &"execute".into()));
    }
}
