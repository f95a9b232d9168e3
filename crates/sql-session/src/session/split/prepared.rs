//! Prepared statements. The client has an id of the gateway's own for each; every connection that
//! executes one has prepared it, under the id of its server.

use super::cached::Select;
use super::carried::StateChange;
use super::command::{Command, Need, Outcome, command, is_read, set_statement};
use super::exchange::{Failure, ask};
use super::prepared_statement::SplitPrepared;
use super::reads::ReplicaChoice;
use super::route::{Destination, route};
use super::sharing;
use super::split_state::Split;
use crate::execute_packet::ExecutePacket;
use crate::reply_tracker::{LAST_ROW_SENT, PACKET_MAX, ReplyKind, ReplyTracker};
use crate::session::com;
use crate::session::prepared_statement::Execution;
use crate::session::state::Session;
use service::CausalReads;
use sql_classify::statement::STATEMENT_BYTES_MAX;
use sql_classify::{Class, DiagnosticsKept, DiagnosticsUse, SessionSettings, StatementKind};
use std::io;
use std::rc::Rc;

/// The id that stands for the statement prepared last.
const LAST_PREPARED: u32 = u32::MAX;

/// Longer executions are forwarded without being held whole.
const EXECUTION_BYTES_MAX: usize = PACKET_MAX - (256 << 10);

impl Session {
    pub(super) async fn split_prepare(&mut self, split: &mut Split, packet: &[u8]) -> io::Result<Outcome> {
        if !self.reach_home(split, Need::Any).await? {
            return Ok(Outcome::Continues);
        }
        let sql = packet.get(5..).unwrap_or_default();
        let (mut class, mut change) = (None, StateChange::Bind("it has prepared a long statement"));
        if sql.len() <= STATEMENT_BYTES_MAX {
            let lexis = if split.detached.is_none() { self.lexis(sql).await? } else { self.known_lexis() };
            let found = self.class_by(sql, lexis, true).await;
            change = StateChange::of(std::str::from_utf8(sql).unwrap_or_default(), lexis, found.facts());
            // Its settings may be parameters.
            if matches!(change, StateChange::Carry { .. }) {
                change = StateChange::Bind("it has changed settings by a prepared statement");
            }
            class = Some(found);
        }
        if self.context.observer.is_some()
            && !self.split_catch_up(split, DiagnosticsKept::All, DiagnosticsUse::Anything).await?
        {
            return Ok(Outcome::Continues);
        }
        let (execution, settings) = self.split_execution(split, class.as_ref()).await?;
        let (bytes, reply) = loop {
            if !self.reach_home(split, Need::Any).await? {
                return Ok(Outcome::Continues);
            }
            let mut reply = ReplyTracker::new(ReplyKind::Prepared, self.login.deprecates_eof);
            match ask(&mut self.server, packet, &mut reply, &mut split.assignment).await {
                Ok(bytes) => break (bytes, reply),
                Err(Failure::Client(error)) => return Err(error),
                Err(Failure::Server(lost)) if split.can_move(false) => self.detach(split, lost.reason),
                Err(Failure::Server(lost)) => return Ok(self.lose_home(split, lost).await?.next),
            }
        };
        let mut bytes = bytes;
        if let Some(there) = reply.statement.filter(|_| !reply.failed) {
            split.last_prepared = split.last_prepared.wrapping_add(1) % LAST_PREPARED;
            let id = split.last_prepared;
            set_statement(&mut bytes, id);
            split.home_prepared.insert(id, there);
            let (params, types, has_long_data) = (reply.params, None, false);
            let packet = packet.into();
            split
                .prepared
                .insert(id, SplitPrepared { packet, class, change, execution, settings, params, types, has_long_data });
        }
        self.client.send(&bytes).await?;
        Ok(Outcome::Continues)
    }

    /// Returns what executing a statement changes that is being prepared, and the settings by which
    /// that was found.
    async fn split_execution(
        &mut self,
        split: &mut Split,
        class: Option<&Rc<Class>>,
    ) -> io::Result<(Rc<Execution>, Option<Rc<SessionSettings>>)> {
        let Some(statement) = class.map(|class| class.statement()).filter(|it| it.is_executed_at_once()) else {
            return Ok(Default::default());
        };
        if self.context.observer.is_none() || !statement.effects.has_names() {
            return Ok((Rc::new(Execution::of(statement, None)), None));
        }
        let settings = match split.detached.is_none() {
            true => self.settings().await?,
            false => None,
        };
        Ok((Rc::new(Execution::of(statement, settings.as_deref())), settings))
    }

