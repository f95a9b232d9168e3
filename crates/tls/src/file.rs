//! PEM files: their contents, their permissions, and whether they have changed.

use crate::error::TlsError;
use rustls::pki_types::pem::{PemObject, SectionKind};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;

/// A file with certificates and keys is shorter; a bundle of all public CAs has 230 KB.
const BYTES_MAX: u64 = 16 << 20;

/// The permission of users other than the owner and the group to read.
const READABLE_BY_OTHERS: u32 = 0o004;

/// The contents of a PEM file. Sections of other kinds are skipped.
#[derive(Debug, Default)]
pub struct Pem {
    pub certificates: Vec<CertificateDer<'static>>,
    pub keys: Vec<PrivateKeyDer<'static>>,
    pub revocation_lists: Vec<CertificateRevocationListDer<'static>>,
    /// A key that only a passphrase opens.
    pub has_encrypted_key: bool,
    readable_by_others: bool,
}

impl Pem {
    /// Reads a file. `what`: its role, for errors.
    pub fn read(path: &Path, what: &str) -> Result<Pem, TlsError> {
        let failed = |error: std::io::Error| {
            TlsError::new(match error.kind() {
                std::io::ErrorKind::NotFound => {
                    format!("{what} {} does not exist; write the path of a PEM file", path.display())
                }
                std::io::ErrorKind::PermissionDenied => format!(
                    "no permission to read {what} {}; give it to the user that this process runs as",
                    path.display()
                ),
                _ => format!("cannot read {what} {}: {error}", path.display()),
            })
        };
        let mut file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() || metadata.len() > BYTES_MAX {
            return Err(TlsError::new(format!(
                "{what} {} is not a PEM file of at most {} MB",
                path.display(),
                BYTES_MAX >> 20
            )));
        }
        let mut bytes = Vec::new();
        file.by_ref().take(BYTES_MAX).read_to_end(&mut bytes).map_err(failed)?;
        let mut pem = Pem::parse(&bytes)
            .map_err(|error| TlsError::new(format!("{what} {} is not PEM: {error}", path.display())))?;
        pem.readable_by_others = metadata.mode() & READABLE_BY_OTHERS != 0;
        Ok(pem)
    }

    fn parse(bytes: &[u8]) -> Result<Pem, String> {
        let mut pem = Pem { has_encrypted_key: has_encrypted_key(bytes), ..Pem::default() };
        for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(bytes) {
            // A key in the older encrypted form has headers, which are not Base64.
            let (kind, der) = match section {
                Ok(section) => section,
                Err(_) if pem.has_encrypted_key => return Ok(pem),
                Err(error) => return Err(error.to_string()),
            };
            match kind {
                SectionKind::Certificate => pem.certificates.push(der.into()),
                SectionKind::Crl => pem.revocation_lists.push(der.into()),
                SectionKind::RsaPrivateKey | SectionKind::PrivateKey | SectionKind::EcPrivateKey => {
                    pem.keys.extend(PrivateKeyDer::from_pem(kind, der));
                }
                _ => {}
            }
        }
        Ok(pem)
    }

    /// Fails if the file contains a key, and every user of the machine may read it.
    pub fn check_secrecy(&self, path: &Path) -> Result<(), TlsError> {
        let has_key = !self.keys.is_empty() || self.has_encrypted_key;
        if self.readable_by_others && has_key {
            return Err(TlsError::new(format!(
                "every user of this machine can read the private key in {0}; take that permission away with \
                 `chmod o-r {0}`",
                path.display()
            )));
        }
        Ok(())
    }
}

fn has_encrypted_key(bytes: &[u8]) -> bool {
    [&b"-----BEGIN ENCRYPTED PRIVATE KEY-----"[..], b"Proc-Type: 4,ENCRYPTED"]
        .iter()
        .any(|marker| bytes.windows(marker.len()).any(|window| window == *marker))
}

/// The state of a file, by which a change is noticed. It follows symbolic links, so it also notices
/// that a link points to another file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileState(Option<(u64, u64, u64, Option<SystemTime>, i64, i64)>);

impl FileState {
    pub fn of(path: &Path) -> FileState {
        let state = |file: Metadata| {
            (file.dev(), file.ino(), file.len(), file.modified().ok(), file.ctime(), file.ctime_nsec())
        };
        FileState(std::fs::metadata(path).ok().map(state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    #[test]
    fn wrong_files_are_named() {
        let folder = Folder::new();
        let missing = Pem::read(&folder.path("none.pem"), "the certificate file").map(drop).unwrap_err().to_string();
        assert!(missing.contains("none.pem does not exist"), "{missing}");
        let directory = Pem::read(&folder.path("."), "the certificate file").map(drop).unwrap_err().to_string();
        assert!(directory.contains("is not a PEM file"), "{directory}");
        let torn = folder.write("torn.pem", "-----BEGIN CERTIFICATE-----\nMIIB%%%\n-----END CERTIFICATE-----\n");
        let torn = Pem::read(&torn, "the certificate file").map(drop).unwrap_err().to_string();
        assert!(torn.contains("torn.pem is not PEM"), "{torn}");
        let text = folder.write("text.pem", "nothing\n");
        assert!(Pem::read(&text, "the certificate file").unwrap().certificates.is_empty());
    }

    #[test]
    fn encrypted_keys_are_recognized() {
        for text in [
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----\n",
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nMIIB\n\
             -----END RSA PRIVATE KEY-----\n",
        ] {
            let pem = Pem::parse(text.as_bytes()).unwrap();
            assert!(pem.has_encrypted_key && pem.keys.is_empty());
        }
    }

    #[test]
    fn a_change_is_noticed_also_behind_a_link() {
        let folder = Folder::new();
        let (one, two) = (folder.write("one", "1"), folder.write("two", "2"));
        let link = folder.path("link");
        std::os::unix::fs::symlink(&one, &link).unwrap();
        let before = FileState::of(&link);
        assert_eq!(before, FileState::of(&link));
        std::fs::remove_file(&link).unwrap();
        assert_ne!(before, FileState::of(&link));
        std::os::unix::fs::symlink(&two, &link).unwrap();
        assert_ne!(before, FileState::of(&link));
    }
}
