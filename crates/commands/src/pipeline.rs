//! Aggregation pipelines, beyond what the crate `aggregate` evaluates: stages that the server
//! itself answers, joins with other collections, and views.

pub mod config_lists;
pub mod geo_near;
pub mod joins;
pub mod nested_sources;
pub mod open;
pub mod over_views;
pub mod referenced_views;
pub mod source_stage;
