//! The fail point `failCommand`, by which drivers' tests make commands fail.
//!
//! It is configured by `configureFailPoint`, which only a server with `test-commands` knows. Each
//! command asks [`FailPoint::is_on`]; `commands` decides what the data of the fail point means.

use document::{Doc, DocBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

/// How often a fail point fires.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Mode {
    #[default]
    Off,
    AlwaysOn,
    /// The next matching commands, then never again.
    Times(u32),
    /// All matching commands except for the first.
    Skip(u32),
    /// Each matching command with this probability.
    Probability(f64),
}

impl Mode {
    /// Counts a matching command; returns whether it fails. `random`: a number from 0 to 1.
    fn fires(&mut self, random: f64) -> bool {
        match self {
            Mode::Off => false,
            Mode::AlwaysOn => true,
            Mode::Times(times) => {
                let fires = *times > 0;
                *times = times.saturating_sub(1);
                if *times == 0 {
                    *self = Mode::Off;
                }
                fires
            }
            Mode::Skip(skipped) => {
                let fires = *skipped == 0;
                *skipped = skipped.saturating_sub(1);
                fires
            }
            Mode::Probability(probability) => random < *probability,
        }
    }
}

/// A fail point.
#[derive(Debug, Default)]
pub struct FailPoint {
    /// Whether the mode is other than off. Each command reads it, and the mode itself is behind a
    /// lock.
    is_on: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    mode: Mode,
    data: DocBuf,
    /// How often it has fired since the process began.
    fired: i64,
}

impl FailPoint {
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Sets mode and data; returns how often the fail point has fired.
    pub fn set(&self, mode: Mode, data: DocBuf) -> i64 {
        let mut state = self.lock();
        (state.mode, state.data) = (mode, data);
        self.note_mode(&state);
        state.fired
    }

    /// Counts a command; returns the data if the command matches them and must fail.
    pub fn fire(&self, matches: impl FnOnce(Doc<'_>) -> bool) -> Option<DocBuf> {
        let mut state = self.lock();
        if state.mode == Mode::Off || !matches(state.data.as_doc()) || !state.mode.fires(rand::random()) {
            return None;
        }
        state.fired += 1;
        self.note_mode(&state);
        Some(state.data.clone())
    }

    fn note_mode(&self, state: &State) {
        self.is_on.store(state.mode != Mode::Off, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(mut mode: Mode, expected: [bool; 4]) {
        assert_eq!([0.1, 0.9, 0.4, 0.6].map(|random| mode.fires(random)), expected);
    }

    #[test]
    fn modes_fire_as_often_as_they_say() {
        check(Mode::Off, [false; 4]);
        check(Mode::AlwaysOn, [true; 4]);
        check(Mode::Times(0), [false; 4]);
        check(Mode::Times(3), [true, true, true, false]);
        check(Mode::Skip(0), [true; 4]);
        check(Mode::Skip(3), [false, false, false, true]);
        check(Mode::Probability(0.5), [true, false, true, false]);
    }

    #[test]
    fn only_matching_commands_are_counted() {
        let point = FailPoint::default();
        assert!(!point.is_on());
        assert_eq!(point.set(Mode::Times(1), DocBuf::new()), 0);
        assert!(point.fire(|_| false).is_none() && point.is_on());
        assert!(point.fire(|_| true).is_some() && !point.is_on());
        assert_eq!(point.set(Mode::Off, DocBuf::new()), 1);
    }
}
