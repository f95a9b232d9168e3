//! The store for MariaDB: documents as JSON in tables that SQL users can read and write as well.
//!
//! It takes plans, scans and write batches of the contract in crate `store`, and sends prepared
//! statements to a MariaDB server. Documents are stored in the JSON encoding of [`document::json`].
//! Values are always parameters of statements; names become part of their text through
//! [`mariadb_client::quote`] alone.
//!
//! In reading order: `catalog` (databases and collections as schemas and tables, and their
//! definitions), `index` (indexes as generated columns, element tables and side indexes), `plan`
//! (from a query to an access path), `read` (executing plans), `write` (inserts, updates and
//! deletes), `transaction` (of several statements), `sharding` (tables over several servers),
//! `accounts` (of users, in MariaDB), `external_writes` (changes that the binary log reports to the
//! caches) and `feed` (the same in order, for change streams). [`MariaDbEngine`] is the half that
//! belongs to the process, `store` the half that serves one worker.

mod accounts;
mod catalog;
mod document_store;
mod encoding;
mod engine;
mod external_writes;
mod feed;
mod index;
mod options;
mod plan;
mod primary_accounts;
mod read;
mod read_pools;
mod read_servers;
mod server_facts;
mod sharding;
mod store;
mod transaction;
mod write;

pub use catalog::table_definitions::{Body, Routine, TableDefinition, TableDefinitions};
pub use engine::MariaDbEngine;
pub use external_writes::{ExternalWrites, ReportFollowing};
pub use options::{FeedStart, Options, ShardNames};
pub use read::result_set::ResultSet;
pub use read_servers::{CausalReads, ReadServer, ReadServers, none_fits};
