//! Batches and their outcomes.

use crate::suite::{Check, Collect, Suite, delete, details, index, inserts, update};
use document::{Doc, DocBuf, ObjectId, Value, doc};
use error::{Code, Result};
use query::Predicate;
use store::{
    DeleteStatement, Namespace, Position, RetryKey, ReturnImage, ScanEnd, StatementOutcome, Statements,
    UpdateStatement, WriteBatch,
};

pub fn checks() -> Vec<Check> {
    vec![
        ("validation", documents_have_to_be_valid),
        ("capped", a_capped_collection_lets_go_of_the_oldest),
        ("tail", a_tail_goes_on_with_what_comes),
        ("duplicates", duplicates_are_reported_as_by_mongodb),
        ("unordered", an_unordered_batch_goes_on_after_an_error),
        ("updates", updates_match_and_modify),
        ("upserts", an_upsert_inserts_where_nothing_matches),
        ("images", the_image_asked_for_comes_back),
        ("deletes", deletes_take_one_or_all),
        ("counts", counts_follow_every_write),
        ("unique", a_unique_index_is_unique),
        ("atomic", a_refused_statement_leaves_nothing_behind),
        ("retries", a_retried_write_is_carried_out_once),
    ]
}

fn duplicates_are_reported_as_by_mongodb(suite: &Suite) {
    suite.insert(&[doc! { "_id": "a" }]);
    let outcomes = suite.write(inserts(&[doc! { "_id": "b" }, doc! { "_id": "a" }, doc! { "_id": "c" }]), true);
    assert_eq!(outcomes.len(), 2, "an ordered batch ends with the first error");
    let error = outcomes[1].clone().unwrap_err();
    assert_eq!(error.code(), Code::DUPLICATE_KEY);
    let message =
        format!("E11000 duplicate key error collection: {} index: _id_ dup key: {{ _id: \"a\" }}", suite.namespace);
    assert_eq!(error.message(), message);
    assert_eq!(details(&error).to_owned(), doc! { "keyPattern": &doc! { "_id": 1 }, "keyValue": &doc! { "_id": "a" } });
    assert_eq!(suite.ids().len(), 2);
}

fn an_unordered_batch_goes_on_after_an_error(suite: &Suite) {
    let documents = [doc! { "_id": 1 }, doc! { "_id": 1 }, doc! { "_id": 2 }, doc! { "_id": 2.0 }, doc! { "_id": 3 }];
    let outcomes = suite.write(inserts(&documents), false);
    let codes: Vec<i32> = outcomes.iter().map(|it| it.as_ref().err().map_or(0, |error| error.code().0)).collect();
    assert_eq!(codes, [0, 11000, 0, 11000, 0]);
    assert_eq!(suite.all(), [doc! { "_id": 1 }, doc! { "_id": 2 }, doc! { "_id": 3 }]);
}

fn updates_match_and_modify(suite: &Suite) {
    let check = |statement: UpdateStatement, matched: u64, modified: u64| {
        let outcome = suite.update(statement).unwrap();
        assert_eq!((outcome.matched, outcome.modified, outcome.upserted), (matched, modified, None));
    };
    check(update(doc! { "_id": 1 }, doc! { "$set": &doc! { "a": 1 } }), 0, 0);
    assert_eq!(suite.run(suite.store.collection(&suite.namespace)).unwrap().map(|it| it.name), None);
    suite.insert(&[doc! { "_id": 1, "a": 1 }, doc! { "_id": 2, "a": 2 }, doc! { "_id": 3, "a": 2 }]);
    check(update(doc! { "_id": 1 }, doc! { "$set": &doc! { "a": 5 } }), 1, 1);
    check(update(doc! { "_id": 1 }, doc! { "$set": &doc! { "a": 5 } }), 1, 0);
    check(update(doc! { "a": 2 }, doc! { "$inc": &doc! { "a": 1 } }), 1, 1);
    let multi = UpdateStatement { multi: true, ..update(doc! {}, doc! { "$inc": &doc! { "a": 10 } }) };
    check(multi, 3, 3);
    check(update(doc! { "_id": 3 }, doc! { "b": "replaced" }), 1, 1);
    let expected = [doc! { "_id": 1, "a": 15 }, doc! { "_id": 2, "a": 13 }, doc! { "_id": 3, "b": "replaced" }];
    assert_eq!(suite.all(), expected);
}

