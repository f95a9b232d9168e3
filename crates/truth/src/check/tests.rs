//! Histories: valid ones pass; stale, missing, invented and misplaced documents are found.

use super::*;
use crate::layout::{PARTITION, RENAMED_COLLECTIONS};
use crate::model::{Model, Propagations};
use std::time::Duration;

const LAYOUT: Layout = Layout { main: 128, pad: 10 };

fn model() -> Model {
    Model::new(LAYOUT, 1, Duration::ZERO, |_| 1)
}

fn write(model: &Model, id: Id) {
    model.begin(id);
    model.acknowledge(id, 0, &mut Propagations::default());
}

/// Returns a read of these documents that begins now.
fn sent(model: &Model, scope: Scope, condition: Condition) -> SentRead {
    SentRead {
        location: Location::Main,
        oldest: scope.ids().map(|id| model.oldest_visible(id, 0)).collect(),
        scope,
        condition,
        order: Order::None,
        limit: usize::MAX,
        complete: true,
        keys_change: false,
    }
}

fn of_one(model: &Model, id: Id) -> SentRead {
    sent(model, Scope::Ids(vec![id]), Condition::Any)
}

/// Checks a reply with one document, or none.
fn shows(model: &Model, sent: &SentRead, id: Id, version: Option<Version>) -> Result<(), String> {
    let observed: Vec<Observed> = version.map(|version| Observed { id, version }).into_iter().collect();
    sent.check_documents(&LAYOUT, |id| model.newest_visible(id), &observed)
}

/// Returns the reply of a server whose documents have the versions that `at` returns.
fn all_at(sent: &SentRead, at: impl Fn(Id) -> Version) -> Vec<Observed> {
    let ids = sent.scope.ids();
    ids.filter_map(|id| visible_version(sent.location, id, at(id)).map(|version| Observed { id, version }))
        .filter(|one| sent.condition.holds(&LAYOUT, one.id, one.version))
        .collect()
}

#[test]
fn later_reads_must_see_an_acknowledged_write() {
    let model = model();
    let early = of_one(&model, 5);
    write(&model, 5);
    let late = of_one(&model, 5);
    // A read that began before the write may see it; a read that began after it must.
    assert_eq!(shows(&model, &early, 5, Some(1)), Ok(()));
    assert_eq!(shows(&model, &early, 5, Some(2)), Ok(()));
    assert_eq!(shows(&model, &late, 5, Some(2)), Ok(()));
    let stale = shows(&model, &late, 5, Some(1)).unwrap_err();
    assert!(stale.contains("document 5 has version 1"), "{stale}");
}

#[test]
fn a_version_that_was_not_started_cannot_be_seen() {
    let model = model();
    let before = of_one(&model, 5);
    assert!(shows(&model, &before, 5, Some(2)).is_err());
    model.begin(5);
    assert_eq!(shows(&model, &before, 5, Some(2)), Ok(()));
}

#[test]
fn later_reads_must_see_a_version_that_a_finished_read_has_seen() {
    let model = model();
    model.begin(5);
    let first = of_one(&model, 5);
    assert_eq!(shows(&model, &first, 5, Some(2)), Ok(()));
    let version = first.seen_version(5, model.newest_visible(5), Some(2)).unwrap();
    let overlapping = of_one(&model, 5);
    model.record_seen(5, version);
    let later = of_one(&model, 5);
    // The write is not acknowledged yet, but a read has seen its result.
    assert_eq!(shows(&model, &overlapping, 5, Some(1)), Ok(()));
    assert!(shows(&model, &later, 5, Some(1)).is_err());
}

#[test]
fn deletions_and_insertions_must_be_seen() {
    let model = model();
    let id = 3;
    while visible_version(Location::Main, id, model.current(id) + 1).is_some() {
        write(&model, id);
    }
    let last = model.current(id);
    let around = of_one(&model, id);
    write(&model, id);
    assert!(shows(&model, &of_one(&model, id), id, Some(last)).is_err());
    assert_eq!(shows(&model, &of_one(&model, id), id, None), Ok(()));
    // The read has seen that it is deleted.
    assert_eq!(around.seen_version(id, model.newest_visible(id), None), Some(last + 1));
    write(&model, id);
    let again = of_one(&model, id);
    assert!(shows(&model, &again, id, None).is_err());
    assert_eq!(shows(&model, &again, id, Some(last + 2)), Ok(()));
    assert_eq!(shows(&model, &around, id, None), Ok(()));
}

