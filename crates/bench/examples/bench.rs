//! The experiments without the rest of the program: `cargo run --release -p bench --example bench -- cars --uri …`.

use clap::Parser;

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    bench: bench::Bench,
}

fn main() -> anyhow::Result<()> {
    bench::run(Arguments::parse().bench)
}
