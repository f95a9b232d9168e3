//! Pipelines over a few documents, with their results or errors. All expectations were read off a
//! 6.0 server.

use super::flow::Demand;
use super::{Pipeline, PipelinePart};
use document::{Doc, Value, ValueBuf, validate};
use error::Result;
use query::Context;
use shorthand::value;
use values::spill::Budget;

const NOW_MS: i64 = 1_600_000_000_123;
const MEMORY_BYTES_MAX: usize = 1 << 20;

const DOCUMENTS: &str = "[{_id: 1, a: 1, b: 'x', c: [1, 2]}, {_id: 2, a: 2.5, b: 'y', c: []}, {_id: 3, a: null, b: 'x'}, {_id: 4, b: 'x', c: 5}]";

fn array(list: &ValueBuf) -> Doc<'_> {
    list.as_value().as_array().unwrap()
}

fn parse(stages: &str) -> Result<Pipeline> {
    Pipeline::parse(array(&value(stages)), &Context::at(NOW_MS))
}

fn run(pipeline: &Pipeline, documents: Doc<'_>) -> Result<ValueBuf> {
    let mut execution = pipeline.start(MEMORY_BYTES_MAX);
    for document in documents.values() {
        if execution.push(document.as_document().unwrap())? == Demand::Enough {
            break;
        }
    }
    execution.finish()?;
    let mut bytes = Vec::new();
    let mut results = document::ArrayWriter::begin(&mut bytes);
    while let Some(result) = execution.pop() {
        validate::check(result.as_bytes()).unwrap();
        results.push(&result);
    }
    drop(results);
    Ok(Value::Array(Doc::from_bytes(&bytes).unwrap()).to_owned())
}

fn check_on(documents: &str, stages: &str, expected: &str) {
    let results = parse(stages).and_then(|pipeline| run(&pipeline, array(&value(documents))));
    assert_eq!(results.unwrap_or_else(|error| panic!("{stages}: {error}")), value(expected), "{stages}");
}

fn check(stages: &str, expected: &str) {
    check_on(DOCUMENTS, stages, expected);
}

fn check_error(stages: &str, code: i32, message: &str) {
    match parse(stages).and_then(|pipeline| run(&pipeline, array(&value(DOCUMENTS)))) {
        Ok(results) => panic!("{stages}: no error, but {results:?}"),
        Err(error) => assert_eq!((error.code().0, error.message()), (code, message), "{stages}"),
    }
}

#[test]
fn what_is_no_pipeline() {
    check_error("[{}]", 40323, "A pipeline stage specification object must contain exactly one field.");
    check_error("[5]", 14, "Each element of the 'pipeline' array must be an object");
    check_error("[{$foo: 1}]", 40324, "Unrecognized pipeline stage name: '$foo'");
    check_error("[{$changeStream: {}}]", 40573, "The $changeStream stage is only supported on replica sets");
    check_error("[{$match: 5}]", 15959, "the match filter must be an expression in an object");
    check_error("[{$out: 'x'}, {$limit: 1}]", 40601, "$out can only be the final stage in the pipeline");
    let many = format!("[{}]", "{$match: {}},".repeat(1001));
    check_error(&many, 9, "Pipeline length must be no longer than 1000 stages");
}

#[test]
fn a_thousand_stages_run() {
    let stages = format!("[{}]", "{$set: {n: {$add: ['$n', 1]}}},".repeat(999) + "{$limit: 1}");
    check_on("[{n: 0}, {n: 0}]", &stages, "[{n: 999}]");
    let blocking = format!("[{}]", "{$sort: {n: -1}},{$match: {n: {$gt: 0}}},".repeat(400));
    check_on("[{n: 0}, {n: 1}, {n: 2}]", &blocking, "[{n: 2}, {n: 1}]");
}

