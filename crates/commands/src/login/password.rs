//! The check of passwords: its turn among other attempts, and its place beside the workers.

use crate::call::Call;
use auth::scram::Failure;
use auth::{PasswordCheck, User, UserName};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Permits for checks at the same time: half of the cores are left to the workers.
static CHECKS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Arc::new(Semaphore::new(cores.div_ceil(2)))
});

/// Checks a password against the stored keys of its user, which may not exist: that takes the same
/// time. Counts as an attempt to log in.
pub async fn verify(call: &Call<'_>, name: &UserName, user: Option<&User>, password: &str) -> Result<(), Failure> {
    let decoy = &call.worker.server.access_control.decoy;
    let check = PasswordCheck::new(name, user.map(|user| &user.credentials), password, decoy);
    throttled(call, name, async {
        // Closed never, so it fails never.
        let permit = CHECKS.clone().acquire_owned().await;
        // It takes milliseconds, which other sessions of the worker need not wait for.
        let computation = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            check.succeeds()
        });
        match computation.await {
            Ok(true) => Ok(()),
            Ok(false) => Err(Failure::Refused("the password is wrong, or there is no such user")),
            Err(_) => Err(Failure::Refused("the password was not checked")),
        }
    })
    .await
}

/// Runs the check of an attempt to log in, and counts its outcome. After many failures the attempt
/// waits for its turn.
pub async fn throttled<T>(
    call: &Call<'_>,
    user: &UserName,
    check: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let throttle = &call.worker.server.access_control.throttle;
    let (client, user) = (call.session.addresses().client, user.to_string());
    match throttle.attempt(client, &user, Instant::now()) {
        None => return Err(Failure::Refused("too many logins from this address have failed")),
        Some(Duration::ZERO) => {}
        Some(delay) => tokio::time::sleep(delay).await,
    }
    let outcome = check.await;
    match &outcome {
        Ok(_) => throttle.succeeded(client, &user),
        Err(_) => throttle.failed(client, &user, Instant::now()),
    }
    outcome
}
