//! Histories made by hand, one for each anomaly, and those that must pass.

#![expect(clippy::unwrap_used, reason = "histories are written by hand")]

use histories::anomaly::Kind;
use histories::check;
use histories::history::{History, Operation, Outcome, Transaction};

/// Decodes a history: a line for each transaction, with its outcome, when it began and ended, and
/// its operations. `7+1` appends 1 to list 7, and `7=1,2` reads the list. A line `stream` has
/// elements that were appended, as `7+1`.
fn history(text: &str) -> History {
    let mut history = History::default();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words[0] == "stream" {
            history.streams.push(words[1..].iter().map(|word| append(word).unwrap()).collect());
            continue;
        }
        let outcome = match words[0] {
            "committed" => Outcome::Committed,
            "aborted" => Outcome::Aborted,
            _ => Outcome::Unknown,
        };
        let (began, ended) = words[1].split_once('-').unwrap();
        history.transactions.push(Transaction {
            client: 0,
            began: began.parse().unwrap(),
            ended: ended.parse().unwrap(),
            outcome,
            operations: words[2..].iter().map(|word| operation(word)).collect(),
        });
    }
    history
}

fn append(word: &str) -> Option<(i64, i64)> {
    let (key, element) = word.split_once('+')?;
    Some((key.parse().unwrap(), element.parse().unwrap()))
}

fn operation(word: &str) -> Operation {
    if let Some((key, element)) = append(word) {
        return Operation::Append(key, element);
    }
    let (key, list) = word.split_once('=').unwrap();
    let elements = list.split(',').filter(|element| !element.is_empty());
    Operation::Read(key.parse().unwrap(), elements.map(|element| element.parse().unwrap()).collect())
}

fn kinds(text: &str) -> Vec<Kind> {
    let history = history(text);
    let anomalies = check(&history);
    for anomaly in &anomalies {
        println!("{}", anomaly.text(&history));
    }
    anomalies.iter().map(|anomaly| anomaly.kind).collect()
}

#[track_caller]
fn finds(expected: &[Kind], text: &str) {
    assert_eq!(kinds(text), expected);
}

#[test]
fn nothing_and_serial_transactions_pass() {
    finds(&[], "");
    finds(
        &[],
        "committed 1-2 1= 1+1 1=1\n committed 3-4 1=1 1+2 1=1,2 2=\n aborted 5-6 1+9\n unknown 7-8 1+8\n committed 9-9 1=1,2",
    );
}

#[test]
fn write_skew_passes() {
    finds(&[], "committed 1-5 1= 2= 1+1\n committed 1-5 1= 2= 2+1\n committed 6-7 1=1 2=1");
}

#[test]
fn concurrent_transactions_take_effect_in_any_order() {
    finds(&[], "committed 1-9 1+1\n committed 1-9 1=1 1+2\n committed 2-3 1=\n committed 10-11 1=1,2");
}

#[test]
fn a_commit_without_a_reply_may_have_happened_or_not() {
    finds(&[], "unknown 1-2 1+1\n unknown 3-4 1+2\n committed 5-6 1=2\n stream 1+2");
    finds(&[Kind::ReadSkew], "unknown 1-2 1+1 2+1\n committed 5-6 1=1 2=\n committed 7-7 2=1");
}

#[test]
fn dirty_write() {
    finds(&[Kind::DirtyWrite], "committed 1-5 1+1 2+1\n committed 1-5 1+2 2+2\n committed 6-7 1=1,2 2=2,1");
}

#[test]
fn aborted_read() {
    finds(&[Kind::AbortedRead], "aborted 1-5 1+1\n committed 1-5 1=1\n committed 6-7 1=1");
}

#[test]
fn intermediate_read() {
    // A read in the middle of a transaction makes a cycle as well.
    let found = kinds("committed 1-5 1+1 1+2\n committed 1-5 1=1\n committed 6-7 1=1,2");
    assert_eq!(found, [Kind::IntermediateRead, Kind::ReadSkew]);
}

#[test]
fn circular_information_flow() {
    finds(&[Kind::CircularInformation], "committed 1-5 1+1 2=1\n committed 1-5 2+1 1=1\n committed 6-7 1=1 2=1");
}

