//! Collections, indexes and their statistics.

use crate::suite::{Check, Suite, delete, details, index, inserts, update};
use document::{Doc, DocBuf, Value, doc};
use error::Code;
use query::Predicate;
use store::{IndexSelection, IndexSpec, Namespace, Query, Statements, UpdateStatement, WriteBatch, views};

pub fn checks() -> Vec<Check> {
    vec![
        ("creating", collections_are_created_listed_and_dropped),
        ("renaming", a_collection_is_renamed_across_databases),
        ("databases", databases_come_and_go_with_their_collections),
        ("indexes", indexes_are_created_listed_and_dropped),
        ("building", an_index_is_built_whole_or_not_at_all),
        ("conflicts", an_index_must_not_contradict_another),
        ("views", a_view_is_no_collection),
        ("modifying", options_of_collections_and_indexes_change),
    ]
}

fn collections_are_created_listed_and_dropped(suite: &Suite) {
    let options = doc! { "validationLevel": "off" };
    suite.run(suite.store.create_collection(&suite.namespace, options.as_doc())).unwrap();
    let again = suite.run(suite.store.create_collection(&suite.namespace, options.as_doc())).unwrap_err();
    assert_eq!(again.code(), Code::NAMESPACE_EXISTS);
    let info = suite.run(suite.store.collection(&suite.namespace)).unwrap().unwrap();
    assert_eq!((info.name.as_str(), info.options.clone()), ("things", options));
    let other = Namespace::new(&suite.namespace.database, "other things");
    suite.run(suite.store.create_collection(&other, Doc::EMPTY)).unwrap();
    let listed = suite.run(suite.store.collections(&suite.namespace.database)).unwrap();
    let names: Vec<&str> = listed.iter().map(|info| info.name.as_str()).collect();
    assert_eq!(names, ["other things", "things"]);
    assert_ne!(listed[0].uuid, listed[1].uuid);
    suite.insert(&[doc! { "_id": 1 }]);
    assert_eq!(suite.run(suite.store.drop_collection(&suite.namespace)).unwrap(), Some(1));
    assert_eq!(suite.run(suite.store.drop_collection(&suite.namespace)).unwrap(), None);
    assert_eq!(suite.all(), Vec::<DocBuf>::new());
    suite.insert(&[doc! { "_id": 1, "again": true }]);
    assert_eq!(suite.all(), [doc! { "_id": 1, "again": true }]);
}

fn a_collection_is_renamed_across_databases(suite: &Suite) {
    let elsewhere = Namespace::new("contract_renaming_elsewhere", "moved");
    suite.run(suite.store.drop_database(&elsewhere.database)).unwrap();
    let rename = |from: &Namespace, to: &Namespace, drop_target| {
        suite.run(suite.store.rename_collection(from, to, drop_target)).map_err(|error| error.code())
    };
    assert_eq!(rename(&suite.namespace, &elsewhere, false), Err(Code::NAMESPACE_NOT_FOUND));
    suite.insert(&[doc! { "_id": 1, "a": 1 }]);
    suite.create_index(index(doc! { "a": 1 }, doc! { "unique": true })).unwrap();
    assert_eq!(rename(&suite.namespace, &elsewhere, false), Ok(()));
    assert_eq!(suite.all(), Vec::<DocBuf>::new());
    suite.insert(&[doc! { "_id": 2 }]);
    assert_eq!(rename(&elsewhere, &suite.namespace, false), Err(Code::NAMESPACE_EXISTS));
    assert_eq!(rename(&elsewhere, &suite.namespace, true), Ok(()));
    assert_eq!(suite.all(), [doc! { "_id": 1, "a": 1 }]);
    let refused = suite.write(inserts(&[doc! { "_id": 3, "a": 1 }]), true).remove(0).unwrap_err();
    assert!(refused.message().contains(&format!("collection: {} index: a ", suite.namespace)), "{refused}");
    suite.assert_valid();
}

