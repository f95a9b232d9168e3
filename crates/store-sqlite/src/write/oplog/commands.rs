//! The entries of changes of the catalog, in MongoDB's format.

use crate::catalog::{Collection, Index, id_index};
use crate::write::state::Writer;
use document::{Doc, DocBuf, DocWriter, Value, doc};
use std::sync::Arc;
use store::Namespace;
use store::catalog::random_uuid;

impl Writer {
    pub(in crate::write) fn log_create(&mut self, collection: &Collection) {
        if !self.is_logging() {
            return;
        }
        let command = DocBuf::build(|writer| {
            writer.append("create", &*collection.namespace.collection);
            collection.options.as_doc().elements().for_each(|option| writer.append_element(option));
            writer.append("idIndex", &id_index().spec);
        });
        self.log_of(collection, &command, None);
    }

    pub(in crate::write) fn log_drop(&mut self, collection: &Collection) {
        if !self.is_logging() {
            return;
        }
        let records = doc! { "numRecords": self.documents_of(collection) as i64 };
        self.log_of(collection, &doc! { "drop": &*collection.namespace.collection }, Some(&records));
    }

    pub(in crate::write) fn log_drop_database(&mut self, database: &str) {
        self.log_command(database, None, &doc! { "dropDatabase": 1 }, None);
    }

    /// `target`: the collection that the rename drops.
    pub(in crate::write) fn log_rename(&mut self, from: &Collection, to: &Namespace, target: Option<&Collection>) {
        if !self.is_logging() {
            return;
        }
        let (source, to) = (from.namespace.to_string(), to.to_string());
        let mut command = doc! { "renameCollection": source.as_str(), "to": to.as_str(), "stayTemp": false };
        let mut records = None;
        if let Some(target) = target {
            command.append("dropTarget", Value::Binary { subtype: 4, bytes: &target.uuid });
            records = Some(doc! { "numRecords": self.documents_of(target) as i64 });
        }
        self.log_of(from, &command, records.as_ref());
    }

    /// Logs the options that a `collMod` has changed.
    pub(in crate::write) fn log_options(&mut self, before: &Collection, after: &Collection) {
        if !self.is_logging() {
            return;
        }
        let command = DocBuf::build(|writer| {
            writer.append("collMod", &*before.namespace.collection);
            append_changes(before.options.as_doc(), after.options.as_doc(), writer);
        });
        let details = DocBuf::build(|writer| append_old_options(before, writer));
        self.log_of(before, &command, Some(&details));
    }

    /// Logs the options of an index that a `collMod` has changed.
    pub(in crate::write) fn log_index_options(&mut self, collection: &Collection, before: &Index, after: &Index) {
        if !self.is_logging() {
            return;
        }
        let (old, new) = (before.spec.spec.as_doc(), after.spec.spec.as_doc());
        let command = DocBuf::build(|writer| {
            writer.append("collMod", &*collection.namespace.collection);
            let mut index = writer.document("index");
            index.append("name", after.spec.name.as_str());
            append_changes(old, new, &mut index);
            let shown = old.get("hidden").filter(|_| new.get("hidden").is_none());
            if shown.is_some() {
                index.append("hidden", false);
            }
        });
        let details = DocBuf::build(|writer| {
            append_old_options(collection, writer);
            let mut options = writer.document("indexOptions_old");
            if old.get("hidden") != new.get("hidden") {
                options.append("hidden", before.hidden);
            }
            let expiry = old.element("expireAfterSeconds");
            if let Some(expiry) = expiry.filter(|expiry| Some(expiry.value()) != new.get("expireAfterSeconds")) {
                options.append_element(expiry);
            }
        });
        self.log_of(collection, &command, Some(&details));
    }

    /// Logs new indexes: one entry for each, or one for all if there were documents to index.
    pub(in crate::write) fn log_index_builds(&mut self, collection: &Collection, built: &[Arc<Index>], all: bool) {
        if !self.is_logging() || built.is_empty() {
            return;
        }
        let name = &*collection.namespace.collection;
        if !all {
            for index in built {
                let command = DocBuf::build(|writer| {
                    writer.append("createIndexes", name);
                    index.spec.spec.as_doc().elements().for_each(|option| writer.append_element(option));
                });
                self.log_of(collection, &command, None);
            }
            return;
        }
        let build = random_uuid();
        for command in ["startIndexBuild", "commitIndexBuild"] {
            let command = DocBuf::build(|writer| {
                writer.append(command, name);
                writer.append("indexBuildUUID", Value::Binary { subtype: 4, bytes: &build });
                let mut indexes = writer.array("indexes");
                built.iter().for_each(|index| indexes.push(&index.spec.spec));
            });
            self.log_of(collection, &command, None);
        }
    }

    pub(in crate::write) fn log_drop_index(&mut self, collection: &Collection, index: &Index) {
        let command = doc! { "dropIndexes": &*collection.namespace.collection, "index": index.spec.name.as_str() };
        self.log_of(collection, &command, Some(&index.spec.spec));
    }

    fn log_of(&mut self, collection: &Collection, command: &DocBuf, details: Option<&DocBuf>) {
        self.log_command(&collection.namespace.database, Some(collection.uuid), command, details);
    }
}

/// Appends the fields of `after` that differ from those of `before`.
fn append_changes(before: Doc<'_>, after: Doc<'_>, writer: &mut DocWriter<'_>) {
    let changed = after.elements().filter(|option| before.get(option.key()) != Some(option.value()));
    changed.for_each(|option| writer.append_element(option));
}

fn append_old_options(collection: &Collection, writer: &mut DocWriter<'_>) {
    let mut options = writer.document("collectionOptions_old");
    options.append("uuid", Value::Binary { subtype: 4, bytes: &collection.uuid });
    collection.options.as_doc().elements().for_each(|option| options.append_element(option));
}
