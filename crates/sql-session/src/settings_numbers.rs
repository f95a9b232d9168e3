//! Numbers that stand for the settings of sessions in cache keys: settings are long, and many
//! sessions have the same.

use ahash::AHashMap;
use std::sync::{Mutex, PoisonError};

/// With more settings than these, all get new numbers, and results are cached again.
const SETTINGS_MAX: usize = 10_000;

/// The numbers of the process, as services with one cache may have several listeners.
static NUMBERS: Mutex<Option<Numbers>> = Mutex::new(None);

#[derive(Default)]
struct Numbers {
    by_settings: AHashMap<Box<[u8]>, u64>,
    last: u64,
}

impl Numbers {
    fn number(&mut self, settings: &[u8]) -> u64 {
        if let Some(&number) = self.by_settings.get(settings) {
            return number;
        }
        if self.by_settings.len() >= SETTINGS_MAX {
            self.by_settings.clear();
        }
        self.last += 1;
        self.by_settings.insert(settings.into(), self.last);
        self.last
    }
}

/// Returns the number of these settings. No other settings have had it.
pub fn number(settings: &[u8]) -> u64 {
    NUMBERS.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().number(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_never_that_of_other_settings() {
        let mut numbers = Numbers::default();
        let first = numbers.number(b"first");
        assert_eq!(numbers.number(b"first"), first);
        let mut seen: Vec<u64> = (0..SETTINGS_MAX).map(|number| numbers.number(&number.to_le_bytes())).collect();
        let again = numbers.number(b"first");
        assert!(again != first && !seen.contains(&again), "its number is new after the others were dropped");
        seen.dedup();
        assert!(seen.len() == SETTINGS_MAX && !seen.contains(&first));
    }
}
