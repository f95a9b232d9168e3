//! The servers that reads may go to beside the primary, by the read preferences of clients.

use error::{Code, Error};
use mariadb_client::ServerUrl;
use std::sync::Arc;
use store::ReadPreference;

/// A server that may answer a read.
#[derive(Clone, Debug)]
pub struct ReadServer {
    pub name: Arc<str>,
    /// With the account for documents.
    pub url: ServerUrl,
    pub is_primary: bool,
    pub is_galera: bool,
}

/// The writes that a read on a replica sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CausalReads {
    Off,
    /// Those through this process.
    OfGateway,
    /// All that were acknowledged before it.
    All,
}

/// The servers of the service that stores the documents.
pub trait ReadServers: Send + Sync {
    /// Returns whether a read with this preference may be executed elsewhere than on the primary.
    fn reads_elsewhere(&self, preference: &ReadPreference) -> bool;

    /// Returns the servers for a read, the best first. The primary is last unless it is preferred.
    fn choose(&self, preference: &ReadPreference) -> Vec<ReadServer>;

    /// Returns the writes that every read sees.
    fn causal_reads(&self) -> CausalReads;

    /// Returns the position of a server in the log, when it was last observed.
    fn position(&self, server: &str) -> Option<String>;

    /// Notes that a connection to a server has failed.
    fn suspect(&self, server: &str);

    /// Counts a read on a replica.
    fn count_read(&self);

    /// Counts a wait for earlier writes. `is_in_time`: they had arrived.
    fn count_wait(&self, is_in_time: bool);

    /// Returns the error of a preference that no server fits.
    fn none_fits(&self, preference: &ReadPreference) -> Error;
}

/// Returns the error of a read for which there is no server.
pub fn none_fits(preference: &ReadPreference, service: &str) -> Error {
    let mode = preference.mode.name();
    let message = format!("Could not find host matching read preference {{ mode: \"{mode}\" }} for set {service}");
    Error::new(Code::FAILED_TO_SATISFY_READ_PREFERENCE, message)
}