fn an_upsert_inserts_where_nothing_matches(suite: &Suite) {
    let upsert = |filter, change| UpdateStatement { upsert: true, ..update(filter, change) };
    let first = suite.update(upsert(doc! { "_id": 5 }, doc! { "$set": &doc! { "a": 1 } })).unwrap();
    assert_eq!((first.matched, first.upserted), (0, Some(Value::Int32(5).to_owned())));
    let again = suite.update(upsert(doc! { "_id": 5 }, doc! { "$set": &doc! { "a": 2 } })).unwrap();
    assert_eq!((again.matched, again.modified, again.upserted), (1, 1, None));
    let named = suite.update(upsert(doc! { "b": 1 }, doc! { "$set": &doc! { "a": 3 } })).unwrap();
    assert_eq!(named.upserted, Some(Value::ObjectId(ObjectId([7; 12])).to_owned()));
    let expected = [doc! { "_id": 5, "a": 2 }, doc! { "_id": ObjectId([7; 12]), "b": 1, "a": 3 }];
    assert_eq!(suite.all(), expected);
}

fn the_image_asked_for_comes_back(suite: &Suite) {
    suite.insert(&[doc! { "_id": 1, "a": 1 }]);
    let change = |filter, image| UpdateStatement { image, ..update(filter, doc! { "$inc": &doc! { "a": 1 } }) };
    let image = |statement| suite.update(statement).unwrap().image;
    assert_eq!(image(change(doc! { "_id": 1 }, ReturnImage::Before)), Some(doc! { "_id": 1, "a": 1 }));
    assert_eq!(image(change(doc! { "_id": 1 }, ReturnImage::After)), Some(doc! { "_id": 1, "a": 3 }));
    assert_eq!(image(change(doc! { "_id": 2 }, ReturnImage::After)), None);
    let upsert = |image| UpdateStatement { upsert: true, ..change(doc! { "_id": image as i32 + 10 }, image) };
    assert_eq!(image(upsert(ReturnImage::Before)), None);
    assert_eq!(image(upsert(ReturnImage::After)), Some(doc! { "_id": 12, "a": 1 }));
    let same =
        UpdateStatement { image: ReturnImage::After, ..update(doc! { "_id": 1 }, doc! { "$set": &doc! { "a": 3 } }) };
    assert_eq!(image(same), Some(doc! { "_id": 1, "a": 3 }));
    let gone = DeleteStatement { image: ReturnImage::Before, ..delete(doc! { "_id": 1 }, true) };
    assert_eq!(suite.delete(gone).image, Some(doc! { "_id": 1, "a": 3 }));
}

fn deletes_take_one_or_all(suite: &Suite) {
    assert_eq!(suite.delete(delete(doc! {}, false)).matched, 0);
    let documents: Vec<DocBuf> = (0..20).map(|id| doc! { "_id": id, "a": id % 2 }).collect();
    suite.insert(&documents);
    suite.create_index(index(doc! { "a": 1 }, doc! {})).unwrap();
    assert_eq!(suite.delete(delete(doc! { "a": 0 }, true)).matched, 1);
    assert_eq!(suite.delete(delete(doc! { "a": 0 }, false)).matched, 9);
    assert_eq!(suite.delete(delete(doc! { "_id": 3 }, true)).matched, 1);
    assert_eq!(suite.all().len(), 9);
    suite.assert_valid();
    assert_eq!(suite.delete(delete(doc! {}, false)).matched, 9);
    assert_eq!(suite.documents_and_bytes(), (0, 0));
    suite.assert_valid();
}

