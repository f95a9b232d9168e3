//! Unindexed entries: those that every change of their collection is checked against.
//!
//! Their filters are often alike: an application adds the same condition to all of its queries
//! (`deleted: {$ne: true}`). So a condition that several filters have is stored once, apart from
//! the filters, and tested once for a change. If it fails, none of those filters is evaluated.

use crate::bounded_evaluation;
use crate::changed_fields::{ChangedFields, is_infallible};
use document::{Doc, DocBuf};
use hashbrown::HashMap;
use query::Predicate;
use query::predicate::{Node, Test};
use smallvec::SmallVec;

#[derive(Default)]
pub struct UnindexedPredicates {
    entries: Vec<Entry>,
    conditions: Vec<Option<SharedCondition>>,
    /// How many entries have each condition; dense, as it is read for all of them.
    reference_counts: Vec<u32>,
    by_identity: HashMap<Box<[u8]>, u32, ahash::RandomState>,
}

struct Entry {
    entry: u32,
    /// The numbers of those of its conditions that every matching document meets.
    conditions: SmallVec<[u32; 4]>,
}

struct SharedCondition {
    node: Node,
    identity: Box<[u8]>,
}

impl UnindexedPredicates {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn add(&mut self, entry: u32, predicate: Option<&Predicate>) {
        let conditions = predicate.map_or(&[][..], |predicate| match predicate.root() {
            Node::And(all) => all,
            node => std::slice::from_ref(node),
        });
        // A condition that may fail makes those after it irrelevant: its error would be the result.
        let certain = conditions.iter().take_while(|node| is_infallible(node));
        let conditions = certain.filter_map(|node| Some(self.share(node, identity(node)?))).collect();
        self.entries.push(Entry { entry, conditions });
    }

    fn share(&mut self, node: &Node, identity: Box<[u8]>) -> u32 {
        if let Some(&number) = self.by_identity.get(&identity) {
            self.reference_counts.get_mut(number as usize).into_iter().for_each(|count| *count += 1);
            return number;
        }
        let condition = Some(SharedCondition { node: node.clone(), identity: identity.clone() });
        let free = self.conditions.iter().position(Option::is_none);
        let number = free.unwrap_or(self.conditions.len());
        match (self.conditions.get_mut(number), self.reference_counts.get_mut(number)) {
            (Some(slot), Some(reference_counts)) => (*slot, *reference_counts) = (condition, 1),
            _ => {
                self.conditions.push(condition);
                self.reference_counts.push(1);
            }
        }
        self.by_identity.insert(identity, number as u32);
        number as u32
    }

    pub fn remove(&mut self, entry: u32) {
        let Some(at) = self.entries.iter().position(|one| one.entry == entry) else { return };
        for number in self.entries.remove(at).conditions {
            let Some(reference_counts) = self.reference_counts.get_mut(number as usize) else { continue };
            *reference_counts -= 1;
            if *reference_counts == 0
                && let Some(condition) = self.conditions.get_mut(number as usize).and_then(Option::take)
            {
                self.by_identity.remove(&condition.identity);
            }
        }
    }

    /// Returns the oldest entry and moves it to the end.
    pub fn rotate(&mut self) -> Option<u32> {
        let first = self.entries.first()?.entry;
        self.entries.rotate_left(1);
        Some(first)
    }

    pub fn all(&self) -> impl Iterator<Item = u32> + '_ {
        self.entries.iter().map(|one| one.entry)
    }

    /// Finds the entries that a changed document may affect, as it was or as it is.
    pub fn find_by_images(
        &self,
        before: Option<Doc<'_>>,
        after: Option<Doc<'_>>,
        changed: &ChangedFields<'_>,
        found: &mut Vec<u32>,
    ) {
        // Whether the condition holds for neither image, once it is evaluated.
        let mut known: SmallVec<[Option<bool>; 64]> = SmallVec::from_elem(None, self.conditions.len());
        for Entry { entry, conditions } in &self.entries {
            let mut fails = |&number: &u32| {
                // A condition of a single entry is tested with the rest of its filter.
                if self.reference_counts.get(number as usize).is_none_or(|&reference_counts| reference_counts < 2) {
                    return false;
                }
                let (Some(Some(condition)), Some(known)) =
                    (self.conditions.get(number as usize), known.get_mut(number as usize))
                else {
                    return false;
                };
                *known.get_or_insert_with(|| holds_for_neither(&condition.node, before, after, changed))
            };
            if !conditions.iter().any(&mut fails) {
                found.push(*entry);
            }
        }
    }
}

