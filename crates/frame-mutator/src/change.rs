//! Changes of a frame's lengths.

use crate::frame::Frame;

/// The longest messages of MongoDB, and one byte more.
const MESSAGE_MAX: i64 = 48_000_000;

/// A change of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// One length gets another value.
    Set { field: usize, value: i64 },
    /// A length and all lengths around it grow, and bytes at the end are cut off.
    Grow { field: usize, by: i64, cut: usize },
    /// Several changes, one after the other.
    Several(Vec<Change>),
}

impl Change {
    /// Returns every single change of a frame.
    pub fn all(frame: &Frame) -> Vec<Change> {
        let mut changes = Vec::new();
        for (field, length) in frame.fields.iter().enumerate() {
            let value = frame.value(length);
            changes.extend(values(value, length.width).into_iter().map(|value| Change::Set { field, value }));
            for by in (1..=32).chain([63, 64, 100, 256, 1000, 1024, 4096, 8192, MESSAGE_MAX - 1000]) {
                changes.extend([0, 1, 2, 6].map(|cut| Change::Grow { field, by, cut }));
            }
        }
        changes
    }

    /// Returns the changed frame.
    pub fn apply(&self, frame: &Frame) -> Vec<u8> {
        let mut bytes = frame.bytes.clone();
        self.apply_to(frame, &mut bytes);
        bytes
    }

    fn apply_to(&self, frame: &Frame, bytes: &mut Vec<u8>) {
        match self {
            Change::Set { field, value } => put(frame, bytes, *field, *value),
            Change::Grow { field, by, cut } => {
                let Some(changed) = frame.fields.get(*field) else { return };
                for (number, other) in frame.fields.iter().enumerate() {
                    if number == *field || other.counts.contains(&changed.at) {
                        put(frame, bytes, number, frame.value(other).saturating_add(*by));
                    }
                }
                bytes.truncate(bytes.len().saturating_sub(*cut));
            }
            Change::Several(changes) => changes.iter().for_each(|change| change.apply_to(frame, bytes)),
        }
    }
}

/// Returns the values to try in the place of `value`.
fn values(value: i64, width: usize) -> Vec<i64> {
    let bits = 8 * width as u32;
    let largest = if bits >= 64 { i64::MAX } else { (1 << bits) - 1 };
    let mut values = vec![
        value - 1,
        value + 1,
        value - 4,
        value + 4,
        value + 16,
        value + 255,
        value * 2,
        value / 2,
        0,
        1,
        4,
        5,
        15,
        16,
        251,
        252,
        253,
        254,
        largest,
        largest >> 1,
        (largest >> 1) + 1,
        MESSAGE_MAX,
        MESSAGE_MAX + 1,
        -value,
        -1,
    ];
    values.retain(|other| *other != value);
    values
}

/// Writes a length, without the bytes that do not fit.
fn put(frame: &Frame, bytes: &mut [u8], field: usize, value: i64) {
    let Some(field) = frame.fields.get(field) else { return };
    let Some(place) = bytes.get_mut(field.at..field.at + field.width) else { return };
    place.iter_mut().zip(value.to_le_bytes()).for_each(|(to, from)| *to = from);
}

/// Pseudo-random changes: the same for the same seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(2).wrapping_add(1))
    }

    /// Returns a number below `bound`; 0 if that is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        // PCG's multiplier, and its permutation in short.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 >> 33) ^ (self.0 >> 17);
        usize::try_from(mixed).unwrap_or_default().checked_rem(bound).unwrap_or_default()
    }

    /// Returns one to three changes.
    pub fn change(&mut self, frame: &Frame) -> Change {
        match self.below(4) {
            0 | 1 => self.growth(frame),
            2 => self.value(frame),
            _ => Change::Several(vec![self.growth(frame), self.value(frame), self.value(frame)]),
        }
    }

    fn growth(&mut self, frame: &Frame) -> Change {
        let field = self.below(frame.fields.len());
        let by = if self.below(8) == 0 { self.below(70_000) } else { 1 + self.below(1200) };
        Change::Grow { field, by: by as i64, cut: self.below(24) }
    }

    fn value(&mut self, frame: &Frame) -> Change {
        let field = self.below(frame.fields.len());
        let Some(length) = frame.fields.get(field) else { return Change::Several(Vec::new()) };
        let values = values(frame.value(length), length.width);
        let random = self.below(100_000) as i64 - 1000;
        let value = values.get(self.below(values.len() + 4)).copied().unwrap_or(random);
        Change::Set { field, value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> Frame {
        Frame::new("nested", vec![8, 0, 3, b'a', b'b', b'c', 1, b'x']).with_length(0, 2, 0..8).with_length(2, 1, 3..6)
    }

    #[test]
    fn growth_keeps_the_lengths_around_it_in_agreement() {
        assert_eq!(Change::Grow { field: 1, by: 300, cut: 2 }.apply(&frame()), [52, 1, 47, b'a', b'b', b'c']);
        assert_eq!(Change::Grow { field: 0, by: 1, cut: 0 }.apply(&frame())[..3], [9, 0, 3]);
        assert_eq!(Change::Set { field: 1, value: -1 }.apply(&frame())[..3], [8, 0, 255]);
    }

    #[test]
    fn changes_are_many_and_reproducible() {
        assert!(Change::all(&frame()).len() > 300);
        let made = |seed| {
            let mut random = Random::new(seed);
            (0..100).map(|_| random.change(&frame())).collect::<Vec<_>>()
        };
        assert!(made(7) == made(7) && made(7) != made(8));
    }
}
