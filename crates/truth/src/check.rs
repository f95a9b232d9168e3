//! Judges the answer to a read: is there a version of every document concerned, between what had been acknowledged when the read was sent and what
//! had been started when its reply was there, that makes the answer right?
//!
//! Documents are judged one by one: no server promises that a read sees all of them at one moment. Nothing here does I/O.

use super::layout::{Id, Layout, NUMBERS, Place, Version, shown, text};
use std::collections::HashMap;
use std::ops::{Range, RangeInclusive};

/// The documents that an answer may be made of.
#[derive(Clone, Debug)]
pub enum Scope {
    These(Vec<Id>),
    All(Range<Id>),
}

/// What a filter asks beside the scope.
#[derive(Clone, Debug)]
pub enum Condition {
    Any,
    Groups(RangeInclusive<i32>),
    /// `s` is the text of this number.
    Text(u32),
    NumberFrom(i32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    None,
    /// By `n`, descending.
    Number,
    Id,
}

/// A read that has been sent.
#[derive(Clone, Debug)]
pub struct Reading {
    pub place: Place,
    pub scope: Scope,
    /// Of each document of the scope, the oldest version that may be seen.
    pub lows: Vec<Version>,
    pub condition: Condition,
    pub order: Order,
    pub limit: usize,
    /// Whether every document that matches has to be there; it need not in one batch of several.
    pub whole: bool,
    /// Whether the server may go through an index whose keys the filter bounds or the order asks for: what moves in it meanwhile may be met twice or
    /// not at all.
    pub moving: bool,
}

/// A document that was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    pub id: Id,
    pub version: Version,
}

/// `_id`, count and sum of `n` of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    pub group: i32,
    pub count: i64,
    pub sum: i64,
}

/// What is known of one document of the scope once the answer is there.
struct Possible {
    id: Id,
    low: Version,
    high: Version,
    /// It matches at one version at least.
    may: bool,
    /// It matches at all of them.
    must: bool,
    /// All matching versions have the same group and number.
    still: bool,
}

impl Scope {
    pub fn ids(&self) -> impl Iterator<Item = Id> + '_ {
        let (these, range) = match self {
            Scope::These(ids) => (ids.as_slice(), 0..0),
            Scope::All(range) => (&[][..], range.clone()),
        };
        these.iter().copied().chain(range)
    }

    fn position(&self, id: Id) -> Option<usize> {
        match self {
            Scope::These(ids) => ids.iter().position(|one| *one == id),
            Scope::All(range) => range.contains(&id).then(|| (id - range.start) as usize),
        }
    }
}

impl Condition {
    fn holds(&self, layout: &Layout, id: Id, version: Version) -> bool {
        match self {
            Condition::Any => true,
            Condition::Groups(groups) => groups.contains(&layout.group(id, version)),
            Condition::Text(number) => layout.fields(id, version).s == text(*number),
            Condition::NumberFrom(number) => layout.number(id, version) >= *number,
        }
    }
}

/// The versions of the contents that may be seen of a document between `low` and `high`; `None` where there is nothing to be seen.
fn contents(place: Place, id: Id, low: Version, high: Version) -> impl Iterator<Item = Option<Version>> {
    (low..=high).map(move |version| shown(place, id, version))
}

