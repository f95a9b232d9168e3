//! The thread that seals events and writes them.

use super::options::Options;
use super::queue::{QUEUE_EVENTS_MAX, Queue, Shared, Ticket};
use crate::chain::Head;
use crate::destination::{Destination, LogFile, Syslog};
use crate::event::{Event, Subject, kind};
use crate::line;
use document::{DocBuf, doc};
use std::io;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// The pause after a failed attempt to write.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// How long the log is retried when the process ends.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// The interval of messages about a log that cannot be written.
const COMPLAINT_INTERVAL: Duration = Duration::from_secs(60);

/// The longest line that is sent to syslog. Most daemons cut longer ones.
const SYSLOG_LINE_BYTES_MAX: usize = 8 << 10;

/// The number of events that are written at once.
const BATCH_EVENTS_MAX: usize = 1024;

enum Target {
    File(LogFile),
    Syslog(Syslog),
}

pub(super) struct Writer {
    target: Target,
    head: Head,
    /// Sealed lines that are not yet written.
    pending: Vec<u8>,
    /// The ticket of the last event among them.
    pending_ticket: Ticket,
    /// Whether lines were written since the last sync.
    is_dirty: bool,
    last_complaint: Option<Instant>,
}

/// The part of the queue that the thread has taken.
struct Work {
    events: Vec<Event>,
    ticket: Ticket,
    rotations: Vec<oneshot::Sender<Result<(), String>>>,
    dropped: u64,
    is_stopping: bool,
}

impl Writer {
    /// Opens the destination. Returns the event to begin with, if the log has to be mended.
    pub fn open(options: &Options) -> io::Result<(Writer, Option<Event>)> {
        let (target, head, torn) = match &options.destination {
            Destination::File(path) => {
                let (file, found) = LogFile::open(path, options.key.as_ref())?;
                if let Some(warning) = &found.warning {
                    tracing::warn!(path = %path.display(), "the audit log is continued, but {warning}");
                }
                (Target::File(file), found.head, found.torn)
            }
            Destination::Syslog => (Target::Syslog(Syslog::open(options.syslog_socket.clone())?), Head::EMPTY, None),
        };
        let first = torn.map(|torn| Event {
            kind: kind::TORN_LINE,
            ts_ms: (options.now_ms)(),
            subject: Subject::system(options.process),
            param: torn,
            result: 0,
        });
        let writer = Writer {
            target,
            head,
            pending: Vec::new(),
            pending_ticket: Ticket(0),
            is_dirty: false,
            last_complaint: None,
        };
        Ok((writer, first))
    }

    pub fn run(mut self, shared: &Shared) {
        let mut stop_deadline = None;
        loop {
            let work = self.next_work(shared);
            if work.is_stopping {
                stop_deadline.get_or_insert_with(|| Instant::now() + STOP_TIMEOUT);
            }
            self.seal(&work, &shared.options);
            let outcome = self.flush(shared.options.sync, &shared.options);
            self.report(shared, &outcome);
            for rotation in work.rotations {
                let rotated = match &outcome {
                    Ok(()) => self.rotate(&shared.options),
                    Err(error) => Err(error.to_string()),
                };
                // The command may have been killed.
                let _ = rotation.send(rotated);
            }
            let is_late = stop_deadline.is_some_and(|deadline| Instant::now() >= deadline);
            match outcome {
                Ok(()) if work.is_stopping && shared.lock().events.is_empty() => return,
                Err(_) if is_late => {
                    let lost = shared.lock().events.len();
                    tracing::error!(lost, "the process ends with events that the audit log lacks");
                    return;
                }
                Ok(()) => {}
                Err(_) => std::thread::sleep(RETRY_PAUSE),
            }
        }
    }

