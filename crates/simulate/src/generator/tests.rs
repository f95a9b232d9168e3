//! Every function: types, bounds and errors.

use super::functions::FUNCTIONS;
use super::*;
use std::collections::HashSet;

fn compiled(text: &str, sequences: &mut Vec<String>) -> Result<Generator, String> {
    let constants = [("accounts".to_owned(), integer(100))];
    let mut scope =
        Scope { constants: &constants, sequences, variables: vec!["from".into()], operations: &[], in_array: false };
    compile(text, &mut scope)
}

/// Generates `count` values.
fn draws(text: &str, count: usize) -> Vec<ValueBuf> {
    let mut sequences = Vec::new();
    let generator = compiled(text, &mut sequences).expect(text);
    let mut source = Source::new(7, &vec![0; sequences.len()], 0, 1);
    let variables = [integer(5)];
    (0..count)
        .map(|index| {
            let mut draw =
                Draw { source: &mut source, variables: &variables, index: index as i64, element: 0, done: &[] };
            generator.draw(&mut draw).expect(text)
        })
        .collect()
}

fn integers(text: &str, count: usize) -> Vec<i64> {
    draws(text, count).iter().map(|value| value.as_value().to_i64().expect(text)).collect()
}

fn texts(text: &str, count: usize) -> Vec<String> {
    draws(text, count).iter().map(|value| value.as_value().as_str().expect(text).to_owned()).collect()
}

#[test]
fn integers_reach_both_bounds_and_are_as_small_as_can_be() {
    let drawn: HashSet<i64> = integers("{int(1, 6)}", 1000).into_iter().collect();
    assert_eq!(drawn, (1..=6).collect());
    assert_eq!(draws("{int(1, 1)}", 1)[0].kind(), Kind::Int32);
    assert_eq!(draws("{int(3000000000, 3000000000)}", 1)[0].kind(), Kind::Int64);
    assert_eq!(draws("{long(1, 1)}", 1)[0].kind(), Kind::Int64);
    assert_eq!(draws("{as_long(accounts * 2)}", 1)[0].as_value(), Value::Int64(200));
}

#[test]
fn picks_below_a_bound() {
    let uniform: HashSet<i64> = integers("{uniform(4)}", 1000).into_iter().collect();
    assert_eq!(uniform, (0..4).collect());
    let zipfian = integers("{zipf(accounts)}", 10_000);
    let most = (0..100).map(|number| zipfian.iter().filter(|drawn| **drawn == number).count()).max();
    assert!(most > Some(1000), "{most:?}");
    assert!(zipfian.iter().all(|drawn| (0..100).contains(drawn)));
    let true_ones = draws("{chance(25)}", 4000).iter().filter(|value| value.as_value() == Value::Boolean(true)).count();
    assert!((800..1200).contains(&true_ones), "{true_ones}");
    assert_eq!(texts("{pick('a', 'b')}", 100).into_iter().collect::<HashSet<_>>().len(), 2);
}

#[test]
fn sequences_of_several_processes_have_no_number_in_common() {
    let mut names = Vec::new();
    let generator = compiled("{sequence('posts')}", &mut names).unwrap();
    let mut drawn = Vec::new();
    for process in 0..3 {
        let mut source = Source::new(1, &[10], process, 3);
        drawn.extend((0..4).map(|_| generator.draw(&mut Draw::from(&mut source)).unwrap().as_value().to_i64()));
    }
    drawn.sort_unstable();
    assert_eq!(drawn, (10..22).map(Some).collect::<Vec<_>>());
    assert_eq!(integers("{sequence('a')}", 3), [0, 1, 2]);
}

#[test]
fn texts_have_their_lengths() {
    assert!(texts("{string(10)}", 10).iter().all(|text| text.len() == 10));
    assert_eq!(texts("{string(1, 3)}", 200).iter().map(String::len).collect::<HashSet<_>>(), [1, 2, 3].into());
    assert!(texts("{text(200)}", 10).iter().all(|text| text.len() == 200 && text.contains(' ')));
    assert!(texts("{hex(24)}", 10).iter().all(|text| text.len() == 24));
    assert_eq!(texts("user-{index}@{accounts / 3}.{from}", 2), ["user-0@33.5", "user-1@33.5"]);
}

