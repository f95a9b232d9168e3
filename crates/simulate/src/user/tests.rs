//! Users and the replies of servers.

use super::*;
use crate::scenario::Scenario;
use document::array;
use std::time::Duration;

fn scenario(operation: &str) -> Scenario {
    Scenario::read(&format!("[[operation]]\nname = 'test'\n{operation}"), &[]).unwrap()
}

struct Visit<'s> {
    user: User<'s>,
    source: Source,
    session: Session,
}

impl<'s> Visit<'s> {
    fn begin(scenario: &'s Scenario) -> Visit<'s> {
        let mut source = Source::new(1, &[], 0, 1);
        let start = ScheduledStart { after: Duration::ZERO, iteration: 0, user: 3 };
        let user = User::begin(&scenario.operations[0], 0, start, Instant::now(), &mut source).unwrap();
        let session = Session::new(&mut source);
        Visit { user, source, session }
    }

    fn sends(&mut self) -> DocBuf {
        let message = self.user.message(&mut self.source, &mut self.session).unwrap();
        reply_body(message.as_bytes()).unwrap().to_owned()
    }

    fn gets(&mut self, reply: DocBuf) -> Next {
        self.user.reply(Message::command(reply).as_bytes())
    }
}

const CLAIM: &str = "
[[operation.step]]
command = { findAndModify = 'jobs', query = { state = 'new' }, update = { '$set' = { state = 'taken' } } }
stop-unless = 'value'
take = { job = 'value._id' }
[[operation.step]]
name = 'acknowledge'
command = { delete = 'jobs', deletes = [{ q = { _id = '{job}' }, limit = 1 }] }
";

#[test]
fn a_value_of_a_reply_is_sent_with_the_next_step() {
    let scenario = scenario(CLAIM);
    let mut visit = Visit::begin(&scenario);
    assert_eq!(visit.sends().as_doc().get("$db"), Some(Value::String(DATABASE)));
    assert_eq!(visit.gets(doc! { "value": &doc! { "_id": 42i32 }, "ok": 1.0 }), Next::Send(Some(0)));
    let sent = visit.sends();
    assert_eq!(find(sent.as_doc(), "deletes.0.q._id"), Some(Value::Int32(42)));
    assert_eq!(visit.gets(doc! { "n": 1i32, "ok": 1.0 }), Next::Finished(UserOutcome::Done, Some(1)));
}

#[test]
fn a_user_stops_where_there_is_nothing() {
    let scenario = scenario(CLAIM);
    for nothing in [doc! { "value": Value::Null, "ok": 1.0 }, doc! { "ok": 1.0 }, doc! { "value": 0i32, "ok": 1i32 }] {
        let mut visit = Visit::begin(&scenario);
        assert_eq!(visit.gets(nothing), Next::Finished(UserOutcome::Stopped, Some(0)));
    }
}

#[test]
fn errors_are_told_without_their_values() {
    let scenario = scenario(CLAIM);
    let mut visit = Visit::begin(&scenario);
    let error = doc! { "ok": 0.0, "errmsg": "no such thing as 4711", "code": 26i32 };
    assert_eq!(visit.gets(error), Next::Finished(UserOutcome::Failed("26: no such thing as #".into()), None));
    let one = doc! { "index": 0i32, "code": 11000i32, "errmsg": "E11000 duplicate key dup key: { _id: 3 }" };
    let reply = doc! { "n": 0i32, "writeErrors": &array![&one], "ok": 1.0 };
    let mut visit = Visit::begin(&scenario);
    assert_eq!(visit.gets(reply), Next::Finished(UserOutcome::Failed("11000: E# duplicate key".into()), None));
    let missing = doc! { "value": &doc! { "a": 1i32 }, "ok": 1.0 };
    let failed = UserOutcome::Failed("findAndModify: the reply has no value._id".into());
    assert_eq!(Visit::begin(&scenario).gets(missing), Next::Finished(failed, None));
    assert!(matches!(Visit::begin(&scenario).user.reply(&[1, 2, 3]), Next::Finished(UserOutcome::Failed(_), None)));
}

#[test]
fn errors_that_are_expected_stop_a_user() {
    let scenario = scenario("[[operation.step]]\ncommand = { insert = 'a', documents = [{}] }\nstop-on = [11000]\n");
    let error = doc! { "ok": 0.0, "errmsg": "E11000", "code": 11000i32 };
    assert_eq!(Visit::begin(&scenario).gets(error), Next::Finished(UserOutcome::Stopped, Some(0)));
}

const TRANSFER: &str = "transaction = true
[[operation.step]]
command = { update = 'a', updates = [] }
stop-unless = 'n'
[[operation.step]]
command = { update = 'b', updates = [] }
";

#[test]
fn transactions_begin_and_are_committed() {
    let scenario = scenario(TRANSFER);
    let mut visit = Visit::begin(&scenario);
    let first = visit.sends();
    let get = |sent: &DocBuf, key: &str| sent.as_doc().get(key).map(ValueBuf::from);
    assert_eq!(get(&first, "startTransaction").unwrap().as_value(), Value::Boolean(true));
    assert_eq!(get(&first, "txnNumber").unwrap().as_value(), Value::Int64(2));
    assert_eq!(visit.gets(doc! { "n": 1i32, "ok": 1.0 }), Next::Send(Some(0)));
    let second = visit.sends();
    assert_eq!(get(&second, "startTransaction"), None);
    assert_eq!(get(&second, "lsid"), get(&first, "lsid"));
    assert_eq!(visit.gets(doc! { "n": 1i32, "ok": 1.0 }), Next::Send(Some(1)));
    let commit = visit.sends();
    assert!(get(&commit, "commitTransaction").is_some() && get(&commit, "txnNumber") == get(&first, "txnNumber"));
    assert_eq!(visit.gets(doc! { "ok": 1.0 }), Next::Finished(UserOutcome::Done, None));
}

#[test]
fn transactions_are_aborted_or_begun_anew() {
    let scenario = scenario(TRANSFER);
    let mut visit = Visit::begin(&scenario);
    visit.sends();
    assert_eq!(visit.gets(doc! { "n": 0i32, "ok": 1.0 }), Next::Send(None));
    assert!(visit.sends().as_doc().get("abortTransaction").is_some());
    assert_eq!(visit.gets(doc! { "ok": 1.0 }), Next::Finished(UserOutcome::Stopped, None));

    let mut visit = Visit::begin(&scenario);
    visit.sends();
    let labels = array!["TransientTransactionError"];
    let conflict = || doc! { "ok": 0.0, "code": 112i32, "errmsg": "WriteConflict", "errorLabels": &labels };
    assert_eq!(visit.gets(conflict()), Next::Send(None));
    assert_eq!(visit.sends().as_doc().get("txnNumber"), Some(Value::Int64(3)));
    for _ in 1..RETRIES_MAX {
        assert_eq!(visit.gets(conflict()), Next::Send(None));
    }
    assert_eq!(visit.gets(conflict()), Next::Send(None));
    assert!(visit.sends().as_doc().get("abortTransaction").is_some());
    assert_eq!(visit.gets(doc! { "ok": 1.0 }), Next::Finished(UserOutcome::Failed("112: WriteConflict".into()), None));
}
