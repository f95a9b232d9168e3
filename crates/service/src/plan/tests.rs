//! Plans of topologies, and the properties of all of them.

use super::*;
use crate::gtid::{GtidPosition, GtidState};
use crate::observation::{IoThread, KindFacts, Source};
use crate::role::{ClusterKind, Role};
use crate::testing::{facts, replica};
use crate::topology;
use mariadb_client::Address;
use proptest::prelude::*;

/// Servers 1, 2, …, named db1, db2, …; `None`: down.
#[derive(Debug)]
struct Cluster {
    names: Vec<String>,
    addresses: Vec<Address>,
    servers: Vec<Option<Facts>>,
    inactive: Option<usize>,
}

fn position(text: &str) -> GtidPosition {
    GtidPosition::parse(text).unwrap()
}

fn change_source(facts: &mut Facts, change: impl Fn(&mut Source)) {
    if let KindFacts::Replication(replication) = &mut facts.kind {
        replication.sources.iter_mut().for_each(change);
    }
}

/// Returns a replica of server 1 that has lost it.
fn orphan(id: u32, applied: &str, received: &str) -> Option<Facts> {
    let mut facts = with_log(replica(id, 1), applied);
    change_source(&mut facts, |source| (source.io, source.received) = (IoThread::Connecting, position(received)));
    Some(facts)
}

fn with_log(facts: Facts, log: &str) -> Facts {
    let (binlog, binlog_state) = (position(log), GtidState::parse(log));
    Facts { current: binlog.clone(), binlog, binlog_state, ..facts }
}

fn read_only(facts: Facts) -> Facts {
    Facts { is_read_only: true, ..facts }
}

impl Cluster {
    fn new(servers: Vec<Option<Facts>>) -> Cluster {
        let ids = || 1..=servers.len();
        let names = ids().map(|id| format!("db{id}")).collect();
        let addresses = ids().map(|id| Address::Tcp { host: format!("db{id}"), port: 3306 }).collect();
        Cluster { names, addresses, servers, inactive: None }
    }

    fn candidates(&self) -> Vec<Candidate<'_>> {
        let candidate = |number: usize| Candidate {
            name: &self.names[number],
            member: Member {
                address: &self.addresses[number],
                server_id: Some(number as u32 + 1),
                facts: self.servers[number].as_ref(),
            },
            is_down: self.servers[number].is_none(),
            is_active: self.inactive != Some(number),
        };
        (0..self.servers.len()).map(candidate).collect()
    }

    fn check_refusal(&self, part: &str) {
        let refusal = failover(&self.candidates()).unwrap_err();
        assert!(refusal.contains(part), "{refusal}");
    }

    fn upkeep(&self, primary: Option<usize>) -> Option<Upkeep> {
        let allowed = Allowed { failover: true, rejoin: true, enforce_read_only: true };
        upkeep(&self.candidates(), primary, None, allowed)
    }
}

#[test]
fn the_replica_that_has_received_most_replaces_the_primary() {
    let plan = |servers| failover(&Cluster::new(servers).candidates());
    let to = |new, followers: &[usize]| Ok(Some(Promotion { new, old: Some(0), followers: followers.to_vec() }));
    assert_eq!(plan(vec![None, orphan(2, "0-1-5", "0-1-9"), orphan(3, "0-1-8", "0-1-8")]), to(1, &[2]));
    assert_eq!(plan(vec![None, orphan(2, "0-1-5", "0-1-7"), orphan(3, "0-1-8", "0-1-8")]), to(2, &[1]));
    assert_eq!(plan(vec![None, orphan(2, "0-1-8", ""), orphan(3, "0-1-8", "")]), to(1, &[2]));
    assert_eq!(plan(vec![None, orphan(2, "0-1-8", ""), None]), to(1, &[]));
    assert_eq!(plan(vec![Some(facts(1)), Some(replica(2, 1)), Some(replica(3, 1))]), Ok(None));
    assert_eq!(plan(vec![None, None, None]), Ok(None));
    let mut without_log = orphan(2, "0-1-8", "");
    without_log.iter_mut().for_each(|facts| facts.logs_everything = false);
    assert_eq!(plan(vec![None, without_log, orphan(3, "0-1-8", "")]), to(2, &[1]));
    let mut drained = Cluster::new(vec![None, orphan(2, "0-1-8", ""), orphan(3, "0-1-8", "")]);
    drained.inactive = Some(1);
    assert_eq!(failover(&drained.candidates()), to(2, &[1]));
}

