//! Made-up histories: right ones pass, and whatever is stale, missing, invented or out of order is found.

use super::*;
use crate::layout::{RENAMED, TERRITORY};
use crate::model::{Later, Model};
use std::time::Duration;

const LAYOUT: Layout = Layout { main: 128, pad: 10 };

fn model() -> Model {
    Model::new(LAYOUT, 1, Duration::ZERO, |_| 1)
}

fn write(model: &Model, id: Id) {
    model.begin(id);
    model.acknowledge(id, 0, &mut Later::default());
}

/// A read of these documents that begins now.
fn reading(model: &Model, scope: Scope, condition: Condition) -> Reading {
    Reading {
        place: Place::Main,
        lows: scope.ids().map(|id| model.low(id, 0)).collect(),
        scope,
        condition,
        order: Order::None,
        limit: usize::MAX,
        whole: true,
        moving: false,
    }
}

fn of_one(model: &Model, id: Id) -> Reading {
    reading(model, Scope::These(vec![id]), Condition::Any)
}

/// The answer to a read of one document, and whether it is found wrong.
fn shows(model: &Model, reading: &Reading, id: Id, version: Option<Version>) -> Result<(), String> {
    let observed: Vec<Observed> = version.map(|version| Observed { id, version }).into_iter().collect();
    reading.documents(&LAYOUT, |id| model.high(id), &observed)
}

/// What a server shows that keeps everything at the version `at` tells.
fn all_at(reading: &Reading, at: impl Fn(Id) -> Version) -> Vec<Observed> {
    let ids = reading.scope.ids();
    ids.filter_map(|id| shown(reading.place, id, at(id)).map(|version| Observed { id, version }))
        .filter(|one| reading.condition.holds(&LAYOUT, one.id, one.version))
        .collect()
}

#[test]
fn an_acknowledged_write_must_be_seen_by_whoever_starts_later() {
    let model = model();
    let early = of_one(&model, 5);
    write(&model, 5);
    let late = of_one(&model, 5);
    // One that began before the write may see it or not; one that began after it must.
    assert_eq!(shows(&model, &early, 5, Some(1)), Ok(()));
    assert_eq!(shows(&model, &early, 5, Some(2)), Ok(()));
    assert_eq!(shows(&model, &late, 5, Some(2)), Ok(()));
    let stale = shows(&model, &late, 5, Some(1)).unwrap_err();
    assert!(stale.contains("document 5 is shown at version 1"), "{stale}");
}

#[test]
fn what_nobody_has_begun_to_write_cannot_be_seen() {
    let model = model();
    let before = of_one(&model, 5);
    assert!(shows(&model, &before, 5, Some(2)).is_err());
    model.begin(5);
    assert_eq!(shows(&model, &before, 5, Some(2)), Ok(()));
}

#[test]
fn a_version_that_a_finished_read_has_seen_is_seen_by_all_later_ones() {
    let model = model();
    model.begin(5);
    let first = of_one(&model, 5);
    assert_eq!(shows(&model, &first, 5, Some(2)), Ok(()));
    let version = first.settled(5, model.high(5), Some(2)).unwrap();
    let overlapping = of_one(&model, 5);
    model.saw(5, version);
    let later = of_one(&model, 5);
    // The write is still not acknowledged, and yet it is no longer open what it has done.
    assert_eq!(shows(&model, &overlapping, 5, Some(1)), Ok(()));
    assert!(shows(&model, &later, 5, Some(1)).is_err());
}

#[test]
fn a_deleted_document_is_gone_and_one_inserted_again_is_there() {
    let model = model();
    let id = 3;
    while shown(Place::Main, id, model.current(id) + 1).is_some() {
        write(&model, id);
    }
    let last = model.current(id);
    let around = of_one(&model, id);
    write(&model, id);
    assert!(shows(&model, &of_one(&model, id), id, Some(last)).is_err());
    assert_eq!(shows(&model, &of_one(&model, id), id, None), Ok(()));
    // That it is gone has been seen by then.
    assert_eq!(around.settled(id, model.high(id), None), Some(last + 1));
    write(&model, id);
    let again = of_one(&model, id);
    assert!(shows(&model, &again, id, None).is_err());
    assert_eq!(shows(&model, &again, id, Some(last + 2)), Ok(()));
    assert_eq!(shows(&model, &around, id, None), Ok(()));
}

