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
mod limits;
mod mongodb;
mod process;
mod security;
mod store;
mod tls;

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

/// Returns all parameters, by section.
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
