//! Decisions about topologies, and the properties of all of them.

use super::super::primary;
use super::*;
use crate::observation::{Facts, IoThread, KindFacts};
use crate::role::Role::{self, None as No, Primary, Replica};
use crate::testing::{facts, replica, source};
use mariadb_client::Address;
use proptest::prelude::*;

/// A topology: the facts of the servers 1, 2, …; `None`: down.
type Topology = Vec<Option<Facts>>;

fn standings(topology: &Topology, previous: Option<usize>) -> Vec<Standing> {
    let addresses: Vec<Address> =
        (1..=topology.len()).map(|id| Address::Tcp { host: format!("db{id}"), port: 3306 }).collect();
    let members: Vec<Member<'_>> = topology
        .iter()
        .zip(&addresses)
        .zip(1..)
        .map(|((facts, address), id)| Member { address, server_id: Some(id), facts: facts.as_ref() })
        .collect();
    decide(&members, previous)
}

fn check(topology: Topology, previous: Option<usize>, expected: &[Role]) {
    let standings = standings(&topology, previous);
    let roles: Vec<Role> = standings.iter().map(|standing| standing.role).collect();
    assert_eq!(roles, expected, "{standings:?}");
}

fn writable(facts: Facts) -> Facts {
    Facts { is_read_only: false, ..facts }
}

fn read_only(facts: Facts) -> Facts {
    Facts { is_read_only: true, ..facts }
}

/// Changes the replication connections of a server.
fn with_threads(mut facts: Facts, io: IoThread, is_sql_running: bool) -> Option<Facts> {
    if let KindFacts::Replication(replication) = &mut facts.kind {
        replication.sources.iter_mut().for_each(|source| (source.io, source.is_sql_running) = (io, is_sql_running));
    }
    Some(facts)
}

#[test]
fn a_primary_and_its_replicas() {
    let usual = vec![Some(facts(1)), Some(replica(2, 1)), Some(replica(3, 1))];
    check(usual, None, &[Primary, Replica, Replica]);
    check(vec![Some(replica(1, 2)), Some(facts(2)), Some(replica(3, 1))], None, &[Replica, Primary, Replica]);
    check(vec![Some(facts(1))], None, &[Primary]);
    check(vec![Some(facts(1)), None, None], None, &[Primary, No, No]);
    check(vec![Some(read_only(facts(1))), Some(replica(2, 1))], Some(0), &[No, Replica]);
    check(vec![Some(facts(1)), Some(writable(replica(2, 1)))], None, &[Primary, Replica]);
    check(vec![], None, &[]);
}

#[test]
fn without_a_primary_replicas_serve_reads() {
    let lost = |id| with_threads(replica(id, 1), IoThread::Connecting, true);
    check(vec![None, lost(2), lost(3)], Some(0), &[No, Replica, Replica]);
}

#[test]
fn an_old_primary_that_is_writable_again_is_not_chosen() {
    let moved = |third| vec![Some(facts(1)), Some(facts(2)), third];
    check(moved(Some(replica(3, 2))), Some(1), &[No, Primary, Replica]);
    check(moved(Some(replica(3, 2))), None, &[No, Primary, Replica]);
    check(moved(Some(replica(3, 2))), Some(0), &[No, Primary, Replica]);
    // The new primary is down for a moment, and its replica still follows it.
    check(vec![Some(facts(1)), None, Some(replica(3, 2))], Some(1), &[No, No, Replica]);
    check(vec![Some(facts(1)), None, Some(replica(3, 2))], None, &[No, No, Replica]);
    // No replica follows either of the two: the present one stays.
    check(moved(None), Some(1), &[No, Primary, No]);
    check(moved(None), None, &[No, No, No]);
}

#[test]
fn replication_that_stopped() {
    let stopped = |io, is_sql_running| with_threads(replica(2, 1), io, is_sql_running);
    check(vec![Some(facts(1)), stopped(IoThread::Running, false)], None, &[Primary, No]);
    check(vec![Some(facts(1)), stopped(IoThread::Stopped, true)], None, &[Primary, No]);
    check(vec![Some(facts(1)), stopped(IoThread::Stopped, false)], None, &[Primary, No]);
    // A replica that was promoted and still has its old, stopped replication.
    let promoted = stopped(IoThread::Stopped, false).map(writable);
    check(vec![None, promoted.clone(), Some(replica(3, 2))], Some(0), &[No, Primary, Replica]);
    check(vec![None, promoted, None], Some(0), &[No, Primary, No]);
}

#[test]
fn chains_rings_and_strangers() {
    check(vec![Some(facts(1)), Some(replica(2, 1)), Some(replica(3, 2))], None, &[Primary, Replica, Replica]);
    let broken = with_threads(replica(2, 1), IoThread::Running, false);
    check(vec![Some(facts(1)), broken, Some(replica(3, 2))], None, &[Primary, No, No]);
    let ring = vec![Some(writable(replica(1, 2))), Some(writable(replica(2, 1)))];
    check(ring.clone(), None, &[Primary, Replica]);
    check(ring, Some(1), &[Replica, Primary]);
    // The primary of this topology follows a server of another one.
    check(vec![Some(writable(replica(1, 9))), Some(replica(2, 1))], None, &[Primary, Replica]);
    check(vec![Some(facts(1)), Some(replica(2, 9))], None, &[No, Replica]);
}

