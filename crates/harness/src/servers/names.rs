//! Names of the servers in tables that compare them.

pub const MONGODB: &str = "MongoDB";
pub const EMBEDDED: &str = "Selkie, embedded";
pub const MARIADB: &str = "Selkie, MariaDB";
