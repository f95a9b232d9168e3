//! Change streams: each committed append is shown once, in the order of the commits.

use crate::anomaly::{Anomaly, Kind};
use crate::dependencies::{Graph, Reason};
use crate::history::{Element, History, Key, Outcome};
use crate::versions::Versions;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Returns the anomalies of a stream that was open for the whole history.
pub fn check(history: &History, versions: &Versions, graph: &Graph, events: &[(Key, Element)]) -> Vec<Anomaly> {
    let mut anomalies = elements(history, versions, events);
    anomalies.extend(lost(versions, events));
    anomalies.extend(order_in_lists(versions, events));
    let positions = positions(versions, events);
    anomalies.extend(divided(&positions));
    anomalies.extend(order_of_transactions(history, graph, &positions));
    anomalies
}

fn anomaly(kind: Kind, transactions: Vec<usize>, evidence: String) -> Anomaly {
    Anomaly { kind, transactions, evidence: vec![evidence] }
}

/// Reports events that are repeated, or whose change was not committed.
fn elements(history: &History, versions: &Versions, events: &[(Key, Element)]) -> Vec<Anomaly> {
    let mut met = HashSet::new();
    let mut anomalies = Vec::new();
    for event in events {
        let (key, element) = event;
        let writer = versions.writers.get(event).copied();
        let is_aborted = writer.is_none_or(|writer| history.transactions[writer].outcome == Outcome::Aborted);
        let transactions = Vec::from_iter(writer);
        if !met.insert(event) {
            anomalies.push(anomaly(
                Kind::EventRepeated,
                transactions,
                format!("the stream shows {element} of list {key} again"),
            ));
        } else if is_aborted {
            let evidence = format!("the stream shows {element} of list {key}, which was not committed");
            anomalies.push(anomaly(Kind::EventUncommitted, transactions, evidence));
        }
    }
    anomalies
}

fn lost(versions: &Versions, events: &[(Key, Element)]) -> Vec<Anomaly> {
    let shown: HashSet<&(Key, Element)> = events.iter().collect();
    let missing = |place: &&(Key, Element)| versions.took_effect[versions.writers[*place]] && !shown.contains(place);
    let lost: BTreeSet<&(Key, Element)> = versions.writers.keys().filter(missing).collect();
    let report = |place: &(Key, Element)| {
        let evidence = format!("the stream lacks {} of list {}", place.1, place.0);
        anomaly(Kind::EventLost, vec![versions.writers[place]], evidence)
    };
    lost.into_iter().map(report).collect()
}

/// Reports lists whose elements have another order in the stream.
fn order_in_lists(versions: &Versions, events: &[(Key, Element)]) -> Vec<Anomaly> {
    let mut shown: HashMap<Key, Vec<Element>> = HashMap::new();
    events.iter().for_each(|(key, element)| shown.entry(*key).or_default().push(*element));
    let mut anomalies = Vec::new();
    for (key, order) in &versions.orders {
        let list = shown.get(key).map_or(&[][..], Vec::as_slice);
        let present: HashSet<&Element> = list.iter().collect();
        let members: HashSet<&Element> = order.iter().collect();
        let mut met = HashSet::new();
        let found = list.iter().filter(|element| members.contains(element) && met.insert(**element));
        let expected = order.iter().filter(|element| present.contains(element));
        if let Some((found, expected)) = found.zip(expected).find(|(found, expected)| found != expected) {
            let evidence = format!("the stream shows {found} of list {key} where {expected} comes, of {order:?}");
            let writers =
                [found, expected].into_iter().filter_map(|element| versions.writers.get(&(*key, *element)).copied());
            anomalies.push(anomaly(Kind::EventOrder, writers.collect(), evidence));
        }
    }
    anomalies
}

/// The first and the last event of a transaction, and how many it has.
struct Positions {
    first: usize,
    last: usize,
    count: usize,
}

fn positions(versions: &Versions, events: &[(Key, Element)]) -> HashMap<usize, Positions> {
    let mut positions: HashMap<usize, Positions> = HashMap::new();
    let mut met = HashSet::new();
    for (position, event) in events.iter().enumerate().filter(|(_, event)| met.insert(*event)) {
        if let Some(writer) = versions.writers.get(event) {
            let of = positions.entry(*writer).or_insert(Positions { first: position, last: position, count: 0 });
            of.last = position;
            of.count += 1;
        }
    }
    positions
}

/// Reports a transaction with events of others between its own. One is enough: each repeated event
/// moves all behind it.
fn divided(positions: &HashMap<usize, Positions>) -> Option<Anomaly> {
    let is_divided = |of: &Positions| of.last - of.first + 1 != of.count;
    let number = positions.iter().filter(|(_, of)| is_divided(of)).map(|(number, _)| *number).min()?;
    Some(anomaly(Kind::EventOrder, vec![number], format!("the stream shows other events between those of T{number}")))
}

/// Reports transactions that the stream shows in another order than their dependencies.
fn order_of_transactions(history: &History, graph: &Graph, positions: &HashMap<usize, Positions>) -> Vec<Anomaly> {
    let mut anomalies = Vec::new();
    for (from, edges) in graph.edges.iter().enumerate().take(graph.transactions) {
        let Some(before) = positions.get(&from) else { continue };
        let is_order = |reason: Reason| matches!(reason, Reason::Write { .. } | Reason::Read { .. });
        for edge in edges.iter().filter(|edge| is_order(edge.reason)) {
            if positions.get(&edge.to).is_some_and(|after| after.first < before.first) {
                let evidence = format!("the stream shows T{} before T{from}, on which it depends", edge.to);
                anomalies.push(anomaly(Kind::EventOrder, vec![from, edge.to], evidence));
            }
        }
    }
    anomalies.extend(order_of_time(history, positions));
    anomalies
}

/// Reports a transaction that the stream shows behind one that began after its end.
fn order_of_time(history: &History, positions: &HashMap<usize, Positions>) -> Option<Anomaly> {
    let known = |number: &&usize| history.transactions[**number].outcome == Outcome::Committed;
    let mut shown: Vec<usize> = positions.keys().filter(known).copied().collect();
    shown.sort_by_key(|number| positions[number].first);
    let mut latest = *shown.first()?;
    for number in shown {
        if history.transactions[number].ended < history.transactions[latest].began {
            let evidence =
                format!("the stream shows T{latest} before T{number}, which had ended before T{latest} began");
            return Some(anomaly(Kind::EventOrder, vec![number, latest], evidence));
        }
        if history.transactions[number].began > history.transactions[latest].began {
            latest = number;
        }
    }
    None
}
