//! The table of all settings, with a file for each section. A default or a description is changed
//! there.

macro_rules! read {
    ($($field:ident).+, $convert:expr) => {
        |written, raw, origin| {
            written.$($field).+ = Some(Setting { value: $convert(raw)?, origin });
            Ok(())
        }
    };
}

mod audit;
mod cache;
mod entry;
pub mod filters;
mod limits;
mod mongodb;
mod process;
mod security;
pub mod servers;
pub mod services;
mod store;
mod tls;

#[cfg(test)]
pub use entry::Description;
pub use entry::Parameter;

/// The sections, with their descriptions.
pub const SECTIONS: &[(&str, &str)] = &[
    ("", "The process: addresses, threads, log."),
    ("store", "Where documents are stored: in a directory of this machine (the default), or in MariaDB."),
    ("mongodb", "What MongoDB clients see."),
    ("tls", "Encryption of clients' connections."),
    ("limits", "Limits of memory, cursors and connections."),
    ("security", "Logins of MongoDB clients."),
    ("audit", "The log of logins, refusals, and changes of users, roles and the catalog."),
    ("cache", "Replies that are cached, and returned for as long as they are right."),
];

/// The sections of objects, of which there may be several: `[server.db1]`. With their descriptions.
pub const OBJECT_SECTIONS: &[(&str, &str)] = &[
    ("server", "A MariaDB server. NAME is its name in the log, in `serverStatus` and in other sections."),
    (
        "monitor",
        "A group of servers that replicate, which Selkie observes: it knows which of them are up, which is the primary, \
         and how far the others are behind.",
    ),
    ("filter", "A step that the statements of services pass: it may log, refuse or change them."),
    ("service", "Where SQL clients are sent: a router chooses the server of each session."),
    ("listener", "An address for clients, beside those of `listen` and `sql-listen`."),
];

/// Returns the names of the parameters in a section of objects.
pub fn names_in(section: &str) -> Vec<&'static str> {
    match section {
        "server" => servers::SERVER.iter().map(|parameter| parameter.name).collect(),
        "monitor" => servers::MONITOR.iter().map(|parameter| parameter.name).collect(),
        "filter" => filters::FILTER.iter().map(|parameter| parameter.name).collect(),
        "service" => services::SERVICE.iter().map(|parameter| parameter.name).collect(),
        "listener" => services::LISTENER.iter().map(|parameter| parameter.name).collect(),
        _ => Vec::new(),
    }
}

/// Returns the descriptions of the parameters in a section of objects.
#[cfg(test)]
pub fn described_in(section: &str) -> Vec<Description> {
    match section {
        "server" => servers::SERVER.iter().map(Parameter::description).collect(),
        "monitor" => servers::MONITOR.iter().map(Parameter::description).collect(),
        "filter" => filters::FILTER.iter().map(Parameter::description).collect(),
        "service" => services::SERVICE.iter().map(Parameter::description).collect(),
        "listener" => services::LISTENER.iter().map(Parameter::description).collect(),
        _ => Vec::new(),
    }
}

/// Returns all parameters of the process, by section.
pub fn all() -> impl Iterator<Item = &'static Parameter> + Clone {
    [
        process::PARAMETERS,
        store::PARAMETERS,
        mongodb::PARAMETERS,
        tls::PARAMETERS,
        limits::PARAMETERS,
        security::PARAMETERS,
        audit::PARAMETERS,
        cache::PARAMETERS,
    ]
    .into_iter()
    .flatten()
}

/// Returns the parameter with a name in a section.
pub fn find(section: &str, name: &str) -> Option<&'static Parameter> {
    all().find(|parameter| parameter.section == section && parameter.name == name)
}

/// Returns the parameter that a flag sets.
pub fn by_flag(flag: &str) -> Option<&'static Parameter> {
    all().find(|parameter| parameter.flag == Some(flag))
}