#[test]
fn a_stale_filter_is_found_by_missing_and_by_extra_documents() {
    let model = model();
    for id in 0..PARTITION {
        let group = LAYOUT.group(id, model.current(id));
        let before = sent(&model, Scope::Range(0..PARTITION), Condition::Groups(group..=group));
        let cached = all_at(&before, |id| model.current(id));
        assert_eq!(before.check_documents(&LAYOUT, |id| model.newest_visible(id), &cached), Ok(()));
        let was_there = visible_version(Location::Main, id, model.current(id)).is_some();
        write(&model, id);
        let after = sent(&model, Scope::Range(0..PARTITION), Condition::Groups(group..=group));
        assert_eq!(before.check_documents(&LAYOUT, |id| model.newest_visible(id), &cached), Ok(()), "overlapping");
        // The document has left its group for the next one.
        assert_eq!(after.check_documents(&LAYOUT, |id| model.newest_visible(id), &cached).is_err(), was_there, "{id}");
        let next = LAYOUT.group(id, model.current(id));
        let into = sent(&model, Scope::Range(0..PARTITION), Condition::Groups(next..=next));
        let right = all_at(&into, |id| model.current(id));
        assert_eq!(into.check_documents(&LAYOUT, |id| model.newest_visible(id), &right), Ok(()));
        let without: Vec<Observed> = right.iter().copied().filter(|one| one.id != id).collect();
        let missing = into.check_documents(&LAYOUT, |id| model.newest_visible(id), &without);
        assert_eq!(missing.is_err(), without.len() < right.len());
    }
}

#[test]
fn stale_counts_groups_and_distinct_values_are_found() {
    let model = model();
    let id = 20;
    let scope = || Scope::Range(0..PARTITION);
    let group = LAYOUT.group(id, 1);
    let one_group = |model: &Model| sent(model, scope(), Condition::Groups(group..=group));
    let count = |model: &Model| all_at(&one_group(model), |id| model.current(id)).len() as i64;
    let all = |model: &Model| sent(model, scope(), Condition::Any);
    let grouped = |model: &Model| {
        let mut groups: HashMap<i32, Group> = HashMap::new();
        for one in all_at(&all(model), |id| model.current(id)) {
            let group = LAYOUT.group(one.id, one.version);
            let row = groups.entry(group).or_insert(Group { group, count: 0, sum: 0 });
            row.count += 1;
            row.sum += i64::from(LAYOUT.number(one.id, one.version));
        }
        groups.into_values().collect::<Vec<_>>()
    };
    let distinct = |model: &Model| grouped(model).iter().map(|row| row.group).collect::<Vec<_>>();
    let high = |id| model.newest_visible(id);

    let cached = (count(&model), grouped(&model), distinct(&model));
    let overlapping = (one_group(&model), all(&model));
    assert_eq!(overlapping.0.check_count(&LAYOUT, high, cached.0), Ok(()));
    assert_eq!(overlapping.1.check_groups(&LAYOUT, high, &cached.1), Ok(()));
    assert_eq!(overlapping.1.check_distinct(&LAYOUT, high, &cached.2), Ok(()));
    write(&model, id);
    assert_eq!(overlapping.0.check_count(&LAYOUT, high, cached.0), Ok(()));
    assert_eq!(overlapping.1.check_groups(&LAYOUT, high, &cached.1), Ok(()));
    assert!(one_group(&model).check_count(&LAYOUT, high, cached.0).is_err());
    assert!(all(&model).check_groups(&LAYOUT, high, &cached.1).is_err());
    assert_eq!(one_group(&model).check_count(&LAYOUT, high, count(&model)), Ok(()));
    assert_eq!(all(&model).check_groups(&LAYOUT, high, &grouped(&model)), Ok(()));
    // All documents leave that group, so it must not be returned any more.
    for id in 0..PARTITION {
        while LAYOUT.group(id, model.current(id)) == group {
            write(&model, id);
        }
    }
    assert!(all(&model).check_distinct(&LAYOUT, high, &cached.2).is_err());
    assert_eq!(all(&model).check_distinct(&LAYOUT, high, &distinct(&model)), Ok(()));
    assert!(all(&model).check_distinct(&LAYOUT, high, &distinct(&model)[1..]).is_err());
}

