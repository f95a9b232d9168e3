//! Checks the reply to a read: for every document concerned there must be a version that matches
//! the reply. It must be between the version that was acknowledged when the read was sent and the
//! one that was started when the reply arrived.
//!
//! Documents are checked one by one, because no server promises that a read sees all of them at the
//! same time. This module does no I/O.

use super::layout::{Id, Layout, Location, NUMBERS, Version, text, visible_version};
use std::collections::HashMap;
use std::ops::{Range, RangeInclusive};

/// The documents that a reply may contain.
#[derive(Clone, Debug)]
pub enum Scope {
    Ids(Vec<Id>),
    Range(Range<Id>),
}

/// The condition of a filter besides the scope.
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
pub struct SentRead {
    pub location: Location,
    pub scope: Scope,
    /// The oldest visible version of each document of the scope.
    pub oldest: Vec<Version>,
    pub condition: Condition,
    pub order: Order,
    pub limit: usize,
    /// Whether every matching document must be in the reply; false for one batch of several.
    pub complete: bool,
    /// Whether the server may scan an index on a field of the filter or the sort. A document whose
    /// key changes meanwhile may be found twice or not at all.
    pub keys_change: bool,
}

/// A document in a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    pub id: Id,
    pub version: Version,
}

/// The `_id`, the count and the sum of `n` of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    pub group: i32,
    pub count: i64,
    pub sum: i64,
}

/// The versions that a document of the scope may have in the reply.
struct Candidate {
    id: Id,
    low: Version,
    high: Version,
    /// It matches at one version at least.
    may_match: bool,
    /// It matches at all of them.
    must_match: bool,
    /// All matching versions have the same group and number.
    stable: bool,
}

