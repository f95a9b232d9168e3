//! Files, right and wrong, and handshakes in memory between configurations of both sides.

use crate::client::{ClientSettings, Verify, client_config, server_name};
use crate::clock::{Clock, system_clock};
use crate::facts::TlsFacts;
use crate::server::{ClientCertificates, ServerSettings, ServerTls};
use crate::testing::{Authority, Folder, Issued, expired, for_clients, for_servers, not_yet_valid, set_mode};
use crate::versions::MinVersion;
use rcgen::CertificateParams;
use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;
use rustls::{ClientConnection, Connection};
use std::path::PathBuf;
use std::sync::Arc;

/// An authority and a server's file with certificate and key.
struct Scene {
    folder: Folder,
    authority: Authority,
    ca: PathBuf,
    server: PathBuf,
}

impl Scene {
    fn new() -> Scene {
        let (folder, authority) = (Folder::new(), Authority::new("An authority"));
        let ca = folder.write("ca.pem", &authority.pem);
        let Issued { certificate, key } = authority.issue(|_| {});
        let server = folder.write("server.pem", &(certificate + &key));
        Scene { folder, authority, ca, server }
    }

    fn settings(&self) -> ServerSettings {
        ServerSettings {
            certificate: self.server.clone(),
            key: None,
            ca: None,
            crl: None,
            min_version: MinVersion::Tls12,
            client_certificates: ClientCertificates::None,
        }
    }

    fn verifying(&self, client_certificates: ClientCertificates) -> ServerSettings {
        ServerSettings { ca: Some(self.ca.clone()), client_certificates, ..self.settings() }
    }

    fn client(&self) -> ClientSettings {
        ClientSettings { ca: Some(self.ca.clone()), ..ClientSettings::default() }
    }

    /// Issues a certificate of a client, whose file also has its key.
    fn client_with(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> ClientSettings {
        let Issued { certificate, key } = self.authority.issue(change);
        ClientSettings { certificate: Some(self.folder.write(name, &(certificate + &key))), ..self.client() }
    }
}

fn load(settings: ServerSettings) -> Result<ServerTls, String> {
    ServerTls::load(settings, system_clock()).map_err(|error| error.to_string())
}

#[track_caller]
fn check_refused(settings: ServerSettings, part: &str) {
    let error = load(settings).map(drop).expect_err("loaded");
    assert!(error.contains(part), "{error}");
}

/// Returns the facts of both sides, the server's first.
fn shake_hands(server: &ServerTls, client: &ClientSettings, host: &str) -> Result<(TlsFacts, TlsFacts), String> {
    let config = client_config(client, &system_clock()).map_err(|error| error.to_string())?;
    let near = ClientConnection::new(config, server_name(host).unwrap()).map_err(|error| error.to_string())?;
    let (mut near, mut far) = (Connection::Client(near), Connection::Server(server.accept().unwrap()));
    while near.is_handshaking() || far.is_handshaking() || near.wants_write() || far.wants_write() {
        pass(&mut near, &mut far).map_err(|error| format!("server: {error}"))?;
        pass(&mut far, &mut near).map_err(|error| format!("client: {error}"))?;
    }
    Ok((TlsFacts::of(&far), TlsFacts::of(&near)))
}

/// Passes what a side has to send to the other.
fn pass(from: &mut Connection, to: &mut Connection) -> Result<(), rustls::Error> {
    let mut bytes = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut bytes).unwrap();
    }
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        to.read_tls(&mut rest).unwrap();
        to.process_new_packets()?;
    }
    Ok(())
}

#[test]
fn wrong_certificates_and_keys_are_errors_that_say_what_to_do() {
    let scene = Scene::new();
    let with =
        |name: &str, text: String| ServerSettings { certificate: scene.folder.write(name, &text), ..scene.settings() };
    let pair = |issued: Issued| issued.certificate + &issued.key;
    let fresh = || scene.authority.issue(|_| {});

    check_refused(ServerSettings { certificate: scene.folder.path("none.pem"), ..scene.settings() }, "does not exist");
    check_refused(with("empty.pem", String::new()), "there is no certificate in");
    check_refused(with("key-only.pem", fresh().key), "only a key");
    check_refused(with("no-key.pem", fresh().certificate), "there is no private key in");
    check_refused(
        with("other-key.pem", fresh().certificate + &fresh().key),
        "does not belong to the first certificate",
    );
    let Issued { certificate, key } = fresh();
    check_refused(with("reversed.pem", scene.authority.pem.clone() + &certificate + &key), "must be the first");
    check_refused(with("two-keys.pem", pair(fresh()) + &fresh().key), "there are 2 private keys");
    check_refused(with("expired.pem", pair(scene.authority.issue(expired))), "expired at 2020-01-01T00:00:00Z");
    check_refused(with("future.pem", pair(scene.authority.issue(not_yet_valid))), "is not valid before 4000-01-01");
    check_refused(with("client.pem", pair(scene.authority.issue(for_clients))), "lacks serverAuth");
    let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----\n";
    check_refused(with("encrypted.pem", fresh().certificate + encrypted), "is encrypted; decrypt it with");

    let key = scene.folder.write("apart.key", &fresh().key);
    check_refused(ServerSettings { key: Some(key), ..scene.settings() }, "does not belong to the first certificate");
    set_mode(&scene.server, 0o644);
    check_refused(scene.settings(), "chmod o-r");
    set_mode(&scene.server, 0o640);
    load(scene.settings()).unwrap();
}

