//! What an answer depends on, and whether a change matters to it.

use crate::bounded_evaluation;
use crate::changed_fields::Changed;
use document::path::Path;
use document::{Doc, DocBuf};
use query::{Predicate, Sort};
use std::ops::ControlFlow;
use store::{Change, Namespace};

/// What an answer was made from.
#[derive(Clone, Debug)]
pub struct Dependencies {
    pub namespace: Namespace,
    /// What is known of the documents of `namespace` that count.
    pub documents: DocumentSet,
    /// Other collections, of which every document counts.
    pub others: Vec<Namespace>,
}

/// Which documents of a collection count.
#[derive(Clone, Debug)]
pub enum DocumentSet {
    /// Those that match.
    Matching { predicate: Box<Predicate>, aspect: Aspect },
    /// All, in whatever way.
    All,
}

/// What is said of the documents that match.
#[derive(Clone, Debug)]
pub enum Aspect {
    /// What is in them.
    Documents,
    /// What is in those that come first in an order: up to this sort key.
    First { sort: Box<Sort>, last: Box<[u8]> },
    /// How many there are.
    Count,
    /// The values that a path leads to.
    DistinctValues(Path),
}

impl Dependencies {
    /// An answer made from documents that match.
    pub fn matching(namespace: Namespace, predicate: Predicate, aspect: Aspect) -> Dependencies {
        Dependencies {
            namespace,
            documents: DocumentSet::Matching { predicate: Box::new(predicate), aspect },
            others: Vec::new(),
        }
    }

    /// An answer made from all documents of some collections.
    pub fn all_documents(namespace: Namespace, others: Vec<Namespace>) -> Dependencies {
        Dependencies { namespace, documents: DocumentSet::All, others }
    }

    /// The collections that it is about.
    pub fn namespaces(&self) -> Vec<Namespace> {
        std::iter::once(&self.namespace).chain(&self.others).cloned().collect()
    }

    /// Whether a change in a collection can change the answer. Where that cannot be told, it can.
    pub fn is_affected(&self, namespace: &Namespace, change: &Change) -> bool {
        if self.others.iter().any(|other| covers(namespace, other)) {
            return true;
        }
        covers(namespace, &self.namespace) && self.is_affected_at_home(change, &Changed::any())
    }

    /// The same for a change in the scope's own collection.
    pub fn is_affected_at_home(&self, change: &Change, changed: &Changed<'_>) -> bool {
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

    /// The same for a change of one document.
    fn is_affected_by(&self, before: Option<Doc<'_>>, after: Option<Doc<'_>>, changed: &Changed<'_>) -> bool {
        let DocumentSet::Matching { predicate, aspect } = &self.documents else { return true };
        let matches = |document: Option<Doc<'_>>| {
            document.map_or(Some(false), |document| bounded_evaluation::evaluate(|| predicate.matches(document)))
        };
        if before.or(after).is_some_and(|image| changed.rules_out(predicate, image)) {
            return false;
        }
        // Who cannot be asked may match.
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

    /// About how many bytes of memory it takes.
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

/// Whether what is said of a namespace is said of a collection: a namespace without a collection stands for all of a database, one
/// without a database for everything.
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

/// All that a path leads to, as bytes that are the same when it is the same.
fn values(path: &Path, document: Doc<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = path.visit(document, document::path::End::Expanded, &mut |reached| {
        match reached.value {
            // The type counts: a list of values gives the first of those that are equal.
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