#[test]
fn match_sort_limit_skip_count() {
    check("[{$match: {b: 'x'}}, {$count: 'n'}]", "[{n: 3}]");
    check("[{$match: {b: 'z'}}, {$count: 'n'}]", "[]");
    check("[{$sort: {a: -1}}, {$limit: 1}, {$project: {_id: 1}}]", "[{_id: 2}]");
    check("[{$sort: {_id: -1}}, {$skip: 1}, {$limit: 2}, {$unset: ['a', 'b', 'c']}]", "[{_id: 3}, {_id: 2}]");
    check_error("[{$limit: 0}]", 15958, "the limit must be positive");
    check_error(
        "[{$limit: -1}]",
        5107201,
        "invalid argument to $limit stage: Expected a non-negative number in: $limit: -1",
    );
    check_error("[{$skip: 1.5}]", 5107200, "invalid argument to $skip stage: Expected an integer: $skip: 1.5");
    check_error("[{$count: 'a.b'}]", 40160, "the count field cannot contain '.'");
}

#[test]
fn added_fields() {
    let one = "[{_id: 1, a: {b: 1}, c: [1, {d: 2}, [3]]}]";
    check_on(one, "[{$set: {a: '$a.b', z: 1}}]", "[{_id: 1, a: 1, c: [1, {d: 2}, [3]], z: 1}]");
    check_on(one, "[{$addFields: {a.x: 1, c.d: 5}}]", "[{_id: 1, a: {b: 1, x: 1}, c: [{d: 5}, {d: 5}, [{d: 5}]]}]");
    check_on(one, "[{$set: {a: {x: '$$REMOVE'}, c: '$$REMOVE'}}]", "[{_id: 1, a: {b: 1}}]");
    check_on(one, "[{$set: {q.r: '$missing'}}, {$unset: ['a', 'c']}]", "[{_id: 1, q: {}}]");
    check_error("[{$set: 5}]", 40272, "$set specification stage must be an object, got int");
    check_error(
        "[{$addFields: {a: 1, a.b: 1}}]",
        40176,
        "Invalid $addFields :: caused by :: specification contains two conflicting paths. Cannot specify both 'a.b' and 'a': \
         { a: 1, a.b: 1 }",
    );
    check_error(
        "[{$set: {a: {}}}]",
        40180,
        "Invalid $set :: caused by :: an empty object is not a valid value. Found empty object at path a",
    );
}

#[test]
fn unwind() {
    let ids = "{$project: {c: 1, i: 1}}";
    check(&format!("[{{$unwind: '$c'}}, {ids}]"), "[{_id: 1, c: 1}, {_id: 1, c: 2}, {_id: 4, c: 5}]");
    check(
        &format!("[{{$unwind: {{path: '$c', includeArrayIndex: 'i', preserveNullAndEmptyArrays: true}}}}, {ids}]"),
        "[{_id: 1, c: 1, i: 0L}, {_id: 1, c: 2, i: 1L}, {_id: 2, i: null}, {_id: 3, i: null}, {_id: 4, c: 5, i: null}]",
    );
    check_on("[{a: {b: [1, 2]}, z: 0}]", "[{$unwind: '$a.b'}]", "[{a: {b: 1}, z: 0}, {a: {b: 2}, z: 0}]");
    check("[{$unwind: '$c'}, {$limit: 1}, {$count: 'n'}]", "[{n: 1}]");
    check_error("[{$unwind: 'c'}]", 28818, "path option to $unwind stage should be prefixed with a '$': c");
    check_error("[{$unwind: {}}]", 28812, "no path specified to $unwind stage");
}

