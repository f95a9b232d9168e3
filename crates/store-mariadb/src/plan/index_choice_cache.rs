//! Which of several indexes served a query best: asked of MariaDB, remembered per shape of query.
//!
//! A shape is what the indexes at hand can do for a query, whatever its values. As long as the same index is best for all values that have
//! been asked about, or the others are not worth speaking of, that one is settled on after a few of them; where it depends on the values, it is
//! remembered for each. Both are asked about again after some time, after some queries, and when one had to look at many more
//! documents than it was said to. What is remembered goes with what is known of the table, which is forgotten when indexes change.

use crate::plan::pushdown::Condition;
use ahash::{AHashMap, RandomState};
use mariadb_client::{Connection, Event, Result};
use mariadb_wire::Param;
use mariadb_wire::row::BinaryRow;
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use store::selectivity::{self, PathCost};

/// How long, and for how many queries, an answer is believed.
const FRESH_FOR: Duration = Duration::from_secs(60);
const QUERIES_MAX: u32 = 1_000;

/// Answers that have to agree before a shape is settled; twice as many each time that it turned out otherwise, up to the second number.
const AGREEING: u32 = 8;
const AGREEING_MAX: u32 = 1_024;

/// Documents more than this part more, and this number more, are worth going against what is settled.
const WORTH_PART: f64 = 1.3;
const WORTH_DOCUMENTS: f64 = 32.0;

/// So many times more documents than said, and so many more, are a surprise.
const SURPRISING_TIMES: u64 = 2;
const SURPRISING_DOCUMENTS: u64 = 100;

/// Documents in an order among which enough were only hoped to match have to be so many times fewer than those of another index. And so
/// many times as many as hoped, and so many more, are looked at before the hope is given up: chance needs some room.
const HOPE_WORTH: f64 = 4.0;
const HOPE_TIMES: u64 = 3;
const HOPE_DOCUMENTS: u64 = 1_000;

/// So many documents one behind the other cost as much as one that an index leads to.
const ALL_WORTH: f64 = 3.0;

/// How long it is remembered that a hope was in vain.
const VAIN_FOR: Duration = Duration::from_secs(600);

/// Shapes remembered of a table, and values of a shape; past it they are forgotten.
const SHAPES_MAX: usize = 256;
const VALUES_MAX: usize = 256;

/// What is remembered of one table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choices {
    shapes: Arc<Mutex<AHashMap<u64, Shape>>>,
    state: RandomState,
}

#[derive(Debug)]
struct Shape {
    /// What was best for the last values.
    common: Answer,
    /// Answers in a row that it was best for, and how many settle it.
    agreeing: u32,
    needed: u32,
    /// The best for each of the values, where it depends on them.
    by_values: AHashMap<u64, Answer>,
}

#[derive(Clone, Copy, Debug)]
struct Answer {
    way: usize,
    /// Documents that were to be looked at.
    expected: u64,
    /// Documents that were looked at once, to everybody's surprise.
    seen: u64,
    /// When the way that is but hoped to be short turned out not to be.
    in_vain: Option<Instant>,
    since: Instant,
    queries: u32,
}

impl Answer {
    fn of(way: usize) -> Answer {
        Answer { way, expected: 0, seen: 0, in_vain: None, since: Instant::now(), queries: 0 }
    }

    fn is_fresh(&self) -> bool {
        self.queries < QUERIES_MAX && self.since.elapsed() < FRESH_FOR
    }
}

/// What is known of a query.
pub(crate) enum Known {
    Nothing,
    Choice { way: usize, chosen: Option<Chosen> },
}

/// An answer that a plan was made by, to be compared with what happens.
#[derive(Debug)]
pub(crate) struct Chosen {
    choices: Choices,
    shape: u64,
    values: u64,
    expected: u64,
}

impl Chosen {
    /// The plan has looked at so many documents.
    pub fn note(&self, documents: u64) {
        if documents > SURPRISING_TIMES * self.expected + SURPRISING_DOCUMENTS
            && let Some(shape) = self.choices.lock().get_mut(&self.shape)
        {
            shape.doubt();
            let common = Answer::of(shape.common.way);
            let answer = shape.by_values.entry(self.values).or_insert(common);
            (answer.seen, answer.queries) = (documents, QUERIES_MAX);
        }
    }

