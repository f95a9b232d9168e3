//! Follows the stream from a position on, until a failure.

use crate::changes::Transaction;
use crate::event_groups::{FedEvent, Group, Groups};
use crate::freshness::{Freshness, State};
use crate::log_position::log_end;
use crate::options::FollowOptions;
use crate::receiver::Receiver;
use crate::requirements::{self, status};
use crate::source::{ReceivedEvent, Request, Source, StreamEnd, StreamStart};
use crate::stream_position::{Diverged, StreamPosition};
use crate::tables::Tables;
use crate::visibility::{Verdict, Visibility};
use mariadb_client::{Failure, Result, ServerUrl, TextConnection};
use mariadb_wire::binlog::{Checksum, Event, Gtid, kind};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Limit on the bytes of groups that wait for delivery, except for a single larger one.
const PENDING_BYTES_MAX: usize = 64 << 20;

/// Transactions that were not proved visible are delivered a second time after this long.
const REDELIVER_AFTER: Duration = Duration::from_secs(1);

/// A session of following, from connecting to a failure.
pub struct Session<'a> {
    queries: TextConnection,
    source: Source,
    groups: Groups,
    tables: Tables,
    visibility: Visibility,
    /// Groups not delivered yet, in the log's order.
    pending: VecDeque<Group>,
    unproved: VecDeque<(Instant, Vec<Transaction>)>,
    position_reached: &'a mut StreamPosition,
    next_position_check: Instant,
    /// Everything committed before this session began has been delivered.
    caught_up: bool,
    freshness: &'a Freshness,
    receiver: &'a mut dyn Receiver,
    options: &'a FollowOptions,
}

/// The follower's state that a session updates.
pub struct Shared<'a> {
    pub position_reached: &'a mut StreamPosition,
    pub freshness: &'a Freshness,
    pub receiver: &'a mut dyn Receiver,
    pub options: &'a FollowOptions,
}

/// Opens the stream at the position of `shared.position_reached`.
pub async fn open<'a>(
    target: &ServerUrl,
    queries: TextConnection,
    server_id: u32,
    checksum: Checksum,
    shared: Shared<'a>,
) -> Result<Session<'a>, StreamEnd> {
    let Shared { position_reached, freshness, receiver, options } = shared;
    let request = Request {
        server_id,
        start: StreamStart::Position(&position_reached.text()),
        heartbeat: options.heartbeat,
        checksum,
        semi_sync: options.semi_sync,
        annotated: false,
    };
    let source = Source::open(target, &request, options.connect_timeout).await;
    let source = source.map_err(|failure| requirements::explain(failure, &target.user))?;
    Ok(Session {
        queries,
        source,
        groups: Groups::new(checksum, options.transaction_bytes_max),
        tables: Tables::default(),
        visibility: Visibility::default(),
        pending: VecDeque::new(),
        unproved: VecDeque::new(),
        position_reached,
        next_position_check: Instant::now(),
        caught_up: false,
        freshness,
        receiver,
        options,
    })
}