#[test]
fn groups() {
    check(
        "[{$group: {_id: '$b', n: {$sum: 1}, s: {$sum: '$a'}, v: {$avg: '$a'}, lo: {$min: '$a'}, hi: {$max: '$a'}}}]",
        "[{_id: 'x', n: 3, s: 1, v: 1.0, lo: 1, hi: 1}, {_id: 'y', n: 1, s: 2.5, v: 2.5, lo: 2.5, hi: 2.5}]",
    );
    check(
        "[{$group: {_id: null, f: {$first: '$a'}, l: {$last: '$c'}, p: {$push: '$a'}, c: {$count: {}}, q: {$addToSet: '$b'}}}]",
        "[{_id: null, f: 1, l: 5, p: [1, 2.5, null], c: 4, q: ['x', 'y']}]",
    );
    check(
        "[{$group: {_id: 1, d: {$stdDevPop: '$_id'}, m: {$mergeObjects: '$$ROOT'}, none: {$avg: '$zz'}, e: {$push: '$zz'}}}]",
        "[{_id: 1, d: 1.118033988749895, m: {_id: 4, a: null, b: 'x', c: 5}, none: null, e: []}]",
    );
    check(
        "[{$group: {_id: 1, a: {$topN: {sortBy: {_id: -1}, output: '$_id', n: 2}}, b: {$bottom: {sortBy: {_id: 1}, output: '$b'}}, \
         c: {$firstN: {input: '$c', n: 2}}, d: {$maxN: {input: '$a', n: 5}}, e: {$lastN: {input: '$a', n: 2}}}}]",
        "[{_id: 1, a: [4, 3], b: 'x', c: [[1, 2], []], d: [2.5, 1], e: [null, null]}]",
    );
    check_on("[{a: 1}, {a: 1.0}, {a: 1L}]", "[{$group: {_id: '$a', n: {$sum: 1}}}]", "[{_id: 1, n: 3}]");
    check("[{$group: {_id: {x: '$zz'}}}]", "[{_id: {x: null}}]");
    check("[{$match: {_id: 4}}, {$group: {_id: {x: '$zz', b: '$b'}}}]", "[{_id: {b: 'x'}}]");
    check_on("[{a: 2147483647}, {a: 1}]", "[{$group: {_id: 0, s: {$sum: '$a'}}}]", "[{_id: 0, s: 2147483648L}]");
    check_error("[{$group: 5}]", 15947, "a group's fields must be specified in an object");
    check_error("[{$group: {}}]", 15955, "a group specification must include an _id");
    check_error("[{$group: {_id: 1, a: {$foo: 1}}}]", 15952, "unknown group operator '$foo'");
    check_error("[{$group: {_id: 1, a: {$sum: [1, 2]}}}]", 40237, "The $sum accumulator is a unary operator");
    check_error("[{$group: {_id: 1, a: {$firstN: {input: 1, n: 0}}}}]", 5787908, "'n' must be greater than 0, found 0");
}

#[test]
fn groups_do_not_outgrow_their_memory() {
    let pipeline = parse("[{$group: {_id: '$_id', all: {$push: '$text'}}}]").unwrap();
    let mut execution = pipeline.start(10_000);
    let text = "x".repeat(100);
    let outcome = (0..1000).try_for_each(|id| {
        let document = document::doc! { "_id": id, "text": text.as_str() };
        execution.push(document.as_doc()).map(drop)
    });
    assert_eq!(outcome.map_err(|error| error.code().0), Err(292));
}

#[test]
fn buckets() {
    check(
        "[{$bucket: {groupBy: '$_id', boundaries: [1, 2, 4], default: 'o'}}]",
        "[{_id: 1, count: 1}, {_id: 2, count: 2}, {_id: 'o', count: 1}]",
    );
    check("[{$sortByCount: '$b'}]", "[{_id: 'x', count: 3}, {_id: 'y', count: 1}]");
    check(
        "[{$bucketAuto: {groupBy: '$_id', buckets: 3}}]",
        "[{_id: {min: 1, max: 2}, count: 1}, {_id: {min: 2, max: 3}, count: 1}, {_id: {min: 3, max: 4}, count: 2}]",
    );
    check(
        "[{$bucketAuto: {groupBy: '$_id', buckets: 2, granularity: 'R5'}}]",
        "[{_id: {min: 0.63, max: 2.5}, count: 2}, {_id: {min: 2.5, max: 6.300000000000001}, count: 2}]",
    );
    check(
        "[{$bucketAuto: {groupBy: '$_id', buckets: 2, granularity: 'POWERSOF2'}}]",
        "[{_id: {min: 0.5, max: 4}, count: 3}, {_id: {min: 4, max: 8}, count: 1}]",
    );
    check_error(
        "[{$bucket: {groupBy: '$_id', boundaries: [2, 1]}}]",
        40194,
        "The 'boundaries' option to $bucket must be sorted, but elements 0 and 1 are not in ascending order (2 is not less than 1).",
    );
}

