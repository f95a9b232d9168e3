//! Following from a position onwards, until something breaks.

use crate::changes::Transaction;
use crate::follower::{FollowOptions, Receiver};
use crate::freshness::{Freshness, State};
use crate::groups::{Fed, Group, Groups};
use crate::log_position::log_end;
use crate::reach::{Diverged, Reach};
use crate::requirements::{self, status};
use crate::source::{Arrived, Ended, Request, Source};
use crate::tables::Tables;
use crate::visibility::{Verdict, Visibility};
use mariadb_client::{Failure, Result, ServerUrl, TextConnection};
use mariadb_wire::binlog::{Checksum, Event, Gtid, kind};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Groups that wait to be handed on take no more than this, but for a single large one.
const PENDING_BYTES_MAX: usize = 64 << 20;

/// What could not be proved visible is handed on a second time after so long.
const AGAIN: Duration = Duration::from_secs(1);

pub struct Session<'a> {
    helper: TextConnection,
    source: Source,
    groups: Groups,
    tables: Tables,
    visibility: Visibility,
    /// In the log's order.
    pending: VecDeque<Group>,
    again: VecDeque<(Instant, Vec<Transaction>)>,
    reach: &'a mut Reach,
    next_question: Instant,
    /// What was committed before this session began has been handed on.
    caught_up: bool,
    freshness: &'a Freshness,
    receiver: &'a mut dyn Receiver,
    options: &'a FollowOptions,
}

/// Where a session writes what it learns.
pub struct Shared<'a> {
    pub reach: &'a mut Reach,
    pub freshness: &'a Freshness,
    pub receiver: &'a mut dyn Receiver,
    pub options: &'a FollowOptions,
}

/// Opens the stream at where `shared.reach` is.
pub async fn open<'a>(
    target: &ServerUrl,
    helper: TextConnection,
    server_id: u32,
    checksum: Checksum,
    shared: Shared<'a>,
) -> Result<Session<'a>, Ended> {
    let Shared { reach, freshness, receiver, options } = shared;
    let request = Request {
        server_id,
        position: &reach.text(),
        heartbeat: options.heartbeat,
        checksum,
        semi_sync: options.semi_sync,
    };
    let source = Source::open(target, &request, options.connect_timeout).await;
    let source = source.map_err(|failure| requirements::explain(failure, &target.user))?;
    Ok(Session {
        helper,
        source,
        groups: Groups::new(checksum, options.transaction_bytes_max),
        tables: Tables::default(),
        visibility: Visibility::default(),
        pending: VecDeque::new(),
        again: VecDeque::new(),
        reach,
        next_question: Instant::now(),
        caught_up: false,
        freshness,
        receiver,
        options,
    })
}

