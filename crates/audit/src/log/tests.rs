use super::*;
use crate::chain::Head;
use crate::destination::{Destination, head_path};
use crate::verify::Verifier;
use document::doc;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

fn now() -> i64 {
    1_740_658_549_013
}

fn open(path: &Path, change: impl FnOnce(&mut Options)) -> io::Result<AuditLog> {
    let mut options = Options::new(Destination::File(path.to_owned()), [7; 16], now);
    change(&mut options);
    AuditLog::open(options)
}

fn logout(log: &AuditLog) -> Option<Ticket> {
    log.record_own(kind::LOGOUT, doc! { "reason": "test" })
}

/// Verifies files, and returns their number of entries.
fn verified(paths: &[&Path], log: &Path) -> u64 {
    let recorded = Head::from_file(None, &std::fs::read(head_path(log)).unwrap());
    assert!(recorded.is_some());
    let mut verifier = Verifier::new(None, 1, recorded);
    for path in paths {
        let content = std::fs::read(path).unwrap();
        content.strip_suffix(b"\n").unwrap().split(|byte| *byte == b'\n').for_each(|line| verifier.line(line).unwrap());
    }
    verifier.end(true).unwrap();
    verifier.entries
}

#[tokio::test]
async fn events_of_many_threads_are_one_chain() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let log = open(&path, |_| {}).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..500).for_each(|_| assert!(logout(&log).is_some())));
        }
    });
    let last = logout(&log).unwrap();
    log.written(last).await;
    assert_eq!(verified(&[&path], &path), 4001);
    log.close();
    let log = open(&path, |options| options.sync = true).unwrap();
    log.written(logout(&log).unwrap()).await;
    log.rotate().await.unwrap().unwrap();
    log.written(logout(&log).unwrap()).await;
    log.close();
    let rotated = crate::destination::rotated_path(&path, now());
    assert!(!rotated.exists(), "the name of the next one");
    let rotated = folder.path().join("audit.log.2025-02-27T12-15-49");
    assert_eq!(verified(&[&rotated, &path], &path), 4004);
}

#[tokio::test]
async fn a_log_that_cannot_be_written_refuses_or_counts() {
    for on_failure in [OnFailure::Refuse, OnFailure::Continue] {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("log");
        let daemon = UnixDatagram::bind(&socket).unwrap();
        let mut options = Options::new(Destination::Syslog, [7; 16], now);
        (options.syslog_socket, options.on_failure) = (socket.clone(), on_failure);
        let log = AuditLog::open(options).unwrap();
        drop(daemon);
        std::fs::remove_file(&socket).unwrap();
        log.written(logout(&log).unwrap()).await;
        assert_eq!(log.check().is_err(), on_failure == OnFailure::Refuse);
        // One event is sealed already, and waits beside the queue.
        let queued = (0..QUEUE_EVENTS_MAX + 10).filter(|_| logout(&log).is_some()).count();
        let expected = if on_failure == OnFailure::Refuse { QUEUE_EVENTS_MAX + 10 } else { QUEUE_EVENTS_MAX };
        assert_eq!(queued, expected);
        let daemon = UnixDatagram::bind(&socket).unwrap();
        let lost = u64::from(on_failure == OnFailure::Continue);
        let mut verifier = Verifier::new(None, 1, None);
        let mut last = String::new();
        for _ in 0..1 + queued as u64 + lost {
            let mut message = vec![0; 4096];
            let bytes = daemon.recv(&mut message).unwrap();
            last = String::from_utf8(message[..bytes].to_vec()).unwrap();
            verifier.line(&last.as_bytes()[last.find('{').unwrap()..]).unwrap();
            if last.contains("eventsLost") {
                assert!(last.contains("\"count\":{\"$numberLong\":\"10\"}"), "{last}");
            }
        }
        assert!(!last.is_empty());
        while log.check().is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        log.close();
    }
}

#[test]
fn only_regular_files_are_logs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    std::os::unix::fs::symlink("/dev/full", &path).unwrap();
    assert!(open(&path, |_| {}).unwrap_err().to_string().contains("regular file"));
}

#[tokio::test]
async fn events_are_sent_to_syslog() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("log");
    let daemon = UnixDatagram::bind(&socket).unwrap();
    let mut options = Options::new(Destination::Syslog, [7; 16], now);
    options.syslog_socket = socket;
    let log = AuditLog::open(options).unwrap();
    log.record_own(kind::STARTUP, doc! { "long": "x".repeat(20_000).as_str() });
    log.written(logout(&log).unwrap()).await;
    assert!(log.rotate().await.unwrap().unwrap_err().contains("syslog"));
    log.close();
    let mut verifier = Verifier::new(None, 1, None);
    for _ in 0..2 {
        let mut message = vec![0; 70_000];
        let bytes = daemon.recv(&mut message).unwrap();
        let message = String::from_utf8(message[..bytes].to_vec()).unwrap();
        assert!(message.starts_with("<86>selkie["), "{message}");
        verifier.line(&message.as_bytes()[message.find('{').unwrap()..]).unwrap();
    }
    assert_eq!(verifier.entries, 2);
}