#[test]
fn other_roots() {
    check("[{$limit: 1}, {$replaceRoot: {newRoot: {x: '$a', y: '$zz'}}}]", "[{x: 1}]");
    check("[{$limit: 1}, {$replaceWith: {$mergeObjects: ['$$ROOT', {c: 0}]}}]", "[{_id: 1, a: 1, b: 'x', c: 0}]");
    check_error(
        "[{$replaceWith: '$a'}]",
        40228,
        "'replacement document'  must evaluate to an object, but resulting value was: 1. Type of resulting value: 'int'. Input \
         document: {a: 1}",
    );
    check("[{$redact: {$cond: [{$eq: ['$b', 'y']}, '$$KEEP', '$$PRUNE']}}]", "[{_id: 2, a: 2.5, b: 'y', c: []}]");
    check_on(
        "[{l: 1, a: {l: 5, x: 1}, b: [{l: 1}, {l: 7}, 3]}]",
        "[{$redact: {$cond: [{$lt: ['$l', 3]}, '$$DESCEND', '$$PRUNE']}}]",
        "[{l: 1, b: [{l: 1}, 3]}]",
    );
}

#[test]
fn facets_and_samples() {
    check(
        "[{$facet: {a: [{$match: {a: 1}}, {$project: {_id: 1}}], n: [{$count: 'n'}], none: [{$match: {a: 99}}]}}]",
        "[{a: [{_id: 1}], n: [{n: 4}], none: []}]",
    );
    check("[{$facet: {a: [{$limit: 1}, {$count: 'n'}]}}, {$unwind: '$a'}, {$replaceWith: '$a'}]", "[{n: 1}]");
    check("[{$sample: {size: 3}}, {$count: 'n'}]", "[{n: 3}]");
    check_error("[{$facet: {a: [{$out: 'x'}]}}]", 40600, "$out is not allowed to be used within a $facet stage");
}

#[test]
fn the_front_of_a_pipeline_goes_to_the_store() {
    let (source, rest) =
        parse("[{$match: {a: 1}}, {$match: {b: 1}}, {$sort: {c: 1}}, {$skip: 2}, {$limit: 3}]").unwrap().into_source();
    assert!(!source.predicate.matches_everything());
    assert_eq!(source.sort.map(|sort| sort.parts().len()), Some(1));
    assert_eq!(source.limit, Some(5));
    assert_eq!(rest.stages.len(), 1);
    let (source, rest) = parse("[{$sort: {c: 1}}, {$set: {x: 1}}, {$match: {b: 1}}]").unwrap().into_source();
    assert!(!source.predicate.matches_everything());
    assert!(source.sort.is_some() && source.limit.is_none());
    assert_eq!(rest.stages.len(), 1);
    let (source, rest) = parse("[{$set: {b: 1}}, {$match: {b: 1}}]").unwrap().into_source();
    assert!(source.predicate.matches_everything());
    assert_eq!(rest.stages.len(), 2);
    let (source, rest) = parse("[{$limit: 2}, {$match: {b: 1}}]").unwrap().into_source();
    assert_eq!((source.limit, rest.stages.len()), (Some(2), 1));
}

#[test]
fn stages_about_other_collections_stand_apart() {
    let pipeline = parse(
        "[{$match: {a: 1}}, {$lookup: {from: 'other', localField: 'c', foreignField: 'x.y', as: 'found.here'}}, \
         {$unwind: '$found'}, {$limit: 1}, {$unionWith: 'more'}, {$merge: 'target'}]",
    );
    let parts = pipeline.unwrap().into_parts();
    let names: Vec<&str> = parts
        .iter()
        .map(|part| if let PipelinePart::CrossCollection(joining) = part { joining.name() } else { "local" })
        .collect();
    assert_eq!(names, ["local", "$lookup", "local", "$unionWith", "$merge"]);
    let PipelinePart::CrossCollection(joining) = &parts[1] else { panic!() };
    let super::joins::CrossCollectionStage::Lookup(lookup) = &**joining else { panic!() };
    let matches = |input: &str, candidate: &str| {
        let (predicate, _) = lookup.query(shorthand::document(input).as_doc().into()).unwrap();
        predicate.matches(shorthand::document(candidate).as_doc()).unwrap()
    };
    assert!(matches("{c: [1, 2]}", "{x: {y: 2}}"));
    assert!(matches("{c: 1}", "{x: [{y: 5}, {y: 1}]}"));
    assert!(matches("{}", "{x: 1}"));
    assert!(!matches("{c: 1}", "{x: {y: 2}}"));
    let (left, right) = (shorthand::document("{_id: 1}"), shorthand::document("{x: 1}"));
    let joined = lookup.join(left.as_doc(), [right.as_doc()].into_iter());
    assert_eq!(joined, Ok(shorthand::document("{_id: 1, found: {here: [{x: 1}]}}")));
}

