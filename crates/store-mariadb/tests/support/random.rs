//! Random cases that are the same in every run: `SELKIE_SEED` asks others, `SELKIE_RANDOM` more of
//! them (4,000 are as many as usual).

use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

const USUAL: u64 = 4_000;

/// Runs so many cases, or as many more as `SELKIE_RANDOM` says.
pub fn runner(cases: u32) -> TestRunner {
    let cases = (u64::from(cases) * number("SELKIE_RANDOM", USUAL) / USUAL).max(1) as u32;
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&number("SELKIE_SEED", 1).to_le_bytes());
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed))
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is to be a number")))
}