impl Reading {
    /// All documents of the scope, with the versions `high` says they had begun.
    fn possible<'r>(
        &'r self,
        layout: &'r Layout,
        high: &'r impl Fn(Id) -> Version,
    ) -> impl Iterator<Item = Possible> + 'r {
        self.scope.ids().zip(&self.lows).map(move |(id, &low)| self.judge_one(layout, id, low, high(id)))
    }

    fn judge_one(&self, layout: &Layout, id: Id, low: Version, high: Version) -> Possible {
        let mut one = Possible { id, low, high, may: false, must: true, still: true };
        let mut first = None;
        for content in contents(self.place, id, low, high) {
            let matches = content.filter(|version| self.condition.holds(layout, id, *version));
            one.may |= matches.is_some();
            one.must &= matches.is_some();
            let Some(version) = matches else { continue };
            let keys = (layout.group(id, version), layout.number(id, version));
            one.still &= *first.get_or_insert(keys) == keys;
        }
        one.must &= one.still || !self.moving;
        one
    }

    /// Documents, whole or projected.
    pub fn documents(
        &self,
        layout: &Layout,
        high: impl Fn(Id) -> Version,
        observed: &[Observed],
    ) -> Result<(), String> {
        if observed.len() > self.limit {
            return Err(format!("{} documents, and {} are the limit", observed.len(), self.limit));
        }
        let mut found = vec![false; self.lows.len()];
        for one in observed {
            self.shown_rightly(layout, &high, *one, &mut found)?;
        }
        self.in_order(layout, observed)?;
        if !self.whole {
            return Ok(());
        }
        let last = observed.last().filter(|_| observed.len() == self.limit);
        for (one, found) in self.possible(layout, &high).zip(found) {
            if !found && one.must && !last.is_some_and(|last| self.may_come_behind(layout, &one, *last)) {
                let versions = window(one.low, one.high);
                return Err(format!("document {} is missing, which matches {versions}", one.id));
            }
        }
        Ok(())
    }

    fn shown_rightly(
        &self,
        layout: &Layout,
        high: &impl Fn(Id) -> Version,
        one: Observed,
        found: &mut [bool],
    ) -> Result<(), String> {
        let Observed { id, version } = one;
        let Some(at) = self.scope.position(id) else {
            return Err(format!("document {id} was not asked for"));
        };
        let (low, high) = (self.lows[at], high(id));
        let versions = window(low, high);
        if !contents(self.place, id, low, high).any(|content| content == Some(version)) {
            return Err(format!("document {id} is shown at version {version}, and may be seen {versions}"));
        }
        if !self.condition.holds(layout, id, version) {
            return Err(format!("document {id} is shown at version {version}, which does not match"));
        }
        // One that goes and comes back while a scan is under way may be met in both of its places.
        if std::mem::replace(&mut found[at], true) && low == high && self.whole {
            return Err(format!("document {id} is shown twice, {versions}"));
        }
        Ok(())
    }

    fn in_order(&self, layout: &Layout, observed: &[Observed]) -> Result<(), String> {
        match observed.windows(2).find(|pair| self.key(layout, pair[0]) > self.key(layout, pair[1])) {
            Some(pair) => Err(format!("{:?} is shown before {:?}", pair[0], pair[1])),
            None => Ok(()),
        }
    }

    /// Compares as the order asked for does.
    fn key(&self, layout: &Layout, one: Observed) -> i64 {
        match self.order {
            Order::None => 0,
            Order::Number => i64::from(NUMBERS) - i64::from(layout.number(one.id, one.version)),
            Order::Id => one.id.into(),
        }
    }

    fn may_come_behind(&self, layout: &Layout, one: &Possible, last: Observed) -> bool {
        let last = self.key(layout, last);
        let behind = |version| self.key(layout, Observed { id: one.id, version }) >= last;
        contents(self.place, one.id, one.low, one.high).flatten().any(behind)
    }

    /// How many documents match.
    pub fn count(&self, layout: &Layout, high: impl Fn(Id) -> Version, count: i64) -> Result<(), String> {
        let (mut least, mut most) = (0, 0);
        for one in self.possible(layout, &high) {
            least += i64::from(one.must);
            most += i64::from(one.may);
        }
        // One may be met twice where documents move.
        let extra = if self.moving { most - least } else { 0 };
        if (least..=most + extra).contains(&count) {
            Ok(())
        } else {
            Err(format!("{count} documents are counted, at least {least} and at most {most} may be"))
        }
    }

    /// The different groups of the documents that match.
    pub fn distinct(&self, layout: &Layout, high: impl Fn(Id) -> Version, groups: &[i32]) -> Result<(), String> {
        let (mut allowed, mut asked) = (Vec::new(), Vec::new());
        for one in self.possible(layout, &high) {
            let groups = self.matching(layout, &one).map(|version| layout.group(one.id, version));
            let groups: Vec<i32> = groups.collect();
            if let Some(first) = groups.first().filter(|_| one.must && groups.iter().all(|group| *group == groups[0])) {
                asked.push((*first, one.id));
            }
            allowed.extend(groups);
        }
        if let Some(wrong) = groups.iter().find(|group| !allowed.contains(group)) {
            return Err(format!("group {wrong} is named, and no document may be in it"));
        }
        match asked.iter().find(|(group, _)| !groups.contains(group)) {
            Some((group, id)) => Err(format!("group {group} is not named, and document {id} is in it")),
            None => Ok(()),
        }
    }

    /// Count and sum of `n` per group of the documents that match.
    pub fn groups(&self, layout: &Layout, high: impl Fn(Id) -> Version, rows: &[Group]) -> Result<(), String> {
        /// Bounds of a group's count and sum.
        #[derive(Default)]
        struct Bounds {
            count: (i64, i64),
            sum: (i64, i64),
        }
        let mut bounds: HashMap<i32, Bounds> = HashMap::new();
        for one in self.possible(layout, &high) {
            let mut per_group: HashMap<i32, (i64, i64)> = HashMap::new();
            for version in self.matching(layout, &one) {
                let n = i64::from(layout.number(one.id, version));
                let range = per_group.entry(layout.group(one.id, version)).or_insert((n, n));
                *range = (range.0.min(n), range.1.max(n));
            }
            let must = one.must && per_group.len() == 1;
            for (group, (least, most)) in per_group {
                let bounds = bounds.entry(group).or_default();
                bounds.count.1 += 1;
                bounds.sum.1 += most;
                if must {
                    bounds.count.0 += 1;
                    bounds.sum.0 += least;
                }
            }
        }
        for row in rows {
            let Some(bounds) = bounds.remove(&row.group) else {
                return Err(format!("group {} is shown, and no document may be in it", row.group));
            };
            let fits = |value: i64, (least, most): (i64, i64)| (least..=most).contains(&value);
            if !fits(row.count, bounds.count) || !fits(row.sum, bounds.sum) {
                let (count, sum) = (bounds.count, bounds.sum);
                return Err(format!("{row:?} is shown, its count may be within {count:?}, its sum within {sum:?}"));
            }
        }
        match bounds.iter().find(|(_, bounds)| bounds.count.0 > 0) {
            Some((group, bounds)) => {
                Err(format!("group {group} is missing, in which {} documents are", bounds.count.0))
            }
            None => Ok(()),
        }
    }

    fn matching<'r>(&'r self, layout: &'r Layout, one: &Possible) -> impl Iterator<Item = Version> + 'r {
        let id = one.id;
        let versions = contents(self.place, id, one.low, one.high).flatten();
        versions.filter(move |version| self.condition.holds(layout, id, *version))
    }

    /// The first version of a document that shows what was observed: everybody knows of it from now on. `None` for a document that was
    /// not observed means that there is none.
    pub fn settled(&self, id: Id, high: Version, observed: Option<Version>) -> Option<Version> {
        let low = *self.lows.get(self.scope.position(id)?)?;
        (low..=high).find(|version| shown(self.place, id, *version) == observed)
    }
}

fn window(low: Version, high: Version) -> String {
    match low == high {
        true => format!("at version {low} alone"),
        false => format!("from version {low} to version {high}"),
    }
}

#[cfg(test)]
mod tests;
