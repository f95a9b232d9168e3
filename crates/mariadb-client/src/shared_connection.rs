//! One connection that many sessions use at once, for statements that are answered with a row or none.
//!
//! Lookups of all sessions that become ready together go out in one write, and the answers come back in that order, often in one read:
//! under load a lookup costs a fraction of a system call. There is no task behind it. Whoever waits for an answer drives the connection
//! for all, and hands that over when its own answer has come; each ticket keeps the waker for it.
//!
//! A statement here waits for no lock, because all others would wait with it: one that meets a lock
//! fails, and is executed on a connection of its own. A connection that has not answered for a
//! while is closed when a session gives up waiting for it.

use crate::event::Event;
use crate::failure::{Failure, Result, server_error};
use crate::pool::{Lease, Pool};
use mariadb_wire::{ColumnType, Param};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::hash::Hash;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// An answer that has not come for so long, when its session gives up, is taken not to come.
const STUCK: Duration = Duration::from_secs(1);

/// A row as it came, and the types of its columns.
pub type LookupRow = (Vec<u8>, Rc<[ColumnType]>);

pub struct SharedConnection {
    pool: Rc<Pool>,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    lease: Option<Lease>,
    /// Those whose answers are still to come, in order.
    waiting: VecDeque<Rc<Ticket>>,
}

#[derive(Default)]
struct Ticket {
    row: Cell<Option<LookupRow>>,
    answer: Cell<Option<Result<()>>>,
    waker: RefCell<Option<Waker>>,
}

impl Ticket {
    fn settle(&self, answer: Result<()>) {
        self.answer.set(Some(answer));
        self.wake();
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }
}

impl SharedConnection {
    pub fn new(pool: Rc<Pool>) -> SharedConnection {
        SharedConnection { pool, state: RefCell::default() }
    }

    /// The row that a statement is answered with, if any.
    pub async fn lookup(&self, sql: &Arc<str>, params: &[Param<'_>]) -> Result<Option<LookupRow>> {
        if !self.is_open() {
            let mut lease = self.pool.lease().await?;
            lease.be_quick().await?;
            // Somebody else may have been quicker; then this one goes back.
            self.state.borrow_mut().lease.get_or_insert(lease);
        }
        let ticket = Rc::new(Ticket::default());
        {
            let mut state = self.state.borrow_mut();
            let Some(lease) = &mut state.lease else { return Err(Failure::Lost("the connection is gone".into())) };
            lease.queue_execute(sql, params);
            state.waiting.push_back(ticket.clone());
        }
        Wait { lane: self, ticket: &ticket, gave_way: false, since: Instant::now() }.await?;
        Ok(ticket.row.take())
    }

    /// As [`SharedConnection::lookup`]; a statement that meets a lock waits for it, on a connection of its own.
    pub async fn lookup_patiently(
        &self,
        group: &impl Hash,
        sql: &Arc<str>,
        params: &[Param<'_>],
    ) -> Result<Option<LookupRow>> {
        match self.lookup(sql, params).await {
            Err(failure) if failure.is_lost() || failure.sql_code() == Some(server_error::LOCK_WAIT_TIMEOUT) => {}
            outcome => return outcome,
        }
        let mut lease = self.pool.lease_for(group).await?;
        lease.queue_execute(sql, params);
        let mut found = None;
        while let Event::Row(range) = lease.next().await? {
            let (payload, types) = lease.raw_row(range);
            found = Some((payload.to_vec(), types.clone()));
        }
        Ok(found)
    }

    /// Whether this one's answer is still to come.
    fn is_due(&self, ticket: &Rc<Ticket>) -> bool {
        self.state.borrow().waiting.iter().any(|other| Rc::ptr_eq(other, ticket))
    }

    /// Gives the connection up, which does not answer; those that wait for it try again in another
    /// way.
    fn close(&self) {
        let (lease, waiting) = {
            let mut state = self.state.borrow_mut();
            (state.lease.take(), std::mem::take(&mut state.waiting))
        };
        drop(lease);
        let failure = Failure::Lost("MariaDB does not answer".into());
        waiting.iter().for_each(|ticket| ticket.settle(Err(failure.clone())));
    }

    /// Whether there is a connection, as far as can be told without asking.
    fn is_open(&self) -> bool {
        let mut state = self.state.borrow_mut();
        let unused = state.waiting.is_empty();
        if unused && state.lease.as_mut().is_some_and(|lease| lease.has_hung_up()) {
            state.lease = None;
        }
        state.lease.is_some()
    }

    /// Takes answers off the connection until `mine` has come.
    fn drive(&self, mine: &Ticket, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state.borrow_mut();
        let State { lease, waiting } = &mut *state;
        loop {
            let answer = mine.answer.take();
            if answer.is_some() {
                mine.answer.set(answer);
                return Poll::Ready(());
            }
            let (Some(connection), Some(first)) = (lease.as_mut(), waiting.front()) else { return Poll::Pending };
            match connection.poll_next(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(Event::Row(range))) => {
                    let (payload, types) = connection.raw_row(range);
                    first.row.set(Some((payload.to_vec(), types.clone())));
                }
                Poll::Ready(Ok(Event::Finished(_))) => {
                    first.settle(Ok(()));
                    waiting.pop_front();
                }
                Poll::Ready(Err(failure)) if failure.is_lost() => {
                    *lease = None;
                    waiting.drain(..).for_each(|ticket| ticket.settle(Err(failure.clone())));
                }
                Poll::Ready(Err(failure)) => {
                    first.settle(Err(failure));
                    waiting.pop_front();
                }
            }
        }
    }

    /// Has the next one in the queue look after the connection.
    fn hand_over(&self) {
        let next = self.state.borrow().waiting.iter().find(|ticket| ticket.waker.borrow().is_some()).cloned();
        if let Some(ticket) = next {
            ticket.wake();
        }
    }
}

struct Wait<'l> {
    lane: &'l SharedConnection,
    ticket: &'l Rc<Ticket>,
    gave_way: bool,
    since: Instant,
}

impl Future for Wait<'_> {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        if !self.gave_way {
            // Sessions that are ready now queue their lookups before anything is sent.
            self.gave_way = true;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.lane.drive(self.ticket, context).is_pending() {
            *self.ticket.waker.borrow_mut() = Some(context.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(self.ticket.answer.take().unwrap_or(Ok(())))
    }
}

impl Drop for Wait<'_> {
    /// Answered or given up: the connection may have been waiting with this waker.
    fn drop(&mut self) {
        self.ticket.waker.borrow_mut().take();
        if self.since.elapsed() >= STUCK && self.lane.is_due(self.ticket) {
            return self.lane.close();
        }
        self.lane.hand_over();
    }
}