#[test]
fn a_lookup_gives_its_pipeline_variables() {
    let pipeline = parse(
        "[{$lookup: {from: 'other', let: {limit: '$a'}, pipeline: [{$match: {$expr: {$lt: ['$n', '$$limit']}}}], as: 'f'}}]",
    );
    let parts = pipeline.unwrap().into_parts();
    let PipelinePart::CrossCollection(joining) = &parts[0] else { panic!() };
    let super::joins::CrossCollectionStage::Lookup(lookup) = &**joining else { panic!() };
    let (_, pipeline) = lookup.query(shorthand::document("{a: 5}").as_doc().into()).unwrap();
    let found = run(&pipeline, array(&value("[{n: 4}, {n: 6}]"))).unwrap();
    assert_eq!(found, value("[{n: 4}]"));
}

#[test]
fn windows() {
    let documents =
        "[{_id: 0, p: 'x', v: 5}, {_id: 1, p: 'y', v: null}, {_id: 2, p: 'x', v: 2.5}, {_id: 3, p: 'y', v: 's'}]";
    let check = |function: &str, expected: &str| {
        let stages = format!(
            "[{{$setWindowFields: {{sortBy: {{_id: 1}}, output: {{r: {function}}}}}}}, {{$replaceWith: {{r: '$r'}}}}]"
        );
        check_on(documents, &stages, expected);
    };
    check("{$sum: '$v', window: {documents: [-1, 1]}}", "[{r: 5}, {r: 7.5}, {r: 2.5}, {r: 2.5}]");
    check("{$stdDevPop: '$v', window: {documents: [0, 1]}}", "[{r: 0}, {r: 0}, {r: 0}, {r: null}]");
    check("{$push: '$v', window: {range: ['unbounded', -2]}}", "[{r: []}, {r: []}, {r: [5]}, {r: [5, null]}]");
    check("{$max: '$v', window: {documents: ['current', 'unbounded']}}", "[{r: 's'}, {r: 's'}, {r: 's'}, {r: 's'}]");
    check("{$shift: {output: '$_id', by: -1, default: 'none'}}", "[{r: 'none'}, {r: 0}, {r: 1}, {r: 2}]");
    check(
        "{$derivative: {input: {$multiply: ['$_id', '$_id']}}, window: {documents: [-1, 0]}}",
        "[{r: null}, {r: 1.0}, {r: 3.0}, {r: 5.0}]",
    );
    check("{$locf: '$v'}", "[{r: 5}, {r: 5}, {r: 2.5}, {r: 's'}]");
    check_on(
        documents,
        "[{$setWindowFields: {partitionBy: '$p', sortBy: {_id: -1}, output: {n: {$documentNumber: {}}}}}, {$unset: ['p', 'v']}]",
        "[{_id: 2, n: 1}, {_id: 0, n: 2}, {_id: 3, n: 1}, {_id: 1, n: 2}]",
    );
    check_error(
        "[{$setWindowFields: {output: {r: {$rank: {}}}}}]",
        5371602,
        "$rank must be specified with a top level sortBy expression with exactly one element",
    );
}