    /// The plan hoped that enough of the documents that come first in an order would match, and they do not. Gives whether that is remembered.
    pub fn fail(&self) -> bool {
        let mut shapes = self.choices.lock();
        let Some(shape) = shapes.get_mut(&self.shape) else { return false };
        shape.doubt();
        let common = Answer::of(shape.common.way);
        let answer = shape.by_values.entry(self.values).or_insert(common);
        (answer.in_vain, answer.queries) = (Some(Instant::now()), QUERIES_MAX);
        true
    }

    /// Rows to look at in an order before it is given up.
    pub fn hope(&self) -> u64 {
        // Statements are made of a few numbers, so that few need preparing.
        (HOPE_TIMES * self.expected + HOPE_DOCUMENTS).next_power_of_two()
    }
}

/// What MariaDB is to be asked.
pub(crate) struct Question {
    pub shape: u64,
    pub values: u64,
    pub limit: Option<u64>,
    /// The table, as SQL names it.
    pub table: String,
    /// The best by its shape first.
    pub ways: Vec<Way>,
}

/// An index, and what it can do.
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Way {
    /// Where rows are looked for, and by which condition; nowhere in particular, if it is all of them.
    pub stretches: Vec<(String, Condition)>,
    /// The fields that say which.
    pub leading: Vec<String>,
    pub sorted: bool,
    pub exact: bool,
    pub kind: WayKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WayKind {
    /// By the stretches of an index.
    Index,
    /// Along the order of an index: it may look at every document there is.
    Hope,
    /// All documents, one behind the other.
    All,
}

impl Way {
    /// All documents. `ordered`: an order is asked for, which it does not give.
    pub fn all(ordered: bool) -> Way {
        Way { stretches: Vec::new(), leading: Vec::new(), sorted: !ordered, exact: false, kind: WayKind::All }
    }
}

/// All that a plan was decided by.
pub(crate) type Decisions = SmallVec<[Decision; 1]>;

/// Which of the rivals it was, by what was known of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decision {
    pub shape: u64,
    pub values: u64,
    pub way: usize,
}

impl Shape {
    /// It depends on the values more than was thought.
    fn doubt(&mut self) {
        self.agreeing = 0;
        self.needed = (self.needed * 2).min(AGREEING_MAX);
    }

    /// `hoping`: which way is but hoped to be short.
    fn note(&mut self, values: u64, costs: &[f64], hoping: Option<usize>) {
        let in_vain = self.by_values.get(&values).and_then(|known| known.in_vain);
        let in_vain = in_vain.filter(|since| since.elapsed() < VAIN_FOR);
        let mut costs: SmallVec<[f64; 8]> = costs.into();
        if in_vain.is_some() {
            hoping.and_then(|way| costs.get_mut(way)).into_iter().for_each(|cost| *cost = f64::INFINITY);
        }
        let costs = costs.as_slice();
        let best = least(costs, self.common.way);
        // Who looked at so many once, and is the best all the same, surprises nobody again.
        let seen = self.by_values.get(&values).filter(|known| known.way == best).map_or(0, |known| known.seen);
        let cost = costs.get(best).map_or(0, |cost| *cost as u64);
        let answer = Answer { expected: cost.max(seen), seen, in_vain, ..Answer::of(best) };
        if best == self.common.way {
            self.agreeing += 1;
            self.common = Answer { expected: self.common.expected.max(answer.expected), ..answer };
        } else {
            self.doubt();
            self.common = answer;
        }
        if self.by_values.len() >= VALUES_MAX {
            self.by_values.clear();
        }
        self.by_values.insert(values, answer);
    }
}

impl Choices {
    pub fn hasher(&self) -> &RandomState {
        &self.state
    }

    fn lock(&self) -> MutexGuard<'_, AHashMap<u64, Shape>> {
        self.shapes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn known(&self, shape: u64, values: u64) -> Known {
        let mut shapes = self.lock();
        let Some(known) = shapes.get_mut(&shape) else { return Known::Nothing };
        let answer = match known.agreeing >= known.needed {
            true => Some(&mut known.common),
            false => known.by_values.get_mut(&values),
        };
        let Some(answer) = answer.filter(|answer| answer.is_fresh()) else { return Known::Nothing };
        answer.queries += 1;
        let (way, expected) = (answer.way, answer.expected);
        Known::Choice { way, chosen: Some(Chosen { choices: self.clone(), shape, values, expected }) }
    }

