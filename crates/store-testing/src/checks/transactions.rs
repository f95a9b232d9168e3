//! Transactions, for stores that have them.

use crate::suite::{Check, Collect, Suite, delete, index, inserts, predicate, update};
use document::{DocBuf, doc};
use error::{Code, Result};
use std::rc::Rc;
use std::sync::Arc;
use store::{
    DocumentStore, Query, RecordedWrite, RetryKey, StatementOutcome, Statements, Transaction, TransactionKey,
    UpdateStatement, WriteBatch,
};

pub fn checks() -> Vec<Check> {
    vec![
        ("txn_commit", a_commit_makes_all_writes_visible),
        ("txn_abort", an_abort_leaves_nothing_behind),
        ("txn_conflict", the_first_writer_wins),
        ("txn_unique", unique_keys_conflict_as_documents_do),
        ("txn_create", a_transaction_creates_collections),
    ]
}

/// A transaction of the suite's store.
struct Open<'s> {
    suite: &'s Suite,
    handle: Arc<dyn Transaction>,
}

impl Open<'_> {
    /// Begins a transaction; `None` if the store has none.
    fn begin(suite: &Suite) -> Option<Open<'_>> {
        match suite.run(suite.store.begin_transaction()) {
            Ok(handle) => Some(Open { suite, handle }),
            Err(error) => {
                assert_eq!(error.code(), Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION);
                None
            }
        }
    }

    /// Executes a statement of the transaction.
    fn statement<T>(&self, run: impl FnOnce(Rc<dyn DocumentStore>) -> T) -> T {
        let store = {
            let store = self.suite.store.in_transaction(&self.handle);
            store.unwrap()
        };
        run(store)
    }

    fn write(&self, statements: Statements) -> Result<StatementOutcome> {
        self.statement(|store| {
            let batch = WriteBatch::new(self.suite.namespace.clone(), statements);
            self.suite.run(store.write(batch))?.statements.remove(0)
        })
    }

    fn insert(&self, document: DocBuf) -> Result<StatementOutcome> {
        self.write(inserts(&[document]))
    }

    fn update(&self, statement: UpdateStatement) -> Result<StatementOutcome> {
        self.write(Statements::Update(vec![statement]))
    }

    fn find(&self, filter: &DocBuf) -> Vec<DocBuf> {
        self.statement(|store| {
            let predicate = predicate(filter);
            let plan = self.suite.run(store.plan(&self.suite.namespace, Query::of(&predicate))).unwrap();
            let (exact, decode) = (plan.facts().exact, self.suite.decode);
            let mut sink = Collect { decode, predicate: predicate.clone(), exact, found: Vec::new(), left: usize::MAX };
            self.suite.run(store.scan(&*plan, None, usize::MAX, &mut sink)).unwrap();
            sink.found
        })
    }

    fn commit(&self, number: i64) -> Result<()> {
        self.suite.run(self.suite.store.commit_transaction(&self.handle, key(self.suite, number), false))
    }
}

/// Returns the key of a transaction of this check's session.
fn key(suite: &Suite, txn_number: i64) -> TransactionKey {
    let mut session = [0; 16];
    session.iter_mut().zip(suite.namespace.database.bytes().rev()).for_each(|(to, from)| *to = from);
    TransactionKey { retry: RetryKey { session, txn_number }, session, user: [0; 32] }
}

fn set(id: i32, value: i32) -> UpdateStatement {
    update(doc! { "_id": id }, doc! { "$set": &doc! { "a": value } })
}

fn code<T: std::fmt::Debug>(result: Result<T>) -> Code {
    result.unwrap_err().code()
}

fn a_commit_makes_all_writes_visible(suite: &Suite) {
    suite.insert(&[doc! { "_id": 1, "a": 1 }, doc! { "_id": 2, "a": 2 }, doc! { "_id": 3, "a": 3 }]);
    suite.create_index(index(doc! { "a": 1 }, doc! {})).unwrap();
    let Some(open) = Open::begin(suite) else { return };
    open.update(set(1, 10)).unwrap();
    assert_eq!(open.insert(doc! { "_id": 4, "a": 11 }).unwrap().matched, 1);
    open.write(Statements::Delete(vec![delete(doc! { "_id": 2 }, true)])).unwrap();
    let large = doc! { "a": &doc! { "$gte": 10 } };
    assert_eq!(open.find(&large).len(), 2);
    assert_eq!(open.find(&doc! { "a": 2 }), []);
    assert_eq!(suite.scan(&large), []);
    // The snapshot does not see what others commit.
    suite.insert(&[doc! { "_id": 5, "a": 12 }]);
    assert_eq!(open.find(&large).len(), 2);
    open.commit(7).unwrap();
    assert_eq!(suite.scan(&large).len(), 3);
    assert_eq!(suite.documents_and_bytes().0, 4);
    let recorded = suite.run(suite.store.recorded_write(key(suite, 7).session, Some(7))).unwrap();
    assert_eq!(recorded, Some(RecordedWrite { txn_number: 7, is_transaction: true }));
    suite.assert_valid();
}

