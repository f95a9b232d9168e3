//! The agreement of gateways. Only the gateway that holds a monitor's lock on a majority of its
//! servers may change them.

/// The servers of which a majority is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MajorityOf {
    /// All that the monitor names: no two gateways can both have a majority.
    #[default]
    All,
    /// Those that this gateway reaches. Two gateways that reach different servers may both act.
    Running,
}

/// How many servers there are, run, and are locked by this gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Votes {
    pub servers: usize,
    pub running: usize,
    pub held: usize,
}

impl MajorityOf {
    pub fn name(self) -> &'static str {
        match self {
            MajorityOf::All => "all",
            MajorityOf::Running => "running",
        }
    }
}

impl Votes {
    /// Returns how many locks are a majority.
    pub fn needed(self, of: MajorityOf) -> usize {
        match of {
            MajorityOf::All => self.servers / 2 + 1,
            MajorityOf::Running => self.running / 2 + 1,
        }
    }

    pub fn are_majority(self, of: MajorityOf) -> bool {
        self.held >= self.needed(of)
    }

    /// Returns whether another gateway could have promoted a server that this one does not reach,
    /// because a majority may be out of its sight.
    pub fn may_be_isolated(self) -> bool {
        self.servers - self.running >= self.needed(MajorityOf::All)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn of_two_gateways_at_most_one_acts(servers in 1..8usize, first in 0..8usize, second in 0..8usize) {
            prop_assume!(first + second <= servers);
            let votes = |held| Votes { servers, running: servers, held };
            for of in [MajorityOf::All, MajorityOf::Running] {
                prop_assert!(!(votes(first).are_majority(of) && votes(second).are_majority(of)));
            }
        }

        /// A gateway uses its primary only while no other one, which reaches the other servers, can
        /// lock a majority.
        #[test]
        fn a_gateway_that_is_cut_off_uses_no_primary(servers in 1..8usize, running in 0..8usize) {
            prop_assume!(running <= servers);
            let votes = Votes { servers, running, held: running };
            let other = Votes { servers, running: servers - running, held: servers - running };
            prop_assert_eq!(votes.may_be_isolated(), other.are_majority(MajorityOf::All));
        }
    }
}
