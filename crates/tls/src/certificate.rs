//! Facts of a certificate, and the checks of them.

use crate::clock::show;
use crate::error::TlsError;
use crate::subject;
use rustls::pki_types::CertificateDer;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;
use x509_parser::x509::X509Version;

/// What a certificate is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    Server,
    Client,
}

/// The facts of a certificate that this program uses. Times are seconds since 1970.
#[derive(Clone, Debug)]
pub struct Facts {
    pub not_before: i64,
    pub not_after: i64,
    /// By RFC 2253, as MongoDB writes it.
    pub subject: String,
    pub has_names: bool,
    version: X509Version,
    /// `None`: the certificate does not restrict it.
    usages: Option<(bool, bool)>,
}

impl Facts {
    /// Returns the end of the validity, as it is shown to people.
    pub fn valid_until(&self) -> String {
        show(self.not_after)
    }

    /// Parses a certificate. `place`: the certificate's place, for errors.
    pub fn of(certificate: &CertificateDer<'_>, place: &str) -> Result<Facts, TlsError> {
        let (_, parsed) = X509Certificate::from_der(certificate)
            .map_err(|error| TlsError::new(format!("{place} cannot be parsed: {error}")))?;
        let usages = parsed.extended_key_usage().ok().flatten().map(|usage| usage.value);
        let usages = usages.map(|usage| (usage.any || usage.server_auth, usage.any || usage.client_auth));
        Ok(Facts {
            not_before: parsed.validity().not_before.timestamp(),
            not_after: parsed.validity().not_after.timestamp(),
            subject: subject::rfc2253(parsed.subject()).unwrap_or_default(),
            has_names: parsed.subject_alternative_name().ok().flatten().is_some(),
            version: parsed.version(),
            usages,
        })
    }

    /// Fails if the certificate is not valid at a time.
    pub fn check_time(&self, now: i64, place: &str) -> Result<(), TlsError> {
        if now > self.not_after {
            return Err(TlsError::new(format!("{place} expired at {}; renew it", show(self.not_after))));
        }
        if now < self.not_before {
            return Err(TlsError::new(format!(
                "{place} is not valid before {}, and it is {}; check this machine's clock, or use another certificate",
                show(self.not_before),
                show(now)
            )));
        }
        Ok(())
    }

    /// Fails if peers would refuse the certificate for this usage.
    pub fn check_usage(&self, usage: Usage, place: &str) -> Result<(), TlsError> {
        if self.version != X509Version::V3 {
            return Err(TlsError::new(format!(
                "{place} is of X.509 version {}; make one of version 3, which has extensions (subjectAltName)",
                self.version.0 + 1
            )));
        }
        let (what, allowed, name) = match usage {
            Usage::Server => ("server", self.usages.is_none_or(|(server, _)| server), "serverAuth"),
            Usage::Client => ("client", self.usages.is_none_or(|(_, client)| client), "clientAuth"),
        };
        if !allowed {
            return Err(TlsError::new(format!(
                "{place} must not be used by a {what}: its extendedKeyUsage lacks {name}; make one that has it"
            )));
        }
        Ok(())
    }
}
