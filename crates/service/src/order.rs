//! What the administrator orders from a monitor.

use tokio::sync::oneshot;

/// A change of the servers of a monitor; servers are given by their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// This replica and the primary, which works, exchange their roles.
    Switchover(String),
    /// This server replaces the primary, which is lost.
    Failover(String),
    /// This server follows the primary.
    Rejoin(String),
}

/// Whether an order was executed; otherwise why not.
pub type Outcome = Result<(), String>;

/// An order, and where its outcome is awaited.
#[derive(Debug)]
pub struct Ordered {
    pub order: Order,
    pub answer: oneshot::Sender<Outcome>,
}

impl Order {
    pub fn server(&self) -> &str {
        match self {
            Order::Switchover(server) | Order::Failover(server) | Order::Rejoin(server) => server,
        }
    }
}
