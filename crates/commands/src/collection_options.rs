//! Options of collections that several commands read: validation, clustering.

pub mod clustered;
pub mod validation;