impl Session<'_> {
    /// Goes on until something breaks.
    pub async fn follow(&mut self) -> Ended {
        loop {
            if let Err(ended) = self.round().await {
                return ended;
            }
        }
    }

    /// Whether something was handed on of which it is not sure that readers saw it, and has not been since.
    pub fn owes(&self) -> bool {
        !self.again.is_empty()
    }

    async fn round(&mut self) -> Result<(), Ended> {
        let has_room = self.take_in().await?;
        let mut wake = None;
        if !self.pending.is_empty() {
            match self.visibility.judge(&self.pending, &mut self.helper).await? {
                Verdict::Visible(count) => self.hand_on(count, true).await?,
                Verdict::Likely(count) => self.hand_on(count, false).await?,
                Verdict::NotYet(pause) => wake = Some(Instant::now() + pause),
            }
        }
        self.hand_on_again();
        self.ask_where().await?;
        if wake.is_none() && !self.pending.is_empty() {
            return Ok(());
        }
        let mut wake = wake.map_or(self.next_question, |wake| wake.min(self.next_question));
        if let Some((due, _)) = self.again.front() {
            wake = wake.min(*due);
        }
        if has_room {
            self.source.wait_until(wake).await?;
        } else {
            tokio::time::sleep_until(wake.into()).await;
            self.source.excuse();
        }
        Ok(())
    }

    /// Reads the events that are here. `false`: there are more, for which there is no room yet.
    async fn take_in(&mut self) -> Result<bool, Ended> {
        let mut bytes: usize = self.pending.iter().map(|group| group.bytes).sum();
        while bytes < PENDING_BYTES_MAX {
            let Some(arrived) = self.source.next_ready()? else { return Ok(true) };
            let before = self.pending.len();
            self.feed(&arrived).await?;
            bytes += self.pending.iter().skip(before).map(|group| group.bytes).sum::<usize>();
        }
        Ok(false)
    }

    async fn feed(&mut self, arrived: &Arrived) -> Result<(), Ended> {
        let event = Event::decode(self.source.event(arrived), self.groups.format().checksum).map_err(Failure::from)?;
        if event.header.kind == kind::HEARTBEAT && self.pending.is_empty() {
            self.reach.at_end().map_err(|Diverged| another_log())?;
        }
        match self.groups.feed(&event, arrived.wants_answer)? {
            Fed::Nothing => {}
            Fed::Unknown(map) => {
                let facts = self.tables.facts(&map, &mut self.helper).await?;
                self.groups.know(map, facts);
                self.source.excuse();
            }
            Fed::Group(group) => self.pending.push_back(group),
            Fed::Definition(group) => {
                self.tables.forget();
                self.pending.push_back(group);
            }
        }
        Ok(())
    }

    /// Hands the first `count` groups on, and lets writers go on that wait for it.
    async fn hand_on(&mut self, count: usize, is_visible: bool) -> Result<()> {
        let groups: Vec<Group> = self.pending.drain(..count).collect();
        let answer = groups.iter().rfind(|group| group.wants_answer).map(|group| group.place.clone());
        let transactions: Vec<Transaction> = groups.into_iter().map(|group| group.transaction).collect();
        self.receiver.changes(&transactions);
        self.source.excuse();
        for gtid in transactions.iter().filter_map(|transaction| transaction.gtid) {
            self.reach.handed_on(gtid);
        }
        if !is_visible {
            self.again.push_back((Instant::now() + AGAIN, transactions));
        }
        if let Some(place) = answer {
            self.source.acknowledge(&place.file, u64::from(place.end)).await?;
        }
        self.tell_reached();
        self.note_reached();
        Ok(())
    }

    fn hand_on_again(&mut self) {
        while self.again.front().is_some_and(|(due, _)| *due <= Instant::now()) {
            let Some((_, transactions)) = self.again.pop_front() else { break };
            self.receiver.changes(&transactions);
            self.tell_reached();
        }
        self.note_reached();
    }

    /// Tells how far everything has been handed on for sure.
    fn tell_reached(&mut self) {
        if self.again.is_empty() {
            self.receiver.reached(&self.reach.position());
        }
    }

    /// Asks where the server is, once in a heartbeat's time. That also tells whether it is there.
    async fn ask_where(&mut self) -> Result<(), Ended> {
        let now = Instant::now();
        if now < self.next_question {
            return Ok(());
        }
        self.next_question = now + self.options.heartbeat;
        if self.reach.ask(now).is_some() {
            // The server is asked nevertheless: that it answers is worth knowing.
            self.helper.rows("SELECT 1").await?;
            self.tell_if_late();
            return Ok(());
        }
        let position: Vec<Gtid> = log_end(&mut self.helper).await?;
        self.reach.answer(&position).map_err(|Diverged| another_log())?;
        let strict = self.options.semi_sync && self.is_strict().await?;
        self.note_reached();
        if !self.tell_if_late() && self.caught_up {
            self.tell(State::Following { strict });
        }
        Ok(())
    }

    /// Whether the server waits for our answers, and for ours alone: it is content with any replica's.
    async fn is_strict(&mut self) -> Result<bool> {
        let is_on = status(&mut self.helper, "Rpl_semi_sync_master_status").await?.is_some_and(|value| value == "ON");
        let clients = status(&mut self.helper, "Rpl_semi_sync_master_clients").await?;
        Ok(is_on && clients.is_some_and(|count| count == "1"))
    }

    /// What is yet to be handed on again has not been handed on for sure.
    fn note_reached(&mut self) {
        if self.again.is_empty()
            && let Some(moment) = self.reach.reached()
        {
            self.freshness.advance(moment);
            self.caught_up = true;
        }
    }

    /// Says that changes come too late, if they do.
    fn tell_if_late(&mut self) -> bool {
        let behind = self.freshness.behind().unwrap_or_default();
        let is_late = behind > self.options.behind_max;
        if is_late && matches!(self.freshness.state(), State::Following { .. }) {
            let why = format!("changes in MariaDB arrive more than {} ms late", self.options.behind_max.as_millis());
            self.tell(State::Cut { since: Instant::now(), why });
        }
        is_late
    }

    fn tell(&mut self, state: State) {
        if self.freshness.set_state(state.clone()) {
            self.receiver.state(&state);
        }
    }
}

fn another_log() -> Ended {
    Ended::Lost("the log that it writes now is another one (RESET MASTER?)".into())
}