fn holds_for_neither(
    node: &Node,
    before: Option<Doc<'_>>,
    after: Option<Doc<'_>>,
    changed: &ChangedFields<'_>,
) -> bool {
    let fails = |image: Option<Doc<'_>>| {
        image.is_none_or(|image| bounded_evaluation::evaluate(|| node.matches(image)) == Some(false))
    };
    fails(before) && (before.is_some() && !changed.is_read_by(node) || fails(after))
}

/// Returns bytes that are equal for equal conditions; `None` for conditions that are not shared.
fn identity(node: &Node) -> Option<Box<[u8]>> {
    let Node::Path { path, test } = node else { return None };
    let (test, is_negated) = if let Test::Not(inner) = test { (&**inner, true) } else { (test, false) };
    let (kind, value) = match test {
        Test::Exists => (0_u8, None),
        Test::Equal(value) => (1, Some(value)),
        Test::Less(value) => (2, Some(value)),
        Test::LessOrEqual(value) => (3, Some(value)),
        Test::Greater(value) => (4, Some(value)),
        Test::GreaterOrEqual(value) => (5, Some(value)),
        _ => return None,
    };
    let mut identity = vec![kind, u8::from(is_negated)];
    identity.extend_from_slice(path.as_str().as_bytes());
    identity.push(0);
    if let Some(value) = value {
        identity.extend_from_slice(DocBuf::build(|writer| writer.append("", value.as_value())).as_bytes());
    }
    Some(identity.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::doc;
    use query::Context;
    use store::Change;

    fn predicate(filter: &DocBuf) -> Predicate {
        Predicate::parse(filter.as_doc(), &Context::at(0)).unwrap()
    }

    fn found(unindexed: &UnindexedPredicates, before: Option<&DocBuf>, after: Option<&DocBuf>) -> Vec<u32> {
        let change = Change::Document { before: before.cloned(), after: after.cloned() };
        let mut found = Vec::new();
        let [before, after] = [before, after].map(|image| image.map(DocBuf::as_doc));
        unindexed.find_by_images(before, after, &ChangedFields::of(&change), &mut found);
        found
    }

    #[test]
    fn a_shared_condition_rules_entries_out() {
        let mut unindexed = UnindexedPredicates::default();
        let live = doc! { "$ne": true };
        for number in 0..4 {
            unindexed.add(number, Some(&predicate(&doc! { "deleted": &live, "n": &doc! { "$ne": number as i32 } })));
        }
        // After a condition that may fail, no other is shared.
        let fallible = doc! { "text": &doc! { "$not": &doc! { "$regex": "(a+)+$" } }, "deleted": &live };
        unindexed.add(4, Some(&Predicate::parse_as_written(fallible.as_doc(), &Context::at(0)).unwrap()));
        unindexed.add(5, None);
        let (live, deleted) = (doc! { "_id": 1, "n": 9 }, doc! { "_id": 1, "n": 9, "deleted": true });
        assert_eq!(found(&unindexed, Some(&live), Some(&live)), [0, 1, 2, 3, 4, 5]);
        assert_eq!(found(&unindexed, Some(&live), Some(&deleted)), [0, 1, 2, 3, 4, 5]);
        assert_eq!(found(&unindexed, Some(&deleted), Some(&live)), [0, 1, 2, 3, 4, 5]);
        let other = doc! { "_id": 1, "n": 8, "deleted": true };
        for (before, after) in [(Some(&deleted), Some(&other)), (None, Some(&deleted)), (Some(&deleted), None)] {
            assert_eq!(found(&unindexed, before, after), [4, 5]);
        }
    }

    #[test]
    fn a_condition_is_removed_with_its_last_entry() {
        let mut unindexed = UnindexedPredicates::default();
        let filters =
            [doc! { "a": &doc! { "$ne": 1 } }, doc! { "a": &doc! { "$ne": 1.0 } }, doc! { "a": &doc! { "$ne": 1 } }];
        (0..).zip(&filters).for_each(|(number, filter)| unindexed.add(number, Some(&predicate(filter))));
        // The same number of another type is another condition.
        assert_eq!(unindexed.by_identity.len(), 2);
        assert_eq!(found(&unindexed, None, Some(&doc! { "a": 1 })), [1]);
        unindexed.remove(0);
        assert_eq!(found(&unindexed, None, Some(&doc! { "a": 1 })), [1, 2], "tested with its filter");
        unindexed.remove(2);
        unindexed.remove(1);
        assert!(
            unindexed.is_empty()
                && unindexed.by_identity.is_empty()
                && unindexed.conditions.iter().all(Option::is_none)
        );
        unindexed.add(7, Some(&predicate(&filters[0])));
        assert_eq!((unindexed.rotate(), unindexed.conditions.len()), (Some(7), 2));
    }
}
