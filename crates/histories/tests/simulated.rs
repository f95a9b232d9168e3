//! Histories of a database in memory: with snapshot isolation they pass, and each fault is found.

use harness::random::SplitMix;
use histories::anomaly::Kind;
use histories::history::{Element, History, Key, Operation, Outcome, Transaction};
use proptest::prelude::*;
use std::collections::HashMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// Reads return the latest committed lists.
    NoSnapshot,
    /// The snapshot is taken after the first read.
    LateSnapshot,
    /// Reads do not see the transaction's own appends.
    NoOwnWrites,
    /// Appends are not checked against others since the snapshot.
    NoConflicts,
    /// Reads return appends of transactions that are open.
    UncommittedReads,
    /// Snapshots are some commits old.
    OldSnapshots,
    /// A commit is acknowledged and lost.
    LostCommit,
    /// A commit is applied twice.
    AppliedTwice,
    EventLost,
    EventRepeated,
}

/// Versions of lists, by the number of commits.
#[derive(Default)]
struct Database {
    commits: u64,
    lists: HashMap<Key, Vec<(u64, Element)>>,
    stream: Vec<(Key, Element)>,
}

impl Database {
    fn read(&self, key: Key, at: u64) -> Vec<Element> {
        let list = self.lists.get(&key).map_or(&[][..], Vec::as_slice);
        list.iter().filter(|(commit, _)| *commit <= at).map(|(_, element)| *element).collect()
    }

    fn is_changed_since(&self, key: Key, at: u64) -> bool {
        self.lists.get(&key).is_some_and(|list| list.iter().any(|(commit, _)| *commit > at))
    }

    fn commit(&mut self, appends: &[(Key, Element)]) {
        self.commits += 1;
        for (key, element) in appends {
            self.lists.entry(*key).or_default().push((self.commits, *element));
            self.stream.push((*key, *element));
        }
    }
}

struct Client {
    transaction: Transaction,
    snapshot: Option<u64>,
    left: u64,
}

const CLIENTS: u64 = 6;
const KEYS: u64 = 4;

/// Runs transactions of several clients, whose operations alternate at random.
fn run(seed: u64, transactions: usize, fault: Fault) -> History {
    let mut random = SplitMix(seed);
    let mut database = Database::default();
    let mut history = History::default();
    let mut clients: Vec<Option<Client>> = (0..CLIENTS).map(|_| None).collect();
    let (mut clock, mut element) = (0, 0);
    while history.transactions.len() < transactions {
        clock += 1;
        let number = random.below(CLIENTS);
        let slot = &mut clients[number as usize];
        let Some(client) = slot else {
            let transaction = Transaction {
                client: number as u32,
                began: clock,
                ended: 0,
                outcome: Outcome::Aborted,
                operations: Vec::new(),
            };
            *slot = Some(Client { transaction, snapshot: None, left: 1 + random.below(5) });
            continue;
        };
        let is_faulty = random.below(10) == 0;
        if client.left == 0 {
            let Some(Client { mut transaction, .. }) = slot.take() else { unreachable!() };
            transaction.ended = clock;
            end(&mut database, &mut transaction, &mut random, fault, is_faulty);
            history.transactions.push(transaction);
            continue;
        }
        client.left -= 1;
        let key = random.below(KEYS) as Key;
        let age = if fault == Fault::OldSnapshots && is_faulty { 3 } else { 0 };
        let had_snapshot = client.snapshot.is_some();
        let snapshot = *client.snapshot.get_or_insert(database.commits.saturating_sub(age));
        if random.below(2) == 0 {
            element += 1;
            client.transaction.operations.push(Operation::Append(key, element));
            let is_refused = database.is_changed_since(key, snapshot) || is_open_elsewhere(&clients, number, key);
            if is_refused && fault != Fault::NoConflicts {
                let Some(Client { mut transaction, .. }) = clients[number as usize].take() else { unreachable!() };
                transaction.ended = clock;
                history.transactions.push(transaction);
            }
            continue;
        }
        let at = if fault == Fault::NoSnapshot && is_faulty { database.commits } else { snapshot };
        let mut list = database.read(key, at);
        if fault == Fault::UncommittedReads && is_faulty {
            list.extend(open_appends(&clients, key));
        } else if !(fault == Fault::NoOwnWrites && is_faulty) {
            list.extend(
                clients[number as usize]
                    .iter()
                    .flat_map(|own| own.transaction.appends())
                    .filter(|own| own.0 == key)
                    .map(|own| own.1),
            );
        }
        let Some(client) = &mut clients[number as usize] else { unreachable!() };
        client.transaction.operations.push(Operation::Read(key, list));
        if fault == Fault::LateSnapshot && !had_snapshot {
            client.snapshot = None;
        }
    }
    let last = (0..KEYS as Key).map(|key| Operation::Read(key, database.read(key, database.commits))).collect();
    let (began, ended) = (clock + 1, clock + 2);
    history.transactions.push(Transaction { client: 0, began, ended, outcome: Outcome::Committed, operations: last });
    history.streams.push(database.stream);
    history
}

