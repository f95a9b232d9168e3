//! A cache of replies, which are returned for as long as they are right.
//!
//! It takes keys (a command without the fields that do not affect its reply), replies with
//! what they depend on ([`Dependencies`]), and every change of a document, reported by the store
//! ([`store::ChangeObserver`]). It returns replies that are still right.
//!
//! In reading order: [`dependencies`] (what a reply depends on, and whether a change affects it,
//! with [`changed_fields`]), [`invalidation_keys`], [`invalidation_index`],
//! [`unindexed_predicates`] and [`intervals`] (which entries a change may affect, found without
//! checking each; [`bounded_evaluation`] bounds the evaluation there), [`in_flight_writes`]
//! (writes that replies being computed may have missed), [`key_directory`] (the invalidation
//! indexes of several shards), [`eviction_queues`] (the eviction policy), [`shard`] (a
//! part of the cache, behind one lock), [`cache`] (the whole), [`statistics`]; and
//! [`collection_rules`], which exclude collections.
//!
//! A reply is right if the store would give it at some moment between the command and the reply. So
//! an entry that a change affects is removed before the change can be seen, and a reply computed
//! while the change was in flight is not stored. A read notes the cache's time before it queries
//! the store ([`ComputePermit`]). Its reply is stored unless a write that affects it was unfinished
//! at that time or began since.

mod bounded_evaluation;
mod cache;
mod changed_fields;
mod collection_rules;
pub mod dependencies;
mod eviction_queues;
mod in_flight_writes;
mod intervals;
mod invalidation_index;
mod invalidation_keys;
mod key_directory;
mod settings;
mod shard;
mod statistics;
mod unindexed_predicates;

#[cfg(test)]
mod tests;

pub use cache::{Cache, CacheLookup, CacheObserver, ComputePermit};
pub use collection_rules::CollectionRules;
pub use dependencies::{Aspect, Dependencies};
pub use settings::CacheSettings;
pub use statistics::{NotCached, Statistics};
