//! Frames with wrong lengths, made from valid ones. For tests of servers: no reply may contain
//! bytes that the request did not, such as another client's data in memory that was used before.
//!
//! A [`Frame`] is a valid message with the positions of its lengths. A [`Change`] makes a wrong
//! message of it. The most important one grows a length and all lengths around it by the same
//! amount, but sends no more bytes: the message agrees with itself, and a server that trusts it
//! reads the memory behind it.
//!
//! [`compare`] finds leaks by comparison: the same frame is sent to two servers that differ in
//! nothing but the data of other clients. Even a single foreign byte makes the replies differ.
//! [`memory`] makes new memory a part of that data.

mod change;
pub mod compare;
mod frame;
pub mod memory;

pub use change::{Change, Random};
pub use frame::{Field, Frame};
