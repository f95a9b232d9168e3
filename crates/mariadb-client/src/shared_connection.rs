//! One connection shared by all sessions of a worker, for statements that return at most one row.
//!
//! Lookups of sessions that become ready together go out in one write. Their answers come back in
//! that order, often in one read: under load a lookup costs a fraction of a system call. It has no
//! task of its own. A session that waits for an answer drives the connection for all, and hands
//! that over when its own answer has arrived; each pending lookup keeps the waker for it.
//!
//! A statement here must not wait for a lock, because all others would wait with it. One that meets
//! a lock fails, and is executed on a connection of its own. A connection that has not answered for
//! a while is closed when a session stops waiting for it.

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

/// An answer that is overdue by this much, when its session stops waiting, is considered lost.
const OVERDUE: Duration = Duration::from_secs(1);

/// A row's payload, and the types of its columns.
pub type LookupRow = (Vec<u8>, Arc<[ColumnType]>);

/// A pipelined connection that is shared by all sessions of a worker.
pub struct SharedConnection {
    pool: Rc<Pool>,
    /// Whether lookups are executed under roles, by the account for that.
    has_roles: bool,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    lease: Option<Lease>,
    /// Lookups without an answer yet, in order.
    pending: VecDeque<Rc<PendingLookup>>,
}

#[derive(Default)]
struct PendingLookup {
    row: Cell<Option<LookupRow>>,
    answer: Cell<Option<Result<()>>>,
    waker: RefCell<Option<Waker>>,
}

impl PendingLookup {
    fn complete(&self, answer: Result<()>) {
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
        SharedConnection { pool, has_roles: false, state: RefCell::default() }
    }

    /// Creates a connection for [`SharedConnection::lookup_under`].
    pub fn with_roles(pool: Rc<Pool>) -> SharedConnection {
        SharedConnection { has_roles: true, ..SharedConnection::new(pool) }
    }