#[test]
fn a_stale_filter_is_found_by_what_is_missing_and_by_what_is_too_much() {
    let model = model();
    for id in 0..TERRITORY {
        let group = LAYOUT.group(id, model.current(id));
        let before = reading(&model, Scope::All(0..TERRITORY), Condition::Groups(group..=group));
        let cached = all_at(&before, |id| model.current(id));
        assert_eq!(before.documents(&LAYOUT, |id| model.high(id), &cached), Ok(()));
        let was_there = shown(Place::Main, id, model.current(id)).is_some();
        write(&model, id);
        let after = reading(&model, Scope::All(0..TERRITORY), Condition::Groups(group..=group));
        assert_eq!(before.documents(&LAYOUT, |id| model.high(id), &cached), Ok(()), "overlapping");
        // The document has left its group for the next one.
        assert_eq!(after.documents(&LAYOUT, |id| model.high(id), &cached).is_err(), was_there, "{id}");
        let next = LAYOUT.group(id, model.current(id));
        let into = reading(&model, Scope::All(0..TERRITORY), Condition::Groups(next..=next));
        let right = all_at(&into, |id| model.current(id));
        assert_eq!(into.documents(&LAYOUT, |id| model.high(id), &right), Ok(()));
        let without: Vec<Observed> = right.iter().copied().filter(|one| one.id != id).collect();
        let missing = into.documents(&LAYOUT, |id| model.high(id), &without);
        assert_eq!(missing.is_err(), without.len() < right.len());
    }
}

#[test]
fn counts_groups_and_distinct_values_are_found_stale() {
    let model = model();
    let id = 20;
    let scope = || Scope::All(0..TERRITORY);
    let group = LAYOUT.group(id, 1);
    let one_group = |model: &Model| reading(model, scope(), Condition::Groups(group..=group));
    let count = |model: &Model| all_at(&one_group(model), |id| model.current(id)).len() as i64;
    let all = |model: &Model| reading(model, scope(), Condition::Any);
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
    let high = |id| model.high(id);

    let cached = (count(&model), grouped(&model), distinct(&model));
    let overlapping = (one_group(&model), all(&model));
    assert_eq!(overlapping.0.count(&LAYOUT, high, cached.0), Ok(()));
    assert_eq!(overlapping.1.groups(&LAYOUT, high, &cached.1), Ok(()));
    assert_eq!(overlapping.1.distinct(&LAYOUT, high, &cached.2), Ok(()));
    write(&model, id);
    assert_eq!(overlapping.0.count(&LAYOUT, high, cached.0), Ok(()));
    assert_eq!(overlapping.1.groups(&LAYOUT, high, &cached.1), Ok(()));
    assert!(one_group(&model).count(&LAYOUT, high, cached.0).is_err());
    assert!(all(&model).groups(&LAYOUT, high, &cached.1).is_err());
    assert_eq!(one_group(&model).count(&LAYOUT, high, count(&model)), Ok(()));
    assert_eq!(all(&model).groups(&LAYOUT, high, &grouped(&model)), Ok(()));
    // All documents of that group go elsewhere: it is no longer to be named.
    for id in 0..TERRITORY {
        while LAYOUT.group(id, model.current(id)) == group {
            write(&model, id);
        }
    }
    assert!(all(&model).distinct(&LAYOUT, high, &cached.2).is_err());
    assert_eq!(all(&model).distinct(&LAYOUT, high, &distinct(&model)), Ok(()));
    assert!(all(&model).distinct(&LAYOUT, high, &distinct(&model)[1..]).is_err());
}

