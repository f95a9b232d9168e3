//! The connections of SQL clients in the statistics.

use crate::context::SqlContext;
use std::sync::Arc;

/// A client's connection in the statistics, until it is dropped.
pub struct CountedConnection(pub Arc<SqlContext>);

impl CountedConnection {
    pub fn new(context: Arc<SqlContext>) -> CountedConnection {
        context.server.sql_statistics.connections_created.increment();
        context.server.sql_statistics.connections_current.increment();
        CountedConnection(context)
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.0.server.sql_statistics.connections_current.decrement();
    }
}