#[test]
fn no_failover_while_it_may_lose_or_double_anything() {
    let refuse = |servers, part| Cluster::new(servers).check_refusal(part);
    let usual = || orphan(2, "0-1-8", "0-1-8");
    let with = |change: fn(&mut Source)| {
        let mut facts = orphan(3, "0-1-8", "0-1-9");
        facts.iter_mut().for_each(|facts| change_source(facts, change));
        facts
    };
    refuse(vec![None, usual(), with(|source| source.io = IoThread::Running)], "db3 is still connected to db1");
    refuse(vec![None, usual(), with(|source| source.is_sql_running = false)], "db3 has transactions that db2 does not");
    refuse(vec![None, usual(), with(|source| source.uses_gtid = false)], "db3 does not replicate by GTID");
    refuse(vec![None, usual(), with(|source| source.connection = "x".into())], "has a name");
    refuse(vec![None, usual(), with(|source| source.server_id = 2)], "replicas follow several servers, db1 and db2");
    refuse(vec![None, usual(), with(|source| source.server_id = 9)], "not the monitor's");
    refuse(vec![None, usual(), Some(facts(3))], "db3 is writable");
    refuse(vec![None, usual(), Some(with_log(read_only(facts(3)), "0-3-9"))], "db3 has transactions");
    refuse(vec![None, orphan(2, "0-1-8,1-1-3", ""), orphan(3, "0-1-9,1-1-2", "")], "no replica can be promoted");
    refuse(vec![None, orphan(2, "0-1-8", ""), orphan(3, "0-3-8", "")], "no replica can be promoted");
    let stopped = || with(|source| source.io = IoThread::Stopped);
    refuse(vec![None, stopped()], "none confirms");
    let mut two_sources = usual();
    if let Some(Facts { kind: KindFacts::Replication(replication), .. }) = &mut two_sources {
        replication.sources.push(crate::testing::source(9));
    }
    refuse(vec![None, two_sources, stopped()], "db2 follows several servers");
}

#[test]
fn an_unknown_server_may_be_the_primary() {
    let cluster = Cluster::new(vec![None, orphan(2, "0-1-8", ""), None]);
    let mut candidates = cluster.candidates();
    candidates[2].is_down = false;
    assert_eq!(failover(&candidates), Err("db3 was not reached yet".into()));
}

#[test]
fn a_switchover_needs_a_replica_that_works() {
    let usual = || vec![Some(facts(1)), Some(replica(2, 1)), Some(replica(3, 1))];
    let cluster = Cluster::new(usual());
    let promotion = Promotion { new: 2, old: Some(0), followers: vec![1] };
    assert_eq!(switchover(&cluster.candidates(), Some(0), 2), Ok(promotion));
    let refuse = |servers, primary, part: &str| {
        let refusal = switchover(&Cluster::new(servers).candidates(), primary, 2).unwrap_err();
        assert!(refusal.contains(part), "{refusal}");
    };
    refuse(usual(), None, "no primary");
    refuse(usual(), Some(2), "already");
    refuse(vec![Some(facts(1)), Some(replica(2, 1)), None], Some(0), "db3 is down");
    refuse(vec![Some(facts(1)), Some(replica(2, 1)), Some(replica(3, 2))], Some(0), "directly");
    refuse(vec![Some(facts(1)), Some(replica(2, 1)), orphan(3, "", "")], Some(0), "not connected");
    refuse(vec![Some(facts(1)), Some(facts(2)), Some(replica(3, 1))], Some(0), "db2 is writable beside");
}

