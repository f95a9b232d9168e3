//! Compares the built-in roles with what MongoDB answers.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

use auth::{Action, ActionSet, Privilege, ResourcePattern, RoleName, builtin_roles};

/// Parses the resource of a line.
fn pattern(text: &str) -> ResourcePattern {
    match text {
        "cluster" => ResourcePattern::Cluster,
        "anyResource" => ResourcePattern::AnyResource,
        _ => {
            let (buckets, names) = text.strip_prefix("buckets ").map_or((false, text), |names| (true, names));
            let (db, collection) = names.split_once('/').expect("a database and a collection");
            if buckets { ResourcePattern::buckets(db, collection) } else { ResourcePattern::collection(db, collection) }
        }
    }
}

fn privilege(line: &str) -> Privilege {
    let (resource, actions) = line.trim().split_once(": ").expect("a resource and its actions");
    let actions = actions.split(' ').map(|name| Action::parse(name).expect("a known action"));
    Privilege::new(pattern(resource), ActionSet::from_iter(actions))
}

#[test]
fn roles_equal_those_of_mongodb() {
    let mut lines = include_str!("data/builtin_roles.txt").lines().filter(|line| !line.starts_with('#'));
    let mut recorded = Vec::new();
    while let Some(head) = lines.next() {
        let head: Vec<&str> = head.split(' ').collect();
        let [role, db, count] = head[..] else { panic!("not a role: {head:?}") };
        let expected: Vec<_> = lines.by_ref().take(count.parse().expect("a number")).map(privilege).collect();
        let name = RoleName::new(role, db);
        let own = builtin_roles::privileges(&name).unwrap_or_else(|| panic!("{name} is missing"));
        assert_eq!(own, expected, "{name}");
        recorded.push(name);
    }
    let own: Vec<_> = ["admin", "other"].into_iter().flat_map(builtin_roles::names).collect();
    assert_eq!(own, recorded);
}

#[test]
fn roles_of_admin_exist_nowhere_else() {
    assert!(builtin_roles::exists(&RoleName::new("root", "admin")));
    assert!(!builtin_roles::exists(&RoleName::new("root", "other")));
    assert!(builtin_roles::exists(&RoleName::new("read", "other")));
    assert!(!builtin_roles::exists(&RoleName::new("Read", "other")));
}
