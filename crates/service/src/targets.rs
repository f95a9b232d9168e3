//! The servers of a service, by the settings in effect.

use crate::backend::Backend;
use crate::role::WantedRole;
use crate::settings::{Account, ServiceSettings};
use mariadb_client::{Killer, ServerLocation};
use sql_filter::Pipeline;
use std::sync::Arc;

/// The settings in effect, with the backends that they name.
#[derive(Debug)]
pub struct State {
    pub settings: ServiceSettings,
    pub targets: Vec<Target>,
    pub pipeline: Pipeline,
    /// The server that also executes the statements.
    pub mirror: Option<Arc<Backend>>,
}

/// A server of a service.
#[derive(Clone, Debug)]
pub struct Target {
    pub backend: Arc<Backend>,
    /// Ends sessions on the server.
    pub killer: Option<Arc<Killer>>,
}

impl State {
    /// `before`: the state that this one replaces.
    pub fn new(
        settings: ServiceSettings,
        backends: Vec<Arc<Backend>>,
        pipeline: Pipeline,
        before: Option<&State>,
    ) -> State {
        let target = |backend: Arc<Backend>| {
            // A killer has a thread: it is kept while it is right.
            let same = before.filter(|before| before.settings.account == settings.account);
            let same = same.and_then(|before| before.targets.iter().find(|one| Arc::ptr_eq(&one.backend, &backend)));
            let killer = match same {
                Some(same) => same.killer.clone(),
                None => settings.account.as_ref().map(|account| Arc::new(killer(&backend, account))),
            };
            Target { backend, killer }
        };
        State { targets: backends.into_iter().map(target).collect(), settings, pipeline, mirror: None }
    }

    /// Returns whether sessions need a primary, and wait for one if none can be reached now.
    pub fn awaits_primary(&self) -> bool {
        let awaits = |target: &Target| target.backend.condition().awaits_primary;
        self.settings.role == WantedRole::Primary && self.targets.iter().any(awaits)
    }

    pub fn contains(&self, backend: &Arc<Backend>) -> bool {
        self.targets.iter().any(|target| Arc::ptr_eq(&target.backend, backend))
    }
}

fn killer(backend: &Backend, account: &Account) -> Killer {
    Killer::new(ServerLocation::Server(backend.settings().url(&account.user, &account.password)))
}
