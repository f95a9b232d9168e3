//! Follows a MariaDB server's binary log as a replica does, and delivers committed transactions.
//!
//! It takes the stream of events of a server, and hands [`Transaction`]s to a [`Receiver`] in the
//! order of their commits, not before readers that start afterwards see them. A [`Follower`] has a
//! thread and two connections of its own, survives the loss of the server, and knows at every
//! moment how old its knowledge is ([`Freshness`]).
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
//! In reading order: `follower` (the thread, and starting over), `requirements` (the settings that
//! the server must have), `session` (following from a position on), `source` (the stream),
//! `event_groups` (events become transactions) with `statement_effect` and `tables`, `visibility`
//! (waiting until readers see them), `stream_position` (the position reached), `freshness` and
//! `changes` (the public types). [`LogReader`] reads the log event by event, for those that need
//! all of it.

mod changes;
mod definition;
mod event_groups;
mod followed;
mod follower;
mod freshness;
mod log_position;
mod log_reader;
mod options;
mod receiver;
mod requirements;
mod session;
mod source;
mod statement_effect;
mod stream_position;
mod tables;
mod visibility;
mod words;

pub use changes::{Change, Doc, Image, Key, Row, TableName, Transaction};
pub use definition::Definition;
pub use event_groups::LogOffset;
pub use followed::Followed;
pub use follower::Follower;
pub use freshness::{Freshness, State};
pub use log_position::log_end;
pub use log_reader::{CommitWait, GroupEnd, LogEvent, LogReader};
pub use mariadb_wire::binlog::Gtid;
pub use options::FollowOptions;
pub use receiver::Receiver;
pub use requirements::{ServerSettings, check as check_settings, check_gtids};
pub use source::{StreamEnd, StreamStart};
