//! The vectors of the RFCs, and the comparison of users that exist with others.

use super::hash::{WORK, hash, hmac};
use super::*;
use crate::credentials::{Credentials, ScramCredentials};
use crate::{PasswordCheck, UserName};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::hint::black_box;
use std::time::Instant;

const DECOY: [u8; 32] = [7; 32];

/// Runs a conversation with a server nonce as in the RFCs, which is text.
fn server_final(mechanism: Mechanism, password: &str, messages: [&str; 3]) -> String {
    let [first, server_first, last] = messages;
    let part = |name: &str| server_first.split(',').find_map(|part| part.strip_prefix(name)).expect("the attribute");
    let salt = STANDARD.decode(part("s=")).expect("valid Base64");
    let credentials = keys(mechanism, password, &salt, part("i=").parse().expect("a number"));
    let first = ClientFirst::parse(first.as_bytes()).expect("a first message");
    let decoy = DecoySecret::new(DECOY);
    let (conversation, _) = ServerConversation::begin(mechanism, first, "d", Some(&credentials), &decoy, [0; 24]);
    let conversation = conversation.with_server_first(server_first);
    let signed = conversation.finish(last.as_bytes()).expect("the right password");
    String::from_utf8(signed.server_final).expect("text")
}

impl ServerConversation {
    fn with_server_first(mut self, message: &str) -> ServerConversation {
        self.replace_server_first(message);
        self
    }
}

#[test]
fn sha_1_agrees_with_rfc_5802() {
    let messages = [
        "n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL",
        "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
        "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
    ];
    assert_eq!(server_final(Mechanism::Sha1, "pencil", messages), "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=");
}

#[test]
fn sha_256_agrees_with_rfc_7677() {
    let messages = [
        "n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
    ];
    let expected = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";
    assert_eq!(server_final(Mechanism::Sha256, "pencil", messages), expected);
}

fn keys(mechanism: Mechanism, secret: &str, salt: &[u8], iterations: u32) -> ScramCredentials {
    ScramCredentials::of_secret(mechanism, secret, iterations, salt)
}

/// Returns the salted password.
fn stretch(mechanism: Mechanism, password: &str, salt: &[u8], iterations: u32) -> hash::Hash {
    let mut salted = vec![0; mechanism.key_bytes()];
    match mechanism {
        Mechanism::Sha1 => pbkdf2::pbkdf2_hmac::<sha1::Sha1>(password.as_bytes(), salt, iterations, &mut salted),
        Mechanism::Sha256 => pbkdf2::pbkdf2_hmac::<sha2::Sha256>(password.as_bytes(), salt, iterations, &mut salted),
    }
    hash::Hash::of(&salted)
}

/// The answers of a client that knows a password.
fn client_final(mechanism: Mechanism, hashed: &str, bare: &str, server_first: &[u8]) -> String {
    let server_first = std::str::from_utf8(server_first).expect("text");
    let part = |name: &str| server_first.split(',').find_map(|part| part.strip_prefix(name)).expect("the attribute");
    let salt = STANDARD.decode(part("s=")).expect("valid Base64");
    let salted = stretch(mechanism, hashed, &salt, part("i=").parse().expect("a number"));
    let client_key = hmac(mechanism, salted.as_bytes(), &[b"Client Key"]);
    let stored_key = hash(mechanism, client_key.as_bytes());
    let without_proof = format!("c=biws,r={}", part("r="));
    let message = format!("{bare},{server_first},{without_proof}");
    let proof = client_key.xor(&hmac(mechanism, stored_key.as_bytes(), &[message.as_bytes()]));
    format!("{without_proof},p={}", STANDARD.encode(proof.as_bytes()))
}

/// Logs in; `tamper` changes the client's last message.
fn log_in(
    mechanism: Mechanism,
    credentials: Option<&ScramCredentials>,
    hashed: &str,
    tamper: impl FnOnce(String) -> String,
) -> Result<(), Failure> {
    let bare = "n=user,r=abcdefgh";
    let first = ClientFirst::parse(format!("n,,{bare}").as_bytes()).expect("a first message");
    let decoy = DecoySecret::new(DECOY);
    let (conversation, server_first) = ServerConversation::begin(mechanism, first, "d", credentials, &decoy, [1; 24]);
    let last = tamper(client_final(mechanism, hashed, bare, &server_first));
    conversation.finish(last.as_bytes()).map(drop)
}

#[test]
fn the_right_password_logs_in() {
    for mechanism in Mechanism::ALL {
        let credentials = keys(mechanism, "secret", &[3; 16], 5);
        let attempt = |hashed| log_in(mechanism, Some(&credentials), hashed, |last| last);
        assert_eq!(attempt("secret"), Ok(()));
        let wrong = Err(Failure::Refused("the password is wrong, or there is no such user"));
        assert_eq!(attempt("Secret"), wrong);
        assert_eq!(log_in(mechanism, None, "secret", |last| last), wrong);
        assert!(log_in(mechanism, Some(&credentials), "secret", |last| last.replace("biws", "eSws")).is_err());
        assert!(log_in(mechanism, Some(&credentials), "secret", |last| last.replace("r=abc", "r=abd")).is_err());
        assert!(log_in(mechanism, Some(&credentials), "secret", |last| format!("{last},x=y")).is_err());
        let cut = |last: String| last.get(..last.len() - 5).unwrap_or_default().to_owned();
        assert_eq!(log_in(mechanism, Some(&credentials), "secret", cut), Err(Failure::InvalidBase64));
        for other in ["", "c=biws", "x", "c=biws,r=abcdefgh,p=", ",p=AAAA"] {
            assert!(log_in(mechanism, Some(&credentials), "secret", |_| other.to_owned()).is_err(), "{other}");
        }
        // Keys of the wrong length are never opened.
        let damaged = ScramCredentials { stored_key: vec![], ..credentials };
        assert!(log_in(mechanism, Some(&damaged), "secret", |last| last).is_err());
    }
}

