//! Everything whose duration a client can influence takes steps in proportion to its length, or to
//! that times its logarithm: no loop over a list is nested in a loop over a list. And it does count
//! steps, so that it can be suspended.
//!
//! Each construct is built with a length and with twice that, and the steps of parsing and
//! evaluating it are compared. Time without steps would be invisible here; [`times`] prints times
//! for inspection.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod build;

use aggregate::Pipeline;
use build::*;
use document::{Doc, DocBuf, Value};
use query::{Expression, MatchDetails, Predicate, Projection};
use std::time::Instant;
use update::Update;

const LENGTH: usize = 2000;

/// Twice the length, and its logarithm.
const FACTOR_MAX: f64 = 2.5;

/// Number of bytes of text that may be one step.
const BYTES_PER_STEP: usize = 64;

type Case = (&'static str, fn(usize));

const FILTERS: &[Case] = &[
    ("$in", |n| filter(&two("a", "$in", &numbers(n)), &one("a", 5))),
    ("$nin", |n| filter(&two("a", "$nin", &numbers(n)), &one("a", 5))),
    ("$in over an array", |n| filter(&two("a", "$in", &numbers(n)), &with_numbers(n))),
    ("$all", |n| filter(&two("a", "$all", &numbers(n)), &one("a", 5))),
    ("$or of one field", |n| filter(&one("$or", &list(n, |number| one("a", number as i32))), &one("a", -1))),
    ("$or of many fields", |n| {
        filter(&one("$or", &list(n, |number| one(&format!("f{number}"), 1))), &one("a", -1));
    }),
    ("$and of one field", |n| {
        filter(&one("$and", &list(n, |number| two("a", "$ne", number as i32))), &one("a", -1));
    }),
    ("$nor", |n| filter(&one("$nor", &list(n, |number| one("a", number as i32))), &one("a", -1))),
    ("many fields", |n| filter(&fields(n, |_| Value::Null), &empty())),
    ("many operators", |n| {
        let operators = document(|writer| (0..n).for_each(|number| writer.append("$gt", -(number as i32) - 1)));
        filter(&one("a", &operators), &one("a", 5));
    }),
    ("many patterns", |n| {
        let operators = document(|writer| {
            (0..n).for_each(|_| writer.append("$options", "i"));
            (0..n).for_each(|_| writer.append("$regex", "x"));
        });
        filter(&one("a", &operators), &one("a", "x"));
    }),
    ("a long pattern", |n| filter(&two("a", "$regex", text(n).as_str()), &with_text(n))),
    ("a long array", |n| filter(&one("a", -1), &with_numbers(n))),
    ("a long array of documents", |n| filter(&one("a.b", -1), &one("a", &list(n, |number| one("b", number as i32))))),
    ("$elemMatch", |n| {
        let within = document(|writer| writer.append("a", &two("$elemMatch", "$in", &numbers(n))));
        filter(&within, &with_numbers(n));
    }),
    ("$size", |n| filter(&two("a", "$size", 3), &with_numbers(n))),
    ("$type", |n| {
        let types = array(|writer| (0..n).for_each(|_| writer.push("string")));
        filter(&two("a", "$type", &types), &with_numbers(n));
    }),
    ("$bitsAllSet", |n| filter(&two("a", "$bitsAllSet", &numbers(n)), &one("a", -1))),
    ("$jsonSchema of properties", |n| {
        let properties = fields(n, |_| &*Box::leak(Box::new(one("bsonType", "int"))));
        filter(&two("$jsonSchema", "properties", &properties), &one("a", 1));
    }),
    ("$jsonSchema with enum", |n| {
        let property = one("a", &one("enum", &numbers(n)));
        filter(&two("$jsonSchema", "properties", &property), &one("a", 1));
    }),
    ("$jsonSchema with uniqueItems", |n| {
        let property = one("a", &one("uniqueItems", true));
        filter(&two("$jsonSchema", "properties", &property), &with_numbers(n));
    }),
    ("$geoWithin", |n| filter(&one("g", &two("$geoWithin", "$geometry", &polygon(n))), &point())),
    ("$geoIntersects", |n| filter(&one("g", &two("$geoIntersects", "$geometry", &polygon(n))), &one("g", &polygon(n)))),
    ("$polygon", |n| {
        let pairs = array(|writer| {
            (0..n).for_each(|number| writer.push(&array(|writer| (0..2).for_each(|_| writer.push(number as f64)))));
        });
        filter(&one("g", &two("$geoWithin", "$polygon", &pairs)), &point());
    }),
];

const UPDATES: &[Case] = &[
    ("$set of new fields", |n| update(&one("$set", &fields(n, |number| number as i32)), None, &empty())),
    ("$set of fields that are there", |n| {
        update(&one("$set", &fields(n, |number| number as i32)), None, &fields(n, |_| "x"));
    }),
    ("$unset", |n| update(&one("$unset", &fields(n, |_| 1)), None, &fields(n, |_| "x"))),
    ("$rename", |n| {
        let renamed = document(|writer| {
            (0..n).for_each(|number| writer.append(&format!("f{number}"), format!("g{number}").as_str()));
        });
        update(&one("$rename", &renamed), None, &one("f1", 1));
    }),
    ("$inc of nested fields", |n| {
        let nested = document(|writer| (0..n).for_each(|number| writer.append(&format!("a.f{number}"), 1)));
        update(&one("$inc", &nested), None, &empty());
    }),
    ("$inc of elements", |n| {
        let elements = document(|writer| (0..n).for_each(|number| writer.append(&format!("a.{number}"), 1)));
        update(&one("$inc", &elements), None, &with_numbers(n));
    }),
    ("$inc of all elements", |n| update(&two("$inc", "a.$[]", 1), None, &with_numbers(n))),
    ("arrayFilters", |n| {
        let paths = document(|writer| {
            (0..n).for_each(|number| writer.append(&format!("a.$[i{number}].f{number}"), 1));
        });
        let filters = list(n, |number| two(&format!("i{number}.z"), "$ne", 1));
        update(&one("$set", &paths), Some(&filters), &one("a", &list(1, |_| empty())));
    }),
    ("$push", |n| update(&one("$push", &two("a", "$each", &numbers(n))), None, &with_numbers(n))),
    ("$push with $sort", |n| {
        let push = document(|writer| {
            writer.append("$each", &numbers(n));
            writer.append("$sort", 1);
            writer.append("$slice", n as i32);
        });
        update(&two("$push", "a", &push), None, &with_numbers(n));
    }),
    ("$push at a place", |n| {
        let push = document(|writer| {
            writer.append("$each", &numbers(n));
            writer.append("$position", 1);
        });
        update(&two("$push", "a", &push), None, &with_numbers(n));
    }),
    ("$addToSet", |n| {
        let other = array(|writer| (0..n).for_each(|number| writer.push(format!("s{number}").as_str())));
        update(&one("$addToSet", &two("a", "$each", &other)), None, &with_numbers(n));
    }),
    ("$pull", |n| update(&one("$pull", &two("a", "$in", &numbers(n))), None, &with_numbers(n))),
    ("$pullAll", |n| update(&two("$pullAll", "a", &numbers(n)), None, &with_numbers(n))),
    ("$pop", |n| update(&two("$pop", "a", 1), None, &with_numbers(n))),
    ("an upsert", |n| {
        let predicate = Predicate::parse(fields(n, |number| number as i32).as_doc(), &context()).unwrap();
        let update = Update::parse(Value::Document(two("$set", "x", 1).as_doc()), None, &context()).unwrap();
        update.upsert(&predicate, document::ObjectId::default(), &mut Vec::new()).unwrap();
    }),
    ("an update by a pipeline", |n| {
        let stages = list(1, |_| one("$set", &fields(n, |_| "$x")));
        let update = Update::parse(stages.as_value(), None, &context()).unwrap();
        update.apply(one("x", 1).as_doc(), &MatchDetails::default(), &mut Vec::new()).unwrap();
    }),
];

const EXPRESSIONS: &[Case] = &[
    ("$map", |n| {
        expression(&each_of("$map", "$a", &call("$add", &["$$this".into(), 1.into()]), "in"), &with_numbers(n))
    }),
    ("$filter", |n| {
        expression(&each_of("$filter", "$a", &call("$gt", &["$$this".into(), 5.into()]), "cond"), &with_numbers(n));
    }),
    ("$reduce", |n| {
        let reduce = document(|writer| {
            writer.append("input", "$a");
            writer.append("initialValue", 0);
            writer.append("in", &call("$add", &["$$this".into(), "$$value".into()]));
        });
        expression(&one("$reduce", &reduce), &with_numbers(n));
    }),
    ("$range", |n| expression(&call("$range", &[0.into(), (n as i32).into()]), &empty())),
    ("$zip", |n| {
        let inputs = array(|writer| (0..2).for_each(|_| writer.push("$a")));
        expression(&two("$zip", "inputs", &inputs), &with_numbers(n));
    }),
    ("$zip of many", |n| {
        let inputs = array(|writer| (0..n).for_each(|_| writer.push("$a")));
        expression(&two("$zip", "inputs", &inputs), &with_numbers(2));
    }),
    ("$in as an operator", |n| expression(&call("$in", &[(-1).into(), "$a".into()]), &with_numbers(n))),
    ("$indexOfArray", |n| expression(&call("$indexOfArray", &["$a".into(), (-1).into()]), &with_numbers(n))),
    ("$concatArrays", |n| {
        let arguments = vec![Value::String("$a"); n];
        expression(&call("$concatArrays", &arguments), &with_numbers(2));
    }),
    ("$reverseArray", |n| expression(&one("$reverseArray", "$a"), &with_numbers(n))),
    ("$slice", |n| expression(&call("$slice", &["$a".into(), 1.into(), (n as i32).into()]), &with_numbers(n))),
    ("$sortArray", |n| {
        let sort = document(|writer| {
            writer.append("input", "$a");
            writer.append("sortBy", 1);
        });
        expression(&one("$sortArray", &sort), &with_numbers(n));
    }),
    ("$maxN", |n| expression(&as_many("$maxN", n / 2, ("input", "$a".into()), None), &with_numbers(n))),
    ("$minN", |n| expression(&as_many("$minN", n / 2, ("input", "$a".into()), None), &with_numbers(n))),
    ("$setUnion", |n| expression(&call("$setUnion", &["$a".into(), "$a".into()]), &with_numbers(n))),
    ("$setIntersection", |n| expression(&call("$setIntersection", &["$a".into(), "$a".into()]), &with_numbers(n))),
    ("$setDifference", |n| expression(&call("$setDifference", &["$a".into(), "$a".into()]), &with_numbers(n))),
    ("$setEquals", |n| expression(&call("$setEquals", &["$a".into(), "$a".into()]), &with_numbers(n))),
    ("$setEquals of many constants", |n| {
        let constant = array(|writer| writer.push(1));
        expression(&one("$setEquals", &array(|writer| (0..n).for_each(|_| writer.push(&constant)))), &empty());
    }),
    ("$setIsSubset", |n| expression(&call("$setIsSubset", &["$a".into(), "$a".into()]), &with_numbers(n))),
    ("$sum", |n| expression(&one("$sum", "$a"), &with_numbers(n))),
    ("$max", |n| expression(&one("$max", "$a"), &with_numbers(n))),
    ("$stdDevPop", |n| expression(&one("$stdDevPop", "$a"), &with_numbers(n))),
    ("$mergeObjects", |n| {
        expression(&one("$mergeObjects", "$a"), &one("a", &list(n, |number| one(&format!("f{number}"), 1))));
    }),
    ("$objectToArray", |n| expression(&one("$objectToArray", "$a"), &one("a", &fields(n, |_| 1)))),
    ("$arrayToObject", |n| {
        let pair = |number: usize| {
            document(|writer| {
                writer.append("k", format!("k{number}").as_str());
                writer.append("v", 1);
            })
        };
        expression(&one("$arrayToObject", "$a"), &one("a", &list(n, pair)));
    }),
    ("$setField", |n| {
        let set = document(|writer| {
            writer.append("field", "x");
            writer.append("input", "$a");
            writer.append("value", 1);
        });
        expression(&one("$setField", &set), &one("a", &fields(n, |_| 1)));
    }),
    ("$concat", |n| expression(&call("$concat", &vec![Value::String("$a"); n]), &one("a", "x"))),
    ("$concat of constants and fields", |n| {
        let arguments: Vec<Value<'_>> =
            (0..n).map(|number| Value::String(if number % 3 == 0 { "$a" } else { "x" })).collect();
        expression(&call("$concat", &arguments), &one("a", "x"));
    }),
    ("$add within $add", |n| {
        let inner = call("$add", &["$a".into(), "$b".into()]);
        expression(&one("$add", &array(|writer| (0..n).for_each(|_| writer.push(&inner)))), &one("a", 1));
    }),
    ("$split", |n| expression(&call("$split", &["$a".into(), " ".into()]), &with_text(n))),
    ("$indexOfCP", |n| expression(&call("$indexOfCP", &["$a".into(), "x".into()]), &with_text(n))),
    ("$indexOfBytes", |n| expression(&call("$indexOfBytes", &["$a".into(), "x".into()]), &with_text(n))),
    ("$substrCP", |n| expression(&call("$substrCP", &["$a".into(), 1.into(), (n as i32).into()]), &with_text(n))),
    ("$strLenCP", |n| expression(&one("$strLenCP", "$a"), &with_text(n))),
    ("$toUpper", |n| expression(&one("$toUpper", "$a"), &with_text(n))),
    ("$trim", |n| {
        let trim = document(|writer| {
            writer.append("input", "$a");
            writer.append("chars", "ab ");
        });
        expression(&one("$trim", &trim), &with_text(n));
    }),
    ("$replaceAll", |n| {
        let replace = document(|writer| {
            writer.append("input", "$a");
            writer.append("find", "a");
            writer.append("replacement", "xyz");
        });
        expression(&one("$replaceAll", &replace), &with_text(n));
    }),
    ("$regexFindAll", |n| {
        let find = document(|writer| {
            writer.append("input", "$a");
            // Once: the engine checks the rest of the text with each match.
            writer.append("regex", "([ab ]+)");
        });
        expression(&one("$regexFindAll", &find), &with_text(n));
    }),
    ("$let", |n| {
        let bound = document(|writer| {
            writer.append("vars", &fields(n, |number| number as i32));
            let names: Vec<String> = (0..n).map(|number| format!("$$f{number}")).collect();
            writer.append("in", &array(|writer| names.iter().for_each(|name| writer.push(name.as_str()))));
        });
        expression(&one("$let", &bound), &empty());
    }),
    ("variables of the command", |n| {
        let mut context = context();
        context.variables = fields(n, |number| number as i32).into();
        let names: Vec<String> = (0..n).map(|number| format!("$$f{number}")).collect();
        let all = array(|writer| names.iter().for_each(|name| writer.push(name.as_str())));
        Expression::parse(all.as_value(), &context).unwrap();
    }),
    ("$switch", |n| {
        let branch = |number: usize| {
            document(|writer| {
                writer.append("case", &call("$eq", &["$a".into(), (number as i32).into()]));
                writer.append("then", number as i32);
            })
        };
        let switch = document(|writer| {
            writer.append("branches", &list(n, branch));
            writer.append("default", 0);
        });
        expression(&one("$switch", &switch), &one("a", -1));
    }),
    ("an object of many fields", |n| expression(&fields(n, |_| "$a"), &one("a", 1))),
    ("a path through a long array", |n| {
        expression(&one("$size", "$a.b"), &one("a", &list(n, |number| one("b", number as i32))));
    }),
];

const PIPELINES: &[Case] = &[
    ("$addFields", |n| pipeline(&[one("$addFields", &fields(n, |_| "$x"))], &[one("x", 1)])),
    ("$addFields over fields", |n| pipeline(&[one("$addFields", &fields(n, |_| 5))], &[fields(n, |_| 1)])),
    ("$project of fields", |n| pipeline(&[one("$project", &fields(n, |_| 1))], &[fields(n, |_| 1)])),
    ("$project of expressions", |n| pipeline(&[one("$project", &fields(n, |_| "$x"))], &[one("x", 1)])),
    ("$unset of many", |n| {
        let names = array(|writer| (0..n).for_each(|number| writer.push(format!("f{number}").as_str())));
        pipeline(&[one("$unset", &names)], &[fields(n, |_| 1)]);
    }),
    ("a projection", |n| {
        let projection = Projection::parse(fields(n, |_| 1).as_doc(), Doc::EMPTY, &context()).unwrap();
        projection.apply(fields(n, |_| 1).as_doc(), &mut Vec::new()).unwrap();
    }),
    ("fields that are read", |n| {
        let names: Vec<String> = (0..n).map(|number| format!("$f{number}")).collect();
        let sum = one("$sum", &array(|writer| names.iter().for_each(|name| writer.push(name.as_str()))));
        let stages = list(1, |_| group(&one("$max", &sum)));
        let parsed = Pipeline::parse(stages.as_value().as_array().unwrap(), &context()).unwrap();
        let read = parsed.into_source().0.fields.unwrap();
        let whole = fields(n, |_| 1);
        read.trim(whole.as_doc(), &mut Vec::new());
        assert!(read.are_in(whole.as_doc()));
    }),
    ("$match behind $match", |n| {
        let stage = |sign: i32| {
            let conditions = list(n, |number| two(&format!("f{number}"), "$ne", sign));
            one("$match", &one("$and", &conditions))
        };
        pipeline(&[stage(1), stage(-1)], &[empty()]);
    }),
    ("$sort", |n| pipeline(&[two("$sort", "x", 1)], &numbered(n))),
    ("$unwind", |n| pipeline(&[one("$unwind", "$a")], &[with_numbers(n)])),
    ("$group by", |n| pipeline(&[two("$group", "_id", "$x")], &numbered(n))),
    ("$group with many accumulators", |n| {
        let spec = document(|writer| {
            writer.append("_id", "$x");
            (0..n).for_each(|number| writer.append(&format!("f{number}"), &one("$sum", "$x")));
        });
        pipeline(&[one("$group", &spec)], &numbered(2));
    }),
    ("$push in a group", |n| pipeline(&[group(&one("$push", "$x"))], &numbered(n))),
    ("$addToSet in a group", |n| pipeline(&[group(&one("$addToSet", "$x"))], &numbered(n))),
    ("$mergeObjects in a group", |n| {
        let input = documents(n, |number| one("x", &one(&format!("f{number}"), 1)));
        pipeline(&[group(&one("$mergeObjects", "$x"))], &input);
    }),
    ("$maxN in a group", |n| {
        pipeline(&[group(&as_many("$maxN", n / 2, ("input", "$x".into()), None))], &numbered(n));
    }),
    ("$topN in a group", |n| {
        let top = as_many("$topN", n / 2, ("output", "$x".into()), Some(one("x", 1)));
        pipeline(&[group(&top)], &numbered(n));
    }),
    ("$bottomN in a group", |n| {
        let bottom = as_many("$bottomN", n / 2, ("output", "$x".into()), Some(one("x", 1)));
        pipeline(&[group(&bottom)], &numbered(n));
    }),
    ("$bucket", |n| {
        let bucket = document(|writer| {
            writer.append("groupBy", "$x");
            writer.append("boundaries", &array(|writer| (0..=n).for_each(|number| writer.push(number as i32))));
        });
        pipeline(&[one("$bucket", &bucket)], &numbered(n));
    }),
    ("$bucketAuto", |n| {
        let bucket = document(|writer| {
            writer.append("groupBy", "$x");
            writer.append("buckets", 10);
        });
        pipeline(&[one("$bucketAuto", &bucket)], &numbered(n));
    }),
    ("$sortByCount", |n| pipeline(&[one("$sortByCount", "$x")], &numbered(n))),
    ("a window that moves", |n| pipeline(&[window("$sum")], &numbered(n))),
    ("a window of the greatest", |n| pipeline(&[window("$max")], &numbered(n))),
    ("$fill", |n| {
        let fill = document(|writer| {
            writer.append("sortBy", &one("x", 1));
            writer.append("output", &two("y", "method", "linear"));
        });
        pipeline(&[one("$fill", &fill)], &numbered(n));
    }),
    ("$densify", |n| {
        let densify = document(|writer| {
            writer.append("field", "x");
            let range = document(|writer| {
                writer.append("step", 0.5);
                writer.append("bounds", "full");
            });
            writer.append("range", &range);
        });
        pipeline(&[one("$densify", &densify)], &numbered(n));
    }),
    ("$redact", |n| {
        pipeline(&[one("$redact", "$$DESCEND")], &[one("a", &list(n, |number| one("b", number as i32)))]);
    }),
    ("$facet", |n| {
        let facets = document(|writer| {
            let stage = list(1, |_| one("$limit", 1));
            (0..n).for_each(|number| writer.append(&format!("f{number}"), &stage));
        });
        pipeline(&[one("$facet", &facets)], &numbered(1));
    }),
    ("variables of $lookup", |n| {
        let names: Vec<String> = (0..n).map(|number| format!("$$f{number}")).collect();
        let all = array(|writer| names.iter().for_each(|name| writer.push(name.as_str())));
        let lookup = document(|writer| {
            writer.append("from", "o");
            writer.append("as", "o");
            writer.append("let", &fields(n, |_| "$x"));
            writer.append("pipeline", &list(1, |_| two("$project", "x", &all)));
        });
        let stages = list(1, |_| one("$lookup", &lookup));
        let parsed = Pipeline::parse(stages.as_value().as_array().unwrap(), &context()).unwrap();
        for part in parsed.into_parts() {
            let aggregate::PipelinePart::CrossCollection(foreign) = part else { continue };
            let aggregate::joins::CrossCollectionStage::Lookup(lookup) = &*foreign else { continue };
            lookup.query(one("x", 1).as_doc().into()).unwrap();
        }
    }),
    ("$merge", |n| {
        let merge = document(|writer| {
            writer.append("into", "o");
            writer.append("on", &array(|writer| (0..n).for_each(|it| writer.push(format!("f{it}").as_str()))));
            writer.append("let", &fields(n, |_| "$x"));
            writer.append("whenMatched", &list(1, |_| two("$set", "x", "$$f1")));
        });
        let stages = list(1, |_| one("$merge", &merge));
        Pipeline::parse(stages.as_value().as_array().unwrap(), &context()).unwrap();
    }),
    ("$graphLookup", |n| {
        let lookup = document(|writer| {
            writer.append("from", "o");
            writer.append("as", "o");
            writer.append("startWith", "$x");
            writer.append("connectFromField", "x");
            writer.append("connectToField", "_id");
        });
        let stages = list(1, |_| one("$graphLookup", &lookup));
        let parsed = Pipeline::parse(stages.as_value().as_array().unwrap(), &context()).unwrap();
        for part in parsed.into_parts() {
            let aggregate::PipelinePart::CrossCollection(foreign) = part else { continue };
            let aggregate::joins::CrossCollectionStage::GraphLookup(lookup) = &*foreign else { continue };
            let input = one("x", 1);
            let mut search = lookup.start(input.as_doc().into()).unwrap();
            let found = numbered(n);
            search.add_found(found.iter().map(DocBuf::as_doc), usize::MAX).unwrap();
            search.next_predicate().unwrap();
        }
    }),
];

fn cases() -> impl Iterator<Item = &'static Case> {
    [FILTERS, UPDATES, EXPRESSIONS, PIPELINES].into_iter().flatten()
}