fn counts_follow_every_write(suite: &Suite) {
    let assert_counted = || {
        let documents = suite.all();
        let bytes: usize = documents.iter().map(|document| document.as_bytes().len()).sum();
        let counted = suite.documents_and_bytes();
        assert_eq!(counted.0, documents.len() as u64);
        // Stores that do not keep BSON count bytes of their own format.
        assert!(counted.1 == bytes as u64 || counted.1 > 0);
    };
    suite.insert(&[doc! { "_id": 1 }, doc! { "_id": 2, "a": "x" }]);
    assert_counted();
    suite.write(inserts(&[doc! { "_id": 1 }, doc! { "_id": 3 }]), false);
    assert_counted();
    suite.update(update(doc! { "_id": 1 }, doc! { "$set": &doc! { "text": "longer" } })).unwrap();
    assert_counted();
    suite.delete(delete(doc! { "_id": 2 }, true));
    assert_counted();
    suite.assert_valid();
}

fn a_unique_index_is_unique(suite: &Suite) {
    suite.create_index(index(doc! { "a": 1 }, doc! { "unique": true })).unwrap();
    let code = |outcome: Result<StatementOutcome>| outcome.err().map_or(0, |error| error.code().0);
    let insert = |document: DocBuf| code(suite.write(inserts(&[document]), true).remove(0));
    assert_eq!(insert(doc! { "_id": 1, "a": 1 }), 0);
    assert_eq!(insert(doc! { "_id": 2, "a": 1.0 }), 11000);
    assert_eq!(insert(doc! { "_id": 3 }), 0);
    assert_eq!(insert(doc! { "_id": 4, "a": Value::Null }), 11000);
    let set = |id: i32, a: i32| code(suite.update(update(doc! { "_id": id }, doc! { "$set": &doc! { "a": a } })));
    assert_eq!(set(1, 1), 0);
    match insert(doc! { "_id": 5, "a": &document::array![7, 7, 8] }) {
        // A store that cannot keep an array's values unique must say so.
        refused if refused == Code::CANNOT_CREATE_INDEX.0 => {}
        accepted => {
            assert_eq!(accepted, 0);
            assert_eq!(insert(doc! { "_id": 6, "a": 8 }), 11000);
            assert_eq!(set(1, 7), 11000);
        }
    }
    assert_eq!(set(1, 2), 0);
    assert_eq!(insert(doc! { "_id": 7, "a": 1 }), 0);
    let outcome = suite.write(inserts(&[doc! { "_id": 8, "a": 2 }]), true).remove(0).unwrap_err();
    let message = format!("E11000 duplicate key error collection: {} index: a dup key: {{ a: 2 }}", suite.namespace);
    assert_eq!(outcome.message(), message);
    suite.assert_valid();
}

fn a_refused_statement_leaves_nothing_behind(suite: &Suite) {
    suite.create_index(index(doc! { "a": 1 }, doc! {})).unwrap();
    suite.create_index(index(doc! { "b": 1 }, doc! { "unique": true })).unwrap();
    suite.insert(&[doc! { "_id": 1, "a": 1, "b": 1 }, doc! { "_id": 2, "a": 2, "b": 2 }]);
    let before = suite.all();
    let refused = suite.write(inserts(&[doc! { "_id": 3, "a": 3, "b": 2 }]), true).remove(0);
    assert_eq!(refused.unwrap_err().code(), Code::DUPLICATE_KEY);
    let both = doc! { "a": 9, "b": 2 };
    let refused = suite.update(update(doc! { "_id": 1 }, doc! { "$set": &both }));
    assert_eq!(refused.unwrap_err().code(), Code::DUPLICATE_KEY);
    assert_eq!(suite.all(), before);
    assert_eq!(suite.find(&doc! { "a": 9 }), Vec::<DocBuf>::new());
    assert_eq!(suite.find(&doc! { "a": 1 }).len(), 1);
    suite.assert_valid();
}

