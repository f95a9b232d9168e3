//! Answers that have been given before, kept for as long as they are right.
//!
//! What comes in are keys (a command less what does not matter to its answer), answers with what they depend on ([`Scope`]), and
//! every change of a document, told by the store ([`store::ChangeObserver`]). What goes out are answers that are still right.
//!
//! In reading order: [`scope`] (what an answer depends on, and whether a change matters to it, with
//! [`changed`]), [`ways`], [`filed`], [`listed`] and [`intervals`] (which answers a change may
//! matter to, found without asking each; [`locked`] bounds what is evaluated there), [`recent`]
//! (changes under way and just over, which answers being made may have missed), [`directory`] (the
//! same for several parts of the cache), [`queues`] (what goes when memory is full), [`shard`] (one
//! part of the cache, behind one lock), [`cache`] (the whole), [`figures`]; and [`rules`], by which
//! somebody leaves collections out.
//!
//! An answer is right when it is what the store would give at some moment between the question and the reply. So, for a
//! change that matters to it: it is gone before the change can be seen, and one that was made while the change was on its way is not kept.
//! A read notes the time ([`Fill`]) before it asks the store; what it found is kept unless a change that matters was not settled by then.

mod cache;
mod changed;
mod directory;
mod figures;
mod filed;
mod intervals;
mod listed;
mod locked;
mod queues;
mod recent;
mod rules;
pub mod scope;
mod shard;
mod ways;

#[cfg(test)]
mod tests;

pub use cache::{Begun, Cache, Fill, Settings, Watching};
pub use figures::{Figures, Refusal};
pub use rules::Rules;
pub use scope::{Answer, Scope};
