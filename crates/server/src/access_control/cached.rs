//! Values that are computed from users and roles, and current until these change.

use hashbrown::{Equivalent, HashMap};
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard};

/// Entries cached; past this number all are evicted.
const ENTRIES_MAX: usize = 10_000;

/// A cache whose values belong to a generation of users and roles.
pub struct Cached<K, V>(Mutex<HashMap<K, (u64, Arc<V>), ahash::RandomState>>);

impl<K: Eq + Hash, V> Cached<K, V> {
    /// Returns the value, if it was computed in this generation.
    pub fn get<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q, generation: u64) -> Option<Arc<V>> {
        let entries = self.lock();
        let (of, value) = entries.get(key)?;
        (*of == generation).then(|| value.clone())
    }

    /// Adds a value. `generation`: before it was computed.
    pub fn insert(&self, key: K, generation: u64, value: Arc<V>) {
        let mut entries = self.lock();
        if entries.len() >= ENTRIES_MAX {
            entries.clear();
        }
        entries.insert(key, (generation, value));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, (u64, Arc<V>), ahash::RandomState>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl<K, V> Default for Cached<K, V> {
    fn default() -> Self {
        Cached(Mutex::default())
    }
}

/// Shows no values, some of which are secret.
impl<K, V> fmt::Debug for Cached<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cached")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_end_with_their_generation() {
        let cached = Cached::<String, i32>::default();
        cached.insert("a".to_owned(), 1, Arc::new(7));
        assert_eq!(cached.get("a", 1).as_deref(), Some(&7));
        assert_eq!(cached.get("a", 2), None);
        assert_eq!(cached.get("b", 1), None);
        cached.insert("a".to_owned(), 2, Arc::new(8));
        assert_eq!(cached.get("a", 2).as_deref(), Some(&8));
    }
}
