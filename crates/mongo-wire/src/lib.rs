//! The MongoDB wire protocol as bytes: messages in, messages out, no I/O.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/>

pub mod request;

pub use request::Request;