#[test]
fn gaps_are_densified_and_filled() {
    let sparse = "[{v: 1, p: 'a'}, {v: 4, p: 'b'}]";
    check_on(
        sparse,
        "[{$densify: {field: 'v', range: {step: 2, bounds: 'full'}}}]",
        "[{v: 1, p: 'a'}, {v: 3}, {v: 4, p: 'b'}]",
    );
    check_on(
        sparse,
        "[{$densify: {field: 'v', partitionByFields: ['p'], range: {step: 2, bounds: [0, 5]}}}, {$project: {v: 1}}]",
        "[{v: 0}, {v: 1}, {v: 0}, {v: 2}, {v: 4}, {v: 2}, {v: 4}]",
    );
    check_on(
        sparse,
        "[{$densify: {field: 'v', partitionByFields: ['p'], range: {step: 3, bounds: 'full'}}}]",
        "[{v: 1, p: 'a'}, {p: 'b', v: 1}, {v: 4, p: 'b'}, {p: 'a', v: 4}]",
    );
    check_on(
        "[{_id: 1, v: 1}, {_id: 2}, {_id: 3, v: 5}]",
        "[{$fill: {sortBy: {_id: 1}, output: {v: {method: 'linear'}, w: {value: '$_id'}}}}]",
        "[{_id: 1, v: 1, w: 1}, {_id: 2, v: 3.0, w: 2}, {_id: 3, v: 5, w: 3}]",
    );
    check_error(
        "[{$densify: {field: 'v', range: {step: 0, bounds: 'full'}}}]",
        5733401,
        "The step parameter in a range statement must be a strictly positive numeric value",
    );
}

#[test]
fn javascript_is_refused_as_where_it_is_switched_off() {
    let message = "Cannot run server-side javascript without the javascript engine enabled";
    check_error("[{$project: {r: {$function: {body: 'x', args: [], lang: 'js'}}}}]", 31264, message);
}

#[test]
fn graphs_are_searched_breadth_first() {
    let stages = "[{$graphLookup: {from: 'g', startWith: '$to', connectFromField: 'to', connectToField: 'n', as: 'r', depthField: 'd', maxDepth: 1}}]";
    let parts = parse(stages).unwrap().into_parts();
    let Some(PipelinePart::CrossCollection(joining)) = parts.first() else { panic!("{parts:?}") };
    let super::joins::CrossCollectionStage::GraphLookup(lookup) = &**joining else { panic!("{joining:?}") };
    let collection = [
        "{_id: 1, n: 'a', to: 'b'}",
        "{_id: 2, n: 'b', to: ['a', 'c']}",
        "{_id: 3, n: 'c', to: 'd'}",
        "{_id: 4, n: 'd'}",
    ];
    let collection = collection.map(shorthand::document);
    let start = shorthand::document("{_id: 0, to: 'a'}");
    let mut search = lookup.start(start.as_doc().into()).unwrap();
    while let Some(predicate) = search.next_predicate().unwrap() {
        let found = collection
            .iter()
            .map(|document| document.as_doc())
            .filter(|document| predicate.matches(*document).unwrap());
        search.add_found(found, usize::MAX).unwrap();
    }
    let joined = lookup.join(start.as_doc(), &search.finish());
    let expected = "{_id: 0, to: 'a', r: [{_id: 1, n: 'a', to: 'b', d: 0L}, {_id: 2, n: 'b', to: ['a', 'c'], d: 1L}]}";
    assert_eq!(joined, shorthand::document(expected));
}

#[test]
fn groups_on_disk_come_to_what_they_come_to_in_memory() {
    let documents: Vec<_> = (0..400)
        .map(|number| {
            let (k, v, d, s, f) = (number % 37, number % 11, number % 7, number % 5, number % 3);
            let text =
                format!("{{_id: {number}, k: {k}, v: {v}, w: {number}L, d: {d}.5, s: 'x{s}', o: {{f{f}: {number}}}}}");
            shorthand::document(&text)
        })
        .collect();
    let stages = "[{$group: {_id: '$k', sum: {$sum: '$v'}, double: {$sum: '$d'}, avg: {$avg: '$w'}, min: {$min: '$s'}, max: {$max: '$w'}, \
                  first: {$first: '$w'}, last: {$last: '$s'}, push: {$push: '$v'}, set: {$addToSet: '$s'}, all: {$mergeObjects: '$o'}, \
                  firsts: {$firstN: {input: '$w', n: 3}}, lasts: {$lastN: {input: '$w', n: 3}}, least: {$minN: {input: '$v', n: 2}}, \
                  top: {$topN: {output: '$w', sortBy: {v: 1}, n: 2}}, bottom: {$bottom: {output: '$w', sortBy: {v: 1}}}, n: {$count: {}}}}, \
                  {$sort: {_id: 1}}]";
    let pipeline = parse(stages).unwrap();
    let run_with = |budget: Budget| {
        let mut execution = pipeline.start(budget);
        for document in &documents {
            execution.push(document.as_doc()).unwrap();
        }
        execution.finish().unwrap();
        std::iter::from_fn(|| execution.pop()).collect::<Vec<_>>()
    };
    let expected = run_with(usize::MAX.into());
    assert_eq!(expected.len(), 37);
    assert_eq!(run_with(Budget::spilling_to_memory(5_000)), expected);
    assert_eq!(run_with(Budget::spilling_to_memory(60_000)), expected);
}

