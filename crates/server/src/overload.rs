//! The error of a request that the server refuses because it has too much to do.

use error::{Code, Error};

/// Returns the error of a refused request: 462 with the labels by which recent drivers know that
/// nothing was done, and that the request may be sent again later.
pub fn error(message: String) -> Error {
    Error::new(Code::INGRESS_REQUEST_RATE_LIMIT_EXCEEDED, message)
        .with_labels(&["SystemOverloadedError", "RetryableError"])
}

/// Returns the error of a request that exceeds the rate of requests.
pub fn rate_exceeded() -> Error {
    error("more requests came than may come per second; try again later".to_owned())
}
