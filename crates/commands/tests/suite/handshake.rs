//! The handshake, the statistics of the server, and the checks that all commands share.

use super::support::{Bench, request};
use super::{ANY, bench, check_replies, error};
use bson::{Binary, doc, spec::BinarySubtype};
use commands::Disposition;
use mongo_wire::request::RequestKind;
use server::Topology;

#[test]
fn hello_tells_the_topology() {
    for (topology, key, value) in [
        (Topology::Router, "msg", "isdbgrid"),
        (Topology::ReplicaSet { name: "rs".into(), advertised: "db.example:27017".into() }, "setName", "rs"),
    ] {
        let reply = Bench::new(topology).run(doc! { "hello": 1, "helloOk": true });
        assert_eq!(reply.get_str(key).ok(), Some(value));
        assert_eq!(reply.get_i32("maxWireVersion").ok(), Some(17));
        assert_eq!(reply.get_bool("isWritablePrimary").ok(), Some(true));
        assert_eq!(reply.get_bool("helloOk").ok(), Some(true));
    }
    let reply = Bench::new(Topology::Standalone).run(doc! { "ismaster": 1 });
    assert_eq!(reply.get_bool("ismaster").ok(), Some(true));
    assert!(!reply.contains_key("msg") && !reply.contains_key("setName") && !reply.contains_key("helloOk"));
}

#[test]
fn hello_agrees_on_compression_by_the_clients_preference() {
    let mut bench = bench();
    let reply = bench.run(doc! { "hello": 1, "compression": ["zlib", "snappy", "zstd"] });
    assert_eq!(reply.get_array("compression").unwrap(), &vec!["snappy".into(), "zstd".into()]);
    assert!(!bench.run(doc! { "hello": 1, "compression": ["zlib"] }).contains_key("compression"));
}

#[test]
fn hello_waits_and_streams() {
    let mut bench = bench();
    let version = bench.run(doc! { "hello": 1 }).get_document("topologyVersion").unwrap().clone();
    let mut hello = request(doc! { "hello": 1, "topologyVersion": version.clone(), "maxAwaitTimeMS": 20 }, &[]);
    hello.kind = RequestKind::Msg { more_to_come: false, exhaust_allowed: true, checksum: false };
    let began = std::time::Instant::now();
    let (reply, disposition) = bench.run_request(&hello);
    assert!(began.elapsed().as_millis() >= 20);
    assert_eq!(reply.get_document("topologyVersion").unwrap(), &version);
    let Disposition::ReplyThenRun(next) = disposition else { panic!("a stream goes on") };
    assert_eq!(next.as_doc().first().unwrap().key(), "hello");

    // A change that the client does not know yet is reported at once.
    bench.worker.server.announce_topology_change();
    let (reply, _) = bench.run_request(&hello);
    assert_eq!(reply.get_document("topologyVersion").unwrap().get_i64("counter").ok(), Some(1));
    check_replies(
        &mut bench,
        vec![(
            doc! { "hello": 1, "maxAwaitTimeMS": 20 },
            error(31368, "A request with 'maxAwaitTimeMS' must include a 'topologyVersion'"),
        )],
    );
}