/// Returns the results of a pipeline over 400 documents, with the given memory.
fn run_within(stages: &str, budget: impl Into<Budget>) -> Result<Vec<document::DocBuf>> {
    let pipeline = parse(stages)?;
    let mut execution = pipeline.start(budget);
    for number in 0..400 {
        let text =
            format!("{{_id: {number}, k: {}, v: {}, w: {number}.5, s: 'x{number}'}}", number % 3, number * 7 % 101);
        execution.push(shorthand::document(&text).as_doc())?;
    }
    execution.finish()?;
    Ok(std::iter::from_fn(|| execution.pop()).collect())
}

#[test]
fn stages_on_disk_give_what_they_give_in_memory() {
    for stages in [
        "[{$bucketAuto: {groupBy: '$v', buckets: 7, output: {n: {$sum: 1}, ids: {$push: '$_id'}}}}]",
        "[{$bucketAuto: {groupBy: '$_id', buckets: 5, granularity: 'R5'}}]",
        "[{$setWindowFields: {partitionBy: '$k', sortBy: {v: 1, _id: 1}, output: {n: {$sum: '$w'}, r: {$sum: '$w', window: {documents: \
         ['unbounded', 'current']}}, l: {$push: '$v', window: {documents: [-2, 2]}}, s: {$shift: {output: '$s', by: 40}}, \
         f: {$last: '$_id'}}}}]",
        "[{$setWindowFields: {sortBy: {_id: 1}, output: {d: {$derivative: {input: '$w'}, window: {documents: [-1, 1]}}, \
         r: {$min: '$v', window: {range: [-3, 3]}}, n: {$documentNumber: {}}}}}]",
        "[{$set: {v: {$cond: [{$mod: ['$_id', 5]}, null, '$v']}}}, {$fill: {sortBy: {_id: 1}, output: {v: {method: 'linear'}}}}]",
        "[{$densify: {field: '_id', partitionByFields: ['k'], range: {step: 1, bounds: 'full'}}}]",
    ] {
        let expected = run_within(stages, usize::MAX).unwrap();
        assert!(!expected.is_empty());
        for memory_bytes_max in [9_000, 20_000] {
            let found = run_within(stages, Budget::spilling_to_memory(memory_bytes_max)).unwrap();
            assert_eq!(found, expected, "{stages}");
        }
    }
}

#[test]
fn a_sample_goes_on_on_disk() {
    let sample = "[{$sample: {size: 300}}]";
    let on_disk = run_within(sample, Budget::spilling_to_memory(9_000)).unwrap();
    let ids: std::collections::BTreeSet<_> = on_disk.iter().map(|document| format!("{document:?}")).collect();
    assert_eq!(ids.len(), 300);
    assert_eq!(run_within(sample, 9_000).map(drop).map_err(|error| error.code().0), Err(292));
}