    /// Each way of a question costs so much.
    fn note(&self, question: &Question, costs: &[f64]) {
        let hoping = question.ways.iter().position(|way| way.kind == WayKind::Hope);
        let mut shapes = self.lock();
        if shapes.len() >= SHAPES_MAX && !shapes.contains_key(&question.shape) {
            shapes.clear();
        }
        // What its shape says, unless another one is worth it.
        let unknown = || {
            let common = Answer::of(least(costs, 0));
            Shape { common, agreeing: 0, needed: AGREEING, by_values: AHashMap::new() }
        };
        shapes.entry(question.shape).or_insert_with(unknown).note(question.values, costs, hoping);
    }

    /// Asks, and remembers what is answered.
    pub async fn ask(&self, connection: &mut Connection, questions: &[Question]) -> Result<()> {
        for question in questions {
            let rows = rows_of(connection, question).await?;
            let mut rows = rows.into_iter();
            let of_way = |way: &Way| rows.by_ref().take(way.stretches.len()).sum::<f64>();
            let mut keys: Vec<f64> = question.ways.iter().map(of_way).collect();
            let documents = rows.next().unwrap_or(f64::INFINITY);
            let is_all = |way: &Way| way.kind == WayKind::All;
            for (keys, _) in keys.iter_mut().zip(&question.ways).filter(|(_, way)| is_all(way)) {
                *keys = documents;
            }
            let scattered = if question.ways.iter().any(is_all) { ALL_WORTH } else { 1.0 };
            let told = question.ways.iter().zip(&keys).map(|(way, keys)| (way.leading.iter().collect(), *keys));
            let matches = selectivity::estimated_matches::<&String>(told, documents);
            let cost = |(way, keys): (&Way, f64)| {
                let cost = PathCost { keys, sorted: way.sorted, exact: way.exact }.cost(question.limit, matches);
                match way.kind {
                    WayKind::Index => cost * scattered,
                    WayKind::Hope => cost * HOPE_WORTH,
                    WayKind::All => cost,
                }
            };
            let costs: Vec<f64> = question.ways.iter().zip(keys).map(cost).collect();
            self.note(question, &costs);
        }
        Ok(())
    }
}

/// The way that costs least; `usual` where that is not worth going against it.
fn least(costs: &[f64], usual: usize) -> usize {
    let least = costs.iter().copied().enumerate().min_by(|left, right| left.1.total_cmp(&right.1));
    let Some((best, cost)) = least else { return usual };
    let is_good = |usual: &f64| *usual <= cost * WORTH_PART + WORTH_DOCUMENTS;
    if costs.get(usual).is_some_and(is_good) { usual } else { best }
}

/// How many rows MariaDB expects in each stretch of each way, and in the table.
async fn rows_of(connection: &mut Connection, question: &Question) -> Result<Vec<f64>> {
    let stretches = || question.ways.iter().flat_map(|way| &way.stretches);
    let selects = stretches().map(|(source, condition)| format!("SELECT 1 FROM {source} WHERE {}", condition.sql));
    let selects: Vec<String> = selects.chain([format!("SELECT 1 FROM {}", question.table)]).collect();
    let params: Vec<Param<'_>> = stretches().flat_map(|(_, condition)| condition.params()).collect();
    connection.queue_execute(&format!("EXPLAIN {}", selects.join(" UNION ALL ")).into(), &params);
    let mut rows = vec![0.0; selects.len()];
    while let Event::Row(range) = connection.next().await? {
        let (payload, types) = connection.raw_row(range);
        let number = |bytes: Option<&[u8]>, column: usize| match types.get(column).and_then(|it| it.fixed_bytes()) {
            Some(_) => {
                bytes.map(|bytes| bytes.iter().rev().fold(0.0, |number, byte| number * 256.0 + f64::from(*byte)))
            }
            None => std::str::from_utf8(bytes?).ok()?.trim().parse().ok(),
        };
        let mut row = BinaryRow::new(payload, types)?;
        let select = number(row.next_bytes()?, 0);
        for _ in 1..ROWS_COLUMN {
            row.next_bytes()?;
        }
        // A select of which MariaDB knows that it gives nothing has no number of rows.
        if let (Some(select), Some(expected)) = (select, number(row.next_bytes()?, ROWS_COLUMN))
            && let Some(rows) = (select as usize).checked_sub(1).and_then(|at| rows.get_mut(at))
        {
            *rows += expected;
        }
    }
    Ok(rows)
}