fn databases_come_and_go_with_their_collections(suite: &Suite) {
    let name = &*suite.namespace.database;
    let listed = || suite.run(suite.store.databases()).unwrap().into_iter().any(|database| database.name == name);
    assert!(!listed());
    suite.insert(&[doc! { "_id": 1, "text": "x" }]);
    assert!(listed());
    let stats = suite.run(suite.store.database_stats(name)).unwrap();
    assert_eq!((stats.collections, stats.documents, stats.indexes), (1, 1, 1));
    assert!(stats.data_bytes > 0 && stats.storage_bytes > 0);
    let upper = Namespace::new(&name.to_uppercase(), "x");
    let refused = suite.run(suite.store.create_collection(&upper, Doc::EMPTY)).unwrap_err();
    assert_eq!(refused.code(), Code::DATABASE_DIFFER_CASE);
    assert!(suite.run(suite.store.drop_database(name)).unwrap());
    assert!(!suite.run(suite.store.drop_database(name)).unwrap());
    assert!(!listed());
}

fn indexes_are_created_listed_and_dropped(suite: &Suite) {
    let names = || {
        let indexes = suite.run(suite.store.indexes(&suite.namespace)).unwrap();
        assert_eq!(suite.run(suite.store.cached_indexes(&suite.namespace)).unwrap(), indexes);
        indexes.map(|indexes| indexes.into_iter().map(|index| index.name).collect::<Vec<_>>())
    };
    assert_eq!(names(), None);
    let outcome = suite.create_index(index(doc! { "a": 1 }, doc! {})).unwrap();
    assert_eq!((outcome.indexes_before, outcome.indexes_after, outcome.created_collection), (1, 2, true));
    let outcome = suite.create_index(index(doc! { "a": 1 }, doc! {})).unwrap();
    assert_eq!((outcome.indexes_before, outcome.indexes_after, outcome.created_collection), (2, 2, false));
    suite.create_index(index(doc! { "b": 1, "c": -1 }, doc! {})).unwrap();
    suite.create_index(index(doc! { "_id": 1 }, doc! {})).unwrap();
    assert_eq!(names(), Some(vec!["_id_".into(), "a".into(), "b_c".into()]));
    let drop = |which| suite.run(suite.store.drop_indexes(&suite.namespace, which)).map_err(|error| error.code().0);
    assert_eq!(drop(IndexSelection::Names(vec!["x".into()])), Err(27));
    assert_eq!(drop(IndexSelection::Names(vec!["a".into(), "x".into()])), Err(27));
    assert_eq!(drop(IndexSelection::Names(vec!["_id_".into()])), Err(72));
    assert_eq!(drop(IndexSelection::Key(doc! { "c": 1 })), Err(27));
    assert_eq!(drop(IndexSelection::Key(doc! { "b": 1, "c": -1.0 })), Ok(3));
    assert_eq!(drop(IndexSelection::All), Ok(2));
    assert_eq!(names(), Some(vec!["_id_".into()]));
    let nowhere = Namespace::new(&suite.namespace.database, "nowhere");
    let missing = suite.run(suite.store.drop_indexes(&nowhere, IndexSelection::All)).unwrap_err();
    assert_eq!(missing.code(), Code::NAMESPACE_NOT_FOUND);
}

fn an_index_is_built_whole_or_not_at_all(suite: &Suite) {
    let documents: Vec<DocBuf> = (0..200).map(|id| doc! { "_id": id, "a": id / 2, "b": 1000 - id }).collect();
    suite.insert(&documents);
    let good = index(doc! { "b": 1 }, doc! { "unique": true });
    let bad = index(doc! { "a": 1 }, doc! { "unique": true });
    let refused = suite.run(suite.store.create_indexes(&suite.namespace, vec![good.clone(), bad])).unwrap_err();
    assert_eq!(refused.code(), Code::DUPLICATE_KEY);
    assert!(refused.message().contains("index: a dup key: { a: 0 }"), "{refused}");
    assert_eq!(details(&refused).get("keyValue"), Some(Value::Document(doc! { "a": 0 }.as_doc())));
    assert_eq!(suite.run(suite.store.indexes(&suite.namespace)).unwrap().unwrap().len(), 1);
    suite.create_index(good).unwrap();
    suite.assert_valid();
    assert_eq!(suite.find(&doc! { "b": 990 }), documents[10..11]);
}

