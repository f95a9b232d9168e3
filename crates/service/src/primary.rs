//! The primary of a service, for the document store: where it is at present, and changes of that.

use crate::service::Service;
use crate::settings::{Account, Router, SplitSettings};
use mariadb_client::{PrimaryMonitor, PrimarySource, ServerUrl};
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::watch;

impl Service {
    /// Returns the primary as a place to which `account` logs in. It is followed on a thread of its
    /// own while the process lives.
    pub fn follow_primary(self: &Arc<Service>, account: Account) -> io::Result<PrimarySource> {
        let (sender, receiver) = watch::channel(self.primary_url(&account));
        let service = self.clone();
        let work = async move {
            loop {
                let changed = service.changed();
                let url = service.primary_url(&account);
                sender.send_if_modified(|known| {
                    let is_new = *known != url;
                    *known = url;
                    is_new
                });
                changed.await;
            }
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        std::thread::Builder::new().name("primary".into()).spawn(move || runtime.block_on(work))?;
        Ok(PrimarySource::new(receiver, self.primary_wait(), Arc::new(MonitorOf(self.clone()))))
    }

    /// Returns how long a statement waits for a primary.
    pub fn primary_wait(&self) -> Duration {
        match &self.state().settings.router {
            Router::ReadWriteSplit(split) => split.primary_wait,
            Router::Connections => SplitSettings::default().primary_wait,
        }
    }

    fn primary_url(&self, account: &Account) -> Option<ServerUrl> {
        Some(self.primary()?.backend.settings().url(&account.user, &account.password))
    }

    /// Waits until the settings or the condition of a server have changed since this call.
    fn changed(&self) -> impl Future<Output = ()> + use<> {
        let mut settings = self.changes();
        let targets = settings.borrow_and_update().targets.clone();
        let mut conditions: Vec<_> = targets.iter().map(|target| target.backend.conditions()).collect();
        async move {
            let mut settings_changed = pin!(settings.changed());
            let mut changes: Vec<_> = conditions.iter_mut().map(|condition| Box::pin(condition.changed())).collect();
            poll_fn(|context| {
                let is_ready = changes.iter_mut().any(|change| change.as_mut().poll(context).is_ready());
                let is_ready = is_ready || settings_changed.as_mut().poll(context).is_ready();
                if is_ready { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        }
    }
}

/// The monitor of a service's servers.
struct MonitorOf(Arc<Service>);

impl PrimaryMonitor for MonitorOf {
    fn suspect(&self) {
        self.0.primary().iter().for_each(|primary| primary.backend.suspicion.notify_one());
    }

    fn why_none(&self) -> String {
        self.0.why_no_primary()
    }
}
