//! Certificate authorities, and the lists of certificates that they have revoked.

use crate::certificate::Facts;
use crate::clock::show;
use crate::error::TlsError;
use crate::file::Pem;
use rustls::RootCertStore;
use rustls::pki_types::CertificateRevocationListDer;
use std::path::Path;
use std::sync::Arc;
use x509_parser::prelude::FromDer;
use x509_parser::revocation_list::CertificateRevocationList;

/// Loads the authorities of a file. Returns also sentences about expired ones, which are left out:
/// the library does not check the validity of authorities. `now`: seconds since 1970.
pub fn load(path: &Path, now: i64) -> Result<(Arc<RootCertStore>, Vec<String>), TlsError> {
    let pem = Pem::read(path, "the CA file")?;
    pem.check_secrecy(path)?;
    if pem.certificates.is_empty() {
        return Err(TlsError::new(format!(
            "there is no certificate in the CA file {}; a PEM file with BEGIN CERTIFICATE is expected",
            path.display()
        )));
    }
    let (mut roots, mut left_out) = (RootCertStore::empty(), Vec::new());
    for (index, certificate) in pem.certificates.into_iter().enumerate() {
        let place = format!("certificate {} in the CA file {}", index + 1, path.display());
        let facts = Facts::of(&certificate, &place)?;
        match facts.check_time(now, &place) {
            Err(expired) => left_out.push(format!("{expired}; until then it is not trusted")),
            Ok(()) => roots
                .add(certificate)
                .map_err(|error| TlsError::new(format!("{place} cannot be used: {error}; remove or replace it")))?,
        }
    }
    match left_out.first() {
        Some(first) if roots.is_empty() => Err(TlsError::new(first.clone())),
        _ => Ok((Arc::new(roots), left_out)),
    }
}

/// Loads the revocation lists of a file. `now`: seconds since 1970.
pub fn load_revocation_lists(path: &Path, now: i64) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    let lists = Pem::read(path, "the CRL file")?.revocation_lists;
    if lists.is_empty() {
        return Err(TlsError::new(format!(
            "there is no revocation list in the CRL file {}; a PEM file with BEGIN X509 CRL is expected",
            path.display()
        )));
    }
    for (index, list) in lists.iter().enumerate() {
        let place = format!("revocation list {} in the CRL file {}", index + 1, path.display());
        let (_, parsed) = CertificateRevocationList::from_der(list)
            .map_err(|error| TlsError::new(format!("{place} cannot be parsed: {error}")))?;
        if parsed.extensions().is_empty() {
            return Err(TlsError::new(format!(
                "{place} is of version 1; make one of version 2, which has a number (`crlnumber` of openssl ca)"
            )));
        }
        if let Some(next) = parsed.next_update().map(|time| time.timestamp()).filter(|next| *next < now) {
            return Err(TlsError::new(format!("{place} expired at {}; get the authority's new one", show(next))));
        }
    }
    Ok(lists)
}
