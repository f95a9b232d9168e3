//! Protocol versions.

use rustls::SupportedProtocolVersion;

static FROM_12: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13, &rustls::version::TLS12];
static FROM_13: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13];

/// The lowest version of TLS that is accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MinVersion {
    #[default]
    Tls12,
    Tls13,
}

impl MinVersion {
    pub fn name(self) -> &'static str {
        match self {
            MinVersion::Tls12 => "1.2",
            MinVersion::Tls13 => "1.3",
        }
    }

    /// Returns the versions from this one on.
    pub fn versions(self) -> &'static [&'static SupportedProtocolVersion] {
        match self {
            MinVersion::Tls12 => FROM_12,
            MinVersion::Tls13 => FROM_13,
        }
    }
}
