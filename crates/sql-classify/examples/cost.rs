//! Measures the time to classify a statement:
//! `cargo run --release -p sql-classify --example cost`.

use sql_classify::canonical::canonical;
use sql_classify::scanner::Scanner;
use sql_classify::statement::classify_text;
use sql_classify::{ClassCache, Lexis, ParseContext};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// How long each figure is measured.
const MEASURED_FOR: Duration = Duration::from_millis(300);

/// Returns the mean time of a call, in microseconds.
fn mean_us(mut call: impl FnMut()) -> f64 {
    let (started, mut calls) = (Instant::now(), 0_u32);
    while started.elapsed() < MEASURED_FOR {
        call();
        calls += 1;
    }
    started.elapsed().as_secs_f64() * 1e6 / f64::from(calls)
}

fn list(count: usize, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(", ")
}

fn main() {
    let insert = format!(
        "INSERT INTO orders (id, name, price, at) VALUES {}",
        list(1000, |n| format!("({n}, 'name {n}', {n}.25, NOW())"))
    );
    let in_list = format!("SELECT id, name FROM orders WHERE id IN ({})", list(29_000, |n| format!("{}", 100_000 + n)));
    let conditions =
        format!("SELECT id FROM orders WHERE {}", list(12_000, |n| format!("c = {n} OR")).replace(',', "") + " d = 1");
    let statements = [
        ("point select", "SELECT id, name, price FROM orders WHERE id = 12345".to_owned()),
        (
            "join",
            "SELECT o.id, c.name, COUNT(*), SUM(l.price * l.count) AS total FROM orders AS o JOIN customers c ON c.id = o.customer \
             LEFT JOIN `lines` l ON l.`order` = o.id WHERE o.at BETWEEN '2026-01-01' AND '2026-02-01' AND c.country IN ('DE', 'FR') \
             GROUP BY o.id, c.name HAVING total > 100 ORDER BY total DESC LIMIT 20"
                .to_owned(),
        ),
        ("INSERT of 1,000 rows", insert),
        ("IN list of 230 KB", in_list),
        ("conditions of 220 KB", conditions),
    ];
    println!(
        "{:24} {:>9} {:>10} {:>10} {:>12} {:>12}",
        "µs per statement", "bytes", "tokens", "form", "class, again", "class, new"
    );
    let (lexis, context) = (Lexis::default(), ParseContext::default());
    for (name, sql) in &statements {
        let scan = mean_us(|| {
            let mut scanner = Scanner::new(sql, lexis);
            while let Ok(Some(token)) = scanner.next_token() {
                black_box(token);
            }
        });
        let form = mean_us(|| {
            let _ = black_box(canonical(sql, lexis));
        });
        let mut cache = ClassCache::default();
        let again = mean_us(|| {
            black_box(cache.class(sql.as_bytes(), lexis, context).statement());
        });
        let new = mean_us(|| {
            black_box(classify_text(sql, lexis, context));
        });
        println!("{name:24} {:>9} {scan:>10.2} {form:>10.2} {again:>12.2} {new:>12.2}", sql.len());
    }
}
