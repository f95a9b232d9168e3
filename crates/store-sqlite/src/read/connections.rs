//! A worker's connections for reading.
//!
//! One connection serves nearly all reads. Work on a document may be suspended while its statement
//! is unfinished ([`steps::step`]), which pins the connection to the state of the file when the
//! statement began. So a read takes a connection for itself, and other reads of the worker take or
//! open another one meanwhile.

use crate::failure::Attempt;
use error::Result;
use std::cell::RefCell;
use std::fmt;
use std::ops::Deref;
use std::rc::Rc;

/// The limit of idle connections.
const IDLE_MAX: usize = 4;

/// Idle connections of one kind.
pub struct ConnectionPool<C> {
    free: RefCell<Vec<Rc<C>>>,
}

impl<C> Default for ConnectionPool<C> {
    fn default() -> Self {
        ConnectionPool { free: RefCell::default() }
    }
}

impl<C> fmt::Debug for ConnectionPool<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionPool").field("free", &self.free.borrow().len()).finish()
    }
}

impl<C> ConnectionPool<C> {
    pub fn with(connection: C) -> ConnectionPool<C> {
        ConnectionPool { free: RefCell::new(vec![Rc::new(connection)]) }
    }

    /// Takes an idle connection, or one that `open` makes. Dropping the lease returns it.
    #[inline]
    pub fn take(&self, open: impl FnOnce() -> Attempt<C>) -> Result<Lease<'_, C>> {
        let free = self.free.borrow_mut().pop();
        let connection = match free {
            Some(connection) => connection,
            None => Rc::new(open()?),
        };
        Ok(Lease { readers: Some(self), connection })
    }
}

impl<C> Lease<'_, C> {
    /// Returns a lease of a connection that several reads use, since it is pinned to a snapshot.
    pub fn of_pinned(connection: Rc<C>) -> Self {
        Lease { readers: None, connection }
    }
}

/// A connection in use.
pub struct Lease<'r, C> {
    readers: Option<&'r ConnectionPool<C>>,
    connection: Rc<C>,
}

impl<C> Deref for Lease<'_, C> {
    type Target = C;

    #[inline]
    fn deref(&self) -> &C {
        &self.connection
    }
}

impl<C> Drop for Lease<'_, C> {
    fn drop(&mut self) {
        let Some(readers) = self.readers else { return };
        let mut free = readers.free.borrow_mut();
        if free.len() < IDLE_MAX {
            free.push(self.connection.clone());
        }
    }
}
