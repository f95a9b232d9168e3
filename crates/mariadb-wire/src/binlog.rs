//! The binary log as a replica receives it: events, and the requests and replies around them.
//!
//! The packets that follow COM_BINLOG_DUMP ([`packet`]) are decoded to events
//! that borrow from them. [`event`] decodes an event's header and checksum. The file named after an
//! event decodes its body: [`format`], [`gtid`], [`control`] (rotations, heartbeats …), [`query`],
//! [`table_map`] and [`rows`], whose values [`column`] delimits. [`compressed`] undoes
//! `log_bin_compress`.
//!
//! Only MariaDB's dialect is supported: GTIDs of three numbers, types 160 to 171. Other events are
//! skipped by their length.
//!
//! Source: <https://mariadb.com/kb/en/replication-protocol/>

pub mod checksum;
pub mod column;
pub mod compressed;
pub mod control;
pub mod event;
pub mod format;
pub mod gtid;
pub mod packet;
pub mod query;
pub mod rows;
pub mod table_map;

pub use checksum::Checksum;
pub use event::{Event, Header, kind};
pub use format::FormatDescription;
pub use gtid::{Gtid, GtidEvent};
