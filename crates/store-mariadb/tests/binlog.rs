//! The follower against a real server: delivered transactions, their timing, and lost connections.

#![allow(clippy::unwrap_used)]

mod support;

use mariadb_binlog::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::{Duration, Instant};
use support::Server;
use support::client::Client;

const LOGGING: [&str; 3] = ["--log-bin=log", "--binlog-format=ROW", "--server-id=1"];

const TABLE: &str = "CREATE DATABASE IF NOT EXISTS db; CREATE TABLE db.t (seq BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY INVISIBLE, \
     id VARCHAR(255) AS (JSON_COMPACT(JSON_EXTRACT(doc, '$._id'))) STORED UNIQUE KEY, doc JSON, v INT AS (JSON_VALUE(doc, '$.n')) VIRTUAL)";

/// Records transactions and states, and lets tests wait for them.
#[derive(Clone, Default)]
struct Record(Arc<(Mutex<Recorded>, Condvar)>);

#[derive(Default)]
struct Recorded {
    transactions: Vec<Transaction>,
    states: Vec<State>,
}

impl Receiver for Record {
    fn changes(&mut self, transactions: &[Transaction]) {
        self.0.0.lock().unwrap().transactions.extend_from_slice(transactions);
        self.0.1.notify_all();
    }

    fn state(&mut self, state: &State) {
        self.0.0.lock().unwrap().states.push(state.clone());
        self.0.1.notify_all();
    }
}

