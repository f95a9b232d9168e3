//! Documents of many pages, which are read from a mapping of the file.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use bytes::Bytes;
use document::{Value, doc};
use error::Result;
use query::{Context, Predicate};
use store::{Flow, Namespace, Query, ScanEnd, Sink, Statements, StoredDoc, WriteBatch};
use store_sqlite::{Options, open};

const DOCUMENT_BYTES: usize = 500_000;

/// Ids and texts in the order of the scan.
#[derive(Default)]
struct All(Vec<(i32, u8)>);

impl Sink for All {
    fn accept(&mut self, document: StoredDoc<'_>) -> Result<Flow> {
        let StoredDoc::Bson(document) = document else { panic!("not BSON") };
        let text = document.get("text").and_then(|value| value.as_str()).unwrap();
        assert!(text == text[..1].repeat(DOCUMENT_BYTES), "pages of several documents");
        let Some(Value::Int32(id)) = document.get("_id") else { panic!("no _id") };
        self.0.push((id, text.as_bytes()[0]));
        Ok(Flow::Continue)
    }
}

/// More than is read between two checks of the memory, of a growing file, with the log and without
/// it.
#[tokio::test(flavor = "current_thread")]
async fn large_documents_are_read_as_they_were_written() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path(), Options::default()).unwrap();
    let store = engine.clone().open().unwrap();
    let namespace = Namespace::new("d", "c");
    let everything = Predicate::parse(doc! {}.as_doc(), &Context::at(0)).unwrap();
    let mut expected = Vec::new();
    for id in 0..40 {
        let letter = b'a' + (id % 26) as u8;
        let text = char::from(letter).to_string().repeat(DOCUMENT_BYTES);
        let batch = WriteBatch::new(
            namespace.clone(),
            Statements::Insert(vec![Bytes::from(doc! { "_id": id, "text": text.as_str() }.into_vec())]),
        );
        store.write(batch).await.unwrap().statements.remove(0).unwrap();
        expected.push((id, letter));
        let query = Query::of(&everything);
        let plan = store.plan(&namespace, query).await.unwrap();
        let mut all = All::default();
        assert!(matches!(store.scan(&*plan, None, 1, &mut all).await.unwrap(), ScanEnd::Exhausted));
        assert_eq!(all.0, expected);
    }
}