#[test]
fn read_skew() {
    finds(&[Kind::ReadSkew], "committed 1-5 1= 2=1\n committed 2-3 1+1 2+1\n committed 6-7 1=1 2=1");
}

#[test]
fn an_aborted_transaction_reads_a_snapshot_too() {
    finds(&[Kind::ReadSkew], "aborted 1-5 1= 2=1\n committed 2-3 1+1 2+1\n committed 6-7 1=1 2=1");
}

#[test]
fn lost_update() {
    finds(&[Kind::LostUpdate], "committed 1-5 1= 1+1\n committed 1-5 1= 1+2\n committed 6-7 1=1,2");
}

#[test]
fn a_long_fork() {
    // Two readers see two writes in different orders.
    let text =
        "committed 1-5 1+1\n committed 1-5 2+1\n committed 1-5 1=1 2=\n committed 1-5 1= 2=1\n committed 6-7 1=1 2=1";
    finds(&[Kind::NonAdjacent], text);
}

#[test]
fn incompatible_orders() {
    finds(
        &[Kind::IncompatibleOrders],
        "committed 1-9 1+1\n committed 1-9 1+2\n committed 1-9 1=1,2\n committed 1-9 1=2",
    );
}

#[test]
fn own_writes_and_repeated_reads() {
    finds(&[Kind::OwnWrites], "committed 1-2 1= 1+1 1=\n committed 3-4 1=1");
    assert!(kinds("committed 1-9 1= 1=1\n committed 2-3 1+1").contains(&Kind::UnrepeatableRead));
}

#[test]
fn elements_twice_or_never_written() {
    finds(&[Kind::Repeated], "committed 1-2 1+1\n committed 3-4 1=1,1\n committed 5-6 1=1,1");
    finds(&[Kind::NeverWritten], "committed 1-2 1+1\n committed 3-4 1=1,7\n committed 5-6 1=1,7");
}

#[test]
fn lost_append() {
    // Also as a cycle: the reader does not see what ended before it began.
    finds(&[Kind::LostAppend, Kind::RealTime], "committed 1-2 1+1\n committed 3-4 1=");
}

#[test]
fn old_snapshot() {
    finds(&[Kind::RealTime], "committed 1-2 1+1\n committed 3-4 1=\n committed 5-6 1=1");
    finds(&[], "committed 1-3 1+1\n committed 3-4 1=\n committed 5-6 1=1");
}

#[test]
fn streams() {
    let transactions = "committed 1-2 1+1 2+1\n committed 3-4 1+2\n aborted 3-4 1+3\n committed 5-6 1=1,2 2=1\n";
    for (stream, expected) in [
        ("1+1 2+1 1+2", &[][..]),
        ("2+1 1+1 1+2", &[]),
        ("1+1 1+2", &[Kind::EventLost]),
        ("1+1 2+1 1+2 1+2", &[Kind::EventRepeated]),
        ("1+1 2+1 1+2 1+3", &[Kind::EventUncommitted]),
        ("1+1 2+1 1+2 1+4", &[Kind::EventUncommitted]),
        ("1+1 1+2 2+1", &[Kind::EventOrder]),
        ("1+2 1+1 2+1", &[Kind::EventOrder, Kind::EventOrder, Kind::EventOrder]),
        ("", &[Kind::EventLost, Kind::EventLost, Kind::EventLost]),
    ] {
        assert_eq!(kinds(&format!("{transactions}stream {stream}")), expected, "{stream}");
    }
}

#[test]
fn the_text_names_the_transactions_and_the_steps() {
    let history = history("committed 1-5 1= 2=1\n committed 2-3 1+1 2+1\n committed 6-7 1=1 2=1");
    let text = check(&history)[0].text(&history);
    assert_eq!(
        text,
        "read skew (G-single)\n  \
         T0 = client 0, 1 to 5, Committed: read 1: []; read 2: [1];\n  \
         T1 = client 0, 2 to 3, Committed: append 1 to 1; append 1 to 2;\n  \
         - T0 → T1 (rw): T0 did not see 1 of T1 in list 1\n  \
         - T1 → T0 (wr): T0 saw 1 of T1 in list 2"
    );
}