#[test]
fn shared_fields_are_checked() {
    let lsid = |subtype| doc! { "id": Binary { subtype, bytes: vec![1; 16] } };
    check_replies(
        &mut bench(),
        vec![
            (doc! { "nope": 1 }, error(59, "no such command: 'nope'")),
            (doc! { "Ping": 1 }, error(59, "no such command: 'Ping'")),
            (doc! { "ping": 1, "comment": { "a": 1 } }, doc! {}),
            (doc! { "ping": 1, "lsid": lsid(BinarySubtype::Uuid), "operationTime": {} }, doc! {}),
            (doc! { "ping": 1, "$clusterTime": {} }, error(4, "Missing expected field \"clusterTime\"")),
            (
                doc! { "ping": 1, "lsid": lsid(BinarySubtype::Generic) },
                error(
                    14,
                    "BSON field 'OperationSessionInfo.lsid.id' is the wrong binData type 'general', expected type 'UUID'",
                ),
            ),
            (doc! { "ping": 1, "apiVersion": "1" }, doc! {}),
            (doc! { "ping": 1, "apiVersion": "2" }, error(322, "Cannot accept API version 2")),
            (doc! { "ping": 1, "$db": "a b" }, error(73, "Invalid database name: 'a b'")),
            (doc! { "listDatabases": 1 }, error(13, "listDatabases may only be run against the admin database.")),
            (doc! { "find": "a", "writeConcern": { "w": 1 } }, error(72, "Command does not support writeConcern")),
            (
                doc! { "find": "a", "txnNumber": 1_i64, "lsid": lsid(BinarySubtype::Uuid) },
                error(
                    50768,
                    "txnNumber may only be provided for multi-document transactions and retryable write commands. \
                     autocommit:false was not provided, and find is not a retryable write command.",
                ),
            ),
            (
                doc! { "insert": "a", "documents": [{}], "lsid": lsid(BinarySubtype::Uuid), "txnNumber": 1_i64, "autocommit": false, "startTransaction": true },
                error(263, "Multi-document transactions are not supported by this server; retryable writes are"),
            ),
            (
                doc! { "insert": "a", "documents": [{}], "writeConcern": { "w": 2 } },
                doc! {
                    "n": 1,
                    "writeConcernError": {
                        "code": 100, "codeName": "UnsatisfiableWriteConcern", "errmsg": "Not enough data-bearing nodes",
                        "errInfo": { "writeConcern": { "w": 2, "wtimeout": 0, "provenance": "clientSupplied" } },
                    },
                },
            ),
            (
                doc! { "find": "a", "readConcern": { "level": "snapshot" } },
                error(246, "Snapshots are not supported by this server"),
            ),
            (doc! { "find": "a", "maxTimeMS": -1 }, error(2, "-1 value for maxTimeMS is out of range")),
        ],
    );
}

#[test]
fn the_server_tells_about_itself() {
    let mut bench = bench();
    bench.run(doc! { "insert": "a", "documents": [{}, {}] });
    let status = bench.run(doc! { "serverStatus": 1, "metrics": 0 });
    assert_eq!(status.get_document("opcounters").unwrap().get_i64("insert").ok(), Some(2));
    assert!(status.get_document("mem").unwrap().get_i32("resident").unwrap() > 0);
    assert!(!status.contains_key("metrics"));
    let build = bench.run(doc! { "buildinfo": 1 });
    assert_eq!(build.get_str("version").ok(), Some("6.0.5"));
    assert!(bench.run(doc! { "hostInfo": 1 }).get_document("system").unwrap().get_i32("numCores").unwrap() > 0);
    server::log_lines::recent().push("a line");
    let log = bench.run(doc! { "getLog": "global", "$db": "admin" });
    assert!(log.get_array("log").unwrap().contains(&"a line".into()));
    check_replies(
        &mut bench,
        vec![
            (
                doc! { "getParameter": 1, "featureCompatibilityVersion": 1, "$db": "admin" },
                doc! { "featureCompatibilityVersion": { "version": "6.0" } },
            ),
            (
                doc! { "getParameter": 1, "nope": 1, "$db": "admin" },
                doc! { "ok": 0.0, "errmsg": "no option found to get" },
            ),
            (doc! { "setParameter": 1, "cursorTimeoutMillis": 5, "$db": "admin" }, doc! { "was": 600_000_i64 }),
            (
                doc! { "getParameter": 1, "cursorTimeoutMillis": 1, "$db": "admin" },
                doc! { "cursorTimeoutMillis": 5_i64 },
            ),
            (doc! { "whatsmyuri": 1 }, doc! { "you": ANY }),
            (doc! { "replSetGetStatus": 1, "$db": "admin" }, error(76, "not running with --replSet")),
            (
                doc! { "commitTransaction": 1, "$db": "admin" },
                error(125, "commitTransaction must be run within a transaction"),
            ),
        ],
    );
    let every = bench.run(doc! { "getParameter": "*", "$db": "admin" });
    assert!(every.len() > 5, "{every}");
    let commands = bench.run(doc! { "listCommands": 1 });
    assert!(commands.get_document("commands").unwrap().contains_key("find"));
}

#[test]
fn a_running_operation_can_be_seen_and_is_its_own_entry() {
    let mut bench = bench();
    let reply = bench.run(doc! { "currentOp": 1, "$db": "admin", "op": "command" });
    let operations = reply.get_array("inprog").unwrap();
    assert_eq!(operations.len(), 1);
    assert_eq!(bench.run(doc! { "currentOp": 1, "$db": "admin", "op": "query" }).get_array("inprog").unwrap().len(), 0);
    check_replies(
        &mut bench,
        vec![(doc! { "killOp": 1, "op": 12345, "$db": "admin" }, doc! { "info": "attempting to kill op" })],
    );
}
