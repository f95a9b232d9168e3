//! An interval tree: finds the labelled intervals that overlap another interval.
//!
//! It is a treap (a search tree with the shape of a tree filled in random order) by the lower ends.
//! Each node has the highest upper end of its subtree, so a lookup costs the depth of the tree
//! times the number of intervals found.

use smallvec::SmallVec;
use std::cmp::Ordering;

pub struct Intervals<L> {
    root: Tree<L>,
    /// Random numbers drawn so far, one for each node.
    drawn: u64,
}

type Tree<L> = Option<Box<Node<L>>>;

/// An end of an interval. Those of numbers, times and ids fit into the node, so that a lookup does
/// not follow a pointer for each.
type End = SmallVec<[u8; 16]>;

struct Node<L> {
    /// The highest upper end of the subtree.
    highest: End,
    low: End,
    high: End,
    label: L,
    priority: u64,
    left: Tree<L>,
    right: Tree<L>,
}

impl<L> Default for Intervals<L> {
    fn default() -> Self {
        Intervals { root: None, drawn: 0 }
    }
}

impl<L: Copy + Ord> Intervals<L> {
    /// Adds the interval from `low` to `high`, both included. It may be empty: `low` may be above
    /// `high`.
    pub fn add(&mut self, low: &[u8], high: &[u8], label: L) {
        self.drawn += 1;
        let (highest, high, priority) = (End::new(), End::from_slice(high), scattered(self.drawn));
        let node = Node { highest, low: End::from_slice(low), high, label, priority, left: None, right: None };
        insert(&mut self.root, Box::new(node));
    }

    /// Removes one interval that begins at `low` and has this label.
    pub fn remove(&mut self, low: &[u8], label: L) {
        remove(&mut self.root, low, label);
    }

    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// Calls `found` with the labels of the intervals whose lower end is not above `highest` and
    /// whose upper end is not below `lowest`, until it returns false.
    pub fn find(&self, lowest: &[u8], highest: &[u8], found: &mut impl FnMut(L) -> bool) {
        let _ = find(&self.root, lowest, highest, found);
    }

    /// Calls `found` with all labels.
    pub fn all(&self, found: &mut impl FnMut(L)) {
        all(&self.root, found);
    }
}

impl<L: Copy + Ord> Node<L> {
    fn order(&self, low: &[u8], label: L) -> Ordering {
        (&*self.low, self.label).cmp(&(low, label))
    }

    fn update(&mut self) {
        let below = [&self.left, &self.right].into_iter().flatten().map(|node| &node.highest);
        let highest = below.chain([&self.high]).max().unwrap_or(&self.high);
        if *highest != self.highest {
            self.highest = highest.clone();
        }
    }
}

/// Returns a pseudo-random number: the last step of SplitMix64.
fn scattered(number: u64) -> u64 {
    let mut bits = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

fn insert<L: Copy + Ord>(tree: &mut Tree<L>, mut new: Box<Node<L>>) {
    match tree {
        Some(node) if node.priority >= new.priority => {
            let goes_left = node.order(&new.low, new.label) == Ordering::Greater;
            insert(if goes_left { &mut node.left } else { &mut node.right }, new);
            node.update();
        }
        _ => {
            (new.left, new.right) = split(tree.take(), &new.low, new.label);
            new.update();
            *tree = Some(new);
        }
    }
}

/// Splits a tree at a position of its order.
fn split<L: Copy + Ord>(tree: Tree<L>, low: &[u8], label: L) -> (Tree<L>, Tree<L>) {
    let Some(mut node) = tree else { return (None, None) };
    if node.order(low, label) == Ordering::Greater {
        let (before, behind) = split(node.left.take(), low, label);
        node.left = behind;
        node.update();
        (before, Some(node))
    } else {
        let (before, behind) = split(node.right.take(), low, label);
        node.right = before;
        node.update();
        (Some(node), behind)
    }
}

fn remove<L: Copy + Ord>(tree: &mut Tree<L>, low: &[u8], label: L) {
    let Some(node) = tree else { return };
    match node.order(low, label) {
        Ordering::Equal => {
            let (left, right) = (node.left.take(), node.right.take());
            *tree = merged(left, right);
            return;
        }
        Ordering::Greater => remove(&mut node.left, low, label),
        Ordering::Less => remove(&mut node.right, low, label),
    }
    node.update();
}

fn merged<L: Copy + Ord>(left: Tree<L>, right: Tree<L>) -> Tree<L> {
    match (left, right) {
        (None, tree) | (tree, None) => tree,
        (Some(mut left), Some(right)) if left.priority >= right.priority => {
            left.right = merged(left.right.take(), Some(right));
            left.update();
            Some(left)
        }
        (left, Some(mut right)) => {
            right.left = merged(left, right.left.take());
            right.update();
            Some(right)
        }
    }
}

/// Returns false once `found` has.
fn find<L: Copy + Ord>(tree: &Tree<L>, lowest: &[u8], highest: &[u8], found: &mut impl FnMut(L) -> bool) -> bool {
    let Some(node) = tree else { return true };
    if *node.highest < *lowest {
        return true;
    }
    if !find(&node.left, lowest, highest, found) {
        return false;
    }
    if *node.low > *highest {
        return true;
    }
    (*node.high < *lowest || found(node.label)) && find(&node.right, lowest, highest, found)
}

fn all<L: Copy>(tree: &Tree<L>, found: &mut impl FnMut(L)) {
    if let Some(node) = tree {
        found(node.label);
        all(&node.left, found);
        all(&node.right, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_tree_finds_the_same_as_a_list(
            steps in prop::collection::vec((any::<bool>(), 0..20_u8, 0..20_u8, 0..4_u32), 0..200),
            asked in prop::collection::vec((0..20_u8, 0..20_u8), 1..20),
        ) {
            let (mut intervals, mut list) = (Intervals::default(), Vec::new());
            for (adds, low, high, number) in steps {
                if adds {
                    intervals.add(&[low], &[high], number);
                    list.push((low, high, number));
                } else if list.iter().filter(|(l, _, n)| (*l, *n) == (low, number)).count() == 1 {
                    intervals.remove(&[low], number);
                    list.retain(|(l, _, n)| (*l, *n) != (low, number));
                }
            }
            for (lowest, highest) in asked {
                let mut found = Vec::new();
                intervals.find(&[lowest], &[highest], &mut |number| { found.push(number); true });
                let mut expected: Vec<u32> =
                    list.iter().filter(|(low, high, _)| *low <= highest && *high >= lowest).map(|(.., number)| *number).collect();
                found.sort_unstable();
                expected.sort_unstable();
                prop_assert_eq!(found, expected);
            }
            let mut found = Vec::new();
            intervals.all(&mut |number| found.push(number));
            prop_assert_eq!(found.len(), list.len());
        }
    }

    #[test]
    fn the_tree_is_not_deep() {
        fn depth(tree: &Tree<u32>) -> usize {
            tree.as_ref().map_or(0, |node| 1 + depth(&node.left).max(depth(&node.right)))
        }
        let mut intervals = Intervals::default();
        (0..10_000_u32).for_each(|number| intervals.add(&number.to_be_bytes(), &number.to_be_bytes(), number));
        assert!(depth(&intervals.root) < 60, "{}", depth(&intervals.root));
        (0..10_000_u32).for_each(|number| intervals.remove(&number.to_be_bytes(), number));
        assert!(intervals.is_empty());
    }
}
