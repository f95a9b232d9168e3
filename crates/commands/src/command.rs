//! The commands, in folders by what they are about. A command parses its fields, acts, and writes
//! its reply.
//!
//! Each folder's module file has the table of facts about its commands ([`crate::table`]).

macro_rules! waiting {
    ($handler:path) => {
        Handler::Waiting(|call, reply| Box::pin($handler(call, reply)))
    };
}

macro_rules! immediate {
    ($handler:path) => {
        Handler::Immediate($handler)
    };
}

pub mod admin;
pub mod aggregate;
pub mod catalog;
pub mod crud;
pub mod indexes;
pub mod refused;
pub mod sessions;
pub mod sharding;
pub mod users;
