//! Which documents change, whoever changes them: the server's binary log, followed as a replica follows it.
//!
//! What comes in is the stream of events of a MariaDB server; what goes out are [`Transaction`]s, handed to a [`Receiver`] in the order of
//! their commits and not before a reader who starts afterwards sees them. A [`Follower`] has a thread and two connections of its own, survives the
//! server's going away, and knows at every moment how old its knowledge is ([`Freshness`]).
//!
//! In reading order: `follower` (the thread, and starting over), `requirements` (what the server has to be set to), `session` (from a
//! position onwards), `source` (the stream), `groups` (events become transactions) with `statement` and `tables`, `visibility` (waiting until
//! readers see them), `reach` (how far we are), `freshness` and `changes` (what others get to see).

mod changes;
mod follower;
mod freshness;
mod groups;
mod helper;
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