    pub(super) async fn split_execute(&mut self, split: &mut Split, length: usize) -> io::Result<Outcome> {
        let id = self.peek_statement(split).await?;
        if length >= EXECUTION_BYTES_MAX {
            return self.split_prepared_stream(split, com::STMT_EXECUTE).await;
        }
        let packet = self.client.packet(EXECUTION_BYTES_MAX).await?;
        let situation = split.situation();
        let Some(prepared) = split.prepared.get_mut(&id) else {
            return Ok(self.at_home(split, &Command::text(&packet), ReplyKind::Results, Need::Any).await?.next);
        };
        let execution = ExecutePacket::parse(packet.get(4..).unwrap_or_default(), prepared.params);
        let execution = execution.filter(|_| !prepared.has_long_data);
        let mut has_cursor = true;
        let whole = execution.and_then(|execution| {
            prepared.types = execution.types.map(Rc::from).or(prepared.types.take());
            has_cursor = !execution.is_without_cursor();
            // A connection that has not executed it lacks the types.
            Some(execution.packet(prepared.types.as_deref()?))
        });
        let may_leave = whole.is_some() && !has_cursor;
        let packet = whole.unwrap_or(packet);
        let (class, change) = (prepared.class.clone(), prepared.change.clone());
        let (execution, prepared_with, params) =
            (prepared.execution.clone(), prepared.settings.clone(), prepared.params);
        let lacks_data = std::mem::take(&mut prepared.has_long_data) && situation.is_reading;
        if lacks_data {
            return self.refuse_in_transaction("COM_STMT_SEND_LONG_DATA").await;
        }
        let mut statement = Command::prepared(&packet, id, prepared.packet.clone());
        if let Some(class) = &class {
            statement = statement.of(class, &change);
        }
        statement.is_repeatable &= may_leave;
        let preparing = statement.prepared.clone().map(|(_, preparing)| preparing);
        if may_leave
            && let (Some(class), Some(preparing), Some(settings)) = (&class, &preparing, &prepared_with)
            && class.statement().kind == StatementKind::PureSelect
        {
            let select = Select {
                command: &statement,
                sql: preparing.get(5..).unwrap_or_default(),
                tables: &class.statement().effects.reads,
                prepared: Some((params, settings.clone())),
            };
            if let Some(outcome) = self.read_through_cache(split, &select).await? {
                return Ok(outcome);
            }
        }
        let destination =
            class.as_ref().map(|class| route(class.statement(), class.facts(), None, situation).destination);
        let leaves = match &destination {
            Some(Destination::Reading) => true,
            Some(destination) => may_leave && split.leaves(destination),
            None => false,
        };
        let has_schema =
            self.settings.as_ref().zip(prepared_with.as_ref()).is_some_and(|(now, then)| now.bytes == then.bytes);
        let now = class.as_ref().map(|class| class.statement()).filter(|it| it.is_executed_at_once() && !has_schema);
        let now = now.map(|statement| &statement.effects);
        let is_ready = match leaves {
            true => self.split_catch_up(split, execution.diagnostics_kept, execution.diagnostics_use).await?,
            false => self.announce_execution(split, &execution, now).await?,
        };
        if !is_ready {
            return Ok(Outcome::Continues);
        }
        if split.sharing.is_some()
            && let Some((_, preparing)) = &statement.prepared
        {
            statement.diagnostics.counts_rows = sharing::counts_rows(preparing);
            if class.as_ref().is_some_and(|class| sharing::uses_diagnostics(class))
                && let Some(outcome) =
                    self.answer_diagnostics(split, preparing.get(5..).unwrap_or_default(), true).await?
            {
                return Ok(outcome);
            }
        }
        let (mut only_reads, mut need) = (false, Need::Primary);
        if let Some(class) = &class {
            only_reads = is_read(class);
            need = split.need(class);
            let done = match destination.unwrap_or(Destination::Primary) {
                // The cursor stays there.
                Destination::Reading => self.read_in_transaction(split, &statement, ReplyKind::Results).await?,
                _ if !may_leave => None,
                Destination::Replica => self.read_elsewhere(split, &statement, ReplicaChoice::default()).await?,
                Destination::Last if split.last_replica.is_some() => {
                    let name = split.last_replica.clone();
                    let choice = ReplicaChoice { server: name.as_deref(), ..ReplicaChoice::default() };
                    self.read_elsewhere(split, &statement, choice).await?
                }
                _ => None,
            };
            if let Some(outcome) = done {
                return Ok(outcome);
            }
        }
        if leaves && !self.announce_execution(split, &execution, now).await? {
            return Ok(Outcome::Continues);
        }
        let done = self.at_home(split, &statement, ReplyKind::Results, need).await?;
        if let Some(sharing) = &mut split.sharing {
            match has_cursor {
                true => sharing.cursors.insert(id),
                false => sharing.cursors.remove(&id),
            };
        }
        if done.reply.is_some() {
            split.note_change(&change, &packet);
            split.has_written |= !only_reads && split.settings.causal_reads == CausalReads::Session;
        }
        Ok(done.next)
    }

    /// Executes COM_STMT_FETCH or COM_STMT_RESET.
    pub(super) async fn split_cursor(&mut self, split: &mut Split, command: u8) -> io::Result<Outcome> {
        let id = self.peek_statement(split).await?;
        let kind = if command == com::STMT_FETCH { ReplyKind::Rows } else { ReplyKind::Single };
        if let Some(replica) = &split.reading
            && replica.prepared.contains_key(&id)
            && let Some(prepared) = split.prepared.get(&id)
        {
            let preparing = prepared.packet.clone();
            let packet = self.client.packet(PACKET_MAX - 1).await?;
            let fetch = Command::prepared(&packet, id, preparing);
            if let Some(outcome) = self.read_in_transaction(split, &fetch, kind).await? {
                return Ok(outcome);
            }
        }
        self.split_prepared_stream(split, command).await
    }

