//! The deferred entries of one index: keys in one buffer, with their documents.
//!
//! They are applied from the front, one sorted run after the other, while more may be added at the
//! end. A rollback undoes both.

/// The entries of one index.
#[derive(Default)]
pub struct List {
    /// The keys.
    bytes: Vec<u8>,
    /// Applied entries, up to `next`; then entries in the order of the index, up to `sorted`; then
    /// entries added since.
    entries: Vec<Entry>,
    next: usize,
    sorted: usize,
    /// `next` as of the last commit.
    committed: usize,
}

#[derive(Clone, Copy)]
pub struct Entry {
    /// The key's first bytes, for sorting.
    head: u64,
    start: u32,
    length: u32,
    pub seq: i64,
}

impl Entry {
    pub fn key<'k>(&self, bytes: &'k [u8]) -> &'k [u8] {
        &bytes[self.start as usize..][..self.length as usize]
    }
}

impl List {
    pub fn push(&mut self, key: &[u8], seq: i64) {
        let mut head = [0; 8];
        let length = key.len().min(head.len());
        head[..length].copy_from_slice(&key[..length]);
        let (start, length) = (self.bytes.len() as u32, key.len() as u32);
        self.entries.push(Entry { head: u64::from_be_bytes(head), start, length, seq });
        self.bytes.extend_from_slice(key);
    }

    /// Returns whether everything is applied.
    pub fn is_empty(&self) -> bool {
        self.next == self.entries.len()
    }

    pub fn size(&self) -> usize {
        self.bytes.len() + size_of_val(self.entries.as_slice())
    }

    /// Takes the next entries to apply, with the buffer of their keys.
    pub fn next(&mut self, most: usize) -> Option<(&[Entry], &[u8])> {
        if self.next == self.sorted {
            let bytes = &self.bytes;
            self.entries[self.sorted..].sort_unstable_by(|left, right| {
                let keys = || left.key(bytes).cmp(right.key(bytes));
                left.head.cmp(&right.head).then_with(keys).then(left.seq.cmp(&right.seq))
            });
            self.sorted = self.entries.len();
        }
        let end = self.sorted.min(self.next + most);
        let entries = &self.entries[std::mem::replace(&mut self.next, end)..end];
        (!entries.is_empty()).then_some((entries, self.bytes.as_slice()))
    }

    pub fn commit(&mut self) {
        if self.is_empty() {
            self.bytes.clear();
            self.entries.clear();
            (self.next, self.sorted) = (0, 0);
        }
        self.committed = self.next;
    }

    /// Removes the entries of this document and later ones, and forgets what was applied since the
    /// last commit.
    pub fn roll_back(&mut self, uncommitted: i64) {
        let stays = |entry: &Entry| entry.seq < uncommitted;
        self.sorted = self.entries[..self.sorted].iter().filter(|entry| stays(entry)).count();
        self.entries.retain(stays);
        // Everything applied before belongs to earlier documents.
        self.next = self.committed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entered(list: &mut List, most: usize) -> Vec<(Vec<u8>, i64)> {
        let next = list.next(most);
        next.map_or_else(Vec::new, |(entries, bytes)| {
            entries.iter().map(|entry| (entry.key(bytes).to_vec(), entry.seq)).collect()
        })
    }

    fn expected(entries: &[(&str, i64)]) -> Vec<(Vec<u8>, i64)> {
        entries.iter().map(|(key, seq)| (key.as_bytes().to_vec(), *seq)).collect()
    }

    #[test]
    fn entries_come_in_order_and_once() {
        let mut list = List::default();
        for (seq, key) in ["longer than eight b", "b", "longer than eight a", "a", "b\0"].into_iter().enumerate() {
            list.push(key.as_bytes(), seq as i64);
        }
        assert_eq!(entered(&mut list, 2), expected(&[("a", 3), ("b", 1)]));
        list.commit();
        list.push(b"a", 9);
        assert_eq!(
            entered(&mut list, 9),
            expected(&[("b\0", 4), ("longer than eight a", 2), ("longer than eight b", 0)])
        );
        assert!(!list.is_empty());
        assert_eq!(entered(&mut list, 9), expected(&[("a", 9)]));
        assert!(list.is_empty());
        assert_eq!(entered(&mut list, 9), []);
    }

    #[test]
    fn rolled_back_entries_are_applied_again_or_never() {
        let mut list = List::default();
        (0..4).for_each(|seq| list.push(&[9 - seq as u8], seq));
        list.commit();
        assert_eq!(entered(&mut list, 1).len(), 1);
        list.commit();
        list.push(&[0], 4);
        assert_eq!(entered(&mut list, 9).len(), 3);
        assert_eq!(entered(&mut list, 9), [(vec![0], 4)]);
        list.roll_back(4);
        assert_eq!(entered(&mut list, 9), [(vec![7], 2), (vec![8], 1), (vec![9], 0)]);
        list.commit();
        assert!(list.is_empty() && list.size() == 0);
        list.push(&[1], 5);
        list.roll_back(5);
        assert!(list.is_empty());
    }
}