fn end(database: &mut Database, transaction: &mut Transaction, random: &mut SplitMix, fault: Fault, is_faulty: bool) {
    let appends: Vec<(Key, Element)> = transaction.appends().collect();
    let chance = random.below(10);
    if chance == 0 {
        return;
    }
    transaction.outcome = if chance == 1 { Outcome::Unknown } else { Outcome::Committed };
    let is_lost = fault == Fault::LostCommit && is_faulty || chance == 1 && random.below(2) == 0;
    if !is_lost && !appends.is_empty() {
        database.commit(&appends);
        if fault == Fault::AppliedTwice && is_faulty {
            database.commit(&appends);
        }
        match fault {
            Fault::EventLost if is_faulty => drop(database.stream.pop()),
            Fault::EventRepeated if is_faulty => database.stream.extend(appends.last()),
            _ => {}
        }
    }
}

fn is_open_elsewhere(clients: &[Option<Client>], number: u64, key: Key) -> bool {
    let others = clients.iter().enumerate().filter(|(other, _)| *other as u64 != number);
    others
        .filter_map(|(_, client)| client.as_ref())
        .any(|client| client.transaction.appends().any(|append| append.0 == key))
}

fn open_appends(clients: &[Option<Client>], key: Key) -> Vec<Element> {
    let open = clients.iter().flatten().flat_map(|client| client.transaction.appends());
    open.filter(|append| append.0 == key).map(|append| append.1).collect()
}

fn kinds(history: &History) -> Vec<Kind> {
    histories::check(history).iter().map(|anomaly| anomaly.kind).collect()
}

/// Histories in which a fault must be found at least once: one in ten operations has it, and most
/// of these do no harm.
const HISTORIES: u64 = 12;

#[test]
fn each_fault_is_found() {
    for (fault, expected) in [
        (Fault::NoSnapshot, Kind::ReadSkew),
        (Fault::LateSnapshot, Kind::ReadSkew),
        (Fault::NoOwnWrites, Kind::OwnWrites),
        (Fault::NoConflicts, Kind::LostUpdate),
        (Fault::UncommittedReads, Kind::AbortedRead),
        (Fault::OldSnapshots, Kind::RealTime),
        (Fault::LostCommit, Kind::LostAppend),
        (Fault::AppliedTwice, Kind::Repeated),
        (Fault::EventLost, Kind::EventLost),
        (Fault::EventRepeated, Kind::EventRepeated),
    ] {
        let found = (0..HISTORIES).map(|seed| kinds(&run(seed, 100, fault))).collect::<Vec<_>>();
        assert!(found.iter().flatten().any(|kind| *kind == expected), "{fault:?}: {found:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn snapshot_isolation_passes(seed: u64) {
        let history = run(seed, 100, Fault::None);
        let anomalies = histories::check(&history);
        prop_assert!(anomalies.is_empty(), "{}", anomalies[0].text(&history));
    }
}
