//! Which documents change, whoever changes them: the server's binary log, followed as a replica follows it.
//!
//! What comes in is the stream of events of a MariaDB server; what goes out are [`Transaction`]s, handed to a [`Receiver`] in the order of
//! their commits and not before a reader who starts afterwards sees them. A [`Follower`] has a thread and two connections of its own, survives the
//! server's going away, and knows at every moment how old its knowledge is ([`Freshness`]).
//!
//! ```no_run
//! use mariadb_binlog::*;
//!
//! struct Evict;
//!
//! impl Receiver for Evict {
//!     fn changes(&mut self, transactions: &[Transaction]) {
//!         for change in transactions.iter().flat_map(|transaction| &transaction.changes) {
//!             match change {
//!                 Change::Row(Row { table, before, after }) => println!("{table}: {before:?} -> {after:?}"),
//!                 Change::Table(table) => println!("{table}"),
//!                 Change::Database(database) => println!("{database}"),
//!                 Change::Everything => println!("everything"),
//!             }
//!         }
//!     }
//! }
//!
//! let follower = Follower::start("mysql://selkie:secret@db", FollowOptions::default(), Box::new(Evict))?;
//! let freshness = follower.freshness();
//! let may_answer = freshness.behind().is_some_and(|behind| behind.as_secs() < 2);
//! # Ok::<(), error::Error>(())
//! ```
//!
//! In reading order: `follower` (the thread, and starting over), `requirements` (what the server has to be set to), `session` (from a
//! position onwards), `source` (the stream), `groups` (events become transactions) with `statement` and `tables`, `visibility` (waiting until
//! readers see them), `reach` (how far we are), `freshness` and `changes` (what others get to see).

mod changes;
mod follower;
mod freshness;
mod groups;
mod log_position;
mod reach;
mod requirements;
mod session;
mod source;
mod statement;
mod tables;
mod visibility;

pub use changes::{Change, Doc, Image, Key, Row, TableName, Transaction};
pub use follower::{FollowOptions, Follower, Receiver};
pub use freshness::{Freshness, State};
pub use mariadb_wire::binlog::Gtid;
