//! Authorization: whether the user of a connection may run a command.
//!
//! The requirements of a command are facts of the command table ([`requirement`]). Most commands
//! require an action on a resource that their first field names. If MongoDB computes the privileges
//! from the command's fields, the table names a function of [`pipelines`], [`writes`], [`catalog`],
//! [`oplog`], [`cursors`], [`operations`] or [`users`].
//!
//! [`decision`] is pure: privileges and a command go in, yes or no comes out. [`check`] is the one
//! place that asks it for a request: before the document cache, and for every path through the
//! dispatch. Errors are those of MongoDB, including the command as [`denial`] prints it.
//!
//! A field may occur twice in a command, and parsers differ in which of them counts. So each
//! occurrence must be allowed.

pub mod asked;
pub mod catalog;
pub mod check;
pub mod cursors;
pub mod decision;
pub mod denial;
pub mod operations;
pub mod oplog;
pub mod pipelines;
pub mod requirement;
pub mod sharding;
#[cfg(test)]
mod tests;
pub mod users;
pub mod writes;
