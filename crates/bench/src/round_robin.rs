//! Servers are asked in turns, so that a disturbance of the machine hits all of them.

/// How long a turn is. Its first requests find the processor's caches full of what the other servers left there, which is a part of
/// the figure with few requests in a turn, and none of what a server meets that has no others beside it.
#[derive(clap::Args, Debug, Clone, Copy)]
pub struct TurnArgs {
    /// How many times in a row a server is asked before it is the next one's turn
    #[arg(long = "turn", value_name = "REQUESTS", default_value_t = Self::DEFAULT, value_parser = clap::value_parser!(u64).range(1..))]
    pub requests: u64,
}

impl TurnArgs {
    const DEFAULT: u64 = 10;

    /// How many requests each turn has, so that there are `iterations` in all.
    pub fn of(self, iterations: u64) -> impl Iterator<Item = u64> {
        (0..iterations).step_by(self.requests as usize).map(move |done| self.requests.min(iterations - done))
    }
}

impl Default for TurnArgs {
    fn default() -> Self {
        TurnArgs { requests: Self::DEFAULT }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_turn_has_what_is_left() {
        let turns = |iterations| TurnArgs { requests: 10 }.of(iterations).collect::<Vec<_>>();
        assert_eq!(turns(25), [10, 10, 5]);
        assert_eq!(turns(20), [10, 10]);
        assert_eq!(turns(3), [3]);
    }
}
