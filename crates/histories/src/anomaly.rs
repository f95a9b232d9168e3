//! The anomalies that the checker finds, and their text.

use crate::history::{History, Operation, Transaction};
use std::fmt;

/// A kind of anomaly. The names in parentheses are Adya's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A list contains an element twice.
    Repeated,
    /// A list contains an element that no client has appended to it.
    NeverWritten,
    /// A list lacks an element whose append was acknowledged before the read began.
    LostAppend,
    /// Two reads of a list contradict each other: neither continues the other.
    IncompatibleOrders,
    /// A read lacks the transaction's own appends.
    OwnWrites,
    /// A transaction reads two versions of a list.
    UnrepeatableRead,
    /// A list contains an element of an aborted transaction (G1a).
    AbortedRead,
    /// A list ends with an element that its transaction has continued (G1b).
    IntermediateRead,
    /// A cycle of writes (G0).
    DirtyWrite,
    /// A cycle of writes and reads (G1c).
    CircularInformation,
    /// Two transactions read the same version of a list and both appended to it.
    LostUpdate,
    /// A cycle with one anti-dependency (G-single).
    ReadSkew,
    /// A cycle without two anti-dependencies in a row.
    NonAdjacent,
    /// A cycle that includes the order in which transactions ended and began.
    RealTime,
    /// A change stream lacks an element.
    EventLost,
    /// A change stream shows an element twice.
    EventRepeated,
    /// A change stream shows an element that was not committed.
    EventUncommitted,
    /// A change stream has another order than the changes, or divides a transaction.
    EventOrder,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Repeated => "element twice in a list",
            Kind::NeverWritten => "element that was never written",
            Kind::LostAppend => "lost append",
            Kind::IncompatibleOrders => "incompatible orders",
            Kind::OwnWrites => "own writes not seen",
            Kind::UnrepeatableRead => "unrepeatable read",
            Kind::AbortedRead => "aborted read (G1a)",
            Kind::IntermediateRead => "intermediate read (G1b)",
            Kind::DirtyWrite => "dirty write (G0)",
            Kind::CircularInformation => "circular information flow (G1c)",
            Kind::LostUpdate => "lost update",
            Kind::ReadSkew => "read skew (G-single)",
            Kind::NonAdjacent => "cycle without adjacent anti-dependencies (G-nonadjacent)",
            Kind::RealTime => "older state than acknowledged before (real time)",
            Kind::EventLost => "event lost",
            Kind::EventRepeated => "event repeated",
            Kind::EventUncommitted => "event of an uncommitted change",
            Kind::EventOrder => "events in a wrong order",
        }
    }
}

/// An anomaly, with the transactions and reads that prove it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anomaly {
    pub kind: Kind,
    /// Numbers of transactions, beginning with zero. A cycle has them in its order.
    pub transactions: Vec<usize>,
    /// A sentence for each step of the proof.
    pub evidence: Vec<String>,
}

impl Anomaly {
    /// Returns the text of the anomaly and of its transactions.
    pub fn text(&self, history: &History) -> String {
        let mut lines = vec![self.kind.name().to_owned()];
        for number in &self.transactions {
            if let Some(transaction) = history.transactions.get(*number) {
                lines.push(format!("  T{number} = {}", Described(transaction)));
            }
        }
        lines.extend(self.evidence.iter().map(|sentence| format!("  - {sentence}")));
        lines.join("\n")
    }
}

struct Described<'h>(&'h Transaction);

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Transaction { client, began, ended, outcome, operations } = self.0;
        write!(f, "client {client}, {began} to {ended}, {outcome:?}:")?;
        for operation in operations {
            match operation {
                Operation::Append(key, element) => write!(f, " append {element} to {key};")?,
                Operation::Read(key, list) => write!(f, " read {key}: {list:?};")?,
            }
        }
        Ok(())
    }
}