    /// Executes a statement; returns its row, if any.
    pub async fn lookup(&self, sql: &Arc<str>, params: &[Param<'_>]) -> Result<Option<LookupRow>> {
        self.lookup_as(None, sql, params).await
    }

    /// As [`SharedConnection::lookup`], under a role. Lookups under the same role that follow each
    /// other cost nothing more.
    pub async fn lookup_under(
        &self,
        role: &Arc<str>,
        sql: &Arc<str>,
        params: &[Param<'_>],
    ) -> Result<Option<LookupRow>> {
        self.lookup_as(Some(role), sql, params).await
    }

    async fn lookup_as(
        &self,
        role: Option<&Arc<str>>,
        sql: &Arc<str>,
        params: &[Param<'_>],
    ) -> Result<Option<LookupRow>> {
        if role.is_some() != self.has_roles {
            return Err(error::Error::internal("a lookup needs a role exactly on the connection for roles").into());
        }
        if !self.is_open() {
            let mut lease = match self.has_roles {
                true => self.pool.lease_without_role().await?,
                false => self.pool.lease().await?,
            };
            lease.use_for_lookups().await?;
            // Another session may have been faster; then this connection goes back to the pool.
            self.state.borrow_mut().lease.get_or_insert(lease);
        }
        let lookup = Rc::new(PendingLookup::default());
        {
            let mut state = self.state.borrow_mut();
            let Some(lease) = &mut state.lease else { return Err(Failure::Lost("the connection is gone".into())) };
            role.iter().for_each(|role| lease.use_role(role));
            lease.queue_execute(sql, params);
            state.pending.push_back(lookup.clone());
        }
        LookupFuture { connection: self, lookup: &lookup, yielded: false, since: Instant::now() }.await?;
        Ok(lookup.row.take())
    }

    /// As [`SharedConnection::lookup`], or [`SharedConnection::lookup_under`] with a role; a
    /// statement that meets a lock waits for it on a connection of its own.
    pub async fn lookup_waiting(
        &self,
        role: Option<&Arc<str>>,
        group: &impl Hash,
        sql: &Arc<str>,
        params: &[Param<'_>],
    ) -> Result<Option<LookupRow>> {
        match self.lookup_as(role, sql, params).await {
            Err(failure) if failure.is_lost() || failure.sql_code() == Some(server_error::LOCK_WAIT_TIMEOUT) => {}
            outcome => return outcome,
        }
        let mut lease = match role {
            Some(role) => self.pool.lease_under(role, group).await?,
            None => self.pool.lease_for(group).await?,
        };
        lease.queue_execute(sql, params);
        let mut found = None;
        while let Event::Row(range) = lease.next().await? {
            let (payload, types) = lease.raw_row(range);
            found = Some((payload.to_vec(), types.clone()));
        }
        Ok(found)
    }

    /// Returns whether the answer of this lookup has not arrived.
    fn is_pending(&self, lookup: &Rc<PendingLookup>) -> bool {
        self.state.borrow().pending.iter().any(|other| Rc::ptr_eq(other, lookup))
    }

    /// Closes the connection; pending lookups fail and are retried elsewhere.
    fn close(&self, why: &str) {
        let (lease, pending) = {
            let mut state = self.state.borrow_mut();
            (state.lease.take(), std::mem::take(&mut state.pending))
        };
        drop(lease);
        let failure = Failure::Lost(why.into());
        pending.iter().for_each(|lookup| lookup.complete(Err(failure.clone())));
    }

    /// Returns whether a connection is open, as far as is known without a round trip.
    fn is_open(&self) -> bool {
        let mut state = self.state.borrow_mut();
        if state.lease.as_ref().is_some_and(|lease| !lease.is_current()) {
            drop(state);
            self.close("the MariaDB server is no longer the primary");
            return false;
        }
        let unused = state.pending.is_empty();
        if unused && state.lease.as_mut().is_some_and(|lease| lease.has_hung_up()) {
            state.lease = None;
        }
        state.lease.is_some()
    }

    /// Takes answers from the connection until `own` has arrived.
    fn drive(&self, own: &PendingLookup, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state.borrow_mut();
        let State { lease, pending } = &mut *state;
        loop {
            let answer = own.answer.take();
            if answer.is_some() {
                own.answer.set(answer);
                return Poll::Ready(());
            }
            let (Some(connection), Some(first)) = (lease.as_mut(), pending.front()) else { return Poll::Pending };
            match connection.poll_next(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(Event::Row(range))) => {
                    let (payload, types) = connection.raw_row(range);
                    first.row.set(Some((payload.to_vec(), types.clone())));
                }
                Poll::Ready(Ok(Event::Finished(_))) => {
                    first.complete(Ok(()));
                    pending.pop_front();
                }
                Poll::Ready(Err(failure)) if failure.is_lost() => {
                    *lease = None;
                    pending.drain(..).for_each(|lookup| lookup.complete(Err(failure.clone())));
                }
                Poll::Ready(Err(failure)) => {
                    first.complete(Err(failure));
                    pending.pop_front();
                }
            }
        }
    }

    /// Wakes the next pending lookup, which drives the connection from now on.
    fn hand_over(&self) {
        let next = self.state.borrow().pending.iter().find(|lookup| lookup.waker.borrow().is_some()).cloned();
        if let Some(lookup) = next {
            lookup.wake();
        }
    }
}

struct LookupFuture<'l> {
    connection: &'l SharedConnection,
    lookup: &'l Rc<PendingLookup>,
    yielded: bool,
    since: Instant,
}

impl Future for LookupFuture<'_> {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        if !self.yielded {
            // Let other ready sessions queue their lookups before anything is sent.
            self.yielded = true;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.connection.drive(self.lookup, context).is_pending() {
            *self.lookup.waker.borrow_mut() = Some(context.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(self.lookup.answer.take().unwrap_or(Ok(())))
    }
}

impl Drop for LookupFuture<'_> {
    /// Hands the connection over: it may have been waiting with this waker.
    fn drop(&mut self) {
        self.lookup.waker.borrow_mut().take();
        if self.since.elapsed() >= OVERDUE && self.connection.is_pending(self.lookup) {
            return self.connection.close("MariaDB does not answer");
        }
        self.connection.hand_over();
    }
}
