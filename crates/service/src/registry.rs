//! All servers, monitors, filters and services by their names, and the change from one
//! configuration to another.

use crate::backend::Backend;
use crate::condition::Mode;
use crate::monitor::Monitor;
use crate::monitor_status::MonitorReport;
use crate::order::{Order, Outcome};
use crate::report::BackendReport;
use crate::service::Service;
use crate::sessions::Sessions;
use crate::settings::{MonitorSettings, ServerSettings, ServiceSettings, Settings};
use sql_filter::{Filter, FilterSettings};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// The servers, monitors, filters and services of the process.
#[derive(Debug, Default)]
pub struct Registry {
    objects: Mutex<Objects>,
    sessions: Arc<Sessions>,
}

#[derive(Debug, Default)]
struct Objects {
    /// In the order of the configuration.
    backends: Vec<Arc<Backend>>,
    monitors: BTreeMap<String, Monitor>,
    services: BTreeMap<String, Arc<Service>>,
    filters: BTreeMap<String, (FilterSettings, Arc<dyn Filter>)>,
}

impl Registry {
    /// Puts settings into effect. Objects whose settings have not changed stay as they are, with
    /// their sessions. A service that is no longer named has no servers, so its sessions end when
    /// they are idle.
    ///
    /// Fails if a filter's file cannot be opened. Then nothing changes. Fails if a thread cannot be
    /// started. Then some monitors may not run.
    pub fn apply(&self, settings: Settings) -> io::Result<()> {
        let mut objects = self.lock();
        objects.change_filters(settings.filters)?;
        objects.change_servers(settings.servers);
        let changed = objects.change_monitors(settings.monitors);
        objects.change_services(settings.services, &self.sessions);
        changed
    }

    /// Opens the files of all filters again.
    pub fn reopen_files(&self) {
        let filters: Vec<Arc<dyn Filter>> = self.lock().filters.values().map(|(_, filter)| filter.clone()).collect();
        filters.iter().for_each(|filter| filter.reopen());
    }

    pub fn service(&self, name: &str) -> Option<Arc<Service>> {
        self.lock().services.get(name).cloned()
    }

    /// Returns all services, by their names.
    pub fn services(&self) -> Vec<Arc<Service>> {
        self.lock().services.values().cloned().collect()
    }

    /// Changes what the administrator allows on a server. Returns false if there is none of that
    /// name.
    pub fn set_mode(&self, name: &str, mode: Mode) -> bool {
        let Some(backend) = self.lock().named(name) else { return false };
        if backend.change(|condition| condition.mode = mode).is_some() {
            tracing::info!(server = name, "the server is now in the mode {}", mode.name());
        }
        true
    }

    /// Describes the servers, in the order of the configuration.
    pub fn reports(&self) -> Vec<BackendReport> {
        self.lock().backends.iter().map(|backend| BackendReport::of(backend)).collect()
    }

    /// Describes the monitors.
    pub fn monitor_reports(&self) -> Vec<MonitorReport> {
        self.lock().monitors.values().map(Monitor::report).collect()
    }

    /// Gives an order to a monitor. Returns the receiver of the outcome; `None` if there is no
    /// monitor of that name.
    pub fn order(&self, monitor: &str, order: Order) -> Option<oneshot::Receiver<Outcome>> {
        Some(self.lock().monitors.get(monitor)?.order(order))
    }

