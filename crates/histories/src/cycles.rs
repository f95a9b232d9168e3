//! Cycles of dependencies that snapshot isolation forbids.
//!
//! A cycle is allowed if two anti-dependencies follow each other in it, as in write skew. So the
//! search runs on a graph whose nodes are pairs: a transaction, and whether an anti-dependency led
//! to it. From such a pair no further anti-dependency leads on. Each cycle of this graph is a
//! forbidden one.

use crate::anomaly::{Anomaly, Kind};
use crate::dependencies::{Edge, Graph, Reason};
use crate::history::{History, Operation};
use std::collections::{HashMap, VecDeque};

/// A step of a cycle: the transaction it begins at, and the edge to the next one.
type Step = (usize, Edge);

/// How many transactions of a component are tried as the start of a shortest cycle.
const STARTS: usize = 200;

/// Returns an anomaly for each strongly connected component, proved by a cycle that is as severe
/// and as short as possible.
pub fn forbidden(history: &History, graph: &Graph) -> Vec<Anomaly> {
    components(graph).iter().filter_map(|component| explain(history, graph, component)).collect()
}

fn explain(history: &History, graph: &Graph, component: &[usize]) -> Option<Anomaly> {
    let is_write = |reason: Reason| matches!(reason, Reason::Write { .. });
    let is_seen = |reason: Reason| is_write(reason) || matches!(reason, Reason::Read { .. });
    let is_recorded = |reason: Reason| reason != Reason::Time;
    let search = Search { graph, members: component.iter().copied().collect() };
    let (kind, cycle) = (search.shortest(is_write).map(|cycle| (Kind::DirtyWrite, cycle)))
        .or_else(|| search.shortest(is_seen).map(|cycle| (Kind::CircularInformation, cycle)))
        .or_else(|| search.with_one_anti_dependency(is_seen).map(|cycle| (Kind::ReadSkew, cycle)))
        .or_else(|| search.shortest(is_recorded).map(|cycle| (Kind::NonAdjacent, cycle)))
        .or_else(|| search.shortest(|_| true).map(|cycle| (Kind::RealTime, cycle)))?;
    let kind = if kind == Kind::ReadSkew && is_lost_update(history, &cycle) { Kind::LostUpdate } else { kind };
    let cycle = without_ends(graph, &cycle);
    let transactions = cycle.iter().map(|(from, _)| *from).collect();
    Some(Anomaly { kind, transactions, evidence: cycle.iter().map(sentence).collect() })
}

/// Returns whether two transactions read a version of a list, and both appended to it.
fn is_lost_update(history: &History, cycle: &[Step]) -> bool {
    let [(first, one), (second, other)] = cycle else { return false };
    let key_of = |reason| match reason {
        Reason::AntiDependency { key, .. } | Reason::Write { key, .. } => Some(key),
        Reason::Read { .. } | Reason::Time => None,
    };
    let reads = |number: usize, key| {
        history.transactions[number]
            .operations
            .iter()
            .any(|one| matches!(one, Operation::Read(read, _) if *read == key))
    };
    key_of(one.reason).is_some_and(|key| key_of(other.reason) == Some(key) && reads(*first, key) && reads(*second, key))
}

/// Joins the steps over the nodes of ends into one from transaction to transaction.
fn without_ends(graph: &Graph, cycle: &[Step]) -> Vec<Step> {
    let start = cycle.iter().position(|(from, _)| *from < graph.transactions).unwrap_or(0);
    let mut joined: Vec<Step> = Vec::new();
    for (from, edge) in cycle[start..].iter().chain(&cycle[..start]) {
        match joined.last_mut() {
            Some((_, last)) if *from >= graph.transactions => last.to = edge.to,
            _ => joined.push((*from, *edge)),
        }
    }
    joined
}

fn sentence((from, edge): &Step) -> String {
    let to = edge.to;
    match edge.reason {
        Reason::Write { key, before, after } => {
            format!("T{from} → T{to} (ww): in list {key}, {after} of T{to} follows {before} of T{from}")
        }
        Reason::Read { key, element } => format!("T{from} → T{to} (wr): T{to} saw {element} of T{from} in list {key}"),
        Reason::AntiDependency { key, element } => {
            format!("T{from} → T{to} (rw): T{from} did not see {element} of T{to} in list {key}")
        }
        Reason::Time => format!("T{from} → T{to} (time): T{from} ended before T{to} began"),
    }
}

/// A search for cycles within a component.
struct Search<'g> {
    graph: &'g Graph,
    members: std::collections::BTreeSet<usize>,
}

/// A transaction, and whether an anti-dependency led to it.
type State = (usize, bool);