#[test]
fn decoys_are_stable_and_differ_by_user() {
    let salt = |user: &str, db: &str, mechanism| {
        let first = ClientFirst::parse(format!("n,,n={user},r=abcdefgh").as_bytes()).expect("a first message");
        let (_, message) = ServerConversation::begin(mechanism, first, db, None, &DecoySecret::new(DECOY), [1; 24]);
        String::from_utf8(message).expect("text")
    };
    assert_eq!(salt("a", "d", Mechanism::Sha256), salt("a", "d", Mechanism::Sha256));
    let others = [
        salt("b", "d", Mechanism::Sha256),
        salt("a", "e", Mechanism::Sha256),
        salt("ad", "", Mechanism::Sha256),
        salt("a", "d", Mechanism::Sha1),
    ];
    assert!(others.iter().all(|other| *other != salt("a", "d", Mechanism::Sha256)));
    // A decoy looks like the answer to a user that exists.
    let credentials = keys(Mechanism::Sha256, "secret", &[3; 28], Mechanism::Sha256.default_iterations());
    let first = ClientFirst::parse(b"n,,n=a,r=abcdefgh").expect("a first message");
    let decoy = DecoySecret::new(DECOY);
    let (_, real) = ServerConversation::begin(Mechanism::Sha256, first, "d", Some(&credentials), &decoy, [1; 24]);
    assert_eq!(real.len(), salt("a", "d", Mechanism::Sha256).len());
}

/// One login up to its failure, with a user that exists or not. `planted`: unknown users take a
/// short cut, as in a server that looks for users first.
fn attempt(credentials: Option<&ScramCredentials>, decoy: &DecoySecret, planted: bool) {
    let first = ClientFirst::parse(b"n,,n=somebody,r=abcdefgh").expect("a first message");
    if planted && credentials.is_none() {
        return;
    }
    let (conversation, message) = ServerConversation::begin(Mechanism::Sha256, first, "d", credentials, decoy, [1; 24]);
    let nonce = message.split(|byte| *byte == b',').next().unwrap_or_default();
    let last = [b"c=biws,", nonce, b",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="].concat();
    assert!(black_box(conversation.finish(&last)).is_err());
}

fn work_of(attempt: impl FnOnce()) -> usize {
    WORK.with(|work| work.set(0));
    attempt();
    WORK.with(|work| work.get())
}

#[test]
fn unknown_users_cost_the_same_work() {
    let decoy = DecoySecret::new(DECOY);
    let known = keys(Mechanism::Sha256, "secret", &[3; 28], Mechanism::Sha256.default_iterations());
    let work = |credentials, planted| work_of(|| attempt(credentials, &decoy, planted));
    assert_eq!(work(Some(&known), false), work(None, false));
    assert_ne!(work(Some(&known), true), work(None, true), "the planted difference must be found");
}

#[test]
fn passwords_of_unknown_users_cost_the_same_work() {
    let decoy = DecoySecret::new(DECOY);
    let known = keys(Mechanism::Sha256, "secret", &[3; 28], Mechanism::Sha256.default_iterations());
    let known = Credentials { scram_sha_256: Some(known), ..Credentials::default() };
    let user = UserName::new("somebody", "d");
    // The last is no valid password.
    for password in ["wrong!", "secret", "se\u{7}ret"] {
        let work = |credentials| {
            work_of(|| {
                black_box(PasswordCheck::new(&user, credentials, password, &decoy).succeeds());
            })
        };
        assert_eq!(work(Some(&known)), work(None), "{password:?}");
        assert!(work(None) > 15_000);
    }
}

/// Welch's t-test over many alternating attempts: how clearly the times of the two kinds differ.
fn clearness_of_difference(planted: bool) -> f64 {
    let decoy = DecoySecret::new(DECOY);
    let known = keys(Mechanism::Sha256, "secret", &[3; 28], 5);
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..8_000 {
        let kind = round % 2;
        let credentials = (kind == 0).then_some(&known);
        let began = Instant::now();
        attempt(credentials, &decoy, planted);
        times[kind].push(began.elapsed().as_nanos() as f64);
    }
    let [known, unknown] = times.map(|mut times| {
        // Interruptions by other processes are far longer than an attempt.
        times.sort_unstable_by(f64::total_cmp);
        times.truncate(times.len() * 8 / 10);
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / times.len() as f64;
        (mean, variance / times.len() as f64)
    });
    (known.0 - unknown.0).abs() / (known.1 + unknown.1).sqrt().max(f64::MIN_POSITIVE)
}

/// The times are compared with those of the planted difference, and not with a fixed bound, so that
/// a busy machine does not matter.
#[test]
fn unknown_users_take_the_same_time() {
    let (real, planted) = (clearness_of_difference(false), clearness_of_difference(true));
    println!("t of known and unknown users: {real:.1}; with the planted difference: {planted:.1}");
    assert!(real * 4.0 < planted, "{real} {planted}");
}
