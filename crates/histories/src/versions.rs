//! The order in which the versions of each list were written, and what each transaction saw of it.

use crate::anomaly::{Anomaly, Kind};
use crate::history::{Element, History, Key, Operation, Outcome};
use std::collections::{BTreeMap, HashMap, HashSet};

/// What a transaction saw of a list, without its own appends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    pub transaction: usize,
    pub key: Key,
    pub list: Vec<Element>,
}

/// The versions of all lists.
#[derive(Debug, Default)]
pub struct Versions {
    /// The longest list that was read of each key.
    pub orders: BTreeMap<Key, Vec<Element>>,
    /// The transaction that appends an element.
    pub writers: HashMap<(Key, Element), usize>,
    /// The views that the orders explain, one for each transaction and list at most.
    pub views: Vec<View>,
    /// Whether each transaction took effect: those without a known outcome did if others saw them.
    pub took_effect: Vec<bool>,
}

impl Versions {
    /// Returns the versions of a history, and the anomalies that single reads show.
    pub fn of(history: &History) -> (Versions, Vec<Anomaly>) {
        let mut versions = Versions { writers: writers(history), ..Versions::default() };
        versions.took_effect = took_effect(history, &versions.writers);
        let mut anomalies = Anomalies::default();
        for number in 0..history.transactions.len() {
            versions.views.extend(views(history, number, &mut anomalies));
        }
        let last_appends = last_appends(history);
        for view in &versions.views {
            check_elements(history, &versions, view, &mut anomalies);
            check_end(&versions, &last_appends, view, &mut anomalies);
        }
        versions.order(&mut anomalies);
        check_acknowledged(history, &versions, &mut anomalies);
        (versions, anomalies.found)
    }

    /// Orders the versions of each list by its longest view, and drops views that contradict it.
    fn order(&mut self, anomalies: &mut Anomalies) {
        let mut longest: BTreeMap<Key, &View> = BTreeMap::new();
        for view in &self.views {
            let best = longest.entry(view.key).or_insert(view);
            if view.list.len() > best.list.len() {
                *best = view;
            }
        }
        for view in &self.views {
            let best = longest[&view.key];
            if !best.list.starts_with(&view.list) {
                let evidence = format!("reads of list {}: {:?} and {:?}", view.key, view.list, best.list);
                anomalies.add(
                    Kind::IncompatibleOrders,
                    (view.key, 0),
                    vec![view.transaction, best.transaction],
                    evidence,
                );
            }
        }
        self.orders = longest.into_iter().map(|(key, view)| (key, view.list.clone())).collect();
        let orders = &self.orders;
        self.views.retain(|view| orders[&view.key].starts_with(&view.list));
    }
}

/// Anomalies, each reported once for an element of a list: all later reads show it too.
#[derive(Default)]
struct Anomalies {
    found: Vec<Anomaly>,
    known: HashSet<(Kind, (Key, Element))>,
}

impl Anomalies {
    fn add(&mut self, kind: Kind, place: (Key, Element), transactions: Vec<usize>, evidence: String) {
        if self.known.insert((kind, place)) {
            self.found.push(Anomaly { kind, transactions, evidence: vec![evidence] });
        }
    }
}

fn writers(history: &History) -> HashMap<(Key, Element), usize> {
    let numbered = history.transactions.iter().enumerate();
    numbered.flat_map(|(number, transaction)| transaction.appends().map(move |append| (append, number))).collect()
}

fn took_effect(history: &History, writers: &HashMap<(Key, Element), usize>) -> Vec<bool> {
    let mut effect: Vec<bool> = history.transactions.iter().map(|one| one.outcome == Outcome::Committed).collect();
    for (reader, transaction) in history.transactions.iter().enumerate() {
        for operation in &transaction.operations {
            let Operation::Read(key, list) = operation else { continue };
            for writer in list.iter().filter_map(|element| writers.get(&(*key, *element))) {
                if *writer != reader && history.transactions[*writer].outcome == Outcome::Unknown {
                    effect[*writer] = true;
                }
            }
        }
    }
    effect
}

/// Returns the last element that each transaction appends to a list.
fn last_appends(history: &History) -> HashMap<(usize, Key), Element> {
    let numbered = history.transactions.iter().enumerate();
    numbered.flat_map(|(number, one)| one.appends().map(move |(key, element)| ((number, key), element))).collect()
}

