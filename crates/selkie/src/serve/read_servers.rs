//! The servers of a service for reads of documents, by read preferences.

use error::Error;
use service::targets::Target;
use service::{Account, Router, Service};
use std::sync::Arc;
use store::{ReadMode, ReadPreference};
use store_mariadb::{CausalReads, ReadServer, ReadServers};

/// A service whose servers store the documents, with the account for that.
pub struct ServiceReaders {
    pub service: Arc<Service>,
    pub account: Account,
}

impl ServiceReaders {
    fn server(&self, target: &Target) -> ReadServer {
        let (settings, backend) = (target.backend.settings(), &target.backend);
        ReadServer {
            name: settings.name.as_str().into(),
            url: settings.url(&self.account.user, &self.account.password),
            is_primary: self.service.primary().is_some_and(|primary| Arc::ptr_eq(&primary.backend, backend)),
            is_galera: backend.is_galera(),
        }
    }

    /// Returns the servers with the tags that are wanted: those of the first set that any has.
    fn with_tags(targets: Vec<Target>, preference: &ReadPreference) -> Vec<Target> {
        if preference.tags.is_empty() {
            return targets;
        }
        for set in &preference.tags {
            let fits = |target: &&Target| {
                let settings = target.backend.settings();
                set.iter().all(|tag| settings.tags.contains(tag))
            };
            let fitting: Vec<Target> = targets.iter().filter(fits).cloned().collect();
            if !fitting.is_empty() {
                return fitting;
            }
        }
        Vec::new()
    }

    fn replicas(&self, preference: &ReadPreference) -> Vec<Target> {
        let own_limit = match &self.service.state().settings.router {
            Router::ReadWriteSplit(split) => split.lag_max_seconds,
            Router::Connections => None,
        };
        let limit = match (own_limit, preference.staleness_max_seconds) {
            (Some(own), Some(wanted)) => Some(own.min(wanted)),
            (own, wanted) => own.or(wanted),
        };
        self.service.readers(limit, |_| true)
    }

    /// Orders servers at random, by weight; the one that has answered before is first.
    fn shuffled(mut targets: Vec<Target>, preference: &ReadPreference) -> Vec<Target> {
        let before = preference.server();
        let key = |target: &Target| {
            let settings = target.backend.settings();
            if before.as_deref() == Some(settings.name.as_str()) {
                return -1.0;
            }
            // The least of exponentially distributed times is each server's with its share.
            -rand::random_range(f64::MIN_POSITIVE..1.0).ln() / f64::from(settings.weight)
        };
        targets.sort_by_cached_key(|target| ordered(key(target)));
        targets
    }
}

/// Maps a number to an integer of the same order; only -1 is negative.
fn ordered(key: f64) -> u64 {
    if key < 0.0 { 0 } else { key.to_bits() + 1 }
}

impl ReadServers for ServiceReaders {
    fn reads_elsewhere(&self, preference: &ReadPreference) -> bool {
        match preference.mode {
            ReadMode::Primary => false,
            ReadMode::PrimaryPreferred => self.service.primary().is_none(),
            ReadMode::Secondary | ReadMode::SecondaryPreferred | ReadMode::Nearest => true,
        }
    }

    fn choose(&self, preference: &ReadPreference) -> Vec<ReadServer> {
        let mut candidates = self.replicas(preference);
        if preference.mode == ReadMode::Nearest {
            candidates.extend(self.service.primary());
        }
        let chosen = Self::shuffled(Self::with_tags(candidates, preference), preference);
        chosen.iter().map(|target| self.server(target)).collect()
    }

    fn causal_reads(&self) -> CausalReads {
        match &self.service.state().settings.router {
            Router::ReadWriteSplit(split) => match split.causal_reads {
                service::CausalReads::Off => CausalReads::Off,
                service::CausalReads::Session => CausalReads::OfGateway,
                service::CausalReads::All => CausalReads::All,
            },
            Router::Connections => CausalReads::Off,
        }
    }

    fn position(&self, server: &str) -> Option<String> {
        let state = self.service.state();
        let target = state.targets.iter().find(|target| target.backend.settings().name == server)?;
        let position = target.backend.details().facts.as_ref()?.current.to_string();
        Some(position)
    }

    fn suspect(&self, server: &str) {
        let state = self.service.state();
        let target = state.targets.iter().find(|target| target.backend.settings().name == server);
        target.iter().for_each(|target| target.backend.suspicion.notify_one());
    }

    fn count_read(&self) {
        self.service.document_reads.on_replicas.increment();
    }

    fn count_wait(&self, is_in_time: bool) {
        self.service.document_reads.causal_waits.increment();
        if !is_in_time {
            self.service.document_reads.causal_timeouts.increment();
        }
    }

    fn none_fits(&self, preference: &ReadPreference) -> Error {
        store_mariadb::none_fits(preference, &self.service.name())
    }
}