fn a_retried_write_is_carried_out_once(suite: &Suite) {
    let attempt = |session: u8, txn_number: i64, statements: Statements| {
        suite.run(suite.store.write(WriteBatch {
            journal: session.is_multiple_of(2),
            retry: Some(RetryKey { session: [session; 16], txn_number }),
            ..WriteBatch::new(suite.namespace.clone(), statements)
        }))
    };
    let increment = || {
        let statement = UpdateStatement {
            image: ReturnImage::After,
            upsert: true,
            ..update(doc! { "_id": 1 }, doc! { "$inc": &doc! { "n": 1 } })
        };
        Statements::Update(vec![statement])
    };
    for session in [1, 2] {
        let first = attempt(session, 5, increment()).unwrap();
        assert!(!first.retried);
        let again = attempt(session, 5, increment()).unwrap();
        assert!(again.retried);
        assert_eq!(again.statements, first.statements);
        assert!(!attempt(session, 6, increment()).unwrap().retried);
        assert_eq!(attempt(session, 5, increment()).unwrap_err().code(), Code::TRANSACTION_TOO_OLD);
    }
    assert_eq!(suite.all(), [doc! { "_id": 1, "n": 4 }]);
    let documents = [doc! { "_id": 2 }, doc! { "_id": 1 }, doc! { "_id": 3 }];
    let first = attempt(3, 1, inserts(&documents)).unwrap();
    let again = attempt(3, 1, inserts(&documents)).unwrap();
    assert_eq!((first.statements.len(), again.statements), (2, first.statements));
}

fn documents_have_to_be_valid(suite: &Suite) {
    let options = |level: &str| doc! { "validator": &doc! { "a": &doc! { "$gt": 1 } }, "validationLevel": level };
    suite.run(suite.store.create_collection(&suite.namespace, options("strict").as_doc())).unwrap();
    let codes = |outcomes: Vec<Result<StatementOutcome>>| -> Vec<i32> {
        outcomes.iter().map(|outcome| outcome.as_ref().err().map_or(0, |error| error.code().0)).collect()
    };
    let documents =
        [doc! { "_id": 1, "a": 2 }, doc! { "_id": 2, "a": 1 }, doc! { "_id": 3, "a": 3 }, doc! { "_id": 1, "a": 9 }];
    assert_eq!(codes(suite.write(inserts(&documents), false)), [0, 121, 0, 11000]);
    assert_eq!(
        codes(suite.write(inserts(&[doc! { "_id": 4, "a": 4 }, doc! { "_id": 5 }, doc! { "_id": 6, "a": 6 }]), true)),
        [0, 121]
    );
    assert_eq!(suite.ids(), ["Some(Int32(1))", "Some(Int32(3))", "Some(Int32(4))"]);
    let bypass = WriteBatch {
        bypass_validation: true,
        ..WriteBatch::new(suite.namespace.clone(), inserts(&[doc! { "_id": 9, "a": 0 }]))
    };
    assert_eq!(codes(suite.run(suite.store.write(bypass)).unwrap().statements), [0]);
    let set = |id: i32, field: &str, value: i32| {
        let mut fields = DocBuf::new();
        fields.append(field, value);
        update(doc! { "_id": id }, doc! { "$set": &fields })
    };
    let code = |statement: UpdateStatement| suite.update(statement).err().map_or(0, |error| error.code().0);
    assert_eq!(code(set(1, "a", 1)), 121);
    assert_eq!(code(set(1, "a", 5)), 0);
    assert_eq!(code(set(9, "b", 5)), 121);
    assert_eq!(code(UpdateStatement { upsert: true, ..set(7, "a", 0) }), 121);
    assert_eq!(code(UpdateStatement { multi: true, ..update(doc! {}, doc! { "$set": &doc! { "a": 0 } }) }), 121);
    suite.run(suite.store.modify_collection(&suite.namespace, options("moderate").as_doc())).unwrap();
    assert_eq!(code(set(9, "b", 5)), 0);
    assert_eq!(code(set(1, "a", 0)), 121);
    suite.run(suite.store.modify_collection(&suite.namespace, options("off").as_doc())).unwrap();
    assert_eq!(code(set(1, "a", 0)), 0);
    suite.run(suite.store.modify_collection(&suite.namespace, options("strict").as_doc())).unwrap();
    let error = suite.write(inserts(&[doc! { "_id": 8, "a": 0 }]), true).remove(0).unwrap_err();
    let info = details(&error).get("errInfo").and_then(Value::as_document).unwrap().to_owned();
    assert_eq!(info.as_doc().get("failingDocumentId"), Some(Value::Int32(8)));
    let reported = info.as_doc().get("details").and_then(Value::as_document).unwrap().to_owned();
    assert_eq!(reported.as_doc().get("reason"), Some(Value::String("comparison failed")));
    suite.assert_valid();
}

