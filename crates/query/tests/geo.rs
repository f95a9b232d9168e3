use query::{Context, Predicate};
use shorthand::document as doc;

/// Checks which of the values match, as on a MongoDB server.
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

/// Returns a polygon of one ring as text.
fn polygon(corners: &str) -> String {
    format!("{{'type': 'Polygon', 'coordinates': [{corners}]}}")
}

#[test]
fn areas_that_touch_have_nothing_in_common() {
    let tile = polygon("[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]");
    let beside = polygon("[[1, 0], [2, 0], [2, 1], [1, 1], [1, 0]]");
    let corner = polygon("[[1, 1], [2, 1], [2, 2], [1, 2], [1, 1]]");
    let over = polygon("[[0.5, 0.5], [1.5, 0.5], [1.5, 1.5], [0.5, 1.5], [0.5, 0.5]]");
    let meets = format!("{{'$geoIntersects': {{'$geometry': {tile}}}}}");
    check(&meets, &[&tile, &over, "[1, 0.5]", "[1, 1]"], &[&beside, &corner]);
    let with_hole = polygon("[[0, 0], [8, 0], [8, 8], [0, 8], [0, 0]], [[2, 2], [6, 2], [6, 6], [2, 6], [2, 2]]");
    let within = format!("{{'$geoWithin': {{'$geometry': {with_hole}}}}}");
    let over_hole = polygon("[[2, 2], [6, 2], [6, 8], [2, 8], [2, 2]]");
    check(&within, &[&with_hole, "[2, 2]"], &[&over_hole, "[4, 4]"]);
}

#[test]
fn areas_of_more_than_half_of_the_sphere() {
    let strict = "'crs': {'type': 'name', 'properties': {'name': 'urn:x-mongodb:crs:strictwinding:EPSG:4326'}}";
    let clockwise = "'coordinates': [[[0, 0], [0, 5], [5, 5], [5, 0], [0, 0]]]";
    let all_but = format!("{{'type': 'Polygon', {clockwise}, {strict}}}");
    let far = polygon("[[20, 20], [30, 20], [30, 30], [20, 20]]");
    let line = "{'type': 'LineString', 'coordinates': [[-9, -9], [-3, -4]]}";
    let within = format!("{{'$geoWithin': {{'$geometry': {all_but}}}}}");
    check(&within, &[&far, line, "[90, 0]"], &[SQUARE, DIAGONAL, "[1, 1]", &all_but]);
    let meets = format!("{{'$geoIntersects': {{'$geometry': {all_but}}}}}");
    check(&meets, &[&far, line], &["[1, 1]", &all_but, SQUARE]);
    let hemisphere = polygon("[[0, -90], [180, -90], [180, 90], [0, 90], [0, -90]]");
    check(&format!("{{'$geoWithin': {{'$geometry': {hemisphere}}}}}"), &["[90, 10]"], &["[-90, 10]"]);
    // The line leaves the circle between its ends.
    let around = "{'type': 'LineString', 'coordinates': [[100, 0], [-100, 0]]}";
    check("{'$geoWithin': {'$centerSphere': [[0, 0], 2]}}", &["[100, 0]", "[-100, 0]", SQUARE], &[around]);
}

#[test]
fn areas_on_the_plane_include_borders() {
    let triangle = "{'$geoWithin': {'$polygon': [[0, 0], [4, 0], [0, 4]]}}";
    check(triangle, &["[0, 0]", "[4, 0]", "[0, 4]", "[2, 0]", "[0, 2]", "[2, 2]", "[1, 1]"], &["[3, 3]", "[-1, 2]"]);
    check("{'$geoWithin': {'$polygon': [[0, 0], [4, 0], [4, 4]]}}", &["[3, 1]"], &["[2, 2]", "[1, 1]"]);
    let circle = "{'$geoWithin': {'$center': [[5, 52], 0.0001]}}";
    check(circle, &["[5.0001, 52]", "[4.9999, 52]", "[5, 52.0001]", "[5, 51.9999]"], &["[5.0001, 52.0001]"]);
}

#[test]
fn invalid_rings_are_rejected() {
    let square = "[[0, 0], [8, 0], [8, 8], [0, 8], [0, 0]]";
    let cases = [
        (
            "[[1, 1], [4, 1], [4, 4], [1, 1]], [[2, 1.5], [6, 3], [6, 6], [2, 1.5]]",
            "Polygon isn't valid: Loop 1 crosses loop 2",
        ),
        (
            "[[1, 1], [7, 1], [7, 6], [1, 1]], [[4, 2], [5, 2], [5, 3], [4, 2]]",
            "Polygon interior loops cannot be nested",
        ),
        ("[[0, 0], [4, 3], [8, 8], [3, 4], [0, 0]]", "Loop 1 shares more than one vertex with its parent loop 0"),
        (square, "Polygon isn't valid: Duplicate edge: loop 1, edge 0 and loop 0, edge 0"),
    ];
    for (holes, message) in cases {
        let operator = format!("{{'$geoWithin': {{'$geometry': {}}}}}", polygon(&format!("{square}, {holes}")));
        let filter = doc(&format!("{{'g': {operator}}}"));
        let error = Predicate::parse(filter.as_doc(), &Context::at(0)).expect_err(holes);
        assert!(error.code().0 == 2 && error.message().starts_with(message), "{}", error.message());
        // As a stored value it is no shape.
        let stored = polygon(&format!("{square}, {holes}"));
        check("{'$geoWithin': {'$centerSphere': [[0, 0], 1]}}", &[&polygon(square)], &[&stored]);
    }
}
