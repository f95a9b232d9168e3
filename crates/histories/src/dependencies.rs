//! The graph of dependencies between transactions.
//!
//! Its nodes are the transactions, and a node for each end of a transaction. A path over the nodes
//! of ends leads from a transaction to all that began after its end. So the order of time takes a
//! few edges for each transaction instead of one for each pair.

use crate::history::{Element, History, Key, Outcome};
use crate::versions::{Versions, View};
use std::collections::BTreeMap;

/// Why the second transaction of an edge comes after the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It appended `after` behind `before`, an element of the first one (ww).
    Write { key: Key, before: Element, after: Element },
    /// It saw `element` of the first one (wr).
    Read { key: Key, element: Element },
    /// It appended `element`, the next one that the first did not see (rw): an anti-dependency.
    AntiDependency { key: Key, element: Element },
    /// It began after the end of the first one.
    Time,
}

#[derive(Clone, Copy, Debug)]
pub struct Edge {
    pub to: usize,
    pub reason: Reason,
}

#[derive(Debug)]
pub struct Graph {
    /// The edges from each node.
    pub edges: Vec<Vec<Edge>>,
    /// The number of transactions: their nodes are the first ones.
    pub transactions: usize,
}

impl Graph {
    pub fn of(history: &History, versions: &Versions) -> Graph {
        let transactions = history.transactions.len();
        let mut graph = Graph { edges: vec![Vec::new(); transactions], transactions };
        graph.add_writes(versions);
        let unseen = unseen(versions);
        for view in &versions.views {
            graph.add_view(versions, view, unseen.get(&view.key).map_or(&[], Vec::as_slice));
        }
        graph.add_time(history, versions);
        graph
    }

    fn add(&mut self, from: usize, to: usize, reason: Reason) {
        if from != to {
            self.edges[from].push(Edge { to, reason });
        }
    }

    fn add_writes(&mut self, versions: &Versions) {
        for (key, order) in &versions.orders {
            for pair in order.windows(2) {
                let writer = |element| versions.writers.get(&(*key, element)).copied();
                if let (Some(from), Some(to)) = (writer(pair[0]), writer(pair[1])) {
                    self.add(from, to, Reason::Write { key: *key, before: pair[0], after: pair[1] });
                }
            }
        }
    }

    /// Adds what a transaction saw of a list, and what it did not see of it yet.
    fn add_view(&mut self, versions: &Versions, view: &View, unseen: &[Element]) {
        let View { transaction: reader, key, list } = view;
        let writer = |element: Element| versions.writers.get(&(*key, element)).copied();
        if let Some((writer, element)) = list.last().and_then(|element| Some((writer(*element)?, *element))) {
            self.add(writer, *reader, Reason::Read { key: *key, element });
        }
        let next = versions.orders[key].get(list.len());
        for element in next.map_or(unseen, std::slice::from_ref) {
            if let Some(writer) = writer(*element) {
                self.add(*reader, writer, Reason::AntiDependency { key: *key, element: *element });
            }
        }
    }

    /// Adds the order of time. A transaction without a known outcome has no end.
    fn add_time(&mut self, history: &History, versions: &Versions) {
        let counts =
            |number: &usize| versions.took_effect[*number] || history.transactions[*number].outcome == Outcome::Aborted;
        let mut begun: Vec<usize> = (0..self.transactions).filter(counts).collect();
        let mut ended: Vec<usize> =
            begun.iter().copied().filter(|number| history.transactions[*number].outcome != Outcome::Unknown).collect();
        begun.sort_by_key(|number| history.transactions[*number].began);
        ended.sort_by_key(|number| history.transactions[*number].ended);
        let mut ended = ended.into_iter().peekable();
        let mut last_end = None;
        for number in begun {
            let began = history.transactions[number].began;
            while let Some(before) = ended.next_if(|before| history.transactions[*before].ended < began) {
                let end = self.edges.len();
                self.edges.push(Vec::new());
                self.add(before, end, Reason::Time);
                if let Some(last) = last_end.replace(end) {
                    self.add(last, end, Reason::Time);
                }
            }
            if let Some(last) = last_end {
                self.add(last, number, Reason::Time);
            }
        }
    }
}

/// Returns the elements that took effect and that no read has shown: they come behind the others.
fn unseen(versions: &Versions) -> BTreeMap<Key, Vec<Element>> {
    let mut unseen: BTreeMap<Key, Vec<Element>> = BTreeMap::new();
    for ((key, element), writer) in &versions.writers {
        let is_seen = versions.orders.get(key).is_some_and(|order| order.contains(element));
        if versions.took_effect[*writer] && !is_seen {
            unseen.entry(*key).or_default().push(*element);
        }
    }
    unseen.values_mut().for_each(|elements| elements.sort_unstable());
    unseen
}