#[test]
fn what_stages_may_not_hold() {
    let code = |stages: &str| run_within(stages, 9_000).map(drop).map_err(|error| error.code().0);
    assert_eq!(code("[{$bucketAuto: {groupBy: '$v', buckets: 7}}]"), Err(292));
    assert_eq!(code("[{$setWindowFields: {sortBy: {_id: 1}, output: {n: {$sum: 1}}}}]"), Err(292));
    let code =
        |stages: &str| run_within(stages, Budget::spilling_to_memory(9_000)).map(drop).map_err(|error| error.code().0);
    assert_eq!(
        code("[{$densify: {field: '_id', partitionByFields: ['s'], range: {step: 1000, bounds: 'full'}}}]"),
        Err(6007200)
    );
    assert_eq!(
        code(
            "[{$setWindowFields: {sortBy: {_id: 1}, output: {n: {$push: '$$ROOT', window: {documents: [-300, 0]}}}}}]"
        ),
        Err(5414201)
    );
    assert_eq!(
        code("[{$bucketAuto: {groupBy: '$v', buckets: 7, output: {f: {$firstN: {n: '$min', input: 1}}}}}]"),
        Err(4544714)
    );
}

/// A value larger than documents may be between stages is rejected when it is computed, whatever
/// happens to it later.
#[test]
fn documents_do_not_grow_without_bound() {
    let doubling = "{$set: {x: ['$$ROOT', '$$ROOT']}}, ".repeat(40);
    check_error_code(&format!("[{doubling}{{$count: 'n'}}]"), 10334);
    let deeper = "{$set: {x: {y: ['$x']}}}, ".repeat(120);
    check_error_code(&format!("[{deeper}{{$count: 'n'}}]"), 15);
}

fn check_error_code(stages: &str, code: i32) {
    let outcome = parse(stages).and_then(|pipeline| run(&pipeline, array(&value("[{_id: 1}]"))));
    assert_eq!(outcome.map(drop).map_err(|error| error.code().0), Err(code), "{stages}");
}

#[test]
fn pipelines_within_pipelines_have_a_limit() {
    let nested = |depth: usize| {
        (0..depth).fold("[]".to_owned(), |inner, _| format!("[{{$lookup: {{from: 'l', as: 'r', pipeline: {inner}}}}}]"))
    };
    parse(&nested(20)).unwrap();
    let error = parse(&nested(21)).expect_err("too deep");
    assert_eq!(
        (error.code().0, error.message()),
        (232, "Maximum number of nested sub-pipelines exceeded. Limit is 20")
    );
}

#[test]
fn deep_expressions_do_not_overflow_the_stack() {
    let nest = |wrap: fn(String) -> String| (0..190).fold("1".to_owned(), |inner, _| wrap(inner));
    for wrap in [
        (|inner| format!("{{$add: {inner}}}")) as fn(String) -> String,
        |inner| format!("{{$not: {inner}}}"),
        |inner| format!("{{x: {inner}}}"),
        |inner| format!("[{inner}]"),
    ] {
        let stages = format!("[{{$replaceWith: {{r: {}}}}}]", nest(wrap));
        let outcome = parse(&stages).and_then(|pipeline| run(&pipeline, array(&value("[{}]"))));
        assert!(outcome.is_ok() || outcome.is_err_and(|error| error.code().0 != 8));
    }
}

#[test]
fn the_second_engine_has_groups_at_the_front() {
    let failure = |stages: &str| {
        let pipeline = parse(stages).unwrap().with_second_engine();
        run(&pipeline, array(&value(DOCUMENTS))).unwrap_err().code().0
    };
    let group = "{$group: {_id: null, r: {$push: {$abs: '$b'}}}}";
    assert_eq!(failure(&format!("[{group}]")), 4903700);
    assert_eq!(failure(&format!("[{{$match: {{a: 1}}}}, {{$sort: {{a: 1}}}}, {{$limit: 2}}, {group}]")), 4903700);
    assert_eq!(failure(&format!("[{{$match: {{'c.0': 1}}}}, {group}]")), 28765);
    assert_eq!(failure(&format!("[{{$set: {{x: 1}}}}, {group}]")), 28765);
    assert_eq!(failure("[{$group: {_id: {$abs: '$b'}, r: {$push: {$toInt: '$a'}}}}]"), 28765);
    let pipeline = parse("[{$group: {_id: null, r: {$push: {$add: ['$b', '$no']}}}}]").unwrap();
    assert!(run(&pipeline, array(&value(DOCUMENTS))).is_err());
    let nulls = value("[{_id: null, r: [null, null, null, null]}]");
    assert_eq!(run(&pipeline.with_second_engine(), array(&value(DOCUMENTS))).unwrap(), nulls);
}
