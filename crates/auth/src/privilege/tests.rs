use super::*;
use Action::{Find, Insert, Update};

fn privileges(list: &[(ResourcePattern, Action)]) -> Privileges {
    Privileges::new(list.iter().map(|(pattern, action)| Privilege::new(pattern.clone(), ActionSet::of(&[*action]))))
}

/// Returns which of the collections may be read.
fn readable(
    pattern: ResourcePattern,
    collections: &[(&'static str, &'static str)],
) -> Vec<(&'static str, &'static str)> {
    let own = privileges(&[(pattern, Find)]);
    let may_read = |(db, collection): &&(&str, &str)| own.allows(Resource::Collection(db, collection), Find);
    collections.iter().filter(may_read).copied().collect()
}

const COLLECTIONS: &[(&str, &str)] = &[
    ("a", "c"),
    ("a", "d"),
    ("b", "c"),
    ("config", "c"),
    ("local", "c"),
    ("local", "replset.election"),
    ("a", "system.js"),
    ("a", "system.buckets.c"),
    ("b", "system.buckets.c"),
    ("a", "system.buckets.d"),
];

#[test]
fn patterns_cover_collections() {
    let covered = |pattern| readable(pattern, COLLECTIONS);
    assert_eq!(covered(ResourcePattern::AnyResource), COLLECTIONS);
    assert_eq!(covered(ResourcePattern::Cluster), []);
    assert_eq!(covered(ResourcePattern::any_ordinary()), [("a", "c"), ("a", "d"), ("b", "c")]);
    assert_eq!(covered(ResourcePattern::database("a")), [("a", "c"), ("a", "d")]);
    assert_eq!(covered(ResourcePattern::database("local")), [("local", "c")]);
    assert_eq!(
        covered(ResourcePattern::collection("", "c")),
        [("a", "c"), ("b", "c"), ("config", "c"), ("local", "c")]
    );
    assert_eq!(covered(ResourcePattern::collection("a", "c")), [("a", "c")]);
    assert_eq!(covered(ResourcePattern::collection("", "system.js")), [("a", "system.js")]);
    let all = [("a", "system.buckets.c"), ("b", "system.buckets.c"), ("a", "system.buckets.d")];
    assert_eq!(covered(ResourcePattern::buckets("", "")), all);
    assert_eq!(covered(ResourcePattern::buckets("a", "")), [all[0], all[2]]);
    assert_eq!(covered(ResourcePattern::buckets("", "c")), [all[0], all[1]]);
    assert_eq!(covered(ResourcePattern::buckets("a", "c")), [all[0]]);
    assert_eq!(covered(ResourcePattern::collection("a", "system.buckets.c")), [all[0]]);
}

#[test]
fn patterns_cover_databases() {
    let covered = |pattern: ResourcePattern| {
        let own = privileges(&[(pattern, Find)]);
        ["a", "b", "local"].map(|db| (own.allows(Resource::Database(db), Find), own.allows_any_on_database(db)))
    };
    assert_eq!(covered(ResourcePattern::AnyResource), [(true, true); 3]);
    assert_eq!(covered(ResourcePattern::Cluster), [(false, false); 3]);
    assert_eq!(covered(ResourcePattern::any_ordinary()), [(true, true), (true, true), (false, false)]);
    assert_eq!(covered(ResourcePattern::database("a")), [(true, true), (false, false), (false, false)]);
    assert_eq!(covered(ResourcePattern::collection("a", "c")), [(false, true), (false, false), (false, false)]);
    assert_eq!(covered(ResourcePattern::collection("", "c")), [(false, true); 3]);
    assert_eq!(covered(ResourcePattern::buckets("a", "")), [(false, true), (false, false), (false, false)]);
}

#[test]
fn actions_of_several_patterns_add_up() {
    let own = privileges(&[
        (ResourcePattern::database("a"), Find),
        (ResourcePattern::collection("a", "c"), Insert),
        (ResourcePattern::any_ordinary(), Update),
    ]);
    let all = ActionSet::of(&[Find, Insert, Update]);
    assert!(own.allows_all(Resource::Collection("a", "c"), &all));
    assert!(!own.allows_all(Resource::Collection("a", "d"), &all));
    assert!(own.allows_all(Resource::Collection("b", "d"), &ActionSet::EMPTY));
    assert!(own.allows_any(Resource::Collection("b", "d")) && !own.allows_any(Resource::Collection("local", "d")));
    assert!(own.includes(&Privilege::new(ResourcePattern::collection("a", "c"), all)));
    assert!(!own.includes(&Privilege::new(ResourcePattern::AnyResource, ActionSet::of(&[Update]))));
}

#[test]
fn any_action_allows_each() {
    let own = privileges(&[(ResourcePattern::AnyResource, Action::AnyAction)]);
    assert!(Action::ALL.iter().all(|action| own.allows(Resource::Cluster, *action)));
    assert!(own.allows_all(Resource::Any, &ActionSet::ANY));
}
