//! What a connection yields while an answer arrives.

use mariadb_wire::ok::OkPacket;
use std::ops::Range;

/// A part of the answer to the oldest unfinished command.
pub enum Event {
    /// A row; [`crate::Connection::row`] decodes it, until the next event is taken.
    Row(Range<usize>),
    /// The answer is complete.
    Finished(OkPacket),
}
