//! Servers are measured in turns, so that a disturbance of the machine affects all of them.

use anyhow::Result;

/// The length of a turn. The first requests of a turn find the processor's caches full of the other
/// servers' data. That is part of the result if turns are short, and does not happen to a server
/// that runs alone.
#[derive(clap::Args, Debug, Clone, Copy)]
pub struct RoundRobinArgs {
    /// Requests in a row to one server before the next one's turn
    #[arg(long = "requests-per-turn", value_name = "N", default_value_t = Self::DEFAULT, value_parser = clap::value_parser!(u64).range(1..))]
    pub requests: u64,
}

impl RoundRobinArgs {
    const DEFAULT: u64 = 10;

    /// Returns the number of requests of each turn; their sum is `iterations`.
    pub fn turns(self, iterations: u64) -> impl Iterator<Item = u64> {
        (0..iterations).step_by(self.requests as usize).map(move |done| self.requests.min(iterations - done))
    }
}

impl Default for RoundRobinArgs {
    fn default() -> Self {
        RoundRobinArgs { requests: Self::DEFAULT }
    }
}

/// Returns the servers' indexes in the order of turn number `turn`. Each server begins some turns,
/// so that none always follows the same other one.
pub fn order_of_turn(turn: usize, servers: usize) -> impl Iterator<Item = usize> {
    (0..servers).map(move |index| (turn + index) % servers)
}

/// Calls `run` for each server, in the order of each of `rounds` turns.
pub fn in_turns<S>(rounds: u32, servers: &mut [S], mut run: impl FnMut(&mut S) -> Result<()>) -> Result<()> {
    for round in 0..rounds as usize {
        for index in order_of_turn(round, servers.len()) {
            run(&mut servers[index])?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_turn_has_the_remaining_requests() {
        let turns = |iterations| RoundRobinArgs { requests: 10 }.turns(iterations).collect::<Vec<_>>();
        assert_eq!(turns(25), [10, 10, 5]);
        assert_eq!(turns(20), [10, 10]);
        assert_eq!(turns(3), [3]);
    }

    #[test]
    fn each_server_begins_a_turn() {
        let order = |turn| order_of_turn(turn, 3).collect::<Vec<_>>();
        assert_eq!([order(0), order(1), order(5)], [[0, 1, 2], [1, 2, 0], [2, 0, 1]]);
    }
}
