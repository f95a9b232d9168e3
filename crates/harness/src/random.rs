//! Random numbers that are the same in every run.

/// A small generator of well-mixed numbers that stays the same between versions of libraries.
/// Source: <https://prng.di.unimi.it/splitmix64.c>
pub struct SplitMix(pub u64);

impl SplitMix {
    // Not an iterator: the sequence has no end.
    #[expect(clippy::should_implement_trait, reason = "an iterator would return an Option")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `bound`, or zero if `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    pub fn pick<'t>(&mut self, table: &[&'t str]) -> &'t str {
        table[self.below(table.len() as u64) as usize]
    }
}

/// YCSB's scrambled zipfian distribution: a few numbers below the bound are drawn very often, and
/// they are scattered. Source:
/// <https://github.com/brianfrankcooper/YCSB/blob/master/core/src/main/java/site/ycsb/generator/ZipfianGenerator.java>
pub struct Zipfian {
    bound: u64,
    zeta: f64,
    eta: f64,
}

/// YCSB's constant.
const SKEW: f64 = 0.99;

impl Zipfian {
    pub fn below(bound: u64) -> Zipfian {
        let zeta_of = |count: u64| (1..=count).map(|rank| (rank as f64).powf(-SKEW)).sum::<f64>();
        let zeta = zeta_of(bound);
        let eta = (1.0 - (2.0 / bound as f64).powf(1.0 - SKEW)) / (1.0 - zeta_of(2) / zeta);
        Zipfian { bound, zeta, eta }
    }

    pub fn next(&self, random: &mut SplitMix) -> u64 {
        let uniform = (random.next() >> 11) as f64 / (1u64 << 53) as f64;
        let scaled = uniform * self.zeta;
        let rank = if scaled < 1.0 {
            0
        } else if scaled < 1.0 + 0.5f64.powf(SKEW) {
            1
        } else {
            (self.bound as f64 * (self.eta * uniform - self.eta + 1.0).powf(1.0 / (1.0 - SKEW))) as u64
        };
        SplitMix(rank).below(self.bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifth_of_the_numbers_gets_four_fifths_of_the_draws() {
        let (zipfian, mut random) = (Zipfian::below(10_000), SplitMix(1));
        let mut counts = vec![0; 10_000];
        (0..200_000).for_each(|_| counts[zipfian.next(&mut random) as usize] += 1);
        counts.sort_by_key(|count| std::cmp::Reverse(*count));
        let share = counts[..2000].iter().sum::<u32>() as f64 / 200_000.0;
        assert!((0.75..0.9).contains(&share), "{share}");
    }
}