fn a_capped_collection_lets_go_of_the_oldest(suite: &Suite) {
    let options = doc! { "capped": true, "size": 4096, "max": 3 };
    suite.run(suite.store.create_collection(&suite.namespace, options.as_doc())).unwrap();
    suite.create_index(index(doc! { "u": 1 }, doc! { "unique": true })).unwrap();
    let document = |id: i32, unique: i32| doc! { "_id": id, "u": unique };
    suite.insert(&[document(0, 0), document(1, 1), document(2, 2), document(3, 3)]);
    assert_eq!(suite.ids(), ["Some(Int32(1))", "Some(Int32(2))", "Some(Int32(3))"]);
    // A deleted document frees its keys, within the same batch too.
    suite.insert(&[document(4, 4), document(5, 1)]);
    assert_eq!(suite.ids(), ["Some(Int32(3))", "Some(Int32(4))", "Some(Int32(5))"]);
    assert_eq!(
        suite.write(inserts(&[document(6, 5)]), true).remove(0),
        Ok(StatementOutcome { matched: 1, ..Default::default() })
    );
    assert!(suite.write(inserts(&[document(6, 9)]), true).remove(0).is_err());
    let upsert = UpdateStatement { upsert: true, ..update(doc! { "_id": 7 }, doc! { "$set": &doc! { "u": 7 } }) };
    suite.update(upsert).unwrap();
    assert_eq!(suite.ids(), ["Some(Int32(5))", "Some(Int32(6))", "Some(Int32(7))"]);
    // One document stays, whatever its size.
    suite.insert(&[doc! { "_id": 8, "u": 8, "s": &*"x".repeat(5000) }]);
    assert_eq!(suite.ids(), ["Some(Int32(8))"]);
    suite.insert(&[document(9, 9)]);
    assert_eq!(suite.ids(), ["Some(Int32(9))"]);
    assert_eq!(suite.delete(delete(doc! {}, false)).matched, 1);
    suite.assert_valid();
}

fn a_tail_goes_on_with_what_comes(suite: &Suite) {
    let everything = Predicate::everything();
    assert!(suite.run(suite.store.tail(&suite.namespace, &everything)).unwrap().is_none());
    let options = doc! { "capped": true, "size": 4096, "max": 3 };
    suite.run(suite.store.create_collection(&suite.namespace, options.as_doc())).unwrap();
    suite.insert(&[doc! { "_id": 1 }, doc! { "_id": 2 }]);
    let plan = suite.run(suite.store.tail(&suite.namespace, &everything)).unwrap().unwrap();
    let mut position: Option<Position> = None;
    let mut next = |suite: &Suite| -> Result<Vec<i32>> {
        let predicate = Predicate::everything();
        let mut sink = Collect { decode: suite.decode, predicate, exact: false, found: Vec::new(), left: 10 };
        match suite.run(suite.store.scan(&*plan, position.as_ref(), 10, &mut sink))? {
            ScanEnd::Exhausted => panic!("a tail has no end"),
            ScanEnd::Stopped(reached) => position = Some(reached),
        }
        let id = |document: &DocBuf| match document.as_doc().get("_id") {
            Some(Value::Int32(id)) => id,
            _ => 0,
        };
        Ok(sink.found.iter().map(id).collect())
    };
    assert_eq!(next(suite), Ok(vec![1, 2]));
    assert_eq!(next(suite), Ok(vec![]));
    suite.insert(&[doc! { "_id": 3 }]);
    assert_eq!(next(suite), Ok(vec![3]));
    let coming = suite.store.additions(&*plan);
    suite.insert(&[doc! { "_id": 4 }]);
    suite.run(coming);
    assert_eq!(next(suite), Ok(vec![4]));
    suite.insert(&[doc! { "_id": 5 }, doc! { "_id": 6 }, doc! { "_id": 7 }]);
    assert_eq!(next(suite).unwrap_err().code(), Code::CAPPED_POSITION_LOST);
    let plain = Namespace::new(&suite.namespace.database, "plain");
    suite.run(suite.store.create_collection(&plain, Doc::EMPTY)).unwrap();
    assert_eq!(suite.run(suite.store.tail(&plain, &everything)).unwrap_err().code(), Code::BAD_VALUE);
}
