//! The groups of streams that wait for events of the same scope, and how those are found that an
//! event may concern.

use super::super::event::{Event, EventKind};
use super::super::images::Images;
use super::super::options::View;
use super::filter::{Filter, FilterKey, value_hash};
use super::{Interest, WaitingStream};
use document::path::{End, Path};
use document::{Doc, DocBuf};
use hashbrown::HashMap;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::task::Waker;
use store::{FeedEntry, FeedPosition};

/// Streams with the same interest.
pub struct Group {
    view: View,
    filter: Option<Filter>,
    pub streams: RefCell<HashMap<u64, Rc<WaitingStream>, ahash::RandomState>>,
}

/// All groups of a scope.
#[derive(Default)]
pub struct Groups {
    by_interest: HashMap<(View, Option<FilterKey>), Rc<Group>, ahash::RandomState>,
    /// Those that are examined for each event.
    always: Rc<Vec<Rc<Group>>>,
    /// Others, by values that an event must have.
    by_value: HashMap<u64, Vec<Rc<Group>>, ahash::RandomState>,
    /// The paths of these values.
    paths: Rc<Vec<ValuePath>>,
}

/// A path in events as a view shows them.
#[derive(Clone)]
struct ValuePath {
    view: View,
    path: Path,
}

impl Groups {
    /// Returns the group with an interest, and whether it is new.
    pub fn with(&mut self, interest: &Interest) -> (Rc<Group>, bool) {
        let key = (interest.view, interest.filter.as_ref().map(|filter| filter.key.clone()));
        if let Some(group) = self.by_interest.get(&key) {
            return (group.clone(), false);
        }
        let (view, filter) = (interest.view, interest.filter.clone());
        let group = Rc::new(Group { view, filter, streams: RefCell::default() });
        self.by_interest.insert(key, group.clone());
        self.index(&group);
        (group, true)
    }

    fn index(&mut self, group: &Rc<Group>) {
        let filter = group.filter.as_ref();
        let Some((filter, (path, hashes))) = filter.and_then(|filter| Some((filter, filter.needed_values()?))) else {
            Rc::make_mut(&mut self.always).push(group.clone());
            return;
        };
        let known = self.paths.iter().position(|known| known.view == filter.view && known.path == path);
        let number = known.unwrap_or_else(|| {
            let paths = Rc::make_mut(&mut self.paths);
            paths.push(ValuePath { view: filter.view, path });
            paths.len() - 1
        });
        for hash in hashes {
            self.by_value.entry(at(number, hash)).or_default().push(group.clone());
        }
    }

    pub fn len(&self) -> usize {
        self.by_interest.len()
    }

    pub fn all(&self) -> impl Iterator<Item = &Rc<Group>> {
        self.by_interest.values()
    }

    /// Removes the groups without streams.
    pub fn prune(&mut self) {
        self.by_interest.retain(|_, group| !group.streams.borrow().is_empty());
        (self.always, self.paths) = Default::default();
        self.by_value.clear();
        for group in self.by_interest.values().cloned().collect::<Vec<_>>() {
            self.index(&group);
        }
    }
}

/// Wakes the streams that an event may concern, of the groups in its scope. They continue behind
/// `examined`.
pub fn wake_concerned(groups: &RefCell<Groups>, documents: &mut Documents<'_>, examined: FeedPosition) {
    let position = documents.entry.position;
    if documents.ends_streams() {
        groups
            .borrow()
            .all()
            .filter(|group| group.shows(documents.event))
            .for_each(|group| group.wake(position, examined));
        return;
    }
    // Nothing may be borrowed while a document is read, because that may be suspended.
    let (always, paths) = (groups.borrow().always.clone(), groups.borrow().paths.clone());
    for group in always.iter() {
        if group.wants(documents) {
            group.wake(position, examined);
        }
    }
    let mut found = Vec::new();
    for (number, at_path) in paths.iter().enumerate() {
        let hashes = documents.seen_by(at_path.view).map(|document| hashes_at(&at_path.path, document));
        match hashes {
            Some(hashes) => {
                let groups = groups.borrow();
                let having = hashes.iter().filter_map(|hash| groups.by_value.get(&at(number, *hash)));
                found.extend(having.flatten().cloned());
            }
            // The streams must find out.
            None => found.extend(groups.borrow().all().filter(|group| group.reads(at_path.view)).cloned()),
        }
    }
    for group in found {
        if group.wants(documents) {
            group.wake(position, examined);
        }
    }
}

/// Returns the hash of a value at one of the paths.
fn at(path: usize, hash: u64) -> u64 {
    hash ^ (path as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Returns the hashes of the values that a path reaches.
fn hashes_at(path: &Path, document: Doc<'_>) -> Vec<u64> {
    let mut hashes = Vec::new();
    let _ = path.visit(document, End::Expanded, &mut |reached| {
        hashes.extend(reached.value.map(value_hash));
        ControlFlow::Continue(())
    });
    hashes
}

impl Group {
    /// Returns whether the way in which its streams show events includes an event.
    fn shows(&self, event: &Event<'_>) -> bool {
        self.view.shows_expanded || !event.is_expanded()
    }

    /// Returns whether its filter reads events as this view shows them.
    fn reads(&self, view: View) -> bool {
        self.filter.as_ref().is_some_and(|filter| filter.view == view)
    }

    /// Returns whether its streams may show an event, or fail with it.
    fn wants(&self, documents: &mut Documents<'_>) -> bool {
        if self.streams.borrow().is_empty() || !self.shows(documents.event) {
            return false;
        }
        let Some(filter) = &self.filter else { return true };
        let Some(document) = documents.seen_by(filter.view) else { return true };
        filter.predicate.matches(document).unwrap_or(true)
    }

    /// Wakes the streams that have not read the entry at `position`. They continue behind
    /// `examined`.
    pub fn wake(&self, position: FeedPosition, examined: FeedPosition) {
        self.streams.borrow_mut().retain(|_, stream| {
            let is_ahead = stream.from >= position;
            if !is_ahead {
                stream.reached.set(Some(examined));
                stream.waker.take().into_iter().for_each(Waker::wake);
            }
            is_ahead
        });
    }
}

/// An event as documents, each built when it is first needed.
pub struct Documents<'e> {
    entry: &'e FeedEntry,
    event: &'e Event<'e>,
    built: Vec<(View, Option<DocBuf>)>,
}

impl<'e> Documents<'e> {
    pub fn of(entry: &'e FeedEntry, event: &'e Event<'e>) -> Documents<'e> {
        Documents { entry, event, built: Vec::new() }
    }

    /// Returns whether streams end with the event, whether they show it or not.
    fn ends_streams(&self) -> bool {
        matches!(self.event.kind, EventKind::Drop | EventKind::Rename { .. } | EventKind::DropDatabase)
    }

    /// Returns the event as a view shows it; `None` if that must be found out by the stream.
    fn seen_by(&mut self, view: View) -> Option<Doc<'_>> {
        let index = self.built.iter().position(|(built, _)| *built == view).unwrap_or_else(|| {
            let images = Images::logged(self.event, self.entry, view).ok().flatten();
            let document = images.map(|images| self.event.to_document(&images, view.shows_expanded));
            self.built.push((view, document));
            self.built.len() - 1
        });
        self.built.get(index)?.1.as_ref().map(DocBuf::as_doc)
    }
}