#[test]
fn other_types() {
    let uuids = draws("{uuid}", 1);
    let Value::Binary { subtype: 4, bytes } = uuids[0].as_value() else { panic!() };
    assert_eq!((bytes.len(), bytes[6] >> 4, bytes[8] >> 6), (16, 4, 2));
    assert!(matches!(draws("{binary(3)}", 1)[0].as_value(), Value::Binary { subtype: 0, bytes } if bytes.len() == 3));
    assert_eq!(draws("{object_id}", 100).into_iter().collect::<HashSet<_>>().len(), 100);
    assert_eq!(draws("{date('1970-01-02')}", 1)[0].as_value(), Value::DateTime(86_400_000));
    assert!(
        draws("{date('1970-01-01', '1970-01-02')}", 100)
            .iter()
            .all(|date| matches!(date.as_value(), Value::DateTime(0..86_400_000)))
    );
    let (now, later) = (draws("{now}", 1), draws("{now(3600)}", 1));
    let (Value::DateTime(now), Value::DateTime(later)) = (now[0].as_value(), later[0].as_value()) else { panic!() };
    assert!(later - now >= 3_600_000);
    assert!(
        draws("{double(1, 2.5)}", 100)
            .iter()
            .all(|number| matches!(number.as_value(), Value::Double(number) if (1.0..2.5).contains(&number)))
    );
    assert_eq!(draws("{null}", 1)[0].as_value(), Value::Null);
    assert_eq!(draws("{1.5 * from}", 1)[0].as_value(), Value::Double(7.5));
}

#[test]
fn errors_are_described() {
    let check = |text: &str, part: &str| {
        let error = compiled(text, &mut Vec::new()).map(drop).expect_err(text);
        assert!(error.contains(part), "{text}: {error}");
    };
    check("{acounts}", "did you mean \"accounts\"?");
    check("{strng(3)}", "did you mean \"string\"?");
    check("{int(1)}", "int(LOW, HIGH)");
    check("{zipf(from)}", "zipf(N): a constant");
    check("{sequence(1)}", "in single quotes");
    check("{date('soon')}", "not a date");
    check("{element}", "array");
    check("{done('x')}", "in checks only");
    check("{1 / 0}", "cannot be computed");
    check("{1 + 'a'}", "cannot be computed");
}

#[test]
fn what_turns_out_wrong_later_is_an_error_too() {
    for text in ["{int(from, 1)}", "{text(0 - from)}", "{from % (from - 5)}"] {
        let generator = compiled(text, &mut Vec::new()).expect(text);
        let mut source = Source::new(1, &[], 0, 1);
        let mut draw = Draw { source: &mut source, variables: &[integer(5)], index: 0, element: 0, done: &[] };
        assert!(generator.draw(&mut draw).is_err(), "{text}");
    }
}

#[test]
fn the_documentation_knows_every_function_and_every_scenario() {
    let page = include_str!("../../../../docs/simulator.md");
    for function in &FUNCTIONS {
        assert!(page.contains(&format!("`{}`", function.usage)), "{}", function.usage);
    }
    for shipped in &crate::shipped::SHIPPED {
        assert!(page.contains(&format!("| `{}` |", shipped.name)), "{}", shipped.name);
    }
}

#[test]
fn the_example_of_the_documentation_is_a_scenario() {
    let page = include_str!("../../../../docs/simulator.md");
    let (_, example) = page.split_once("    about = ").unwrap();
    let (example, _) = example.split_once("\n| where").unwrap();
    let text: String = format!("    about = {example}").lines().map(|line| format!("{}\n", line.trim())).collect();
    let scenario = crate::scenario::Scenario::read(&text, &[]).unwrap();
    assert_eq!(scenario.operations.len(), 2);
}