impl Record {
    /// Waits until `enough`; gives what it found.
    fn wait<T>(&self, what: &str, mut enough: impl FnMut(&mut Recorded) -> Option<T>) -> T {
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut recorded = self.0.0.lock().unwrap();
        loop {
            if let Some(found) = enough(&mut recorded) {
                return found;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{what}: {:?} {:?}", recorded.transactions, recorded.states);
            recorded = self.0.1.wait_timeout(recorded, left).unwrap().0;
        }
    }

    /// Everything up to a document of this text (after a change), and forgets it.
    fn until(&self, text: &str) -> Vec<Change> {
        self.wait(text, |recorded| {
            let has = |change: &Change| after(change).is_some_and(|it| it.contains(text));
            recorded
                .transactions
                .iter()
                .any(|transaction| transaction.changes.iter().any(has))
                .then(|| recorded.transactions.drain(..).flat_map(|transaction| transaction.changes).collect())
        })
    }

    fn until_change(&self, change: &Change) {
        self.wait(&format!("{change:?}"), |recorded| {
            let found = recorded.transactions.iter().any(|transaction| transaction.changes.contains(change));
            found.then(|| recorded.transactions.clear())
        });
    }
}

fn text(image: Option<&Image>) -> Option<String> {
    match &image?.doc {
        Doc::Text(text) => Some(String::from_utf8(text.to_vec()).unwrap()),
        _ => None,
    }
}

fn after(change: &Change) -> Option<String> {
    match change {
        Change::Row(row) => text(row.after.as_ref()),
        _ => None,
    }
}

/// `key: before -> after`
fn show(change: &Change) -> String {
    match change {
        Change::Row(row) => {
            let image = row.after.as_ref().or(row.before.as_ref()).unwrap();
            let side =
                |image: Option<&Image>| text(image).unwrap_or_else(|| format!("{:?}", image.map(|image| &image.doc)));
            format!(
                "{} {:?}: {} -> {}",
                row.table,
                image.key.as_ref().unwrap(),
                side(row.before.as_ref()),
                side(row.after.as_ref())
            )
        }
        other => format!("{other:?}"),
    }
}

fn start(arguments: &[&str]) -> Option<Server> {
    Server::start_with(&[&LOGGING[..], arguments].concat())
}

fn quick() -> FollowOptions {
    FollowOptions { retry: (Duration::from_millis(50), Duration::from_millis(200)), ..FollowOptions::default() }
}

fn follow(server: &Server) -> (Follower, Record) {
    let record = Record::default();
    let follower = Follower::start(&server.url(), quick(), Box::new(record.clone())).unwrap();
    record.until_change(&Change::Everything);
    (follower, record)
}

fn table(name: &str) -> Change {
    Change::Table(TableName::new("db", name))
}

#[test]
fn rows_are_handed_on_with_both_sides() {
    let Some(server) = start(&[]) else { return };
    server.sql(TABLE);
    let (follower, record) = follow(&server);
    let write = |round: u32| {
        server.sql(&format!(
            r#"INSERT INTO db.t (doc) VALUES ('{{"_id":{round},"n":1}}'), ('{{"_id":"x{round}"}}');
            UPDATE db.t SET doc = JSON_SET(doc, '$.n', 2) WHERE id = '{round}'; DELETE FROM db.t WHERE id = '{round}';
            INSERT INTO db.t (doc) VALUES ('{{"_id":"end{round}"}}')"#
        ));
        record.until(&format!("end{round}")).iter().map(show).collect::<Vec<_>>()
    };
    let expected = |round: u32, key: u32| {
        vec![
            format!(r#"db.t [Unsigned({key})]: None -> {{"_id":{round},"n":1}}"#),
            format!(r#"db.t [Unsigned({})]: None -> {{"_id":"x{round}"}}"#, key + 1),
            format!(r#"db.t [Unsigned({key})]: {{"_id":{round},"n":1}} -> {{"_id": {round}, "n": 2}}"#),
            format!(r#"db.t [Unsigned({key})]: {{"_id": {round}, "n": 2}} -> None"#),
            format!(r#"db.t [Unsigned({})]: None -> {{"_id":"end{round}"}}"#, key + 2),
        ]
    };
    assert_eq!(write(1), expected(1, 1));
    server.sql("SET GLOBAL binlog_row_metadata = FULL");
    assert_eq!(write(2), expected(2, 4));
    server.sql("SET GLOBAL log_bin_compress = ON, GLOBAL log_bin_compress_min_len = 10; FLUSH LOGS");
    assert_eq!(write(3), expected(3, 7));
    server.sql("SET GLOBAL binlog_row_metadata = NO_LOG, GLOBAL binlog_checksum = NONE; FLUSH LOGS");
    assert_eq!(write(4), expected(4, 10));
    server.sql("SET GLOBAL log_bin_compress = OFF");
    assert_eq!(write(5), expected(5, 13));
    let deadline = Instant::now() + Duration::from_secs(10);
    while follower.freshness().behind().unwrap() > Duration::from_secs(1) {
        assert!(Instant::now() < deadline, "{:?}", follower.freshness());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(follower.freshness().state(), State::Following { strict: false });
}

#[test]
fn every_type_of_column_is_passed_over() {
    let Some(server) = start(&[]) else { return };
    server.sql(
        "CREATE DATABASE db; CREATE TABLE db.t (a TINYINT, b SMALLINT UNSIGNED, c MEDIUMINT, d INT, e BIGINT, f FLOAT, g DOUBLE, h DECIMAL(20,7), \
         i DATE, j TIME, k TIME(3), l DATETIME, m DATETIME(6), n TIMESTAMP NULL, o TIMESTAMP(2) NULL, p YEAR, q BIT(13), r CHAR(10), \
         s CHAR(250) CHARACTER SET utf8mb4, t VARCHAR(10), u VARCHAR(300), v BINARY(5), w TINYBLOB, x BLOB, y MEDIUMTEXT, z LONGTEXT, \
         aa ENUM('x','y'), ab SET('x','y','z'), ac GEOMETRY, ad INET6, ae UUID, af LONGTEXT COMPRESSED, ag VARCHAR(99) COMPRESSED, doc JSON, \
         k1 VARCHAR(20), k2 INT UNSIGNED, k3 DATE, ah INT AS (k2 + 1) VIRTUAL, ai INT AS (k2 + 1) STORED, PRIMARY KEY (k2, k1, k3))",
    );
    let (_follower, record) = follow(&server);
    for metadata in ["NO_LOG", "MINIMAL", "FULL"] {
        server.sql(&format!(
            r#"SET GLOBAL binlog_row_metadata = {metadata}; INSERT INTO db.t VALUES (1, 2, -3, 4, 5, 1.5, 2.5, 123456.789, '2020-01-02', '10:11:12', '10:11:12.5',
            '2020-01-02 03:04:05', '2020-01-02 03:04:05.6', '2020-01-02 03:04:05', '2020-01-02 03:04:05.6', 2020, b'1010101010101', 'abc', 'äöü', 'v',
            REPEAT('w', 280), 'bin', 'tb', 'b', 'mt', 'lt', 'y', 'x,z', ST_GeomFromText('POINT(1 2)'), '::1', UUID(), REPEAT('c', 500),
            REPEAT('d', 90), '{{"_id":"{metadata}"}}', 'key', 4294967295, '2021-02-03', DEFAULT, DEFAULT);
            DELETE FROM db.t"#
        ));
        let changes = record.until(metadata);
        let inserted = changes.iter().find_map(|change| match change {
            Change::Row(Row { before: None, after: Some(image), .. }) => Some(image.clone()),
            _ => None,
        });
        let key = inserted.unwrap().key.unwrap();
        assert_eq!(key[..2], [Key::Unsigned(u32::MAX.into()), Key::Bytes("key"[..].into())], "{metadata}");
        assert!(matches!(&key[2], Key::Packed(bytes) if bytes.len() == 3));
    }
    server.sql("INSERT INTO db.t (k1, k2, k3) VALUES ('nulls', 1, '2000-01-01')");
    record.wait("nulls", |recorded| {
        let rows = recorded.transactions.iter().flat_map(|transaction| &transaction.changes);
        rows.into_iter().find_map(|change| match change {
            Change::Row(Row { after: Some(Image { doc: Doc::Null, .. }), .. }) => Some(()),
            _ => None,
        })
    });
}

#[test]
fn what_rows_do_not_tell_is_told_more_coarsely() {
    let Some(server) = start(&[]) else { return };
    server.sql(TABLE);
    let (_follower, record) = follow(&server);
    let check = |sql: &str, expected: &[Change]| {
        server.sql(sql);
        for change in expected {
            record.until_change(change);
        }
    };
    let everything = [Change::Everything];
    check("CREATE TABLE db.u (a INT)", &[table("u")]);
    check("ALTER TABLE db.u ADD COLUMN b INT", &[table("u")]);
    check("TRUNCATE TABLE db.u", &[table("u")]);
    check("RENAME TABLE db.u TO db.v", &everything);
    check("DROP TABLE db.v", &[table("v")]);
    check("CREATE DATABASE other; DROP DATABASE other", &[Change::Database("other".into())]);
    check(r#"SET SESSION binlog_format = STATEMENT; INSERT INTO db.t (doc) VALUES ('{"_id":1}')"#, &everything);
    check("SET SESSION binlog_format = MIXED; UPDATE db.t SET doc = '{\"_id\":2}'", &everything);
    check("CREATE TABLE db.m (a INT PRIMARY KEY, doc JSON) ENGINE = MyISAM", &[table("m")]);
    server.sql("INSERT INTO db.m VALUES (1, '{\"_id\":\"myisam\"}')");
    record.until("myisam");
    // A foreign key deletes rows, which is not in the log.
    check(
        "CREATE TABLE db.p (a INT PRIMARY KEY); CREATE TABLE db.c (a INT REFERENCES p (a) ON DELETE CASCADE)",
        &[table("c")],
    );
    server.sql("INSERT INTO db.p VALUES (1); INSERT INTO db.c VALUES (1)");
    check("DELETE FROM db.p", &[table("c")]);
    // Documents that are left out.
    server.sql(r#"INSERT INTO db.t (doc) VALUES ('{"_id":"whole"}')"#);
    record.until("whole");
    server.sql("SET SESSION binlog_row_image = MINIMAL; DELETE FROM db.t WHERE id = '\"whole\"'");
    record.wait("unknown", |recorded| {
        let mut changes = recorded.transactions.iter().flat_map(|transaction| &transaction.changes);
        changes
            .any(|change| {
                matches!(change, Change::Row(Row { before: Some(Image { doc: Doc::Unknown, key: Some(_) }), .. }))
            })
            .then_some(())
    });
    // XA, by one session and by two.
    check(
        "XA START 'a'; INSERT INTO db.t (doc) VALUES ('{\"_id\":\"xa\"}'); XA END 'a'; XA PREPARE 'a'; XA COMMIT 'a'",
        &[table("t")],
    );
    server.sql("XA START 'b'; INSERT INTO db.t (doc) VALUES ('{\"_id\":\"xb\"}'); XA END 'b'; XA PREPARE 'b'");
    check("XA COMMIT 'b'", &[table("t")]);
    server.sql("XA START 'c'; INSERT INTO db.t (doc) VALUES ('{\"_id\":\"xc\"}'); XA END 'c'; XA COMMIT 'c' ONE PHASE");
    record.until("xc");
    // A transaction too large to keep.
    check(
        "USE db; INSERT INTO t (doc) SELECT JSON_OBJECT('_id', 1000 + seq, 'x', REPEAT('x', 100000)) FROM seq_1_to_300",
        &[table("t")],
    );
}

#[test]
fn a_server_that_comes_back_is_followed_from_where_it_was() {
    let Some(server) = start(&["--sync-binlog=1"]) else { return };
    server.sql(TABLE);
    let (follower, record) = follow(&server);
    server.sql(r#"INSERT INTO db.t (doc) VALUES ('{"_id":"first"}')"#);
    record.until("first");
    for round in 0..3 {
        server.kill();
        let cut = Instant::now();
        record
            .wait("cut", |recorded| recorded.states.drain(..).any(|it| matches!(it, State::Cut { .. })).then_some(()));
        assert!(cut.elapsed() < Duration::from_secs(3), "{:?}", cut.elapsed());
        server.restart();
        server.sql(&format!(r#"FLUSH LOGS; INSERT INTO db.t (doc) VALUES ('{{"_id":"back{round}"}}')"#));
        let changes = record.until(&format!("back{round}"));
        assert!(!changes.contains(&Change::Everything), "{changes:?}");
        record.wait("follows", |recorded| {
            recorded.states.drain(..).any(|it| matches!(it, State::Following { .. })).then_some(())
        });
        assert!(follower.freshness().behind().unwrap() < Duration::from_secs(30));
    }
}

#[test]
fn where_the_log_does_not_go_back_everything_may_have_changed() {
    let Some(server) = start(&["--sync-binlog=1"]) else { return };
    server.sql(TABLE);
    server.sql("CREATE USER joe@localhost; GRANT SELECT, REPLICATION SLAVE, BINLOG MONITOR ON *.* TO joe@localhost");
    let record = Record::default();
    let url = server.url().replace("root@", "joe@");
    let _follower = Follower::start(&url, quick(), Box::new(record.clone())).unwrap();
    server.sql(r#"INSERT INTO db.t (doc) VALUES ('{"_id":"first"}')"#);
    record.until("first");
    server.sql("ALTER USER joe@localhost ACCOUNT LOCK");
    record.until_change(&Change::Everything);
    server.sql("KILL USER joe@localhost");
    record.wait("cut", |recorded| {
        let is_locked_out = |state: &State| matches!(state, State::Cut { why, .. } if why.contains("locked"));
        recorded.states.iter().any(is_locked_out).then_some(())
    });
    server.sql(r#"INSERT INTO db.t (doc) VALUES ('{"_id":"missed"}'); FLUSH LOGS; INSERT INTO db.t (doc) VALUES ('{"_id":"missed too"}'); FLUSH LOGS"#);
    let last = server.sql("SHOW MASTER STATUS");
    // Files stay as long as a stream is read from them, or a crash now would have to look into
    // them.
    while server.sql("SHOW BINARY LOGS").lines().count() > 1 {
        server.sql(&format!("PURGE BINARY LOGS TO '{}'", last.split('\t').next().unwrap()));
        std::thread::sleep(Duration::from_millis(50));
    }
    server.sql("ALTER USER joe@localhost ACCOUNT UNLOCK");
    record.wait("lost", |recorded| {
        let is_lost = |state: &State| matches!(state, State::Cut { why, .. } if why.contains("no longer contains"));
        recorded.states.iter().any(is_lost).then_some(())
    });
    record.until_change(&Change::Everything);
    server.sql(r#"INSERT INTO db.t (doc) VALUES ('{"_id":"later"}')"#);
    record.until("later");
}

#[test]
fn changes_that_come_too_late_count_as_a_cut() {
    struct Stuck(Record, Arc<Mutex<()>>);
    impl Receiver for Stuck {
        fn changes(&mut self, transactions: &[Transaction]) {
            drop(self.1.lock().unwrap());
            self.0.changes(transactions);
            std::thread::sleep(Duration::from_millis(10));
        }
        fn state(&mut self, state: &State) {
            self.0.state(state);
        }
    }
    let Some(server) = start(&[]) else { return };
    server.sql(TABLE);
    server.sql(
        "DELIMITER //\nCREATE PROCEDURE db.work () FOR k IN 1..3000 DO \
         INSERT INTO db.t (doc) VALUES (CONCAT('{\"_id\":', k, '}')); END FOR//",
    );
    let (record, gate) = (Record::default(), Arc::new(Mutex::new(())));
    let options = FollowOptions { behind_max: Duration::from_secs(1), ..quick() };
    let stuck = Stuck(record.clone(), gate.clone());
    let follower = Follower::start(&server.url(), options, Box::new(stuck)).unwrap();
    let is_following = |state: &State| matches!(state, State::Following { .. });
    record.wait("following", |recorded| recorded.states.drain(..).any(|state| is_following(&state)).then_some(()));
    let closed = gate.lock().unwrap();
    server.sql("CALL db.work()");
    std::thread::sleep(Duration::from_secs(2));
    assert!(follower.freshness().behind().unwrap() > Duration::from_secs(1));
    drop(closed);
    record.until(r#"{"_id":3000}"#);
    record.wait("following", |recorded| recorded.states.iter().any(is_following).then_some(()));
    let states = record.0.0.lock().unwrap().states.clone();
    assert!(matches!(&states[0], State::Cut { why, .. } if why.contains("late")), "{states:?}");
}

#[test]
fn a_log_that_is_reset_is_noticed() {
    let Some(server) = start(&[]) else { return };
    server.sql(TABLE);
    let (_follower, record) = follow(&server);
    for round in 0..3 {
        server.sql(&format!(r#"INSERT INTO db.t (doc) VALUES ('{{"_id":"before{round}"}}')"#));
        record.until(&format!("before{round}"));
        server.sql(&format!(r#"RESET MASTER; INSERT INTO db.t (doc) VALUES ('{{"_id":"after{round}"}}')"#));
        record.until_change(&Change::Everything);
        server.sql(&format!(r#"INSERT INTO db.t (doc) VALUES ('{{"_id":"later{round}"}}')"#));
        record.until(&format!("later{round}"));
    }
}

/// Reads transactions back through another connection as soon as they are delivered.
struct Reader {
    /// Sends ids and their least values to a reading thread, which returns its findings.
    asks: mpsc::Sender<BTreeMap<i32, i32>>,
    answers: mpsc::Receiver<Vec<String>>,
    seen: Arc<AtomicUsize>,
    violations: Arc<Mutex<Vec<String>>>,
}

impl Reader {
    fn new(engine: Arc<dyn store::Engine>, seen: Arc<AtomicUsize>, violations: Arc<Mutex<Vec<String>>>) -> Reader {
        let (asks, asked) = mpsc::channel::<BTreeMap<i32, i32>>();
        let (answer, answers) = mpsc::channel();
        std::thread::spawn(move || {
            let (client, namespace) = (Client::open(engine), store::Namespace::new("db", "t"));
            for values in asked {
                let check = |(id, n): (i32, i32)| {
                    let found = client.find(&namespace, &document::doc! { "_id": id }).unwrap();
                    let read = found.first().and_then(|document| match document.as_doc().get("n") {
                        Some(document::Value::Int32(n)) => Some(n),
                        _ => None,
                    });
                    read.is_none_or(|read| read < n).then(|| format!("{id}: {n} was handed on, {read:?} was read"))
                };
                answer.send(values.into_iter().filter_map(check).collect()).unwrap();
            }
        });
        Reader { asks, answers, seen, violations }
    }
}

impl Receiver for Reader {
    /// Documents are `{_id, n}`, and `n` grows.
    fn changes(&mut self, transactions: &[Transaction]) {
        let mut newest = BTreeMap::new();
        for image in transactions.iter().flat_map(|transaction| &transaction.changes).filter_map(after) {
            self.seen.fetch_add(1, Ordering::Relaxed);
            let numbers: Vec<i32> =
                image.split(|c: char| !c.is_ascii_digit()).filter_map(|it| it.parse().ok()).collect();
            newest.insert(numbers[0], numbers[1]);
        }
        self.asks.send(newest).unwrap();
        self.violations.lock().unwrap().extend(self.answers.recv().unwrap());
    }
}

fn read_along(server: &Server) -> (Follower, Arc<Mutex<Vec<String>>>, Arc<AtomicUsize>) {
    let (violations, seen) = (Arc::default(), Arc::default());
    let reader = Reader::new(server.engine(), Arc::clone(&seen), Arc::clone(&violations));
    (Follower::start(&server.url(), quick(), Box::new(reader)).unwrap(), violations, seen)
}

#[test]
fn nothing_is_handed_on_before_readers_see_it() {
    let Some(server) = start(&["--max-binlog-size=16K"]) else { return };
    server.sql(TABLE);
    server.sql(r#"USE db; INSERT INTO t (doc) SELECT CONCAT('{"_id":', seq, ',"n":0}') FROM seq_1_to_16"#);
    let (follower, violations, seen) = read_along(&server);
    // The server has a transaction in its log, sends it, and waits for a replica that never answers
    // before it commits.
    for round in 1..=4 {
        let begun = Instant::now();
        server.sql(&format!(
            r#"SET GLOBAL rpl_semi_sync_master_enabled = OFF, GLOBAL rpl_semi_sync_master_timeout = 700,
            GLOBAL rpl_semi_sync_master_wait_point = AFTER_SYNC, GLOBAL rpl_semi_sync_master_enabled = ON;
            UPDATE db.t SET doc = '{{"_id":1,"n":{round}}}' WHERE id = '1'"#
        ));
        assert!(begun.elapsed() >= Duration::from_millis(600), "the server did not wait: {:?}", begun.elapsed());
    }
    server.sql("SET GLOBAL rpl_semi_sync_master_enabled = OFF");
    // Many writers, in files that are full soon.
    server.sql(
        "DELIMITER //\nCREATE PROCEDURE db.work (which INT, times INT) FOR k IN 1..times DO \
         UPDATE db.t SET doc = CONCAT('{\"_id\":', which, ',\"n\":', 100 + k, '}') WHERE id = which; END FOR//",
    );
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let server = &server;
            scope.spawn(move || server.sql(&format!("CALL db.work({}, 400)", 2 + writer)));
        }
    });
    let behind = follower.freshness().behind().unwrap();
    assert!(behind < Duration::from_secs(10), "{behind:?}");
    let deadline = Instant::now() + Duration::from_secs(60);
    while seen.load(Ordering::Relaxed) < 4 + 8 * 400 {
        assert!(Instant::now() < deadline, "{seen:?} {:?}", violations.lock().unwrap());
        std::thread::sleep(Duration::from_millis(50));
    }
    let violations = violations.lock().unwrap();
    assert!(
        violations.is_empty(),
        "{} of them, from {:?} to {:?}",
        violations.len(),
        violations.first(),
        violations.last()
    );
}

#[test]
fn writers_wait_for_semi_synchronous_followers() {
    struct Slow(Record);
    impl Receiver for Slow {
        fn changes(&mut self, transactions: &[Transaction]) {
            std::thread::sleep(Duration::from_millis(150));
            self.0.changes(transactions);
        }
        fn state(&mut self, state: &State) {
            self.0.state(state);
        }
    }
    let Some(server) = start(&["--rpl-semi-sync-master-enabled=ON", "--rpl-semi-sync-master-wait-point=AFTER_COMMIT"])
    else {
        return;
    };
    server.sql("SET GLOBAL rpl_semi_sync_master_wait_no_slave = OFF");
    server.sql(TABLE);
    let record = Record::default();
    let options = FollowOptions { semi_sync: true, ..quick() };
    let follower = Follower::start(&server.url(), options, Box::new(Slow(record.clone()))).unwrap();
    // The server stopped waiting before a replica connected; the next write resumes it.
    server.sql(r#"INSERT INTO db.t (doc) VALUES ('{"_id":"first"}')"#);
    record.wait("strict", |recorded| recorded.states.contains(&State::Following { strict: true }).then_some(()));
    for round in 0..10 {
        let begun = Instant::now();
        server.sql(&format!(r#"INSERT INTO db.t (doc) VALUES ('{{"_id":"r{round}"}}')"#));
        let took = begun.elapsed();
        let is_handed_on = record
            .0
            .0
            .lock()
            .unwrap()
            .transactions
            .iter()
            .flat_map(|it| &it.changes)
            .filter_map(after)
            .any(|it| it.contains(&format!("r{round}")));
        assert!(
            is_handed_on && took >= Duration::from_millis(150) && took < Duration::from_secs(3),
            "{round}: {took:?}"
        );
    }
    drop(follower);
    let begun = Instant::now();
    server.sql(r#"INSERT INTO db.t (doc) VALUES ('{"_id":"alone"}')"#);
    assert!(begun.elapsed() < Duration::from_secs(12));
}

#[test]
fn what_has_to_be_configured_is_said() {
    let refusal = |server: &Server, url: &str, options: FollowOptions| {
        let error = Follower::start(url, options, Box::new(Record::default())).err().expect("refused");
        assert!(server.try_sql("SELECT 1").is_some());
        error.message().to_owned()
    };
    let Some(without) = Server::start() else { return };
    let message = refusal(&without, &without.url(), quick());
    assert!(message.contains("add log_bin, binlog_format=ROW and server_id=1"), "{message}");
    let Some(server) = start(&["--binlog-ignore-db=left"]) else { return };
    let check = |url: &str, semi_sync: bool, part: &str| {
        let message = refusal(&server, url, FollowOptions { semi_sync, ..quick() });
        assert!(message.contains(part), "{message}");
    };
    check(&server.url(), false, "binlog_ignore_db='left'");
    server.sql("SET GLOBAL binlog_format = MIXED");
    check(&server.url(), false, "SET GLOBAL binlog_format = ROW");
    server.sql("SET GLOBAL binlog_format = ROW, GLOBAL binlog_row_image = MINIMAL");
    check(&server.url(), false, "SET GLOBAL binlog_row_image = FULL");
    server.sql("SET GLOBAL binlog_row_image = FULL");
    check(&server.url(), true, "SET GLOBAL rpl_semi_sync_master_enabled = ON");
    server.sql("SET GLOBAL rpl_semi_sync_master_enabled = ON, GLOBAL rpl_semi_sync_master_wait_point = AFTER_SYNC");
    check(&server.url(), true, "SET GLOBAL rpl_semi_sync_master_wait_point = AFTER_COMMIT");
    let joe = server.url().replace("root@", "joe:secret@");
    server.sql("CREATE USER joe@localhost IDENTIFIED BY 'secret'");
    check(&joe, false, "GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO 'joe'@'localhost'");
    let message = refusal(&server, "mysql://root@localhost/?socket=/nowhere", quick());
    assert!(message.contains("/nowhere"), "{message}");
}
