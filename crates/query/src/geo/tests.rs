use crate::shorthand::document as doc;
use crate::{Context, Predicate};

/// Checks which of the values match, as a server has it.
fn check(operator: &str, matching: &[&str], others: &[&str]) {
    let filter = format!("{{'g': {operator}}}");
    let predicate =
        Predicate::parse(doc(&filter).as_doc(), &Context::at(0)).unwrap_or_else(|e| panic!("{filter}: {e}"));
    for (values, expected) in [(matching, true), (others, false)] {
        for value in values {
            let found = predicate.matches(doc(&format!("{{'g': {value}}}")).as_doc());
            assert_eq!(found, Ok(expected), "{filter} on {value}");
        }
    }
}

const SQUARE: &str = "{'type': 'Polygon', 'coordinates': [[[0, 0], [5, 0], [5, 5], [0, 5], [0, 0]]]}";
const DIAGONAL: &str = "{'type': 'LineString', 'coordinates': [[0, 0], [2, 2]]}";
const WITH_HOLE: &str = "{'type': 'Polygon', 'coordinates': [[[0, 0], [5, 0], [5, 5], [0, 5], [0, 0]], \
                         [[2, 2], [3, 2], [3, 3], [2, 3], [2, 2]]]}";

fn point(x: f64, y: f64) -> String {
    format!("{{'type': 'Point', 'coordinates': [{x}, {y}]}}")
}

#[test]
fn on_the_plane() {
    let points = [
        "[1, 1]",
        "{'x': 1, 'y': 1}",
        "{'lng': 2, 'lat': 2, 'z': 5}",
        "[[9, 9], [1, 1]]",
        "[1, 1, 5]",
        "[0, 0]",
        "[5, 5]",
    ];
    let others = [DIAGONAL, "5", "null", "[1]", "{'x': 1}", "['x', 1]", "[6, 1]", "{'loc': [1, 1]}"];
    check("{'$geoWithin': {'$box': [[0, 0], [5, 5]]}}", &points, &others);
    check("{'$geoWithin': {'$box': [[5, 0], [0, 5]]}}", &points, &others);
    check("{'$within': {'$polygon': [[0, 0], [5, 0], [5, 5], [0, 5]]}}", &points, &others);
    check("{'$geoWithin': {'$center': [[1, 1], 2]}}", &["[1, 1]", "[3, 1]", &point(1.0, 2.5)], &["[4, 1]", DIAGONAL]);
}

#[test]
fn on_the_sphere() {
    let square = format!("{{'$geoWithin': {{'$geometry': {SQUARE}}}}}");
    let far = "{'type': 'MultiPoint', 'coordinates': [[1, 1], [9, 9]]}";
    // Corners and edges belong to an area, but a polygon with a corner on an edge is not within it.
    let smaller = "{'type': 'Polygon', 'coordinates': [[[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]]]}";
    check(&square, &["[0, 0]", "[5, 5]", "[0, 2]", SQUARE], &[smaller]);
    check(&square, &["[1, 1]", &point(2.5, 2.5), WITH_HOLE, DIAGONAL], &[far, "[200, 200]", "5", &point(-1.0, 1.0)]);
    let with_hole = format!("{{'$geoWithin': {{'$geometry': {WITH_HOLE}}}}}");
    check(&with_hole, &["[1, 1]"], &["[2.5, 2.5]", SQUARE]);
    let meets = format!("{{'$geoIntersects': {{'$geometry': {SQUARE}}}}}");
    check(&meets, &["[1, 1]", far, SQUARE, WITH_HOLE, DIAGONAL, "[5, 5]"], &["[9, 9]", "null"]);
    check(&format!("{{'$geoIntersects': {{'$geometry': {}}}}}", point(2.5, 2.5)), &[SQUARE], &[WITH_HOLE, DIAGONAL]);
    check("{'$geoWithin': {'$centerSphere': [[1, 1], 0.05]}}", &["[1, 1]", DIAGONAL], &[SQUARE, "[5, 5]"]);
    // Great circles bulge towards the pole.
    let band = "{'$geoWithin': {'$geometry': {'type': 'Polygon', 'coordinates': [[[-60, 40], [60, 40], [60, 50], [-60, 50], [-60, 40]]]}}}";
    check(band, &["[0, 60]"], &["[0, 45]"]);
}

#[test]
fn refusals() {
    let cases = [
        ("{'$geoWithin': 1}", "geometry must be an object"),
        ("{'$geoWithin': {}}", "geo query doesn't have any geometry"),
        ("{'$geoWithin': {'$foo': 1}}", "unknown geo specifier: $foo: 1"),
        ("{'$geoWithin': {'$geometry': {}}}", "unknown GeoJSON type: {}"),
        ("{'$geoWithin': {'$center': [[0, 0], -1]}}", "radius must be a non-negative number"),
        ("{'$geoWithin': {'$center': [[0, 0], 1, 2]}}", "Only 2 fields allowed for circular region"),
        ("{'$geoWithin': {'$centerSphere': [[200, 0], 1]}}", "longitude/latitude is out of bounds, lng: 200 lat: 0"),
        ("{'$geoWithin': {'$polygon': [[0, 0], [1, 1]]}}", "Polygon must have at least 3 points"),
        (
            "{'$geoWithin': {'$geometry': {'type': 'Polygon', 'coordinates': [[[0, 0], [1, 1], [2, 0], [3, 3]]]}}}",
            "Loop is not closed: [ [ 0, 0 ], [ 1, 1 ], [ 2, 0 ], [ 3, 3 ] ]",
        ),
        (
            "{'$geoWithin': {'$geometry': {'type': 'Point', 'coordinates': [1, 1]}}}",
            "$within not supported with provided geometry: { $geoWithin: { $geometry: { type: \"Point\", coordinates: [ 1, 1 ] } } }",
        ),
    ];
    for (operator, message) in cases {
        let filter = doc(&format!("{{'g': {operator}}}"));
        let error = Predicate::parse(filter.as_doc(), &Context::at(0)).expect_err(operator);
        assert_eq!((error.code().0, error.message()), (2, message));
    }
}
