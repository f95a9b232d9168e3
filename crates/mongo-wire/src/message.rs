//! A decoded message of a client.

use crate::reply::ReplyTo;
use crate::request::Request;
use error::Error;

/// A client's message.
#[derive(Clone, Debug)]
pub enum Message {
    Request(Request),
    /// A whole message that is not a valid request, but to which the protocol has a reply, so that
    /// the connection continues.
    Refused(Refused),
}

/// A message that gets an error reply.
#[derive(Clone, Debug)]
pub struct Refused {
    pub reply_to: ReplyTo,
    /// The request is unacknowledged (moreToCome): it gets no reply, not even this one.
    pub silent: bool,
    pub error: Error,
}