fn an_index_must_not_contradict_another(suite: &Suite) {
    suite.create_index(index(doc! { "a": 1 }, doc! {})).unwrap();
    let code = |index: IndexSpec| suite.create_index(index).err().map_or(0, |error| error.code().0);
    let renamed = |name: &str, key: DocBuf| {
        let spec = doc! { "v": 2, "key": &key, "name": name };
        IndexSpec { name: name.into(), unique: false, sparse: false, key, spec }
    };
    assert_eq!(code(renamed("other", doc! { "a": 1 })), 85);
    assert_eq!(code(renamed("a", doc! { "b": 1 })), 86);
    assert_eq!(code(renamed("b", doc! { "b": 0 })), 67);
    assert_eq!(code(renamed("b", doc! { "b": 1 })), 0);
}

fn a_view_is_no_collection(suite: &Suite) {
    let name = suite.namespace.to_string();
    let home = views::definitions(&suite.namespace.database);
    let matches_none = delete(doc! {}, false);
    assert_eq!(suite.delete(delete(doc! {}, false)).matched, 0);
    let definition = doc! { "_id": &name, "viewOn": "other", "pipeline": &document::array![] };
    let define = WriteBatch::new(home.clone(), inserts(&[definition]));
    suite.run(suite.store.write(define)).unwrap().statements.remove(0).unwrap();
    let everything = Predicate::everything();
    let query = Query::of(&everything);
    let plan = suite.run(suite.store.plan(&suite.namespace, query)).unwrap();
    assert!(plan.facts().view);
    assert_eq!(suite.find_in_batches(&doc! {}, None, 1).unwrap_err().code(), Code::COMMAND_NOT_SUPPORTED_ON_VIEW);
    let upsert = UpdateStatement { upsert: true, ..update(doc! { "_id": 1 }, doc! { "$set": &doc! { "a": 1 } }) };
    for statements in [
        inserts(&[doc! { "_id": 1 }, doc! { "_id": 2 }]),
        Statements::Update(vec![upsert]),
        Statements::Update(vec![update(doc! {}, doc! { "$set": &doc! { "a": 1 } })]),
        Statements::Delete(vec![matches_none]),
    ] {
        for outcome in suite.write(statements, false) {
            assert_eq!(outcome.unwrap_err().code(), Code::COMMAND_NOT_SUPPORTED_ON_VIEW);
        }
    }
    let indexed = suite.create_index(index(doc! { "a": 1 }, doc! {})).unwrap_err();
    assert_eq!(indexed.code(), Code::COMMAND_NOT_SUPPORTED_ON_VIEW);
    assert_eq!(suite.run(suite.store.collection(&suite.namespace)).unwrap().map(|info| info.name), None);
    // A name is free again once the view is gone.
    suite.run(suite.store.drop_collection(&home)).unwrap();
    suite.insert(&[doc! { "_id": 1 }]);
}

fn options_of_collections_and_indexes_change(suite: &Suite) {
    let missing = suite.run(suite.store.modify_collection(&suite.namespace, Doc::EMPTY)).unwrap_err();
    assert_eq!(missing.code(), Code::NAMESPACE_NOT_FOUND);
    let asked = index(doc! { "a": 1 }, doc! { "expireAfterSeconds": 5 });
    suite.create_index(asked.clone()).unwrap();
    suite.insert(&[doc! { "_id": 1, "a": &document::array![1, 2] }]);
    let options = doc! { "validationLevel": "off" };
    suite.run(suite.store.modify_collection(&suite.namespace, options.as_doc())).unwrap();
    let info = suite.run(suite.store.collection(&suite.namespace)).unwrap().unwrap();
    assert_eq!(info.options, options);
    let changed = index(doc! { "a": 1 }, doc! { "expireAfterSeconds": 7, "hidden": true });
    suite.run(suite.store.modify_index(&suite.namespace, changed.clone())).unwrap();
    let indexes = suite.run(suite.store.indexes(&suite.namespace)).unwrap().unwrap();
    assert_eq!(indexes[1], changed);
    assert_eq!(suite.find(&doc! { "a": &doc! { "$gte": 1 } }).len(), 1);
    let unknown = index(doc! { "b": 1 }, doc! {});
    let unknown = suite.run(suite.store.modify_index(&suite.namespace, unknown)).unwrap_err();
    assert_eq!(unknown.code(), Code::INDEX_NOT_FOUND);
    suite.assert_valid();
}