impl Scope {
    pub fn ids(&self) -> impl Iterator<Item = Id> + '_ {
        let (these, range) = match self {
            Scope::Ids(ids) => (ids.as_slice(), 0..0),
            Scope::Range(range) => (&[][..], range.clone()),
        };
        these.iter().copied().chain(range)
    }

    fn position(&self, id: Id) -> Option<usize> {
        match self {
            Scope::Ids(ids) => ids.iter().position(|one| *one == id),
            Scope::Range(range) => range.contains(&id).then(|| (id - range.start) as usize),
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

/// Returns the contents that a read may find while a document is between `low` and `high`; `None`
/// for no document.
fn visible_versions(location: Location, id: Id, low: Version, high: Version) -> impl Iterator<Item = Option<Version>> {
    (low..=high).map(move |version| visible_version(location, id, version))
}

impl SentRead {
    /// Returns all documents of the scope; `high` returns the newest version of each.
    fn candidates<'r>(
        &'r self,
        layout: &'r Layout,
        high: &'r impl Fn(Id) -> Version,
    ) -> impl Iterator<Item = Candidate> + 'r {
        self.scope.ids().zip(&self.oldest).map(move |(id, &low)| self.candidate(layout, id, low, high(id)))
    }

    fn candidate(&self, layout: &Layout, id: Id, low: Version, high: Version) -> Candidate {
        let mut one = Candidate { id, low, high, may_match: false, must_match: true, stable: true };
        let mut first = None;
        for content in visible_versions(self.location, id, low, high) {
            let matches = content.filter(|version| self.condition.holds(layout, id, *version));
            one.may_match |= matches.is_some();
            one.must_match &= matches.is_some();
            let Some(version) = matches else { continue };
            let keys = (layout.group(id, version), layout.number(id, version));
            one.stable &= *first.get_or_insert(keys) == keys;
        }
        one.must_match &= one.stable || !self.keys_change;
        one
    }

    /// Checks documents, whole or projected.
    pub fn check_documents(
        &self,
        layout: &Layout,
        high: impl Fn(Id) -> Version,
        observed: &[Observed],
    ) -> Result<(), String> {
        if observed.len() > self.limit {
            return Err(format!("{} documents, and {} are the limit", observed.len(), self.limit));
        }
        let mut found = vec![false; self.oldest.len()];
        for one in observed {
            self.check_document(layout, &high, *one, &mut found)?;
        }
        self.check_order(layout, observed)?;
        if !self.complete {
            return Ok(());
        }
        let last = observed.last().filter(|_| observed.len() == self.limit);
        for (one, found) in self.candidates(layout, &high).zip(found) {
            if !found && one.must_match && !last.is_some_and(|last| self.may_sort_after(layout, &one, *last)) {
                let versions = version_range(one.low, one.high);
                return Err(format!("document {} is missing, which matches {versions}", one.id));
            }
        }
        Ok(())
    }

    fn check_document(
        &self,
        layout: &Layout,
        high: &impl Fn(Id) -> Version,
        one: Observed,
        found: &mut [bool],
    ) -> Result<(), String> {
        let Observed { id, version } = one;
        let Some(at) = self.scope.position(id) else {
            return Err(format!("document {id} is outside of the scope"));
        };
        let (low, high) = (self.oldest[at], high(id));
        let versions = version_range(low, high);
        if !visible_versions(self.location, id, low, high).any(|content| content == Some(version)) {
            return Err(format!("document {id} has version {version}, and may be visible {versions}"));
        }
        if !self.condition.holds(layout, id, version) {
            return Err(format!("document {id} has version {version}, which does not match"));
        }
        // A document that is deleted and inserted again during a scan may be found twice.
        if std::mem::replace(&mut found[at], true) && low == high && self.complete {
            return Err(format!("document {id} is returned twice, {versions}"));
        }
        Ok(())
    }

    fn check_order(&self, layout: &Layout, observed: &[Observed]) -> Result<(), String> {
        match observed.windows(2).find(|pair| self.key(layout, pair[0]) > self.key(layout, pair[1])) {
            Some(pair) => Err(format!("{:?} comes before {:?}", pair[0], pair[1])),
            None => Ok(()),
        }
    }

    /// Returns a key that sorts like the order of the read.
    fn key(&self, layout: &Layout, one: Observed) -> i64 {
        match self.order {
            Order::None => 0,
            Order::Number => i64::from(NUMBERS) - i64::from(layout.number(one.id, one.version)),
            Order::Id => one.id.into(),
        }
    }

    fn may_sort_after(&self, layout: &Layout, one: &Candidate, last: Observed) -> bool {
        let last = self.key(layout, last);
        let behind = |version| self.key(layout, Observed { id: one.id, version }) >= last;
        visible_versions(self.location, one.id, one.low, one.high).flatten().any(behind)
    }

    /// Checks the number of documents that match.
    pub fn check_count(&self, layout: &Layout, high: impl Fn(Id) -> Version, count: i64) -> Result<(), String> {
        let (mut least, mut most) = (0, 0);
        for one in self.candidates(layout, &high) {
            least += i64::from(one.must_match);
            most += i64::from(one.may_match);
        }
        // A document whose key changes may be counted twice.
        let extra = if self.keys_change { most - least } else { 0 };
        if (least..=most + extra).contains(&count) {
            Ok(())
        } else {
            Err(format!("{count} documents are counted, at least {least} and at most {most} may be"))
        }
    }

    /// Checks the distinct groups of the documents that match.
    pub fn check_distinct(&self, layout: &Layout, high: impl Fn(Id) -> Version, groups: &[i32]) -> Result<(), String> {
        let (mut allowed, mut asked) = (Vec::new(), Vec::new());
        for one in self.candidates(layout, &high) {
            let groups = self.matching(layout, &one).map(|version| layout.group(one.id, version));
            let groups: Vec<i32> = groups.collect();
            if let Some(first) =
                groups.first().filter(|_| one.must_match && groups.iter().all(|group| *group == groups[0]))
            {
                asked.push((*first, one.id));
            }
            allowed.extend(groups);
        }
        if let Some(wrong) = groups.iter().find(|group| !allowed.contains(group)) {
            return Err(format!("group {wrong} is returned, and no document may be in it"));
        }
        match asked.iter().find(|(group, _)| !groups.contains(group)) {
            Some((group, id)) => Err(format!("group {group} is missing, and document {id} is in it")),
            None => Ok(()),
        }
    }

    /// Checks the count and the sum of `n` per group of the documents that match.
    pub fn check_groups(&self, layout: &Layout, high: impl Fn(Id) -> Version, rows: &[Group]) -> Result<(), String> {
        /// The bounds of a group's count and sum.
        #[derive(Default)]
        struct GroupBounds {
            count: (i64, i64),
            sum: (i64, i64),
        }
        let mut bounds: HashMap<i32, GroupBounds> = HashMap::new();
        for one in self.candidates(layout, &high) {
            let mut per_group: HashMap<i32, (i64, i64)> = HashMap::new();
            for version in self.matching(layout, &one) {
                let n = i64::from(layout.number(one.id, version));
                let range = per_group.entry(layout.group(one.id, version)).or_insert((n, n));
                *range = (range.0.min(n), range.1.max(n));
            }
            let must = one.must_match && per_group.len() == 1;
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
                return Err(format!("group {} is returned, and no document may be in it", row.group));
            };
            let fits = |value: i64, (least, most): (i64, i64)| (least..=most).contains(&value);
            if !fits(row.count, bounds.count) || !fits(row.sum, bounds.sum) {
                let (count, sum) = (bounds.count, bounds.sum);
                return Err(format!("{row:?} is returned, its count may be within {count:?}, its sum within {sum:?}"));
            }
        }
        match bounds.iter().find(|(_, bounds)| bounds.count.0 > 0) {
            Some((group, bounds)) => {
                Err(format!("group {group} is missing, in which {} documents are", bounds.count.0))
            }
            None => Ok(()),
        }
    }

    fn matching<'r>(&'r self, layout: &'r Layout, one: &Candidate) -> impl Iterator<Item = Version> + 'r {
        let id = one.id;
        let versions = visible_versions(self.location, id, one.low, one.high).flatten();
        versions.filter(move |version| self.condition.holds(layout, id, *version))
    }

    /// Returns the first version of a document that matches the observation, which later reads must
    /// see too. `observed` is `None` if the reply contained no such document.
    pub fn seen_version(&self, id: Id, high: Version, observed: Option<Version>) -> Option<Version> {
        let low = *self.oldest.get(self.scope.position(id)?)?;
        (low..=high).find(|version| visible_version(self.location, id, *version) == observed)
    }
}

fn version_range(low: Version, high: Version) -> String {
    match low == high {
        true => format!("at version {low} alone"),
        false => format!("from version {low} to version {high}"),
    }
}

#[cfg(test)]
mod tests;