#[test]
fn a_forced_failover_needs_a_primary_that_is_lost() {
    let mut broken = orphan(3, "0-1-8", "0-1-9");
    broken.iter_mut().for_each(|facts| change_source(facts, |source| source.is_sql_running = false));
    let cluster = Cluster::new(vec![None, orphan(2, "0-1-8", "0-1-8"), broken]);
    let promotion = Promotion { new: 1, old: Some(0), followers: vec![2] };
    assert_eq!(forced_failover(&cluster.candidates(), 1), Ok(promotion));
    let up = Cluster::new(vec![Some(facts(1)), Some(replica(2, 1))]);
    assert_eq!(forced_failover(&up.candidates(), 1), Err("db1 is up and writable".into()));
}

#[test]
fn servers_that_follow_nobody_or_the_lost_primary_follow_the_new_one() {
    let primary = || Some(Facts { binlog_state: GtidState::parse("0-1-10,0-2-12"), ..with_log(facts(2), "0-2-12") });
    let follower = || Some(with_log(replica(3, 2), "0-2-12"));
    let upkeep = |first: Option<Facts>, third| Cluster::new(vec![first, primary(), third]).upkeep(Some(1));
    let rejoin_of = |server| Some(Upkeep::Follow { server, primary: 1 });
    let old = |log| Some(with_log(read_only(facts(1)), log));
    assert_eq!(upkeep(old("0-1-10"), follower()), rejoin_of(0));
    assert_eq!(upkeep(old("0-1-11"), follower()), None, "it has diverged");
    assert_eq!(upkeep(Some(with_log(facts(1), "0-1-10")), follower()), Some(Upkeep::Fence(0)));
    assert_eq!(upkeep(None, orphan(3, "0-1-10", "")), rejoin_of(2));
    assert_eq!(upkeep(None, follower()), None);
    let mut in_maintenance = Cluster::new(vec![Some(with_log(facts(1), "0-1-10")), primary(), follower()]);
    in_maintenance.inactive = Some(0);
    assert_eq!(in_maintenance.upkeep(Some(1)), None);
    let writable = follower().map(|facts| Facts { is_read_only: false, ..facts });
    assert_eq!(upkeep(None, writable), Some(Upkeep::SetReadOnly(2)));
    // The administrator has stopped it.
    let mut stopped = follower();
    let stop = |source: &mut Source| (source.io, source.is_sql_running) = (IoThread::Stopped, false);
    stopped.iter_mut().for_each(|facts| change_source(facts, stop));
    assert_eq!(upkeep(None, stopped), None);
    let cluster = Cluster::new(vec![old("0-1-11"), primary(), follower()]);
    let reason = follow_reason(&cluster.candidates(), Some(1), 0);
    assert_eq!(reason, Some("it has transactions that the primary does not have"));
    assert_eq!(follow_reason(&cluster.candidates(), Some(1), 2), None);
}

#[test]
fn a_primary_that_has_started_again_gets_writable() {
    let started = || Some(read_only(facts(1)));
    let cluster = Cluster::new(vec![started(), Some(replica(2, 1)), Some(replica(3, 1))]);
    assert_eq!(cluster.upkeep(None), Some(Upkeep::SetWritable(0)));
    let cluster = Cluster::new(vec![started(), Some(replica(2, 1)), None]);
    assert_eq!(cluster.upkeep(None), None, "db3 may have been promoted");
    let allowed = Allowed { failover: true, ..Allowed::default() };
    assert_eq!(upkeep(&cluster.candidates(), None, Some(0), allowed), Some(Upkeep::SetWritable(0)));
    assert_eq!(Cluster::new(vec![started(), Some(read_only(facts(2))), None]).upkeep(None), None);
    assert_eq!(Cluster::new(vec![started(), None, None]).upkeep(None), None);
}

fn io_thread() -> impl Strategy<Value = IoThread> {
    prop_oneof![1 => Just(IoThread::Running), 8 => Just(IoThread::Connecting), 1 => Just(IoThread::Stopped)]
}

/// The last applied and the last received transaction of a domain.
/// Rarely, the server has written the last transaction itself.
fn history() -> impl Strategy<Value = (u64, u64, bool)> {
    (1..6u64, 0..3u64, prop::bool::weighted(0.05)).prop_map(|(applied, more, own)| (applied, applied + more, own))
}

