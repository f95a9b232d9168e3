//! Answers that every change of their collection is held against.
//!
//! Their filters are often alike: what an application adds to each of its questions (`deleted: {$ne: true}`) is in all of them. So a condition
//! that several have is kept once, apart from the filters, and tested once for a change; where it fails, none of them is looked at.

use crate::bounded_evaluation;
use crate::changed_fields::{Changed, is_infallible};
use document::{Doc, DocBuf};
use hashbrown::HashMap;
use query::Predicate;
use query::predicate::{Node, Test};
use smallvec::SmallVec;

#[derive(Default)]
pub struct Listed {
    answers: Vec<Entry>,
    conditions: Vec<Option<Condition>>,
    /// How many answers have each condition: close together, for they are asked of all.
    users: Vec<u32>,
    by_identity: HashMap<Box<[u8]>, u32, ahash::RandomState>,
}

struct Entry {
    answer: u32,
    /// Those of its conditions that hold for each document that matches, by number.
    conditions: SmallVec<[u32; 4]>,
}

struct Condition {
    node: Node,
    identity: Box<[u8]>,
}

impl Listed {
    pub fn len(&self) -> usize {
        self.answers.len()
    }

    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    pub fn add(&mut self, answer: u32, predicate: Option<&Predicate>) {
        let conditions = predicate.map_or(&[][..], |predicate| match predicate.root() {
            Node::And(all) => all,
            node => std::slice::from_ref(node),
        });
        // One that may fail ends what those behind it say: its error would be the answer.
        let certain = conditions.iter().take_while(|node| is_infallible(node));
        let conditions = certain.filter_map(|node| Some(self.share(node, identity(node)?))).collect();
        self.answers.push(Entry { answer, conditions });
    }

    fn share(&mut self, node: &Node, identity: Box<[u8]>) -> u32 {
        if let Some(&number) = self.by_identity.get(&identity) {
            self.users.get_mut(number as usize).into_iter().for_each(|users| *users += 1);
            return number;
        }
        let condition = Some(Condition { node: node.clone(), identity: identity.clone() });
        let free = self.conditions.iter().position(Option::is_none);
        let number = free.unwrap_or(self.conditions.len());
        match (self.conditions.get_mut(number), self.users.get_mut(number)) {
            (Some(place), Some(users)) => (*place, *users) = (condition, 1),
            _ => {
                self.conditions.push(condition);
                self.users.push(1);
            }
        }
        self.by_identity.insert(identity, number as u32);
        number as u32
    }

    pub fn remove(&mut self, answer: u32) {
        let Some(at) = self.answers.iter().position(|entry| entry.answer == answer) else { return };
        for number in self.answers.remove(at).conditions {
            let Some(users) = self.users.get_mut(number as usize) else { continue };
            *users -= 1;
            if *users == 0
                && let Some(condition) = self.conditions.get_mut(number as usize).and_then(Option::take)
            {
                self.by_identity.remove(&condition.identity);
            }
        }
    }

    /// The one that has been there longest; it goes to the end.
    pub fn turn(&mut self) -> Option<u32> {
        let first = self.answers.first()?.answer;
        self.answers.rotate_left(1);
        Some(first)
    }

    pub fn all(&self) -> impl Iterator<Item = u32> + '_ {
        self.answers.iter().map(|entry| entry.answer)
    }

    /// Those that a document may matter to, as it was or as it is.
    pub fn of_images(
        &self,
        before: Option<Doc<'_>>,
        after: Option<Doc<'_>>,
        changed: &Changed<'_>,
        found: &mut Vec<u32>,
    ) {
        // Whether it holds for neither image, where that was asked.
        let mut known: SmallVec<[Option<bool>; 64]> = SmallVec::from_elem(None, self.conditions.len());
        for Entry { answer, conditions } in &self.answers {
            let mut fails = |&number: &u32| {
                // One that no other answer has is tested with the rest of its filter.
                if self.users.get(number as usize).is_none_or(|&users| users < 2) {
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
                found.push(*answer);
            }
        }
    }
}

fn holds_for_neither(node: &Node, before: Option<Doc<'_>>, after: Option<Doc<'_>>, changed: &Changed<'_>) -> bool {
    let fails = |image: Option<Doc<'_>>| {
        image.is_none_or(|image| bounded_evaluation::evaluate(|| node.matches(image)) == Some(false))
    };
    fails(before) && (before.is_some() && !changed.is_read_by(node) || fails(after))
}

/// What is the same for conditions that are; `None` for those that are not kept apart.
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

    fn found(listed: &Listed, before: Option<&DocBuf>, after: Option<&DocBuf>) -> Vec<u32> {
        let change = Change::Document { before: before.cloned(), after: after.cloned() };
        let mut found = Vec::new();
        let [before, after] = [before, after].map(|image| image.map(DocBuf::as_doc));
        listed.of_images(before, after, &Changed::of(&change), &mut found);
        found
    }

    #[test]
    fn what_a_shared_condition_rules_out_is_not_found() {
        let mut listed = Listed::default();
        let live = doc! { "$ne": true };
        for number in 0..4 {
            listed.add(number, Some(&predicate(&doc! { "deleted": &live, "n": &doc! { "$ne": number as i32 } })));
        }
        // Of one that may end in an error, nothing behind is looked at.
        let fallible = doc! { "text": &doc! { "$not": &doc! { "$regex": "(a+)+$" } }, "deleted": &live };
        listed.add(4, Some(&Predicate::parse_as_written(fallible.as_doc(), &Context::at(0)).unwrap()));
        listed.add(5, None);
        let (live, deleted) = (doc! { "_id": 1, "n": 9 }, doc! { "_id": 1, "n": 9, "deleted": true });
        assert_eq!(found(&listed, Some(&live), Some(&live)), [0, 1, 2, 3, 4, 5]);
        assert_eq!(found(&listed, Some(&live), Some(&deleted)), [0, 1, 2, 3, 4, 5]);
        assert_eq!(found(&listed, Some(&deleted), Some(&live)), [0, 1, 2, 3, 4, 5]);
        let other = doc! { "_id": 1, "n": 8, "deleted": true };
        for (before, after) in [(Some(&deleted), Some(&other)), (None, Some(&deleted)), (Some(&deleted), None)] {
            assert_eq!(found(&listed, before, after), [4, 5]);
        }
    }

    #[test]
    fn conditions_go_with_the_last_that_has_them() {
        let mut listed = Listed::default();
        let filters =
            [doc! { "a": &doc! { "$ne": 1 } }, doc! { "a": &doc! { "$ne": 1.0 } }, doc! { "a": &doc! { "$ne": 1 } }];
        (0..).zip(&filters).for_each(|(number, filter)| listed.add(number, Some(&predicate(filter))));
        // The same number of another type has its own.
        assert_eq!(listed.by_identity.len(), 2);
        assert_eq!(found(&listed, None, Some(&doc! { "a": 1 })), [1]);
        listed.remove(0);
        assert_eq!(found(&listed, None, Some(&doc! { "a": 1 })), [1, 2], "tested with its filter");
        listed.remove(2);
        listed.remove(1);
        assert!(listed.is_empty() && listed.by_identity.is_empty() && listed.conditions.iter().all(Option::is_none));
        listed.add(7, Some(&predicate(&filters[0])));
        assert_eq!((listed.turn(), listed.conditions.len()), (Some(7), 2));
    }
}
