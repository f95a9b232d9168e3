//! Messages for handshakes of TLS that fail.

use rustls::CertificateError;

/// Returns why the handshake with MariaDB at a host failed.
pub fn tls_failure(error: &std::io::Error, host: &str) -> String {
    let Some(cause) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) else {
        return format!("the server ended the handshake: {error}");
    };
    match cause {
        rustls::Error::InvalidCertificate(reason) => refused_certificate(reason, host),
        rustls::Error::AlertReceived(alert) => format!("the server refuses the handshake ({alert:?})"),
        cause => cause.to_string(),
    }
}

fn refused_certificate(reason: &CertificateError, host: &str) -> String {
    match reason {
        CertificateError::UnknownIssuer => "its certificate is not signed by a certificate in tls-ca".to_owned(),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            format!("its certificate has expired ({reason})")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("its certificate is not valid yet ({reason})")
        }
        CertificateError::Revoked => "its certificate is revoked by tls-crl".to_owned(),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => format!(
            "its certificate is not for '{host}' ({reason}); connect by a name in its subjectAltName, or write tls=verify-ca"
        ),
        // The library does not name the reason in a type of its own.
        reason if format!("{reason:?}").contains("UnsupportedCertVersion") => {
            "its certificate is of X.509 version 1; make one of version 3, with a subjectAltName".to_owned()
        }
        reason => format!("its certificate is refused: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn reasons_are_named() {
        let explain = |error: rustls::Error| tls_failure(&io::Error::new(io::ErrorKind::InvalidData, error), "db");
        for (reason, part) in [
            (CertificateError::UnknownIssuer, "tls-ca"),
            (CertificateError::Expired, "has expired"),
            (CertificateError::NotValidYet, "not valid yet"),
            (CertificateError::Revoked, "tls-crl"),
            (CertificateError::NotValidForName, "not for 'db'"),
            (CertificateError::BadEncoding, "refused"),
        ] {
            assert!(explain(rustls::Error::InvalidCertificate(reason.clone())).contains(part), "{reason:?}");
        }
        assert!(explain(rustls::Error::AlertReceived(rustls::AlertDescription::UnknownCA)).contains("UnknownCA"));
        assert!(tls_failure(&io::ErrorKind::UnexpectedEof.into(), "db").contains("ended the handshake"));
    }
}
