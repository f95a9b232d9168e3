//! What requests get when memory is short: some wait, some are refused, some are ended.

use crate::envelope;
use error::{Code, Error};
use mongo_wire::Request;
use std::time::Duration;
use steps::memory::{self, Exceeded};

/// How long a request waits for memory before it is refused: by then, clients that do not read
/// their replies are disconnected.
const PATIENCE: Duration = Duration::from_secs(3);

/// How often one that waits looks.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Commands that may come to hold much. The others go on while memory is short; some of them, such
/// as `killCursors` and `getMore`, make room.
const HUNGRY: &[&[u8]] = &[
    b"aggregate",
    b"count",
    b"createIndexes",
    b"delete",
    b"distinct",
    b"explain",
    b"find",
    b"findAndModify",
    b"findandmodify",
    b"insert",
    b"mapReduce",
    b"mapreduce",
    b"update",
];

/// The error of a request that holds more than it may.
pub fn error(exceeded: Exceeded) -> Error {
    let message = match exceeded {
        Exceeded::Request { held, limit } => {
            format!("operation was ended: it held {held} bytes of memory, and a request may hold {limit} bytes")
        }
        Exceeded::Process { held, limit } => format!(
            "operation was ended because memory is short: it held {held} bytes, more than is left of the server's {limit} bytes"
        ),
    };
    Error::new(Code::EXCEEDED_MEMORY_LIMIT, message)
}

/// Whether a request has to wait for memory. Costs next to nothing.
#[inline]
pub fn delays(request: &Request) -> bool {
    memory::is_short() && is_hungry(request)
}

#[cold]
fn is_hungry(request: &Request) -> bool {
    envelope::body(request).1.is_some_and(|first| HUNGRY.contains(&first.key_bytes()))
}

/// What the process may hold.
pub fn process_bytes_max() -> i64 {
    memory::limits().process
}

/// Whether there is memory for so many bytes more.
pub fn leaves(bytes: usize) -> bool {
    memory::live().saturating_add(i64::try_from(bytes).unwrap_or(i64::MAX)) <= memory::limits().process
}

/// Whether the process holds more than it may.
#[inline]
pub fn is_there() -> bool {
    memory::is_short()
}

/// Waits a moment for memory. Fails with 462 if there still is none: drivers may send the request
/// again, later.
pub async fn wait() -> Result<(), Error> {
    let until = tokio::time::Instant::now() + PATIENCE;
    while memory::is_short() {
        if tokio::time::Instant::now() >= until {
            return Err(overloaded());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(())
}

fn overloaded() -> Error {
    let memory::Limits { process, .. } = memory::limits();
    let message = format!("the server holds more than the {process} bytes of memory that it may; try again later");
    Error::new(Code::INGRESS_REQUEST_RATE_LIMIT_EXCEEDED, message)
        .with_labels(&["SystemOverloadedError", "RetryableError"])
}