/// A server that has followed the lost server 1, in two domains.
fn survivor(id: u32) -> impl Strategy<Value = Option<Facts>> {
    let flags = (prop::bool::weighted(0.9), prop::bool::weighted(0.9), prop::bool::weighted(0.95));
    let up = (history(), history(), io_thread(), flags, prop::bool::weighted(0.95));
    let up = up.prop_map(move |((a, b, own), (c, d, _), io, (is_sql_running, logs, is_read_only), follows)| {
        let writer = if own { id } else { 1 };
        let (log, received) = (format!("0-{writer}-{a},1-1-{c}"), format!("0-1-{b},1-1-{d}"));
        let of = if follows { 1 } else { 2 + id % 2 };
        let mut facts = with_log(Facts { is_read_only, logs_everything: logs, ..replica(id, of) }, &log);
        facts.is_read_only = is_read_only;
        change_source(&mut facts, |source| {
            (source.io, source.is_sql_running, source.received) = (io, is_sql_running, position(&received));
        });
        Some(facts)
    });
    prop_oneof![1 => Just(None), 6 => up]
}

fn cluster() -> impl Strategy<Value = Cluster> {
    (survivor(2), survivor(3), survivor(4), survivor(5), 2..=5usize).prop_map(|(b, c, d, e, count)| {
        let mut servers = vec![None, b, c, d, e];
        servers.truncate(count);
        Cluster::new(servers)
    })
}

/// Executes a promotion.
fn promoted(cluster: &Cluster, promotion: &Promotion) -> Cluster {
    let mut after = Cluster::new(cluster.servers.clone());
    let new_id = promotion.new as u32 + 1;
    if let Some(new) = &mut after.servers[promotion.new] {
        *new = Facts { current: new.received(), ..facts(new_id) };
    }
    for &follower in &promotion.followers {
        after.servers[follower] = Some(replica(follower as u32 + 1, new_id));
    }
    after
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_failover_loses_nothing_that_a_running_server_has(cluster in cluster()) {
        let Ok(Some(promotion)) = failover(&cluster.candidates()) else { return Ok(()) };
        let new = cluster.servers[promotion.new].as_ref().unwrap();
        for other in cluster.servers.iter().flatten() {
            prop_assert!(new.received().has_all_of(&other.received()));
            prop_assert!(other.sources().iter().all(|source| source.io != IoThread::Running));
        }
        prop_assert!(new.logs_everything && new.sources()[0].is_sql_running);
    }

    #[test]
    fn after_a_failover_there_is_one_primary(cluster in cluster()) {
        let Ok(Some(promotion)) = failover(&cluster.candidates()) else { return Ok(()) };
        let after = promoted(&cluster, &promotion);
        let writable = after.servers.iter().flatten().filter(|facts| !facts.is_read_only).count();
        prop_assert_eq!(writable, 1);
        let members: Vec<Member<'_>> = after.candidates().iter().map(|candidate| candidate.member).collect();
        let standings = topology::decide(ClusterKind::Replication, &members, Some(promotion.new));
        prop_assert_eq!(topology::primary(&standings), Some(promotion.new));
        for &follower in &promotion.followers {
            prop_assert_eq!(standings[follower].role, Role::Replica);
        }
    }

    /// Upkeep never takes writes from the primary, nor gives them to a second server.
    #[test]
    fn upkeep_leaves_the_primary_alone(cluster in cluster(), primary in 1..5usize) {
        if !cluster.servers.get(primary).is_some_and(Option::is_some) {
            return Ok(());
        }
        match cluster.upkeep(Some(primary)) {
            None => {}
            Some(Upkeep::Follow { server, primary: source }) => {
                prop_assert!(server != primary && source == primary);
                let (facts, of) = (cluster.servers[server].as_ref().unwrap(), cluster.servers[primary].as_ref().unwrap());
                prop_assert!(!has_diverged(facts, of));
            }
            Some(Upkeep::Fence(server) | Upkeep::SetReadOnly(server)) => prop_assert_ne!(server, primary),
            Some(Upkeep::SetWritable(_)) => prop_assert!(false, "there is a primary"),
        }
    }
}
