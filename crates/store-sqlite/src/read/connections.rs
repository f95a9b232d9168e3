//! The connections that a worker reads by.
//!
//! One serves nearly all reads. Work on a document may be suspended while its statement is
//! unfinished ([`steps::step`]); that pins the connection to what the file held when the statement
//! began. So a read takes a connection for itself, and others of the worker take or open another
//! one meanwhile.

use crate::failure::Attempt;
use error::Result;
use std::cell::RefCell;
use std::fmt;
use std::ops::Deref;
use std::rc::Rc;

/// Connections kept for later.
const KEPT_MAX: usize = 4;

/// Connections of one kind that nobody uses at the moment.
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

    /// Takes a connection that nobody uses, or one that `open` makes; it is given back when the
    /// lease is dropped.
    #[inline]
    pub fn take(&self, open: impl FnOnce() -> Attempt<C>) -> Result<Lease<'_, C>> {
        let free = self.free.borrow_mut().pop();
        let connection = match free {
            Some(connection) => connection,
            None => Rc::new(open()?),
        };
        Ok(Lease { readers: self, connection })
    }
}

/// A connection in use.
pub struct Lease<'r, C> {
    readers: &'r ConnectionPool<C>,
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
        let mut free = self.readers.free.borrow_mut();
        if free.len() < KEPT_MAX {
            free.push(self.connection.clone());
        }
    }
}
