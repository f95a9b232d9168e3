use super::Projection;
use crate::Context;
use document::DocBuf;
use shorthand::document;

const CONTEXT: fn() -> Context = || Context::at(0);

fn parse(spec: &str, filter: &str) -> error::Result<Projection> {
    Projection::parse(document(spec).as_doc(), document(filter).as_doc(), &CONTEXT())
}

fn apply(projection: &Projection, input: &str) -> error::Result<DocBuf> {
    let input = document(input);
    let mut out = Vec::new();
    projection.apply(input.as_doc(), &mut out)?;
    Ok(DocBuf::from_vec(out).expect("a document"))
}

fn check_with_filter(spec: &str, filter: &str, input: &str, expected: &str) {
    let projection = parse(spec, filter).unwrap_or_else(|error| panic!("{spec}: {error}"));
    let found = apply(&projection, input).unwrap_or_else(|error| panic!("{spec} on {input}: {error}"));
    assert_eq!(found, document(expected), "{spec} on {input}");
}

fn check_projection(spec: &str, input: &str, expected: &str) {
    check_with_filter(spec, "{}", input, expected);
}

fn check_refused(spec: &str, code: i32, message: &str) {
    let error = parse(spec, "{}").err().unwrap_or_else(|| panic!("{spec} is not refused"));
    assert_eq!((error.code().0, error.message()), (code, message), "{spec}");
}

const NESTED: &str = "{_id: 1, a: 1, b: {c: 2, d: [{e: 1, f: 2}, {e: 3}, 5, [{e: 7}]]}, x: [1, 2, 3, 4, 5]}";

#[test]
fn inclusion() {
    check_projection("{a: 1}", NESTED, "{_id: 1, a: 1}");
    check_projection("{_id: 0, a: true}", NESTED, "{a: 1}");
    check_projection("{_id: 1}", NESTED, "{_id: 1}");
    check_projection("{'b.c': 1}", NESTED, "{_id: 1, b: {c: 2}}");
    check_projection("{b: {d: {e: 1}}}", NESTED, "{_id: 1, b: {d: [{e: 1}, {e: 3}, [{e: 7}]]}}");
    check_projection("{'x.k': 1}", NESTED, "{_id: 1, x: []}");
    check_projection("{'a.q': 1, zz: 1}", NESTED, "{_id: 1}");
    check_projection("{'_id.x': 1}", NESTED, "{}");
}

#[test]
fn exclusion() {
    check_projection("{b: 0, x: 0}", NESTED, "{_id: 1, a: 1}");
    check_projection("{_id: 0, b: 0, x: false}", NESTED, "{a: 1}");
    check_projection("{'b.d.e': 0, x: 0}", NESTED, "{_id: 1, a: 1, b: {c: 2, d: [{f: 2}, {}, 5, [{}]]}}");
    check_projection("{}", NESTED, NESTED);
}

#[test]
fn computed_fields() {
    check_projection("{z: '$b.c', a: 1, w: {$add: ['$a', 1]}}", NESTED, "{_id: 1, a: 1, z: 2, w: 2}");
    check_projection("{a: 'x'}", NESTED, "{_id: 1, a: 'x'}");
    check_projection("{'a.q': '$a'}", NESTED, "{_id: 1, a: {q: 1}}");
    check_projection("{b: {q: '$a', c: 1}}", NESTED, "{_id: 1, b: {c: 2, q: 1}}");
    check_projection("{b: {d: {e: '$a'}}}", NESTED, "{_id: 1, b: {d: [{e: 1}, {e: 1}, {e: 1}, [{e: 1}]]}}");
    check_projection("{z: '$missing', y: ['$missing']}", NESTED, "{_id: 1, y: [null]}");
    check_projection("{a: 1, _id: {$add: ['$a', 5]}}", NESTED, "{a: 1, _id: 6}");
    check_projection("{'q.r': '$a'}", NESTED, "{_id: 1, q: {r: 1}}");
}