fn an_abort_leaves_nothing_behind(suite: &Suite) {
    suite.insert(&[doc! { "_id": 1, "a": 1 }]);
    let Some(open) = Open::begin(suite) else { return };
    open.update(set(1, 2)).unwrap();
    open.handle.abort();
    assert_eq!(code(suite.store.in_transaction(&open.handle).map(drop)), Code::NO_SUCH_TRANSACTION);
    assert_eq!(code(open.commit(8)), Code::NO_SUCH_TRANSACTION);
    // The document is free.
    suite.update(set(1, 3)).unwrap();
    assert_eq!(suite.scan(&doc! {}), [doc! { "_id": 1, "a": 3 }]);
}

fn the_first_writer_wins(suite: &Suite) {
    suite.insert(&[doc! { "_id": 1, "a": 1 }, doc! { "_id": 2, "a": 2 }]);
    let Some(first) = Open::begin(suite) else { return };
    let (second, third) = (Open::begin(suite).unwrap(), Open::begin(suite).unwrap());
    first.update(set(1, 10)).unwrap();
    let error = second.update(set(1, 20)).unwrap_err();
    assert_eq!((error.code(), error.labels()), (Code::WRITE_CONFLICT, &["TransientTransactionError"][..]));
    second.handle.abort();
    first.commit(1).unwrap();
    // It was changed since the snapshot.
    assert_eq!(code(third.update(set(1, 30))), Code::WRITE_CONFLICT);
    third.handle.abort();
    let fourth = Open::begin(suite).unwrap();
    fourth.update(set(1, 40)).unwrap();
    fourth.update(set(2, 41)).unwrap();
    fourth.commit(2).unwrap();
    assert_eq!(suite.scan(&doc! { "a": &doc! { "$gte": 40 } }).len(), 2);
}

fn unique_keys_conflict_as_documents_do(suite: &Suite) {
    suite.create_index(index(doc! { "k": 1 }, doc! { "unique": true })).unwrap();
    suite.insert(&[doc! { "_id": 1, "k": 1 }]);
    let Some(first) = Open::begin(suite) else { return };
    let second = Open::begin(suite).unwrap();
    assert_eq!(code(Open::begin(suite).unwrap().insert(doc! { "_id": 2, "k": 1 })), Code::DUPLICATE_KEY);
    assert_eq!(code(Open::begin(suite).unwrap().insert(doc! { "_id": 1, "k": 2 })), Code::DUPLICATE_KEY);
    first.insert(doc! { "_id": 3, "k": 3 }).unwrap();
    assert_eq!(code(second.insert(doc! { "_id": 4, "k": 3 })), Code::WRITE_CONFLICT);
    second.handle.abort();
    // Keys that the transaction itself sets free.
    first.write(Statements::Delete(vec![delete(doc! { "_id": 1 }, true)])).unwrap();
    first.insert(doc! { "_id": 5, "k": 1 }).unwrap();
    first.commit(1).unwrap();
    assert_eq!(suite.scan(&doc! { "k": 1 }), [doc! { "_id": 5, "k": 1 }]);
    suite.assert_valid();
}

fn a_transaction_creates_collections(suite: &Suite) {
    for commits in [false, true] {
        let Some(open) = Open::begin(suite) else { return };
        open.insert(doc! { "_id": 1, "a": &document::array![1, 2] }).unwrap();
        assert_eq!(open.find(&doc! { "a": 2 }).len(), 1);
        assert_eq!(suite.scan(&doc! {}), []);
        match commits {
            true => open.commit(1).unwrap(),
            false => open.handle.abort(),
        }
        assert_eq!(suite.scan(&doc! {}).len(), usize::from(commits));
    }
}
