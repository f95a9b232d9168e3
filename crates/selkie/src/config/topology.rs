//! How the server presents itself in the handshake.

use super::choices::TopologyKind;
use super::defaults;
use super::setting::ConfigError;
use super::written::Written;
use selkie_runtime::ListenAddress;
use server::Topology;

/// `listen`: the addresses of MongoDB clients.
pub fn resolve(written: &Written, listen: &[ListenAddress]) -> Result<Topology, ConfigError> {
    let kind = written.topology.as_ref().map_or(TopologyKind::Router, |setting| setting.value);
    if kind != TopologyKind::ReplicaSet {
        for (setting, name) in [(&written.replica_set, "replica-set"), (&written.advertise, "advertise")] {
            if let Some(setting) = setting {
                return Err(setting.refuse(format!(
                    "{name} has an effect only with topology = \"replica-set\"; add that, or leave it out"
                )));
            }
        }
    }
    match kind {
        TopologyKind::Router => Ok(Topology::Router),
        TopologyKind::Standalone => Ok(Topology::Standalone),
        TopologyKind::ReplicaSet => {
            let name = written.replica_set.as_ref().map_or(defaults::REPLICA_SET, |setting| &setting.value);
            let advertised = written.advertise.as_ref().map(|setting| setting.value.clone());
            let advertised = match advertised.or_else(|| listen.iter().find_map(advertisable)) {
                Some(advertised) => advertised,
                None => {
                    let message = "drivers of a replica set connect to the address it advertises, and none of the addresses \
                                   to listen on can be one; set advertise = \"host:port\"";
                    let origin = written.topology.as_ref().map(|setting| setting.origin.clone());
                    return Err(ConfigError { origin, message: message.into() });
                }
            };
            Ok(Topology::ReplicaSet { name: name.to_owned(), advertised })
        }
    }
}

/// Returns an address that drivers can connect to as it is written.
fn advertisable(address: &ListenAddress) -> Option<String> {
    match address {
        ListenAddress::Tcp(address) if !address.ip().is_unspecified() && address.port() != 0 => {
            Some(address.to_string())
        }
        _ => None,
    }
}
