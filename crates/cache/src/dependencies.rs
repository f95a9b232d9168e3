//! What a cached reply depends on, and whether a change affects it.

use crate::bounded_evaluation;
use crate::changed_fields::ChangedFields;
use document::path::Path;
use document::{Doc, DocBuf};
use query::{Predicate, Sort};
use std::ops::ControlFlow;
use store::{Change, Namespace};

/// What a reply was computed from.
#[derive(Clone, Debug)]
pub struct Dependencies {
    pub namespace: Namespace,
    /// The documents of `namespace` that it depends on.
    pub documents: DocumentSet,
    /// Other collections, of which it depends on all documents.
    pub others: Vec<Namespace>,
}

/// A set of documents of a collection.
#[derive(Clone, Debug)]
pub enum DocumentSet {
    /// Those that match.
    Matching { predicate: Box<Predicate>, aspect: Aspect },
    /// All of them.
    All,
}

/// What a reply contains of the matching documents.
#[derive(Clone, Debug)]
pub enum Aspect {
    /// Their contents.
    Documents,
    /// The contents of the first in an order, up to this sort key.
    First { sort: Box<Sort>, last: Box<[u8]> },
    /// Their number.
    Count,
    /// The values at a path.
    DistinctValues(Path),
}

impl Dependencies {
    /// A reply computed from the documents that match.
    pub fn matching(namespace: Namespace, predicate: Predicate, aspect: Aspect) -> Dependencies {
        Dependencies {
            namespace,
            documents: DocumentSet::Matching { predicate: Box::new(predicate), aspect },
            others: Vec::new(),
        }
    }

    /// A reply computed from all documents of some collections.
    pub fn all_documents(namespace: Namespace, others: Vec<Namespace>) -> Dependencies {
        Dependencies { namespace, documents: DocumentSet::All, others }
    }

    /// Returns the collections that it depends on.
    pub fn namespaces(&self) -> Vec<Namespace> {
        std::iter::once(&self.namespace).chain(&self.others).cloned().collect()
    }

    /// Returns whether a change in a collection may change the reply. True where that cannot be
    /// determined.
    pub fn is_affected(&self, namespace: &Namespace, change: &Change) -> bool {
        if self.others.iter().any(|other| covers(namespace, other)) {
            return true;
        }
        covers(namespace, &self.namespace) && self.is_affected_in_own_namespace(change, &ChangedFields::any())
    }

    /// As [`Dependencies::is_affected`], for a change in `self.namespace`.
    pub fn is_affected_in_own_namespace(&self, change: &Change, changed: &ChangedFields<'_>) -> bool {
        match change {
            Change::Document { before, after } => self.is_affected_by(as_doc(before), as_doc(after), changed),
            Change::Id(id) => match &self.documents {
                DocumentSet::Matching { predicate, .. } => {
                    crate::invalidation_keys::may_match_id(predicate, id.as_value())
                }
                DocumentSet::All => true,
            },
            Change::Unspecified => true,
        }
    }

    /// As [`Dependencies::is_affected`], for a change of one document of `self.namespace`.
    fn is_affected_by(&self, before: Option<Doc<'_>>, after: Option<Doc<'_>>, changed: &ChangedFields<'_>) -> bool {
        let DocumentSet::Matching { predicate, aspect } = &self.documents else { return true };
        let matches = |document: Option<Doc<'_>>| {
            document.map_or(Some(false), |document| bounded_evaluation::evaluate(|| predicate.matches(document)))
        };
        if before.or(after).is_some_and(|image| changed.rules_out(predicate, image)) {
            return false;
        }
        // A document on which the filter fails may match.
        let Some(was) = matches(before) else { return true };
        let is = if changed.matters_to(predicate) { matches(after) } else { Some(was) };
        let Some(is) = is else { return true };
        let (before, after) = (before.filter(|_| was), after.filter(|_| is));
        match aspect {
            Aspect::Documents => was || is,
            Aspect::First { sort, last } => {
                [before, after].into_iter().flatten().any(|document| comes_first(sort, document, last))
            }
            Aspect::Count => was != is,
            Aspect::DistinctValues(path) => match (before, after) {
                (None, None) => false,
                (Some(before), Some(after)) => values(path, before) != values(path, after),
                _ => true,
            },
        }
    }

    /// Returns the approximate size in memory.
    pub(crate) fn bytes(&self) -> usize {
        let reach = match &self.documents {
            DocumentSet::Matching { predicate, aspect } => {
                predicate_bytes(predicate.root())
                    + match aspect {
                        Aspect::First { last, .. } => last.len() + 200,
                        Aspect::DistinctValues(path) => path.as_str().len() + 100,
                        Aspect::Documents | Aspect::Count => 0,
                    }
            }
            DocumentSet::All => 0,
        };
        reach + self.others.len() * 64
    }
}

/// Returns whether a namespace includes a collection: one without a collection includes all of its
/// database, one without a database everything.
pub(crate) fn covers(namespace: &Namespace, collection: &Namespace) -> bool {
    namespace.database.is_empty()
        || namespace.database == collection.database
            && (namespace.collection.is_empty() || namespace.collection == collection.collection)
}

fn as_doc(document: &Option<DocBuf>) -> Option<Doc<'_>> {
    document.as_ref().map(DocBuf::as_doc)
}

fn comes_first(sort: &Sort, document: Doc<'_>, last: &[u8]) -> bool {
    let mut key = Vec::new();
    sort.key(document, &mut key).is_err() || key.as_slice() <= last
}

/// Encodes all values at a path, as bytes that are equal for equal values.
fn values(path: &Path, document: Doc<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = path.visit(document, document::path::End::Expanded, &mut |reached| {
        match reached.value {
            // The type matters: a list of distinct values has the first of equal ones.
            Some(value) => bytes.extend_from_slice(DocBuf::build(|writer| writer.append("", value)).as_bytes()),
            None => bytes.push(0),
        }
        ControlFlow::<()>::Continue(())
    });
    bytes
}

fn predicate_bytes(node: &query::predicate::Node) -> usize {
    use query::predicate::Node;
    const NODE: usize = size_of::<Node>();
    match node {
        Node::And(branches) | Node::Or(branches) | Node::Nor(branches) => {
            NODE + branches.iter().map(predicate_bytes).sum::<usize>()
        }
        Node::Path { path, .. } => NODE + path.as_str().len() + 150,
        _ => NODE + 500,
    }
}