/// Where EXPLAIN has the number of rows.
const ROWS_COLUMN: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn question(values: u64) -> Question {
        Question { shape: 7, values, limit: None, table: String::new(), ways: Vec::new() }
    }

    fn way(choices: &Choices, values: u64) -> Option<usize> {
        match choices.known(7, values) {
            Known::Nothing => None,
            Known::Choice { way, .. } => Some(way),
        }
    }

    #[test]
    fn what_is_best_for_all_values_is_settled() {
        let choices = Choices::default();
        for values in 0..u64::from(2 * AGREEING) {
            if way(&choices, values).is_none() {
                choices.note(&question(values), &[1_000.0, 5.0]);
            }
        }
        assert_eq!(way(&choices, 99), Some(1));
        let Known::Choice { chosen: Some(chosen), .. } = choices.known(7, 99) else { panic!("it is settled") };
        chosen.note(chosen.expected + SURPRISING_DOCUMENTS);
        assert_eq!(way(&choices, 99), Some(1));
        chosen.note(chosen.expected * SURPRISING_TIMES + SURPRISING_DOCUMENTS + 1);
        assert_eq!(way(&choices, 99), None, "a surprise");
    }

    #[test]
    fn what_depends_on_values_is_remembered_for_each() {
        let choices = Choices::default();
        for values in 0..100 {
            if way(&choices, values).is_none() {
                let rare = (values % 2) as usize;
                let costs = if rare == 0 { [5.0, 1_000.0] } else { [1_000.0, 5.0] };
                choices.note(&question(values), &costs);
            }
            assert_eq!(way(&choices, values), Some((values % 2) as usize));
        }
        assert_eq!(way(&choices, 100), None);
    }

    #[test]
    fn the_shape_decides_where_the_difference_is_small() {
        let choices = Choices::default();
        choices.note(&question(1), &[30.0, 5.0]);
        assert_eq!(way(&choices, 1), Some(0));
    }

    #[test]
    fn one_that_is_the_best_all_the_same_surprises_once() {
        let choices = Choices::default();
        choices.note(&question(1), &[10.0, 500.0]);
        for asked in [true, false] {
            if let Known::Choice { chosen: Some(chosen), .. } = choices.known(7, 1) {
                chosen.note(3_000);
            }
            assert_eq!(way(&choices, 1).is_none(), asked);
            choices.note(&question(1), &[10.0, 500.0]);
        }
    }

    #[test]
    fn what_was_hoped_in_vain_is_not_hoped_again_for_these_values() {
        let choices = Choices::default();
        let ways = [WayKind::Index, WayKind::Hope].map(|kind| Way {
            stretches: Vec::new(),
            leading: Vec::new(),
            sorted: kind == WayKind::Hope,
            exact: false,
            kind,
        });
        let question = |values| Question { ways: ways.clone().into(), ..question(values) };
        choices.note(&question(1), &[5_000.0, 100.0]);
        let Known::Choice { way: 1, chosen: Some(chosen) } = choices.known(7, 1) else { panic!("it is hoped for") };
        assert!(chosen.hope() >= 1_300);
        assert!(chosen.fail());
        assert_eq!(way(&choices, 1), None);
        for _ in 0..2 {
            choices.note(&question(1), &[5_000.0, 100.0]);
            assert_eq!(way(&choices, 1), Some(0));
        }
        choices.note(&question(2), &[5_000.0, 100.0]);
        assert_eq!(way(&choices, 2), Some(1));
    }

    #[test]
    fn an_answer_does_not_last() {
        let choices = Choices::default();
        choices.note(&question(1), &[1.0, 500.0]);
        (0..QUERIES_MAX).for_each(|_| assert_eq!(way(&choices, 1), Some(0)));
        assert_eq!(way(&choices, 1), None);
    }

    #[test]
    fn memory_is_bounded() {
        let choices = Choices::default();
        for shape in 0..2 * SHAPES_MAX as u64 {
            choices.note(&Question { shape, ..question(shape) }, &[5.0, 1.0]);
        }
        assert!(choices.lock().len() <= SHAPES_MAX);
        for values in 0..2 * VALUES_MAX as u64 {
            choices.note(&question(values), &[500.0 * (values % 2) as f64, 100.0]);
        }
        assert!(choices.lock()[&7].by_values.len() <= VALUES_MAX);
    }
}
