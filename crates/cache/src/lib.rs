//! Answers that have been given before, kept for as long as they are right.
//!
//! What comes in are keys (a command less what does not matter to its answer), answers with what they depend on ([`Dependencies`]), and
//! every change of a document, told by the store ([`store::ChangeObserver`]). What goes out are answers that are still right.
//!
//! In reading order: [`dependencies`] (what an answer depends on, and whether a change matters to it, with
//! [`changed_fields`]), [`invalidation_keys`], [`invalidation_index`], [`unindexed_predicates`] and [`intervals`] (which answers a change may
//! matter to, found without asking each; [`bounded_evaluation`] bounds what is evaluated there), [`in_flight_writes`]
//! (changes under way and just over, which answers being made may have missed), [`key_directory`] (the
//! same for several parts of the cache), [`eviction_queues`] (what goes when memory is full), [`shard`] (one
//! part of the cache, behind one lock), [`cache`] (the whole), [`statistics`]; and [`collection_rules`], by which
//! somebody leaves collections out.
//!
//! An answer is right when it is what the store would give at some moment between the question and the reply. So, for a
//! change that matters to it: it is gone before the change can be seen, and one that was made while the change was on its way is not kept.
//! A read notes the time ([`ComputePermit`]) before it asks the store; what it found is kept unless a change that matters was not settled by then.

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
mod shard;
mod statistics;
mod unindexed_predicates;

#[cfg(test)]
mod tests;

pub use cache::{Cache, CacheLookup, CacheObserver, CacheSettings, ComputePermit};
pub use collection_rules::CollectionRules;
pub use dependencies::{Aspect, Dependencies};
pub use statistics::{NotCached, Statistics};