impl Session<'_> {
    /// Follows until a failure.
    pub async fn follow(&mut self) -> StreamEnd {
        loop {
            if let Err(ended) = self.round().await {
                return ended;
            }
        }
    }

    /// Returns whether delivered transactions are not proved visible and must be delivered again.
    pub fn has_unproved(&self) -> bool {
        !self.unproved.is_empty()
    }

    async fn round(&mut self) -> Result<(), StreamEnd> {
        let has_room = self.read_events().await?;
        let mut wake = None;
        if !self.pending.is_empty() {
            match self.visibility.judge(&self.pending, &mut self.queries).await? {
                Verdict::Visible(count) => self.deliver(count, true).await?,
                Verdict::Likely(count) => self.deliver(count, false).await?,
                Verdict::NotYet(pause) => wake = Some(Instant::now() + pause),
            }
        }
        self.redeliver();
        self.check_position().await?;
        if wake.is_none() && !self.pending.is_empty() {
            return Ok(());
        }
        let mut wake = wake.map_or(self.next_position_check, |wake| wake.min(self.next_position_check));
        if let Some((due, _)) = self.unproved.front() {
            wake = wake.min(*due);
        }
        if has_room {
            self.source.wait_until(wake).await?;
        } else {
            tokio::time::sleep_until(wake.into()).await;
            self.source.reset_silence();
        }
        Ok(())
    }

    /// Reads the buffered events; returns false if there are more than fit.
    async fn read_events(&mut self) -> Result<bool, StreamEnd> {
        let mut bytes: usize = self.pending.iter().map(|group| group.bytes).sum();
        while bytes < PENDING_BYTES_MAX {
            let Some(arrived) = self.source.next_ready()? else { return Ok(true) };
            let before = self.pending.len();
            self.feed(&arrived).await?;
            bytes += self.pending.iter().skip(before).map(|group| group.bytes).sum::<usize>();
        }
        Ok(false)
    }

    async fn feed(&mut self, arrived: &ReceivedEvent) -> Result<(), StreamEnd> {
        let event = Event::decode(self.source.event(arrived), self.groups.format().checksum).map_err(Failure::from)?;
        if event.header.kind == kind::HEARTBEAT && self.pending.is_empty() {
            self.position_reached.at_end().map_err(|Diverged| another_log())?;
        }
        match self.groups.feed(&event, arrived.wants_acknowledgement)? {
            FedEvent::Nothing => {}
            FedEvent::UnknownTable(map) => {
                let facts = self.tables.facts(&map, &mut self.queries).await?;
                self.groups.add_table(map, facts);
                self.source.reset_silence();
            }
            FedEvent::Group(group) => self.pending.push_back(group),
            FedEvent::Definition(group) => {
                self.tables.invalidate();
                self.pending.push_back(group);
            }
        }
        Ok(())
    }

    /// Delivers the first `count` groups, and releases writers that wait for that.
    async fn deliver(&mut self, count: usize, is_visible: bool) -> Result<()> {
        let groups: Vec<Group> = self.pending.drain(..count).collect();
        let answer = groups.iter().rfind(|group| group.wants_acknowledgement).map(|group| group.offset.clone());
        let transactions: Vec<Transaction> = groups.into_iter().map(|group| group.transaction).collect();
        self.receiver.changes(&transactions);
        self.source.reset_silence();
        for gtid in transactions.iter().filter_map(|transaction| transaction.gtid) {
            self.position_reached.delivered(gtid);
        }
        if !is_visible {
            self.unproved.push_back((Instant::now() + REDELIVER_AFTER, transactions));
        }
        if let Some(place) = answer {
            self.source.acknowledge(&place.file, u64::from(place.end)).await?;
        }
        self.report_position();
        self.update_freshness();
        Ok(())
    }

    fn redeliver(&mut self) {
        while self.unproved.front().is_some_and(|(due, _)| *due <= Instant::now()) {
            let Some((_, transactions)) = self.unproved.pop_front() else { break };
            self.receiver.changes(&transactions);
            self.report_position();
        }
        self.update_freshness();
    }

    /// Reports the position up to which every delivery was proved visible.
    fn report_position(&mut self) {
        if self.unproved.is_empty() {
            self.receiver.advanced(&self.position_reached.position());
        }
    }

    /// Reads the server's position once per heartbeat, which also shows that it is alive.
    async fn check_position(&mut self) -> Result<(), StreamEnd> {
        let now = Instant::now();
        if now < self.next_position_check {
            return Ok(());
        }
        self.next_position_check = now + self.options.heartbeat;
        if self.position_reached.start_goal(now).is_some() {
            // A query nevertheless, to see that the server answers.
            self.queries.rows("SELECT 1").await?;
            self.report_if_late();
            return Ok(());
        }
        let position: Vec<Gtid> = log_end(&mut self.queries).await?;
        self.position_reached.set_goal(&position).map_err(|Diverged| another_log())?;
        let strict = self.options.semi_sync && self.is_strict().await?;
        self.update_freshness();
        if !self.report_if_late() && self.caught_up {
            self.report(State::Following { strict });
        }
        Ok(())
    }

    /// Returns whether the server waits for this replica's acknowledgement: it is satisfied with
    /// any replica's, so this must be the only one.
    async fn is_strict(&mut self) -> Result<bool> {
        let is_on = status(&mut self.queries, "Rpl_semi_sync_master_status").await?.is_some_and(|value| value == "ON");
        let clients = status(&mut self.queries, "Rpl_semi_sync_master_clients").await?;
        Ok(is_on && clients.is_some_and(|count| count == "1"))
    }

    /// Advances the freshness if the goal was reached, unless a delivery is unproved.
    fn update_freshness(&mut self) {
        if self.unproved.is_empty()
            && let Some(moment) = self.position_reached.take_reached()
        {
            self.freshness.advance(moment);
            self.caught_up = true;
        }
    }

    /// Reports the stream as cut if changes arrive too late; returns whether they do.
    fn report_if_late(&mut self) -> bool {
        let behind = self.freshness.behind().unwrap_or_default();
        let is_late = behind > self.options.behind_max;
        if is_late && matches!(self.freshness.state(), State::Following { .. }) {
            let why = format!("changes in MariaDB arrive more than {} ms late", self.options.behind_max.as_millis());
            self.report(State::Cut { since: Instant::now(), why });
        }
        is_late
    }

    fn report(&mut self, state: State) {
        if self.freshness.set_state(state.clone()) {
            self.receiver.state(&state);
        }
    }
}

fn another_log() -> StreamEnd {
    StreamEnd::PositionLost("it writes another log now (RESET MASTER?)".into())
}