    /// Waits for events. While lines are pending there is nothing to wait for.
    fn next_work(&self, shared: &Shared) -> Work {
        let is_idle = |queue: &mut Queue| {
            self.pending.is_empty() && queue.events.is_empty() && queue.rotations.is_empty() && !queue.is_stopping
        };
        let mut queue = shared.wake.wait_while(shared.lock(), is_idle).unwrap_or_else(PoisonError::into_inner);
        // Sealed lines cannot be dropped, so there are few of them.
        let taken = if self.pending.is_empty() { queue.events.len().min(BATCH_EVENTS_MAX) } else { 0 };
        let events: Vec<Event> = queue.events.drain(..taken).collect();
        let ticket = Ticket(queue.queued - queue.events.len() as u64);
        shared.is_full.store(queue.events.len() >= QUEUE_EVENTS_MAX, Ordering::Relaxed);
        let dropped = if self.pending.is_empty() { std::mem::take(&mut queue.dropped) } else { 0 };
        let rotations = std::mem::take(&mut queue.rotations);
        Work { events, ticket, rotations, dropped, is_stopping: queue.is_stopping }
    }

    fn seal(&mut self, work: &Work, options: &Options) {
        for event in &work.events {
            self.seal_event(event, options);
        }
        if work.dropped > 0 {
            let param = doc! { "count": work.dropped as i64 };
            self.seal_event(&own_event(kind::EVENTS_LOST, param, options), options);
        }
        if !work.events.is_empty() {
            self.pending_ticket = work.ticket;
        }
    }

    fn seal_event(&mut self, event: &Event, options: &Options) {
        let start = self.pending.len();
        line::write_open(event, &mut self.pending);
        let bytes = self.pending.len() - start;
        if matches!(self.target, Target::Syslog(_)) && bytes > SYSLOG_LINE_BYTES_MAX {
            self.pending.truncate(start);
            let param = doc! { "truncated": true, "bytes": bytes as i64 };
            line::write_open(&Event { param, ..event.clone() }, &mut self.pending);
        }
        self.head.seal(options.key.as_ref(), start, &mut self.pending);
    }

    /// Writes the pending lines.
    fn flush(&mut self, sync: bool, options: &Options) -> io::Result<()> {
        if self.pending.is_empty() && !self.is_dirty {
            return Ok(());
        }
        while !self.pending.is_empty() {
            let written = match &mut self.target {
                Target::File(file) => file.write(&self.pending),
                Target::Syslog(syslog) => {
                    let end =
                        self.pending.iter().position(|byte| *byte == b'\n').map_or(self.pending.len(), |at| at + 1);
                    syslog.send(&self.pending[..end]).map(|()| end)
                }
            };
            match written {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => drop(self.pending.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            self.is_dirty = true;
        }
        if let Target::File(file) = &mut self.target {
            file.record_head(self.head, options.key.as_ref())?;
            if sync {
                file.sync()?;
            }
        }
        self.is_dirty = false;
        Ok(())
    }

    /// Wakes the commands that wait for their events, and logs failures.
    fn report(&mut self, shared: &Shared, outcome: &io::Result<()>) {
        let was_failing = shared.is_failing.swap(outcome.is_err(), Ordering::Relaxed);
        match outcome {
            Ok(()) => {
                shared.written.send_replace(self.pending_ticket);
                if was_failing {
                    tracing::info!("the audit log is written again");
                    self.last_complaint = None;
                }
            }
            Err(error) => {
                // Wakes commands that wait for an event.
                shared.written.send_modify(|_| {});
                if self.last_complaint.is_none_or(|last| last.elapsed() >= COMPLAINT_INTERVAL) {
                    self.last_complaint = Some(Instant::now());
                    tracing::error!(%error, "the audit log cannot be written; events are kept in memory");
                }
            }
        }
    }

    fn rotate(&mut self, options: &Options) -> Result<(), String> {
        match &mut self.target {
            Target::Syslog(_) => {
                return Err("the audit log is sent to syslog, which rotates its files itself".to_owned());
            }
            Target::File(file) => file.rotate((options.now_ms)()).map_err(|error| error.to_string())?,
        }
        self.seal_event(&own_event(kind::ROTATE_LOG, DocBuf::new(), options), options);
        self.flush(options.sync, options).map_err(|error| error.to_string())
    }
}

fn own_event(kind: &'static str, param: DocBuf, options: &Options) -> Event {
    Event { kind, ts_ms: (options.now_ms)(), subject: Subject::system(options.process), param, result: 0 }
}
