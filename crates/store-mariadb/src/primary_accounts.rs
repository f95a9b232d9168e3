//! The accounts of the gateway on the primary of servers that replicate, which changes.

use crate::accounts::{AccountSettings, documents_account};
use crate::engine::examine;
use crate::options::Options;
use crate::server_facts::ServerFacts;
use mariadb_client::{Failure, PoolAccounts, PoolServers, PrimarySource, Result, ServerLocation, ServerUrl};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Pause before the next attempt to connect to the primary.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Checks that the primary is suitable, and prepares it; waits for it if there is none.
pub(crate) async fn examine_primary(
    primary: &PrimarySource,
    options: &Options,
) -> Result<(ServerUrl, ServerFacts, Option<AccountSettings>)> {
    let until = Instant::now() + primary.wait;
    let mut server = primary.server.clone();
    let mut failed = None;
    loop {
        let Ok(Ok(found)) = tokio::time::timeout_at(until.into(), server.wait_for(Option::is_some)).await else {
            return Err(failed.unwrap_or_else(|| Failure::NoPrimary(primary.monitor.why_none())));
        };
        let Some(url) = found.clone() else { continue };
        drop(found);
        let place = ServerLocation::Server(url.clone());
        let documents = match options.keeps_accounts {
            true => Some(documents_account::target(&place)?),
            false => None,
        };
        match examine(&place, documents.as_ref(), options).await {
            Ok((facts, accounts)) => return Ok((url, facts, accounts)),
            Err(failure) if failure.is_lost() && Instant::now() < until => {
                primary.monitor.suspect();
                failed = Some(failure);
                tokio::time::sleep(RETRY_AFTER).await;
            }
            Err(failure) => return Err(failure),
        }
    }
}

/// Prepares the accounts on each primary, on a thread of its own: that may take as long as a login.
/// `first`: the primary at present.
pub(crate) fn follow(
    primary: PrimarySource,
    first: ServerUrl,
    accounts_at: impl Fn(ServerUrl) -> PoolAccounts + Send + 'static,
) -> io::Result<PoolServers> {
    let accounts = Arc::new(accounts_at(first.clone()));
    let (sender, receiver) = watch::channel(Some(accounts.clone()));
    let mut server = primary.server.clone();
    let work = async move {
        // A server that becomes the primary again has the same accounts, which hold a lock there.
        let mut known = vec![(first, accounts)];
        loop {
            let url = server.borrow_and_update().clone();
            let accounts = url.map(|url| match known.iter().find(|(other, _)| *other == url) {
                Some((_, accounts)) => accounts.clone(),
                None => {
                    let accounts = Arc::new(accounts_at(url.clone()));
                    known.push((url, accounts.clone()));
                    accounts
                }
            });
            sender.send_if_modified(|current| {
                let is_same = match (&*current, &accounts) {
                    (Some(current), Some(accounts)) => Arc::ptr_eq(current, accounts),
                    (current, accounts) => current.is_none() && accounts.is_none(),
                };
                *current = accounts;
                !is_same
            });
            if server.changed().await.is_err() {
                return;
            }
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    std::thread::Builder::new().name("mariadb-primary".into()).spawn(move || runtime.block_on(work))?;
    Ok(PoolServers::following(receiver, primary))
}