#[test]
fn the_first_by_an_order_must_be_the_first() {
    let model = model();
    let sorted = |model: &Model| {
        let mut reading = reading(model, Scope::All(0..TERRITORY), Condition::Any);
        (reading.order, reading.limit) = (Order::Number, 5);
        let mut all = all_at(&reading, |id| model.current(id));
        all.sort_by_key(|one| -LAYOUT.number(one.id, one.version));
        all.truncate(5);
        (reading, all)
    };
    let high = |id| model.high(id);
    let (before, cached) = sorted(&model);
    assert_eq!(before.documents(&LAYOUT, high, &cached), Ok(()));
    let mut swapped = cached.clone();
    swapped.swap(0, 4);
    let differs = LAYOUT.number(cached[0].id, 1) != LAYOUT.number(cached[4].id, 1);
    assert_eq!(before.documents(&LAYOUT, high, &swapped).is_err(), differs);
    // The last but one comes to the front; the cached answer does not have it.
    let (last, top) = (7, LAYOUT.number(cached[0].id, 1));
    while LAYOUT.number(last, model.current(last)) <= top || shown(Place::Main, last, model.current(last)).is_none() {
        write(&model, last);
    }
    let (after, right) = sorted(&model);
    assert_eq!(right[0].id, last);
    assert_eq!(after.documents(&LAYOUT, high, &right), Ok(()));
    let stale = after.documents(&LAYOUT, high, &cached).unwrap_err();
    assert!(stale.contains("document 7 "), "{stale}");
    assert_eq!(before.documents(&LAYOUT, high, &cached), Ok(()), "overlapping");
}

#[test]
fn what_was_not_asked_for_or_is_shown_twice_is_found() {
    let model = model();
    let reading = of_one(&model, 5);
    let five = Observed { id: 5, version: 1 };
    assert!(shows(&model, &reading, 6, Some(1)).is_err());
    assert!(reading.documents(&LAYOUT, |id| model.high(id), &[five, five]).is_err());
}

#[test]
fn a_collection_that_was_renamed_away_is_not_to_be_seen() {
    let model = Model::new(LAYOUT, 1, Duration::ZERO, |_| 4);
    let id = LAYOUT.renamed(RENAMED - 1);
    let at = |model: &Model, place| Reading { place, ..of_one(model, id) };
    let both = |model: &Model| (at(model, Place::Home(3)), at(model, Place::Away(3)));
    write(&model, id);
    let (home, away) = both(&model);
    assert_eq!(shows(&model, &home, id, Some(5)), Ok(()));
    assert_eq!(shows(&model, &away, id, None), Ok(()));
    write(&model, id);
    let (home, away) = both(&model);
    assert!(shows(&model, &home, id, Some(5)).is_err(), "stale after the renaming");
    assert!(shows(&model, &away, id, None).is_err(), "stale after the renaming");
    assert_eq!(shows(&model, &away, id, Some(5)), Ok(()));
    write(&model, id);
    let (home, away) = both(&model);
    assert_eq!(shows(&model, &home, id, Some(5)), Ok(()), "back, as it was");
    assert!(shows(&model, &away, id, Some(5)).is_err());
    write(&model, id);
    write(&model, id);
    assert!(shows(&model, &at(&model, Place::Home(3)), id, Some(8)).is_err(), "stale after the drop");
}

#[test]
fn another_source_may_be_behind_for_as_long_as_is_tolerated() {
    let tolerance = Duration::from_millis(20);
    let model = Model::new(LAYOUT, 2, tolerance, |_| 1);
    let mut later = Later::default();
    model.begin(5);
    model.acknowledge(5, 1, &mut later);
    assert_eq!((model.low(5, 0), model.low(5, 1)), (1, 2), "its own writes a source sees at once");
    model.settle(&mut later);
    assert_eq!(model.low(5, 0), 1);
    std::thread::sleep(tolerance);
    model.settle(&mut later);
    assert_eq!(model.low(5, 0), 2);
}

#[test]
fn what_is_shown_before_its_writer_is_told_counts_unless_it_is_left_out() {
    let mut model = Model::new(LAYOUT, 1, Duration::ZERO, |_| 1);
    model.begin(5);
    model.saw(5, 2);
    assert_eq!(model.low(5, 0), 2);
    model.count_told_only();
    model.begin(5);
    model.saw(5, 3);
    assert_eq!(model.low(5, 0), 2);
    model.acknowledge(5, 0, &mut Later::default());
    assert_eq!(model.low(5, 0), 3, "once it is told, it is for all to know");
}

#[test]
fn what_is_written_on_top_of_an_unknown_version_is_known_with_it() {
    let tolerance = Duration::from_millis(20);
    let model = Model::new(LAYOUT, 2, tolerance, |_| 1);
    let mut later = Later::default();
    for source in [0, 1] {
        model.begin(5);
        model.acknowledge(5, source, &mut later);
    }
    assert_eq!((model.low(5, 0), model.low(5, 1)), (2, 1));
    std::thread::sleep(tolerance);
    model.settle(&mut later);
    assert_eq!((model.low(5, 0), model.low(5, 1)), (3, 3));
}
