//! The starts of users: those of a second in slices, and equally many of each slice in every
//! process.

use super::scenario::Run;
use std::time::Duration;

/// The users of one process, in the order of their starts.
pub struct Schedule {
    run: Run,
    process: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduledStart {
    /// Time since the start of the run.
    pub after: Duration,
    /// The second of the run.
    pub iteration: u32,
    /// The number of the user among those of all processes.
    pub user: u64,
}

impl Schedule {
    pub fn new(run: &Run, process: u32) -> Schedule {
        Schedule { run: run.clone(), process }
    }

    /// Returns the start of the user with this number in this process; `None` after the last one.
    pub fn start_of(&self, number: u64) -> Option<ScheduledStart> {
        let run = &self.run;
        let per_second = u64::from(run.users_per_second);
        // Users are assigned to processes in turn, across seconds, so that few users are shared
        // evenly too.
        let user = number * u64::from(run.processes) + u64::from(self.process);
        let iteration = u32::try_from(user / per_second).ok().filter(|iteration| *iteration < run.iterations)?;
        let slices = 1000u64.div_ceil(run.slice_ms.into());
        let slice = user % per_second * slices / per_second;
        let milliseconds = u64::from(iteration) * 1000 + slice * u64::from(run.slice_ms);
        Some(ScheduledStart { after: Duration::from_millis(milliseconds), iteration, user })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn run(processes: u32, users_per_second: u32, slice_ms: u32) -> Run {
        Run { processes, pool: 1, iterations: 3, users_per_second, slice_ms, overtime_seconds: 1 }
    }

    fn all(run: &Run) -> Vec<Vec<ScheduledStart>> {
        let of = |process| {
            let schedule = Schedule::new(run, process);
            (0..).map_while(|number| schedule.start_of(number)).collect()
        };
        (0..run.processes).map(of).collect()
    }

    #[test]
    fn a_thousand_users_a_second_in_a_hundred_slices() {
        let processes = all(&run(4, 1000, 10));
        let mut slices: BTreeMap<Duration, usize> = BTreeMap::new();
        processes.iter().flatten().for_each(|start| *slices.entry(start.after).or_default() += 1);
        assert_eq!(slices.len(), 300);
        assert!(slices.values().all(|count| *count == 10));
        assert_eq!(processes.iter().map(Vec::len).collect::<Vec<_>>(), [750; 4]);
        assert!(slices.keys().all(|after| after.as_millis() % 10 == 0 && *after < Duration::from_secs(3)));
    }

    #[test]
    fn every_user_starts_once_and_in_order() {
        for run in [run(3, 7, 250), run(4, 2, 10), run(1, 5, 1000), run(2, 3000, 1), run(5, 1, 300)] {
            let processes = all(&run);
            let mut users: Vec<u64> = processes.iter().flatten().map(|start| start.user).collect();
            users.sort_unstable();
            assert_eq!(users, (0..u64::from(run.iterations * run.users_per_second)).collect::<Vec<_>>(), "{run:?}");
            assert!(processes.iter().all(|own| own.is_sorted_by_key(|start| start.after)), "{run:?}");
            let in_second = |start: &ScheduledStart| start.after.as_secs() == u64::from(start.iteration);
            assert!(processes.iter().flatten().all(in_second), "{run:?}");
        }
    }

    #[test]
    fn slices_of_a_whole_second_start_with_it() {
        let all = all(&run(1, 100, 1000));
        assert!(all[0].iter().all(|start| start.after.subsec_millis() == 0));
    }
}
