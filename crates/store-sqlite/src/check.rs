//! Checking what is stored: [`validate`] a collection while it is served, [`verify`] all files
//! while they are not.

pub mod validate;
pub mod verify;