#[test]
fn the_key_may_have_a_file_of_its_own() {
    let scene = Scene::new();
    let Issued { certificate, key } = scene.authority.issue(|_| {});
    let certificate = scene.folder.write("server.crt", &certificate);
    set_mode(&certificate, 0o644);
    let settings =
        ServerSettings { certificate, key: Some(scene.folder.write("server.key", &key)), ..scene.settings() };
    let server = load(settings).unwrap();
    assert!(server.current().warnings.is_empty());
    shake_hands(&server, &scene.client(), "localhost").unwrap();
}

#[test]
fn wrong_authorities_and_revocation_lists_are_errors() {
    let scene = Scene::new();
    let verifying = || scene.verifying(ClientCertificates::Required);
    check_refused(ServerSettings { ca: None, ..verifying() }, "name it");
    let empty = scene.folder.write("empty.pem", "");
    check_refused(ServerSettings { ca: Some(empty.clone()), ..verifying() }, "there is no certificate in the CA file");
    check_refused(ServerSettings { crl: Some(empty), ..verifying() }, "there is no revocation list");
    let old = scene.folder.write("old.pem", &scene.authority.revoke(&[], 2020));
    check_refused(ServerSettings { crl: Some(old), ..verifying() }, "expired at 2020-12-31");
    let outdated = scene.folder.write("outdated.pem", &scene.authority.issue(expired).certificate);
    check_refused(ServerSettings { ca: Some(outdated), ..verifying() }, "expired at 2020-01-01");
    let mixed = scene.authority.pem.clone() + &scene.authority.issue(expired).certificate;
    let server = load(ServerSettings { ca: Some(scene.folder.write("mixed.pem", &mixed)), ..verifying() }).unwrap();
    assert_eq!(server.current().warnings.len(), 1);
}

#[test]
fn handshakes_agree_on_version_cipher_and_names() {
    let scene = Scene::new();
    let server = load(scene.settings()).unwrap();
    let (far, near) = shake_hands(&server, &scene.client(), "localhost").unwrap();
    assert_eq!((far.version, far.server_name.as_deref()), ("1.3", Some("localhost")));
    assert!(far.cipher.starts_with("TLS_AES_") && far.peer_certificates.is_empty(), "{far:?}");
    assert_eq!(near.peer_certificates, [server.current().certificate.clone()]);
}

#[test]
fn servers_are_verified_as_strictly_as_asked() {
    let scene = Scene::new();
    let server = load(scene.settings()).unwrap();
    let other = scene.folder.write("other-ca.pem", &Authority::new("Another authority").pem);
    let verify = |verify, ca: Option<&PathBuf>, host| {
        let client = ClientSettings { verify, ca: ca.cloned(), ..ClientSettings::default() };
        shake_hands(&server, &client, host).map(drop)
    };
    verify(Verify::Host, Some(&scene.ca), "localhost").unwrap();
    assert!(verify(Verify::Host, Some(&scene.ca), "elsewhere").unwrap_err().contains("not valid for name"));
    assert!(verify(Verify::Host, Some(&other), "localhost").unwrap_err().contains("UnknownIssuer"));
    verify(Verify::Authority, Some(&scene.ca), "elsewhere").unwrap();
    assert!(verify(Verify::Authority, Some(&other), "localhost").unwrap_err().contains("UnknownIssuer"));
    verify(Verify::None, None, "elsewhere").unwrap();
    verify(Verify::None, Some(&other), "elsewhere").unwrap();
    assert!(verify(Verify::Host, None, "localhost").unwrap_err().contains("name it"));
}