    fn lock(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Objects {
    fn named(&self, name: &str) -> Option<Arc<Backend>> {
        self.backends.iter().find(|backend| backend.settings().name == name).cloned()
    }

    fn all_named(&self, names: &[String]) -> Vec<Arc<Backend>> {
        names.iter().filter_map(|name| self.named(name)).collect()
    }

    fn change_servers(&mut self, servers: Vec<ServerSettings>) {
        let backend = |server: ServerSettings| match self.named(&server.name) {
            Some(backend) if backend.settings().leads_to_same(&server) => {
                backend.set_settings(server);
                backend
            }
            // Another server under an old name: the sessions of the old one end.
            _ => Backend::new(server),
        };
        let after: Vec<Arc<Backend>> = servers.into_iter().map(backend).collect();
        for before in std::mem::replace(&mut self.backends, after) {
            if !self.backends.iter().any(|backend| Arc::ptr_eq(backend, &before)) {
                before.change(|condition| condition.is_removed = true);
            }
        }
    }

    fn change_monitors(&mut self, monitors: Vec<MonitorSettings>) -> io::Result<()> {
        let mut before = std::mem::take(&mut self.monitors);
        for settings in monitors {
            let backends = self.all_named(&settings.servers);
            let is_same = |monitor: &Monitor| {
                let pairs = monitor.backends.iter().zip(&backends);
                monitor.settings == settings
                    && monitor.backends.len() == backends.len()
                    && pairs.clone().all(|(before, after)| Arc::ptr_eq(before, after))
            };
            let monitor = match before.remove(&settings.name).filter(is_same) {
                Some(monitor) => monitor,
                None => Monitor::start(settings.clone(), backends)?,
            };
            self.monitors.insert(settings.name, monitor);
        }
        let is_monitored = |backend: &Arc<Backend>| {
            self.monitors.values().flat_map(|monitor| &monitor.backends).any(|one| Arc::ptr_eq(one, backend))
        };
        for backend in self.backends.iter().filter(|backend| !is_monitored(backend)) {
            backend.details().monitor = None;
            backend.change(|condition| (condition.is_monitored, condition.awaits_primary) = (false, false));
        }
        Ok(())
    }

    /// Filters whose settings have not changed stay, with their state.
    fn change_filters(&mut self, filters: Vec<FilterSettings>) -> io::Result<()> {
        let mut after = BTreeMap::new();
        for settings in filters {
            let same = self.filters.get(&settings.name).filter(|(before, _)| *before == settings);
            let filter = match same {
                Some((_, filter)) => filter.clone(),
                None => sql_filter::open(&settings)
                    .map_err(|error| io::Error::new(error.kind(), format!("the filter {}: {error}", settings.name)))?,
            };
            after.insert(settings.name.clone(), (settings, filter));
        }
        self.filters = after;
        Ok(())
    }

    fn filters_named(&self, names: &[String]) -> Vec<Arc<dyn Filter>> {
        names.iter().filter_map(|name| Some(self.filters.get(name)?.1.clone())).collect()
    }

    fn change_services(&mut self, services: Vec<ServiceSettings>, sessions: &Arc<Sessions>) {
        let mut before = std::mem::take(&mut self.services);
        for settings in services {
            let backends = self.all_named(&settings.servers);
            let (name, filters) = (settings.name.clone(), self.filters_named(&settings.filters));
            let service = before
                .remove(&name)
                .unwrap_or_else(|| Service::new(settings.clone(), backends.clone(), sessions.clone()));
            let mirror = filters.iter().find_map(|filter| self.named(filter.mirror()?));
            service.change(settings, backends, filters, mirror);
            self.services.insert(name, service);
        }
        for (name, service) in before {
            service.change(
                ServiceSettings {
                    name,
                    servers: Vec::new(),
                    role: Default::default(),
                    account: None,
                    connections_per_user: None,
                    router: Default::default(),
                    filters: Vec::new(),
                },
                Vec::new(),
                Vec::new(),
                None,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::role::WantedRole;
    use crate::router::connections::SessionEnd;
    use std::time::Duration;

    fn server(name: &str, port: u16) -> ServerSettings {
        let (name, host) = (name.to_owned(), "127.0.0.1".to_owned());
        ServerSettings { name, host, port, tls: Default::default(), weight: 1, connections_max: None, tags: Vec::new() }
    }

    fn settings(servers: &[ServerSettings], of_service: &[&str]) -> Settings {
        let names = of_service.iter().map(|name| (*name).to_owned()).collect();
        let service = ServiceSettings {
            name: "app".into(),
            servers: names,
            role: WantedRole::Any,
            account: None,
            connections_per_user: None,
            router: Default::default(),
            filters: Vec::new(),
        };
        Settings { servers: servers.to_vec(), services: vec![service], ..Settings::default() }
    }

    #[test]
    fn only_sessions_of_what_has_changed_end() {
        let registry = Registry::default();
        let (one, two) = (server("one", 1), server("two", 2));
        registry.apply(settings(&[one.clone(), two.clone()], &["one", "two"])).unwrap();
        let service = registry.service("app").unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let open = |_| std::future::ready(Ok(((), 0)));
        let connect = || {
            runtime
                .block_on(service.connect(Duration::ZERO, std::future::ready(Some(())), open))
                .map(|(lease, (), ())| lease)
        };
        let (first, second) = (connect().unwrap(), connect().unwrap());
        assert_eq!((first.server.name.as_str(), second.server.name.as_str()), ("one", "two"));

        let heavier = ServerSettings { weight: 5, connections_max: Some(9), ..one.clone() };
        registry.apply(settings(&[heavier, two.clone()], &["one", "two"])).unwrap();
        assert_eq!((first.assignment.end(), second.assignment.end()), (None, None));
        assert_eq!(registry.reports()[0].connections_max, Some(9));

        let moved = server("two", 3);
        registry.apply(settings(&[one.clone(), moved.clone()], &["one", "two"])).unwrap();
        assert_eq!(first.assignment.end(), None);
        assert!(matches!(second.assignment.end(), Some(SessionEnd::WhenIdle(_))));
        assert_eq!(connect().unwrap().server.port, 3);

        registry.apply(settings(&[one.clone(), moved], &["two"])).unwrap();
        assert!(matches!(first.assignment.end(), Some(SessionEnd::WhenIdle(_))));
        registry.apply(settings(&[one], &["one"])).unwrap();
        assert_eq!(first.assignment.end(), None, "the service uses it again");
        registry.apply(Settings::default()).unwrap();
        assert!(first.assignment.end().is_some());
        assert!(registry.service("app").is_none() && connect().is_err());
    }

    #[test]
    fn the_administrator_takes_a_server_out() {
        let registry = Registry::default();
        registry.apply(settings(&[server("one", 1)], &["one"])).unwrap();
        assert!(registry.set_mode("one", Mode::Drain) && !registry.set_mode("two", Mode::Drain));
        assert_eq!(registry.reports()[0].mode, Mode::Drain);
        registry.apply(settings(&[server("one", 1)], &["one"])).unwrap();
        assert_eq!(registry.reports()[0].mode, Mode::Drain, "a reload leaves it out");
    }
}