fn steps_of(run: fn(usize), length: usize) -> u64 {
    let before = steps::taken();
    run(length);
    steps::taken() - before
}

#[test]
fn steps_grow_with_the_length() {
    let mut wrong = Vec::new();
    for (name, run) in cases() {
        let (once, twice) = (steps_of(*run, LENGTH), steps_of(*run, 2 * LENGTH));
        if twice as f64 > FACTOR_MAX * once as f64 {
            wrong.push(format!("{name}: {once} steps, {twice} for twice the length"));
        }
        if once < (LENGTH / BYTES_PER_STEP) as u64 {
            wrong.push(format!("{name}: no more than {once} steps"));
        }
    }
    assert!(cases().count() >= 100);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Prints the time that each construct takes, and that of a step: `cargo test --release -p update
/// --test steps -- --ignored --nocapture`.
#[test]
#[ignore = "to be looked at by hand"]
fn times() {
    let length: usize = std::env::var("LENGTH").ok().and_then(|length| length.parse().ok()).unwrap_or(20 * LENGTH);
    for (name, run) in cases() {
        let time = |length: usize| {
            let (began, steps) = (Instant::now(), steps_of(*run, length));
            (began.elapsed().as_secs_f64() * 1000.0, steps)
        };
        let ((once, _), (twice, steps)) = (time(length), time(2 * length));
        let each = twice * 1e6 / steps.max(1) as f64;
        println!("{name:40} {once:9.2} ms {twice:9.2} ms  x{:4.1}  {each:8.1} ns a step", twice / once.max(1e-9));
    }
}
