//! The binary log as a replica gets it: events, and what is asked and answered around them.
//!
//! What comes in are the packets that follow COM_BINLOG_DUMP ([`packet`]); what goes out are events that borrow from them. An event's
//! header and checksum are read by [`event`]; its body by the file named after it: [`format`], [`gtid`], [`control`] (rotations, heartbeats …),
//! [`query`], [`table_map`] and [`rows`], whose values are told apart by [`column`]. [`compressed`] undoes `log_bin_compress`.
//!
//! MariaDB's dialect alone is spoken: GTIDs of three numbers, types 160 to 171. Events that are not named here are skipped by their length.
//!
//! Source: <https://mariadb.com/kb/en/replication-protocol/>

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

pub use event::{Event, Header, kind};
pub use format::{Checksum, FormatDescription};
pub use gtid::{Gtid, GtidEvent};