#[test]
fn a_source_is_known_by_its_address_until_it_was_connected() {
    let mut topology = vec![Some(facts(1)), Some(replica(2, 1))];
    if let Some(Facts { kind: KindFacts::Replication(replication), .. }) = &mut topology[1] {
        replication.sources[0].server_id = 0;
        replication.sources[0].host = "DB1".into();
    }
    check(topology.clone(), None, &[Primary, Replica]);
    if let Some(Facts { kind: KindFacts::Replication(replication), .. }) = &mut topology[1] {
        replication.sources[0].host = "elsewhere".into();
    }
    check(topology, None, &[No, Replica]);
}

fn io_thread() -> impl Strategy<Value = IoThread> {
    prop_oneof![3 => Just(IoThread::Running), 1 => Just(IoThread::Connecting), 1 => Just(IoThread::Stopped)]
}

/// A server: down, or with up to two sources among five servers, of which some are not monitored.
fn server() -> impl Strategy<Value = Option<Facts>> {
    let sources = prop::collection::vec((1..=5u32, io_thread(), any::<bool>()), 0..3);
    let up = (any::<bool>(), sources).prop_map(|(is_read_only, sources)| {
        let mut facts = Facts { is_read_only, ..facts(0) };
        if let KindFacts::Replication(replication) = &mut facts.kind {
            let source = |(id, io, is_sql_running)| crate::observation::Source { io, is_sql_running, ..source(id) };
            replication.sources = sources.into_iter().map(source).collect();
        }
        Some(facts)
    });
    prop_oneof![1 => Just(None), 5 => up]
}

fn topology() -> impl Strategy<Value = Topology> {
    prop::collection::vec(server(), 1..=4).prop_map(|servers| {
        let with_id = |(id, facts): (u32, Option<Facts>)| facts.map(|facts| Facts { server_id: id, ..facts });
        (1..).zip(servers).map(with_id).collect()
    })
}

/// Returns the members that a started source of a server names.
fn followed(topology: &Topology, member: usize) -> Vec<usize> {
    let sources = topology[member].as_ref().and_then(|facts| facts.replication()).map(|facts| &facts.sources);
    let started = sources.into_iter().flatten().filter(|source| source.is_started());
    started.map(|source| source.server_id as usize - 1).filter(|&found| found != member).collect()
}

proptest! {
    #[test]
    fn there_is_at_most_one_primary_and_it_takes_writes(topology in topology(), previous in 0..4usize) {
        let standings = standings(&topology, Some(previous));
        prop_assert!(standings.iter().filter(|standing| standing.role == Primary).count() <= 1);
        if let Some(primary) = primary(&standings) {
            prop_assert!(topology[primary].as_ref().is_some_and(|facts| !facts.is_read_only));
        }
        for (standing, facts) in standings.iter().zip(&topology) {
            prop_assert!(standing.role == No || facts.is_some());
            prop_assert_eq!(standing.role == No, !standing.reason.is_empty());
        }
    }

    #[test]
    fn the_same_observations_never_change_the_primary(topology in topology(), previous in 0..5usize) {
        let first = standings(&topology, Some(previous).filter(|&previous| previous < topology.len()));
        prop_assert_eq!(&standings(&topology, primary(&first)), &first);
    }

    #[test]
    fn a_server_without_followers_is_no_primary_while_replicas_follow_another(
        topology in topology(),
        previous in prop::option::of(0..4usize),
    ) {
        if let Some(found) = primary(&standings(&topology, previous)) {
            let has_followers = (0..topology.len()).any(|member| followed(&topology, member).contains(&found));
            let another = (0..topology.len())
                .filter(|&member| member != found)
                .any(|member| followed(&topology, member).iter().any(|&other| other != found));
            prop_assert!(has_followers || !another || previous == Some(found));
        }
    }

    /// Servers that fail beside it, and their replication, leave a healthy primary in its place.
    #[test]
    fn a_healthy_primary_stays_when_others_fail(topology in topology(), failed in prop::collection::vec(any::<bool>(), 4)) {
        let Some(before) = primary(&standings(&topology, None)) else { return Ok(()) };
        let left: Topology = topology
            .iter()
            .enumerate()
            .map(|(member, facts)| facts.clone().filter(|_| member == before || !failed[member]))
            .collect();
        let after = standings(&left, Some(before));
        let has_followers = (0..left.len()).any(|member| followed(&left, member).contains(&before));
        // A ring whose other members are down makes it a follower of a server that is down.
        if followed(&left, before).iter().all(|&other| other >= left.len()) && has_followers {
            prop_assert_eq!(primary(&after), Some(before));
        }
    }
}
