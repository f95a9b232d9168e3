//! A worker's operations under way.

use super::active::Operation;
use super::context::OperationContext;
use crate::client_identity::ClientIdentity;
use bytes::Bytes;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Poll;
use std::time::Instant;
use tokio::time::Sleep;

/// The operations of a worker that had to wait.
#[derive(Debug, Default)]
pub struct OperationRegistry {
    list: Mutex<Vec<Arc<Operation>>>,
}

impl OperationRegistry {
    pub fn list(&self) -> Vec<Arc<Operation>> {
        self.lock().clone()
    }

    /// Calls `each` with every operation. It must not register or end any.
    pub fn for_each(&self, each: impl FnMut(&Operation)) {
        self.lock().iter().map(|operation| &**operation).for_each(each);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Operation>>> {
        self.list.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Drives `future` to its end; registers the operation unless the first poll completes it.
    pub async fn track<T>(
        &self,
        context: &OperationContext,
        identity: &Arc<ClientIdentity>,
        command: impl FnOnce() -> Bytes,
        future: impl Future<Output = T>,
    ) -> T {
        let mut future = pin!(future);
        let first = poll_fn(|task| Poll::Ready(future.as_mut().poll(task))).await;
        if let Poll::Ready(output) = first {
            return output;
        }
        let operation = Arc::new(Operation::new(identity.clone(), context.session(), command()));
        self.lock().push(operation.clone());
        context.register(&operation);
        let _entry = Entry { registry: self, operation: operation.clone() };
        let mut alarm: Option<(Instant, Option<Pin<Box<Sleep>>>)> = None;
        poll_fn(|task| {
            operation.waker.register(task.waker());
            let polled = future.as_mut().poll(task);
            // An operation that waits at its deadline must be polled, to notice it.
            if let (Poll::Pending, Some(deadline)) = (&polled, context.deadline()) {
                if alarm.as_ref().is_none_or(|(set, _)| *set != deadline) {
                    alarm = Some((deadline, Some(Box::pin(tokio::time::sleep_until(deadline.into())))));
                }
                let sleep = alarm.as_mut().map(|(_, sleep)| sleep);
                if let Some(sleep) = sleep
                    && sleep.as_mut().is_some_and(|sleep| sleep.as_mut().poll(task).is_ready())
                {
                    *sleep = None;
                    task.waker().wake_by_ref();
                }
            }
            polled
        })
        .await
    }
}

/// Removes the operation from the registry, also when its future is dropped half-way.
struct Entry<'a> {
    registry: &'a OperationRegistry,
    operation: Arc<Operation>,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.registry.lock().retain(|other| !Arc::ptr_eq(other, &self.operation));
    }
}