#[test]
fn slices_and_element_matches() {
    check_projection("{a: 1, x: {$slice: -2}}", NESTED, "{_id: 1, a: 1, x: [4, 5]}");
    check_projection("{b: 0, x: {$slice: [1, 2]}}", NESTED, "{_id: 1, a: 1, x: [2, 3]}");
    check_projection(
        "{x: {$slice: 1}, 'b.d': {$slice: 1}}",
        NESTED,
        "{_id: 1, a: 1, b: {c: 2, d: [{e: 1, f: 2}]}, x: [1]}",
    );
    check_projection("{z: {$slice: ['$x', 2]}}", NESTED, "{_id: 1, z: [1, 2]}");
    check_projection("{x: {$elemMatch: {$gt: 2}}, a: 1}", "{_id: 1, x: [1, 3, 4], a: 5}", "{_id: 1, a: 5, x: [3]}");
    check_projection("{x: {$elemMatch: {$gt: 9}}}", NESTED, "{_id: 1}");
    check_projection("{x: {$elemMatch: {$gt: 2}}, a: 0}", "{_id: 1, x: [1, 3], y: 5}", "{_id: 1, x: [3], y: 5}");
}

#[test]
fn positional() {
    check_with_filter("{'x.$': 1}", "{x: {$gt: 2}}", NESTED, "{_id: 1, x: [3]}");
    check_with_filter("{'b.d.$': 1}", "{'b.d.e': 3}", NESTED, "{_id: 1, b: {d: [{e: 3}]}}");
    check_with_filter("{'y.k.$': 1}", "{'y.k': 2}", "{y: [{k: 1, l: 1}, {k: 2, l: 2}]}", "{y: [{k: 2}]}");
    check_with_filter("{'a.$': 1}", "{}", NESTED, "{_id: 1, a: 1}");
    check_with_filter("{'x.$': 1}", "{x: {$gt: 2, $lt: 2}}", NESTED, "{_id: 1, x: [1]}");
    check_with_filter("{'x.$': 1}", "{x: {$lt: 2, $gt: 2}}", NESTED, "{_id: 1, x: [3]}");
    let error = apply(&parse("{'x.$': 1}", "{}").unwrap(), NESTED).expect_err("no element");
    assert_eq!(error.code().0, 51246);
}

#[test]
fn refusals() {
    let cases = [
        ("{a: 1, b: 0}", 31254, "Cannot do exclusion on field b in inclusion projection"),
        ("{a: 0, 'b.c': 1}", 31253, "Cannot do inclusion on field b.c in exclusion projection"),
        ("{a: 0, z: {$literal: 1}}", 31252, "Cannot use expression other than $meta in exclusion projection"),
        ("{'a.b': 1, a: 1}", 31250, "Path collision at a"),
        ("{a: 1, 'a.b.c': 1}", 31249, "Path collision at a.b.c remaining portion b.c"),
        ("{'a.b.c': 1, 'a.b.c.d': 1}", 31249, "Path collision at a.b.c.d remaining portion b.c.d"),
        ("{a: {}}", 51270, "An empty sub-projection is not a valid value. Found empty object at path"),
        ("{a: {$foo: 1}}", 31325, "Unknown expression $foo"),
        ("{'': 1}", 40352, "FieldPath cannot be constructed with empty string"),
        ("{'x.$': 1, 'y.$': 1}", 31276, "Cannot specify more than one positional projection per query."),
        ("{'x.$': 0}", 31395, "positional projection cannot be used with exclusion"),
        ("{'b.d': {$elemMatch: {e: 1}}}", 31275, "Cannot use $elemMatch projection on a nested field."),
        ("{z: {$meta: 'score'}}", 17308, "Unsupported argument to $meta: score"),
        ("{z: {$meta: 1}}", 17307, "$meta only supports string arguments"),
        (
            "{x: {$slice: 'a'}}",
            28667,
            "Invalid $slice syntax. The given syntax { $slice: \"a\" } did not match the find() syntax because :: \
             Location31273: $slice only supports numbers and [skip, limit] arrays :: The given syntax did not match \
             the expression $slice syntax. :: caused by :: Expression $slice takes at least 2 arguments, and at most \
             3, but 1 were passed in.",
        ),
    ];
    for (spec, code, message) in cases {
        check_refused(spec, code, message);
    }
}
