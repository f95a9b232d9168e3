//! Documents in MariaDB tables, as JSON that SQL users can read and write beside the gateway.
//!
//! What comes in are plans, scans and write batches of the contract in crate `store`; what goes out are prepared statements to a MariaDB
//! server, and documents in the JSON spelling of [`document::json`]. Content is never cached here: each read asks the server. No value
//! ever becomes part of a statement's text; names do through [`quote`] alone.
//!
//! In reading order: `names` and `id_text` (what collections and ids are called), `table` and `catalog` (the shape of tables), `ddl` (changing it), `key` (the order
//! of values), `index` (with `partial`) and `multikey`, `plan`, `planner`, `pushdown` and `scan`
//! (reading), `write` (inserting, updating, deleting), and `own_schema` (what is remembered beside
//! the collections).

mod ahead;
mod build;
mod catalog;
mod choices;
mod cluster;
mod collections;
mod count;
mod databases;
mod ddl;
mod definitions;
mod engine;
mod explain;
mod figures;
mod foreign;
mod handlers;
mod id_text;
mod index;
mod indexes;
mod json_path;
mod key;
mod keyed;
mod multikey;
mod names;
mod options;
mod own_schema;
mod partial;
mod plan;
mod planner;
mod pushdown;
mod results;
mod sample;
mod scan;
mod spelling;
mod store;
mod table;
mod write;

pub use definitions::{TableDefinition, TableDefinitions};
pub use engine::MariaDbEngine;
pub use foreign::{ForeignWrites, Tell};
pub use options::Options;
pub use results::ResultSet;