/// Returns what a transaction saw of each list. Reports reads that lack its own appends, or that
/// differ from an earlier read.
fn views(history: &History, number: usize, anomalies: &mut Anomalies) -> Vec<View> {
    let mut own: HashMap<Key, Vec<Element>> = HashMap::new();
    let mut seen: BTreeMap<Key, Vec<Element>> = BTreeMap::new();
    for operation in &history.transactions[number].operations {
        match operation {
            Operation::Append(key, element) => own.entry(*key).or_default().push(*element),
            Operation::Read(key, list) => {
                let own = own.get(key).map_or(&[][..], Vec::as_slice);
                let Some(before) = list.strip_suffix(own) else {
                    let evidence = format!("T{number} read {list:?} of list {key}, to which it had appended {own:?}");
                    anomalies.add(Kind::OwnWrites, (*key, own[0]), vec![number], evidence);
                    continue;
                };
                let first = seen.entry(*key).or_insert_with(|| before.to_vec());
                if first != before {
                    let evidence = format!("T{number} read list {key} twice: first {first:?}, later {before:?}");
                    anomalies.add(Kind::UnrepeatableRead, (*key, number as Element), vec![number], evidence);
                }
            }
        }
    }
    seen.into_iter().map(|(key, list)| View { transaction: number, key, list }).collect()
}

/// Reports elements that are in the list twice, that no client wrote, and that were aborted (G1a).
fn check_elements(history: &History, versions: &Versions, view: &View, anomalies: &mut Anomalies) {
    let View { transaction: reader, key, list } = view;
    let mut met = HashSet::new();
    for element in list {
        let place = (*key, *element);
        let read = format!("T{reader} read {list:?} of list {key}");
        if !met.insert(element) {
            let writer = versions.writers.get(&place).copied();
            anomalies.add(
                Kind::Repeated,
                place,
                writer.into_iter().chain([*reader]).collect(),
                format!("{read}, with {element} twice"),
            );
        }
        match versions.writers.get(&place) {
            None => anomalies.add(
                Kind::NeverWritten,
                place,
                vec![*reader],
                format!("{read}, and no client appended {element}"),
            ),
            Some(writer) if history.transactions[*writer].outcome == Outcome::Aborted => {
                let evidence = format!("{read}, with {element} of T{writer}, which was aborted");
                anomalies.add(Kind::AbortedRead, place, vec![*writer, *reader], evidence);
            }
            Some(_) => {}
        }
    }
}

/// Reports a list that ends within the appends of another transaction (G1b).
fn check_end(
    versions: &Versions,
    last_appends: &HashMap<(usize, Key), Element>,
    view: &View,
    anomalies: &mut Anomalies,
) {
    let View { transaction: reader, key, list } = view;
    let Some(end) = list.last() else { return };
    let Some(writer) = versions.writers.get(&(*key, *end)).filter(|writer| *writer != reader) else { return };
    let last = last_appends[&(*writer, *key)];
    if last != *end {
        let evidence = format!("T{reader} read {list:?} of list {key}, but T{writer} appended {last} behind {end}");
        anomalies.add(Kind::IntermediateRead, (*key, *end), vec![*writer, *reader], evidence);
    }
}

/// Reports elements that were acknowledged, and that a read which began later does not have.
fn check_acknowledged(history: &History, versions: &Versions, anomalies: &mut Anomalies) {
    let mut last_views: HashMap<Key, &View> = HashMap::new();
    for view in &versions.views {
        let last = last_views.entry(view.key).or_insert(view);
        if history.transactions[view.transaction].began > history.transactions[last.transaction].began {
            *last = view;
        }
    }
    for (writer, transaction) in history.transactions.iter().enumerate() {
        for (key, element) in transaction.appends().filter(|_| transaction.outcome == Outcome::Committed) {
            let Some(view) = last_views.get(&key) else { continue };
            let is_later = history.transactions[view.transaction].began > transaction.ended;
            if is_later && !view.list.contains(&element) {
                let evidence = format!(
                    "T{writer} appended {element} to list {key} and ended before T{} began, which read {:?}",
                    view.transaction, view.list
                );
                anomalies.add(Kind::LostAppend, (key, element), vec![writer, view.transaction], evidence);
            }
        }
    }
}
