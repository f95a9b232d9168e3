//! The roles in a Galera cluster.
//!
//! All nodes accept writes, and concurrent writes on several nodes conflict at the commit. So one
//! node gets the writes: the first of the configuration that can take them. The choice depends on
//! no earlier one, so that gateways with the same list agree whenever they were started.

use crate::observation::{Facts, GaleraFacts, NodeState};
use crate::role::{Member, Standing};

/// Returns the roles of the members.
pub fn decide(members: &[Member<'_>]) -> Vec<Standing> {
    let cluster = largest(members);
    let in_cluster = |facts: &Facts| facts.galera().map(|node| node.cluster.as_str()) == cluster;
    let primary = members.iter().position(|member| {
        member.facts.is_some_and(|facts| unusable(facts).is_none() && in_cluster(facts) && !facts.is_read_only)
    });
    let standing = |(number, member): (usize, &Member<'_>)| match member.facts {
        None => Standing::UNREACHED,
        Some(facts) => match unusable(facts) {
            Some(reason) => Standing::none(reason),
            None if !in_cluster(facts) => Standing::none("it belongs to another cluster than most nodes"),
            None if primary == Some(number) => Standing::PRIMARY,
            None => Standing::REPLICA,
        },
    };
    members.iter().enumerate().map(standing).collect()
}

/// Returns why a node cannot be used, or `None` if it can.
fn unusable(facts: &Facts) -> Option<&'static str> {
    let Some(GaleraFacts { is_in_primary_component, is_ready, state, .. }) = facts.galera() else {
        return Some("it is no Galera node");
    };
    match state {
        _ if !is_in_primary_component => Some("its part of the cluster has no majority"),
        NodeState::Donor => Some("it is a donor, or desynchronized"),
        NodeState::Joining | NodeState::Joined => Some("it is joining the cluster"),
        NodeState::Disconnected => Some("it is disconnected from the cluster"),
        NodeState::Synced if !is_ready => Some("it is not ready"),
        NodeState::Synced => None,
    }
}

/// Returns the cluster to which most usable nodes belong. Two that have diverged may both believe
/// that they have the majority, if an administrator has started one as a new cluster.
fn largest<'m>(members: &[Member<'m>]) -> Option<&'m str> {
    let usable = members.iter().filter_map(|member| member.facts).filter(|facts| unusable(facts).is_none());
    let nodes: Vec<&GaleraFacts> = usable.filter_map(Facts::galera).collect();
    let weight = |cluster: &str| {
        let own = nodes.iter().filter(|node| node.cluster == cluster);
        (own.clone().count(), own.map(|node| node.cluster_size).max())
    };
    // The first of several that are equal, by the order of the configuration.
    nodes.iter().map(|node| node.cluster.as_str()).rev().max_by_key(|cluster| weight(cluster))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::role::Role::{self, None as No, Primary, Replica};
    use crate::testing::node;
    use crate::topology::primary;
    use mariadb_client::Address;
    use proptest::prelude::*;

    fn roles(nodes: &[Option<Facts>]) -> Vec<Role> {
        let address = Address::Tcp { host: "h".into(), port: 1 };
        let members: Vec<Member<'_>> =
            nodes.iter().map(|facts| Member { address: &address, server_id: None, facts: facts.as_ref() }).collect();
        decide(&members).iter().map(|standing| standing.role).collect()
    }

    fn with(change: impl FnOnce(&mut GaleraFacts)) -> Option<Facts> {
        let mut facts = node(NodeState::Synced);
        if let crate::observation::KindFacts::Galera(galera) = &mut facts.kind {
            change(galera);
        }
        Some(facts)
    }

    #[test]
    fn the_first_usable_node_gets_the_writes() {
        let synced = || Some(node(NodeState::Synced));
        let read_only = || synced().map(|facts| Facts { is_read_only: true, ..facts });
        assert_eq!(roles(&[synced(), synced(), synced()]), [Primary, Replica, Replica]);
        assert_eq!(roles(&[None, synced(), synced()]), [No, Primary, Replica]);
        assert_eq!(roles(&[read_only(), synced(), synced()]), [Replica, Primary, Replica]);
        for state in [NodeState::Donor, NodeState::Joining, NodeState::Joined, NodeState::Disconnected] {
            assert_eq!(roles(&[Some(node(state)), synced()]), [No, Primary], "{state:?}");
        }
        assert_eq!(roles(&[with(|node| node.is_in_primary_component = false), synced()]), [No, Primary]);
        assert_eq!(roles(&[with(|node| node.is_ready = false), synced()]), [No, Primary]);
        assert_eq!(roles(&[Some(crate::testing::facts(1)), synced()]), [No, Primary], "no Galera node");
        assert_eq!(roles(&[]), []);
    }

    #[test]
    fn nodes_of_another_cluster_are_left_out() {
        let other = || with(|node| node.cluster = "b".into());
        let synced = || Some(node(NodeState::Synced));
        assert_eq!(roles(&[other(), synced(), synced()]), [No, Primary, Replica]);
        assert_eq!(roles(&[other(), synced()]), [Primary, No], "as many nodes: by the order");
    }

    proptest! {
        #[test]
        fn at_most_one_node_gets_writes_and_it_can_take_them(
            states in prop::collection::vec((0..6u64, any::<bool>(), any::<bool>(), 0..2u8), 0..6),
        ) {
            let nodes: Vec<Option<Facts>> = states
                .iter()
                .map(|&(state, is_in_primary_component, is_read_only, cluster)| {
                    let facts = with(|node| {
                        node.state = NodeState::from_number(state);
                        node.is_in_primary_component = is_in_primary_component;
                        node.cluster = cluster.to_string();
                    })?;
                    (state != 5).then_some(Facts { is_read_only, ..facts })
                })
                .collect();
            let address = Address::Tcp { host: "h".into(), port: 1 };
            let members: Vec<Member<'_>> =
                nodes.iter().map(|facts| Member { address: &address, server_id: None, facts: facts.as_ref() }).collect();
            let standings = decide(&members);
            prop_assert!(standings.iter().filter(|standing| standing.role == Primary).count() <= 1);
            let used: Vec<&Facts> = standings
                .iter()
                .zip(&nodes)
                .filter(|(standing, _)| standing.role != No)
                .filter_map(|(_, facts)| facts.as_ref())
                .collect();
            prop_assert!(used.iter().all(|facts| unusable(facts).is_none()));
            let cluster = used.first().and_then(|facts| facts.galera()).map(|node| node.cluster.clone());
            prop_assert!(used.iter().all(|facts| facts.galera().map(|node| node.cluster.clone()) == cluster));
            if let Some(primary) = primary(&standings) {
                prop_assert!(nodes[primary].as_ref().is_some_and(|facts| !facts.is_read_only));
            }
        }
    }
}
