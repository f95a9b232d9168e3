//! Indices of names in a list, found by hash if the list is long.

use hashbrown::HashMap;

/// Up to this number of names, comparing with each is faster than hashing.
const COMPARED_MAX: usize = 16;

/// The indices of the names of a list, which is stored elsewhere.
#[derive(Clone, Debug, Default)]
pub struct NameIndex(HashMap<Box<[u8]>, usize>);

impl NameIndex {
    /// Adds the next name of the list.
    pub fn push(&mut self, name: &str) {
        let place = self.0.len();
        self.0.insert(name.as_bytes().into(), place);
    }

    /// Returns the index of a name; `names` are the list's.
    #[inline]
    pub fn index_of<'n>(&self, name: &[u8], mut names: impl Iterator<Item = &'n str>) -> Option<usize> {
        match self.0.len() <= COMPARED_MAX {
            true => names.position(|known| known.as_bytes() == name),
            false => self.0.get(name).copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::NameIndex;

    #[test]
    fn places_are_found_in_short_and_long_lists() {
        for count in [1, 16, 17, 300] {
            let names: Vec<String> = (0..count).map(|number| format!("n{number}")).collect();
            let mut index = NameIndex::default();
            names.iter().for_each(|name| index.push(name));
            let place = |name: &str| index.index_of(name.as_bytes(), names.iter().map(String::as_str));
            for (number, name) in names.iter().enumerate() {
                assert_eq!(place(name), Some(number));
            }
            assert_eq!(place("other"), None);
        }
    }
}
