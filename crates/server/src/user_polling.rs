//! Notices the changes of users and roles that other programs make in the store, by polling.

use crate::user_store;
use crate::worker::Worker;
use std::rc::Rc;
use std::time::Duration;

/// How often the store is asked whether other programs have changed users or roles.
const POLL_INTERVAL: Duration = Duration::from_millis(400);

/// Counts the changes that other programs make in the store, for as long as it is polled. Must be
/// run on every worker; all but one return at once. Returns if only this process can change the
/// store.
pub async fn run(worker: Rc<Worker>) {
    let access_control = &worker.server.access_control;
    if !access_control.is_enabled() || !access_control.claim_polling() {
        return;
    }
    let collections = [user_store::users(), user_store::roles()];
    let mut known = None;
    loop {
        match worker.store.content_version(&collections).await {
            Ok(None) => return,
            Ok(version) if known == version => {}
            Ok(version) => {
                known = version;
                access_control.directory.announce_change();
            }
            // The store may be unreachable for a while: its users may change meanwhile.
            Err(error) => {
                known = None;
                tracing::debug!(%error, "changes of users and roles cannot be noticed");
            }
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
