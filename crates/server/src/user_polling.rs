//! Notices the changes of users and roles that other programs make in the store, by polling, and
//! makes the store's accounts follow.

use crate::user_store;
use crate::worker::Worker;
use error::{Code, Result};
use std::rc::Rc;
use std::time::Duration;

/// How often the store is asked whether other programs have changed users or roles.
const POLL_INTERVAL: Duration = Duration::from_millis(400);

/// Errors after which accounts are settled as soon as the store can be reached again.
const OUT_OF_REACH: [Code; 3] =
    [Code::HOST_UNREACHABLE, Code::NETWORK_INTERFACE_EXCEEDED_TIME_LIMIT, Code::LOCK_TIMEOUT];

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
    let mut settled = None;
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
        let generation = access_control.directory.generation();
        if settled != Some(generation) {
            match settle_accounts(&worker).await {
                Err(error) if OUT_OF_REACH.contains(&error.code()) => {
                    tracing::debug!(%error, "accounts of users cannot be settled now");
                }
                // An error that concerns one user is logged with the user.
                Ok(()) | Err(_) => settled = Some(generation),
            }
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Makes the store's accounts follow the users, if it keeps accounts. At the start that completes
/// what an earlier process has begun.
async fn settle_accounts(worker: &Worker) -> Result<()> {
    let store = &*worker.store;
    let Some(mut accounts) = store.change_accounts().await? else { return Ok(()) };
    accounts.settle(&user_store::account_users(store).await?).await
}
