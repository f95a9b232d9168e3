//! A checker of transaction histories: it compares the operations of clients, and their results,
//! with snapshot isolation.
//!
//! Clients append unique elements to lists and read whole lists. A list shows in which order its
//! versions were written, so the dependencies between transactions follow from the reads, and
//! nothing about the server must be known. This is the method of Elle: Kingsbury and Alvaro, "Elle:
//! Inferring Isolation Anomalies from Experimental Observations", VLDB 2020,
//! <https://arxiv.org/abs/2003.10554>. The anomalies are those of Adya, "Weak Consistency: A
//! Generalized Theory and Optimistic Implementations for Distributed Transactions", MIT 1999.
//!
//! A history has snapshot isolation if every cycle of dependencies has two anti-dependencies in a
//! row: Cerone and Gotsman, "Analysing Snapshot Isolation", JACM 2018. The checker also requires
//! that a transaction sees all that was acknowledged before it began.
//!
//! In reading order: [`history`] (the input), [`versions`] (the order of each list, and anomalies
//! of single reads), [`dependencies`] (the graph), [`cycles`] (its forbidden cycles), [`stream`]
//! (the events of change streams), [`anomaly`] (the output).

pub mod anomaly;
mod cycles;
mod dependencies;
pub mod history;
mod stream;
mod versions;

use anomaly::Anomaly;
use history::History;

/// Returns the anomalies of a history, the most severe of a kind of evidence first.
pub fn check(history: &History) -> Vec<Anomaly> {
    let (versions, mut anomalies) = versions::Versions::of(history);
    let graph = dependencies::Graph::of(history, &versions);
    anomalies.extend(cycles::forbidden(history, &graph));
    for events in &history.streams {
        anomalies.extend(stream::check(history, &versions, &graph, events));
    }
    anomalies
}
