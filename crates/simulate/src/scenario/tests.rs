//! Valid and invalid scenarios.

use super::*;
use document::{DocBuf, doc};

const SMALL: &str = r#"about = "a test"
[values]
posts = 10
last = "{posts - 1}"
[run]
processes = 2
slice-ms = 100
[[setup]]
insert = "posts"
count = "{posts}"
document = { _id = "{sequence('posts')}" }
[[operation]]
name = "read"
values = { id = "{uniform(posts)}" }
[[operation.step]]
command = { find = "posts", filter = { _id = "{id}" } }
stop-unless = "cursor.firstBatch.0"
take = { found = "cursor.firstBatch.0._id" }
[[operation.step]]
name = "again"
command = { find = "posts", filter = { _id = "{found}", last = "{last}" } }
[[check]]
name = "all there"
command = { count = "posts" }
result = "n"
equals = "{posts + done('read') * 0}"
"#;

fn check_refused(text: &str, line: usize, message: &str) {
    let refusal = Scenario::read(text, &[]).map(drop).expect_err(text);
    assert_eq!((refusal.line, refusal.message.as_str()), (line, message));
}

fn set(name: &str, value: &str) -> Vec<(String, String)> {
    vec![(name.to_owned(), value.to_owned())]
}

#[test]
fn a_scenario_is_parsed() {
    let scenario = Scenario::read(SMALL, &[]).unwrap();
    assert_eq!(scenario.run, Run { processes: 2, slice_ms: 100, ..DEFAULT_RUN });
    assert_eq!(scenario.sequences, ["posts"]);
    assert!(matches!(scenario.setup.as_slice(), [Setup::Insert { count: 10, .. }]));
    let [operation] = scenario.operations.as_slice() else { panic!() };
    assert_eq!(operation.steps.iter().map(|step| step.name.as_str()).collect::<Vec<_>>(), ["find", "again"]);
    let mut source = generator::Source::new(1, &[0], 0, 1);
    let variables = [generator::integer(3), generator::integer(4)];
    let mut draw = generator::Draw { variables: &variables, ..generator::Draw::from(&mut source) };
    let sent: Vec<DocBuf> = operation.steps.iter().map(|step| step.command.document(&mut draw).unwrap()).collect();
    assert_eq!(sent[0], doc! { "find": "posts", "filter": &doc! { "_id": 3i32 } });
    assert_eq!(sent[1], doc! { "find": "posts", "filter": &doc! { "_id": 4i32, "last": 9i32 } });
}

#[test]
fn values_can_be_set() {
    let scenario = Scenario::read(SMALL, &set("posts", "20")).unwrap();
    assert!(matches!(scenario.setup.as_slice(), [Setup::Insert { count: 20, .. }]));
    let refused = Scenario::read(SMALL, &set("post", "20")).map(drop).unwrap_err();
    assert!(refused.message.contains("there are posts, last"), "{refused}");
    let refused = Scenario::read(SMALL, &set("posts", "[")).map(drop).unwrap_err();
    assert!(refused.line == 3 && refused.message.contains("set to"), "{refused}");
}

#[test]
fn unknown_keys() {
    check_refused("[run]\nitertions = 3\n", 2, "there is no key \"itertions\" in [run]; did you mean \"iterations\"?");
    check_refused(
        "operations = []",
        1,
        "there is no key \"operations\" at the top of the file; did you mean \"operation\"?",
    );
    let step = "[[operation]]\nname = 'a'\n[[operation.step]]\ncommand = { ping = 1 }\n";
    check_refused(
        &format!("{step}until = 'n'"),
        5,
        "there is no key \"until\" in [[operation.step]]; there are name, command, stop-unless, stop-on, take",
    );
}

#[test]
fn bad_values() {
    check_refused("[run]\npool = 0", 2, "pool: a number from 1 to 10000 is expected here, not 0");
    check_refused("[run]\npool = '50'", 2, "pool: a number from 1 to 10000 is expected here, not \"50\"");
    check_refused("run = 3", 1, "run: a table [run] is expected here, not 3");
    check_refused(
        "[operation]\nname = 'a'",
        1,
        "operation: a list of tables [[operation]] is expected here, not a table",
    );
    check_refused("about = 3", 1, "about: text is expected here, not 3");
    check_refused(
        "[values]\n'a-b' = 1",
        2,
        "a-b: a name is made of letters, digits and _, so that expressions can use it",
    );
    check_refused(
        "[[setup]]\ncommand = {}",
        2,
        "command: a table with a document's fields is expected here, not a table",
    );
    let refused = Scenario::read("\na = ", &[]).map(drop).unwrap_err();
    assert!(refused.line == 2 && refused.message.starts_with("this is not TOML: "), "{refused}");
}

#[test]
fn missing_parts() {
    check_refused("", 1, "there is no [[operation]] with a weight");
    check_refused("[[operation]]\nname = 'a'", 2, "[[operation]]: an operation needs at least one [[operation.step]]");
    check_refused(
        "[[operation]]\nweight = 1\n[[operation.step]]\ncommand = { ping = 1 }",
        2,
        "[[operation]]: name is missing",
    );
    check_refused("\n[[setup]]\nrepeat = 2", 3, "[[setup]]: command is missing");
}

#[test]
fn errors_in_expressions_name_line_and_key() {
    check_refused(
        &SMALL.replace("{uniform(posts)}", "{uniform(psts)}"),
        14,
        "id: unknown name \"psts\"; did you mean \"posts\"?",
    );
    check_refused(
        &SMALL.replace("done('read')", "done('write')"),
        26,
        "equals: done('OPERATION'): there is no operation \"write\"",
    );
}