#[test]
fn clients_certificates_are_verified() {
    let scene = Scene::new();
    let required = load(scene.verifying(ClientCertificates::Required)).unwrap();
    let optional = load(scene.verifying(ClientCertificates::Optional)).unwrap();
    let good = scene.client_with("good.pem", for_clients);
    let outcome = |server: &ServerTls, client: &ClientSettings| {
        shake_hands(server, client, "localhost").map(|(far, _)| far.peer_certificates.len())
    };
    assert_eq!(outcome(&required, &good), Ok(1));
    assert_eq!(outcome(&optional, &good), Ok(1));
    assert_eq!(outcome(&optional, &scene.client()), Ok(0));
    assert!(outcome(&required, &scene.client()).unwrap_err().contains("peer sent no certificates"));

    let stranger = Authority::new("Another authority").issue(for_clients);
    let file = scene.folder.write("stranger.pem", &(stranger.certificate + &stranger.key));
    let stranger = ClientSettings { certificate: Some(file), ..scene.client() };
    for server in [&required, &optional] {
        assert!(outcome(server, &stranger).unwrap_err().contains("UnknownIssuer"));
    }
    let old = scene.client_with("old.pem", expired);
    assert!(outcome(&required, &old).unwrap_err().contains("expired at"), "our own clients are checked before");
    let server_certificate = scene.client_with("server-usage.pem", for_servers);
    assert!(outcome(&required, &server_certificate).unwrap_err().contains("lacks clientAuth"));
}

#[test]
fn revoked_certificates_are_refused() {
    let scene = Scene::new();
    let with_list = |name: &str, serials: &[u64]| {
        let crl = scene.folder.write(name, &scene.authority.revoke(serials, 4000));
        load(ServerSettings { crl: Some(crl), ..scene.verifying(ClientCertificates::Required) }).unwrap()
    };
    let client = scene.client_with("client.pem", |params| params.serial_number = Some(7u64.into()));
    shake_hands(&with_list("other.crl", &[8]), &client, "localhost").unwrap();
    let error = shake_hands(&with_list("this.crl", &[8, 7]), &client, "localhost").unwrap_err();
    assert!(error.contains("Revoked"), "{error}");

    let crl = scene.folder.write("server.crl", &scene.authority.revoke(&[1], 4000));
    let server = load(scene.settings()).unwrap();
    let error = shake_hands(&server, &ClientSettings { crl: Some(crl), ..scene.client() }, "localhost").unwrap_err();
    assert!(error.contains("Revoked"), "{error}");
}

#[test]
fn versions_below_the_minimum_are_refused() {
    let scene = Scene::new();
    let server = load(ServerSettings { min_version: MinVersion::Tls13, ..scene.settings() }).unwrap();
    let (far, _) = shake_hands(&server, &scene.client(), "localhost").unwrap();
    assert_eq!(far.version, "1.3");
    let mut only_12 = Vec::new();
    let config = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let mut client = ClientConnection::new(Arc::new(config), server_name("localhost").unwrap()).unwrap();
    client.write_tls(&mut only_12).unwrap();
    let mut connection = server.accept().unwrap();
    connection.read_tls(&mut &only_12[..]).unwrap();
    assert!(matches!(connection.process_new_packets(), Err(rustls::Error::PeerIncompatible(_))));
}

#[test]
fn a_reload_replaces_the_certificate_unless_the_new_one_is_broken() {
    let scene = Scene::new();
    let server = load(scene.settings()).unwrap();
    let first = server.current().certificate.clone();
    assert!(server.reload_if_changed().is_none());

    let Issued { certificate, key } = scene.authority.issue(|_| {});
    scene.folder.write("server.pem", &certificate);
    assert!(server.reload_if_changed().is_none(), "it may still be written to");
    assert!(server.reload_if_changed().unwrap().unwrap_err().to_string().contains("there is no private key"));
    assert!(server.reload_if_changed().is_none(), "that error was reported");
    assert_eq!(server.current().certificate, first);
    shake_hands(&server, &scene.client(), "localhost").unwrap();

    scene.folder.write("server.pem", &(certificate + &key));
    assert!(server.reload_if_changed().is_none());
    assert_ne!(server.reload_if_changed().unwrap().unwrap().certificate, first);
    let (_, near) = shake_hands(&server, &scene.client(), "localhost").unwrap();
    assert_eq!(near.peer_certificates, [server.current().certificate.clone()]);
    assert_ne!(near.peer_certificates, [first]);
}

#[test]
fn the_callers_clock_decides() {
    #[derive(Debug)]
    struct Fixed(u64);
    impl TimeProvider for Fixed {
        fn current_time(&self) -> Option<UnixTime> {
            Some(UnixTime::since_unix_epoch(std::time::Duration::from_secs(self.0)))
        }
    }
    let scene = Scene::new();
    let at = |seconds| ServerTls::load(scene.settings(), Arc::new(Fixed(seconds)) as Clock);
    at(1_800_000_000).unwrap();
    assert!(at(1).map(drop).unwrap_err().to_string().contains("is not valid before"));
    assert!(at(1 << 50).map(drop).unwrap_err().to_string().contains("expired"));
}