    /// Forwards a command about a prepared statement to the session's own connection, as it
    /// arrives.
    pub(super) async fn split_prepared_stream(&mut self, split: &mut Split, command: u8) -> io::Result<Outcome> {
        let id = self.peek_statement(split).await?;
        if split.reading.is_some() && command != com::STMT_RESET {
            self.client.skip_command().await?;
            if command == com::STMT_SEND_LONG_DATA {
                // It has no reply: its execution is refused.
                if let Some(prepared) = split.prepared.get_mut(&id) {
                    prepared.has_long_data = true;
                }
                return Ok(Outcome::Continues);
            }
            return self.refuse_in_transaction("long values and bulk execution").await;
        }
        // Its id is that of the connection that is found here.
        if !self.reach_home(split, Need::Primary).await? {
            self.client.skip_command().await?;
            return Ok(Outcome::Continues);
        }
        if [com::STMT_EXECUTE, com::STMT_BULK_EXECUTE].contains(&command) {
            let execution = split.prepared.get(&id).map(|it| it.execution.clone()).unwrap_or_default();
            let now = split.prepared.get(&id).and_then(|it| it.class.clone());
            let now = now.as_ref().map(|class| class.statement()).filter(|it| it.is_executed_at_once());
            if !self.announce_execution(split, &execution, now.map(|statement| &statement.effects)).await? {
                self.client.skip_command().await?;
                return Ok(Outcome::Continues);
            }
        }
        let preparing = split.prepared.get_mut(&id).map(|prepared| {
            match command {
                com::STMT_SEND_LONG_DATA => prepared.has_long_data = true,
                com::STMT_RESET => prepared.has_long_data = false,
                _ => {}
            }
            prepared.packet.clone()
        });
        if let Some(preparing) = preparing {
            match self.prepare_at_home(split, id, &preparing).await {
                Ok(there) => {
                    set_statement(self.client.bytes_mut(), there.unwrap_or_default());
                }
                Err(Failure::Client(error)) => return Err(error),
                Err(Failure::Server(lost)) => return Ok(self.lose_home(split, lost).await?.next),
            }
        }
        match command {
            com::STMT_SEND_LONG_DATA => {
                self.client.forward_command(&mut self.server).await?;
                Ok(Outcome::Continues)
            }
            com::STMT_FETCH | com::STMT_RESET => {
                let kind = if command == com::STMT_FETCH { ReplyKind::Rows } else { ReplyKind::Single };
                let outcome = self.stream_at_home(split, kind).await?;
                if command == com::STMT_RESET || split.status & LAST_ROW_SENT != 0 {
                    split.sharing.iter_mut().for_each(|sharing| _ = sharing.cursors.remove(&id));
                }
                Ok(outcome)
            }
            _ => {
                split.has_written = true;
                self.stream_at_home(split, ReplyKind::Results).await
            }
        }
    }

    /// Closes a statement on each connection that has prepared it.
    pub(super) async fn split_close(&mut self, split: &mut Split) -> io::Result<Outcome> {
        let id = self.peek_statement(split).await?;
        self.client.packet(PACKET_MAX - 1).await?;
        split.prepared.remove(&id);
        if let Some(sharing) = &mut split.sharing {
            sharing.cursors.remove(&id);
        }
        let closing = |there: u32| command(com::STMT_CLOSE, &there.to_le_bytes());
        if let Some(there) = split.home_prepared.remove(&id)
            && split.detached.is_none()
        {
            self.server.send(&closing(there)).await?;
        }
        for replica in split.replicas.iter_mut().chain(split.reading.as_deref_mut()) {
            if let Some(there) = replica.prepared.remove(&id) {
                // A connection that has failed is found when it is used.
                let _ = replica.server.send(&closing(there)).await;
            }
        }
        Ok(Outcome::Continues)
    }

    /// Prepares a statement on the session's own connection, if it is not yet. Returns the server's
    /// id; `None` if the server refuses it.
    pub(super) async fn prepare_at_home(
        &mut self,
        split: &mut Split,
        id: u32,
        packet: &[u8],
    ) -> Result<Option<u32>, Failure> {
        if let Some(&known) = split.home_prepared.get(&id) {
            return Ok(Some(known));
        }
        let mut reply = ReplyTracker::new(ReplyKind::Prepared, self.login.deprecates_eof);
        ask(&mut self.server, packet, &mut reply, &mut split.assignment).await?;
        let Some(there) = reply.statement.filter(|_| !reply.failed) else { return Ok(None) };
        split.home_prepared.insert(id, there);
        Ok(Some(there))
    }

    /// Returns the id of the statement that the next command names.
    async fn peek_statement(&mut self, split: &Split) -> io::Result<u32> {
        let (_, payload) = self.client.peek(5).await?;
        let id = payload.get(1..5).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes);
        Ok(if id == LAST_PREPARED { split.last_prepared } else { id })
    }
}
