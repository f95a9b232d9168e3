//! Shortage of memory: some requests wait, some are refused, some are ended.

use error::{Code, Error};
use std::time::Duration;
use steps::memory::{self, Exceeded};
use tokio::sync::Semaphore;

/// How long a request waits for memory before it is refused. By then, clients that do not read
/// their replies have been disconnected.
const WAIT_MAX: Duration = Duration::from_secs(3);

/// How often a waiting request checks for memory.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Held by the request that has waited longest. Others queue for it.
static NEXT: Semaphore = Semaphore::const_new(1);

/// Returns the error of a request that exceeds its memory limit.
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

/// Returns the memory limit of the process in bytes.
pub fn process_bytes_max() -> i64 {
    memory::limits().process
}

/// Returns whether the process may allocate this many more bytes.
pub fn has_room_for(bytes: usize) -> bool {
    memory::live().saturating_add(i64::try_from(bytes).unwrap_or(i64::MAX)) <= memory::limits().process
}

/// Returns whether the process exceeds its memory limit.
#[inline]
pub fn is_high() -> bool {
    memory::is_short()
}

/// Waits for memory, in the order of arrival. Fails with 462 after [`WAIT_MAX`]: drivers may retry
/// the request later.
pub async fn wait() -> Result<(), Error> {
    // Without the order, requests that take much memory would leave none for a small one, time
    // after time.
    if !memory::is_short() && NEXT.available_permits() > 0 {
        return Ok(());
    }
    let waiting = async {
        // The semaphore is never closed.
        let _next = NEXT.acquire().await;
        while memory::is_short() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    tokio::time::timeout(WAIT_MAX, waiting).await.map_err(|_| overloaded())
}

fn overloaded() -> Error {
    let memory::Limits { process, .. } = memory::limits();
    crate::overload::error(format!(
        "the server holds more than the {process} bytes of memory that it may; try again later"
    ))
}