#[test]
fn a_sorted_read_must_return_the_first_documents() {
    let model = model();
    let sorted = |model: &Model| {
        let mut sent = sent(model, Scope::Range(0..PARTITION), Condition::Any);
        (sent.order, sent.limit) = (Order::Number, 5);
        let mut all = all_at(&sent, |id| model.current(id));
        all.sort_by_key(|one| -LAYOUT.number(one.id, one.version));
        all.truncate(5);
        (sent, all)
    };
    let high = |id| model.newest_visible(id);
    let (before, cached) = sorted(&model);
    assert_eq!(before.check_documents(&LAYOUT, high, &cached), Ok(()));
    let mut swapped = cached.clone();
    swapped.swap(0, 4);
    let differs = LAYOUT.number(cached[0].id, 1) != LAYOUT.number(cached[4].id, 1);
    assert_eq!(before.check_documents(&LAYOUT, high, &swapped).is_err(), differs);
    // A document becomes the first; the cached reply does not contain it.
    let (last, top) = (7, LAYOUT.number(cached[0].id, 1));
    while LAYOUT.number(last, model.current(last)) <= top
        || visible_version(Location::Main, last, model.current(last)).is_none()
    {
        write(&model, last);
    }
    let (after, right) = sorted(&model);
    assert_eq!(right[0].id, last);
    assert_eq!(after.check_documents(&LAYOUT, high, &right), Ok(()));
    let stale = after.check_documents(&LAYOUT, high, &cached).unwrap_err();
    assert!(stale.contains("document 7 "), "{stale}");
    assert_eq!(before.check_documents(&LAYOUT, high, &cached), Ok(()), "overlapping");
}

#[test]
fn documents_outside_of_the_scope_and_duplicates_are_found() {
    let model = model();
    let sent = of_one(&model, 5);
    let five = Observed { id: 5, version: 1 };
    assert!(shows(&model, &sent, 6, Some(1)).is_err());
    assert!(sent.check_documents(&LAYOUT, |id| model.newest_visible(id), &[five, five]).is_err());
}

#[test]
fn a_renamed_collection_is_not_found_by_its_old_name() {
    let model = Model::new(LAYOUT, 1, Duration::ZERO, |_| 4);
    let id = LAYOUT.renamed(RENAMED_COLLECTIONS - 1);
    let at = |model: &Model, location| SentRead { location, ..of_one(model, id) };
    let both = |model: &Model| (at(model, Location::Original(3)), at(model, Location::Temporary(3)));
    write(&model, id);
    let (original_name, temporary_name) = both(&model);
    assert_eq!(shows(&model, &original_name, id, Some(5)), Ok(()));
    assert_eq!(shows(&model, &temporary_name, id, None), Ok(()));
    write(&model, id);
    let (original_name, temporary_name) = both(&model);
    assert!(shows(&model, &original_name, id, Some(5)).is_err(), "stale after the renaming");
    assert!(shows(&model, &temporary_name, id, None).is_err(), "stale after the renaming");
    assert_eq!(shows(&model, &temporary_name, id, Some(5)), Ok(()));
    write(&model, id);
    let (original_name, temporary_name) = both(&model);
    assert_eq!(shows(&model, &original_name, id, Some(5)), Ok(()), "back, as it was");
    assert!(shows(&model, &temporary_name, id, Some(5)).is_err());
    write(&model, id);
    write(&model, id);
    assert!(shows(&model, &at(&model, Location::Original(3)), id, Some(8)).is_err(), "stale after the drop");
}

#[test]
fn another_source_may_lag_within_the_tolerance() {
    let tolerance = Duration::from_millis(20);
    let model = Model::new(LAYOUT, 2, tolerance, |_| 1);
    let mut propagations = Propagations::default();
    model.begin(5);
    model.acknowledge(5, 1, &mut propagations);
    assert_eq!(
        (model.oldest_visible(5, 0), model.oldest_visible(5, 1)),
        (1, 2),
        "a source sees its own writes at once"
    );
    model.propagate_due(&mut propagations);
    assert_eq!(model.oldest_visible(5, 0), 1);
    std::thread::sleep(tolerance);
    model.propagate_due(&mut propagations);
    assert_eq!(model.oldest_visible(5, 0), 2);
}

#[test]
fn a_seen_version_counts_unless_only_acknowledged_ones_do() {
    let mut model = Model::new(LAYOUT, 1, Duration::ZERO, |_| 1);
    model.begin(5);
    model.record_seen(5, 2);
    assert_eq!(model.oldest_visible(5, 0), 2);
    model.set_acknowledged_only();
    model.begin(5);
    model.record_seen(5, 3);
    assert_eq!(model.oldest_visible(5, 0), 2);
    model.acknowledge(5, 0, &mut Propagations::default());
    assert_eq!(model.oldest_visible(5, 0), 3, "once it is acknowledged, all must see it");
}

#[test]
fn a_write_on_an_unknown_version_becomes_visible_with_it() {
    let tolerance = Duration::from_millis(20);
    let model = Model::new(LAYOUT, 2, tolerance, |_| 1);
    let mut propagations = Propagations::default();
    for source in [0, 1] {
        model.begin(5);
        model.acknowledge(5, source, &mut propagations);
    }
    assert_eq!((model.oldest_visible(5, 0), model.oldest_visible(5, 1)), (2, 1));
    std::thread::sleep(tolerance);
    model.propagate_due(&mut propagations);
    assert_eq!((model.oldest_visible(5, 0), model.oldest_visible(5, 1)), (3, 3));
}