impl Search<'_> {
    fn next(&self, state: State, allowed: impl Fn(Reason) -> bool) -> impl Iterator<Item = (State, Edge)> {
        let inside = |edge: &&Edge| self.members.contains(&edge.to) && allowed(edge.reason);
        let edges = self.graph.edges[state.0].iter().filter(inside);
        let followed = edges.filter_map(|edge| follow(state, edge).map(|next| (next, *edge)));
        followed.collect::<Vec<_>>().into_iter()
    }

    /// Returns a shortest cycle of allowed edges without two adjacent anti-dependencies.
    fn shortest(&self, allowed: impl Fn(Reason) -> bool + Copy) -> Option<Vec<Step>> {
        let starts = self.members.iter().filter(|member| **member < self.graph.transactions).take(STARTS);
        let states = starts.flat_map(|member| [(*member, false), (*member, true)]);
        states.filter_map(|state| self.path(state, state, allowed)).min_by_key(Vec::len)
    }

    /// Returns a shortest cycle of allowed edges and one anti-dependency.
    fn with_one_anti_dependency(&self, allowed: impl Fn(Reason) -> bool + Copy) -> Option<Vec<Step>> {
        let mut best: Option<Vec<Step>> = None;
        for from in self.members.iter().copied().filter(|member| *member < self.graph.transactions).take(STARTS) {
            for edge in &self.graph.edges[from] {
                if !matches!(edge.reason, Reason::AntiDependency { .. }) || !self.members.contains(&edge.to) {
                    continue;
                }
                if let Some(back) = self.path((edge.to, false), (from, false), allowed) {
                    let cycle: Vec<Step> = [(from, *edge)].into_iter().chain(back).collect();
                    if best.as_ref().is_none_or(|best| cycle.len() < best.len()) {
                        best = Some(cycle);
                    }
                }
            }
        }
        best
    }

    /// Returns a shortest path of one edge or more.
    fn path(&self, start: State, goal: State, allowed: impl Fn(Reason) -> bool + Copy) -> Option<Vec<Step>> {
        let mut came_from: HashMap<State, (State, Edge)> = HashMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(state) = queue.pop_front() {
            for (next, edge) in self.next(state, allowed) {
                if came_from.contains_key(&next) {
                    continue;
                }
                came_from.insert(next, (state, edge));
                if next == goal {
                    return Some(steps_to(goal, start, &came_from));
                }
                queue.push_back(next);
            }
        }
        None
    }
}

fn steps_to(goal: State, start: State, came_from: &HashMap<State, (State, Edge)>) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut state = goal;
    loop {
        let (before, edge) = came_from[&state];
        steps.push((before.0, edge));
        state = before;
        if state == start {
            break;
        }
    }
    steps.reverse();
    steps
}

/// Returns the state behind an edge, unless it is an anti-dependency right after another one.
fn follow((_, by_anti_dependency): State, edge: &Edge) -> Option<State> {
    let is_anti_dependency = matches!(edge.reason, Reason::AntiDependency { .. });
    (!(is_anti_dependency && by_anti_dependency)).then_some((edge.to, is_anti_dependency))
}

/// Returns the nodes of each strongly connected component of states that has a cycle (Tarjan's
/// algorithm, with a stack of its own).
fn components(graph: &Graph) -> Vec<Vec<usize>> {
    let index_of = |(node, flag): State| node * 2 + usize::from(flag);
    let count = graph.edges.len() * 2;
    let mut tarjan =
        Tarjan { order: vec![None; count], low: vec![0; count], is_open: vec![false; count], ..Tarjan::default() };
    for state in 0..count {
        tarjan.visit(state, |state| {
            let from = (state / 2, state % 2 == 1);
            graph.edges[from.0].iter().filter_map(|edge| follow(from, edge)).map(index_of).collect()
        });
    }
    let nodes = |component: Vec<usize>| {
        let mut nodes: Vec<usize> = component.into_iter().map(|state| state / 2).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    };
    tarjan.found.into_iter().map(nodes).collect()
}

#[derive(Default)]
struct Tarjan {
    order: Vec<Option<usize>>,
    low: Vec<usize>,
    is_open: Vec<bool>,
    open: Vec<usize>,
    visited: usize,
    found: Vec<Vec<usize>>,
}

impl Tarjan {
    fn visit(&mut self, root: usize, successors: impl Fn(usize) -> Vec<usize>) {
        if self.order[root].is_some() {
            return;
        }
        let mut path = vec![(root, self.enter(root, &successors))];
        while let Some((state, pending)) = path.last_mut() {
            let state = *state;
            match pending.pop() {
                Some(next) => match self.order[next] {
                    None => {
                        let successors = self.enter(next, &successors);
                        path.push((next, successors));
                    }
                    Some(order) if self.is_open[next] => self.low[state] = self.low[state].min(order),
                    Some(_) => {}
                },
                None => {
                    path.pop();
                    if let Some((parent, _)) = path.last() {
                        self.low[*parent] = self.low[*parent].min(self.low[state]);
                    }
                    self.close(state);
                }
            }
        }
    }

    fn enter(&mut self, state: usize, successors: impl Fn(usize) -> Vec<usize>) -> Vec<usize> {
        self.order[state] = Some(self.visited);
        self.low[state] = self.visited;
        self.visited += 1;
        self.open.push(state);
        self.is_open[state] = true;
        successors(state)
    }

    /// Takes the component off the stack if `state` is its first one.
    fn close(&mut self, state: usize) {
        if self.order[state] != Some(self.low[state]) {
            return;
        }
        let start = self.open.iter().rposition(|open| *open == state).unwrap_or(0);
        let component = self.open.split_off(start);
        component.iter().for_each(|state| self.is_open[*state] = false);
        if component.len() > 1 {
            self.found.push(component);
        }
    }
}
