//! Encodes states of accumulators as bytes, for groups that are written to disk, and merges two
//! states of one group.

use super::ValueSet;
use super::collect::{self, SelectedValues, Selection};
use super::{Accumulator, AccumulatorState, take_extreme};
use document::{Doc, DocBuf, Kind, ValueBuf};
use error::Result;
use query::expression::Evaluated;
use steps::Counted;
use values::number::Sum;

/// Appends a state's bytes, which [`read_state`] decodes.
pub(crate) fn write_state(state: &AccumulatorState, out: &mut Vec<u8>) {
    match state {
        AccumulatorState::Sum(sum) => sum.write(out),
        AccumulatorState::Average { sum, count } => {
            sum.write(out);
            out.extend_from_slice(&count.to_le_bytes());
        }
        AccumulatorState::One(value) => {
            out.push(u8::from(value.is_some()));
            value.iter().for_each(|value| write_value(value, out));
        }
        AccumulatorState::Array { bytes, count } => {
            write_count(*count as usize, out);
            write_bytes(bytes, out);
        }
        AccumulatorState::Set(set) => {
            write_count(set.values().count(), out);
            set.values().counted().for_each(|value| write_value(value, out));
        }
        AccumulatorState::Deviation { count, mean, squares } => {
            out.extend_from_slice(&count.to_le_bytes());
            out.extend_from_slice(&mean.to_le_bytes());
            out.extend_from_slice(&squares.to_le_bytes());
        }
        AccumulatorState::Merged(merged) => write_bytes(DocBuf::build(|writer| merged.write(writer)).as_bytes(), out),
        AccumulatorState::SelectN { selected: kept, .. } => {
            write_count(kept.len(), out);
            match kept {
                SelectedValues::List(values) => values.iter().counted().for_each(|value| write_value(value, out)),
                SelectedValues::Ranked { values, .. } => {
                    for ((key, _), value) in values {
                        steps::step();
                        write_bytes(key, out);
                        write_value(value, out);
                    }
                }
            }
        }
        AccumulatorState::Top { ranked, arrivals, .. } => {
            out.extend_from_slice(&arrivals.to_le_bytes());
            write_count(ranked.len(), out);
            for ((key, arrival), value) in ranked {
                steps::step();
                out.extend_from_slice(&arrival.to_le_bytes());
                write_bytes(key, out);
                write_value(value, out);
            }
        }
    }
}

/// Decodes a state's bytes into `state`, a new one of the same accumulator; returns `None` if they
/// are damaged.
pub(crate) fn read_state(state: &mut AccumulatorState, bytes: &mut &[u8]) -> Option<()> {
    match state {
        AccumulatorState::Sum(sum) => *sum = Sum::read(bytes)?,
        AccumulatorState::Average { sum, count } => {
            *sum = Sum::read(bytes)?;
            *count = u64::from_le_bytes(take_bytes(bytes)?);
        }
        AccumulatorState::One(value) => {
            let [is_some] = take_bytes(bytes)?;
            *value = if is_some == 1 { Some(read_value(bytes)?) } else { None };
        }
        AccumulatorState::Array { bytes: array, count } => {
            *count = read_count(bytes)? as u32;
            *array = read_bytes(bytes)?.to_vec();
        }
        AccumulatorState::Set(set) => {
            for _ in 0..read_count(bytes)? {
                steps::step();
                set.insert(read_value(bytes)?.as_value());
            }
        }
        AccumulatorState::Deviation { count, mean, squares } => {
            *count = u64::from_le_bytes(take_bytes(bytes)?);
            *mean = f64::from_le_bytes(take_bytes(bytes)?);
            *squares = f64::from_le_bytes(take_bytes(bytes)?);
        }
        AccumulatorState::Merged(merged) => drop(merged.merge(Doc::from_bytes(read_bytes(bytes)?)?)),
        AccumulatorState::SelectN { selected: kept, bytes: size, .. } => {
            for _ in 0..read_count(bytes)? {
                steps::step();
                let key = if let SelectedValues::Ranked { .. } = kept { read_bytes(bytes)? } else { &[] };
                let value = read_value(bytes)?;
                *size += key.len() + value.raw_value().len() + size_of::<ValueBuf>();
                match kept {
                    SelectedValues::List(values) => values.push_back(value),
                    SelectedValues::Ranked { values, arrivals } => {
                        // They were written in the order of arrival, as far as it matters.
                        *arrivals += 1;
                        values.insert((key.to_vec(), *arrivals), value);
                    }
                }
            }
        }
        AccumulatorState::Top { ranked, arrivals, bytes: size, .. } => {
            *arrivals = u64::from_le_bytes(take_bytes(bytes)?);
            for _ in 0..read_count(bytes)? {
                let arrival = u64::from_le_bytes(take_bytes(bytes)?);
                let key = read_bytes(bytes)?.to_vec();
                let value = read_value(bytes)?;
                *size += key.len() + value.raw_value().len() + size_of::<ValueBuf>();
                ranked.insert((key, arrival), value);
            }
        }
    }
    Some(())
}

impl Accumulator {
    /// Merges another state of the same group, whose documents came later. Fails with 146 like
    /// [`Accumulator::add`].
    pub fn merge(&self, state: &mut AccumulatorState, later: AccumulatorState) -> Result<()> {
        match (self, state, later) {
            (_, AccumulatorState::Sum(sum), AccumulatorState::Sum(later)) => sum.merge(&later),
            (_, AccumulatorState::Average { sum, count }, AccumulatorState::Average { sum: later, count: more }) => {
                sum.merge(&later);
                *count += more;
            }
            (
                Accumulator::Extreme(_, rule, collation),
                AccumulatorState::One(best),
                AccumulatorState::One(Some(later)),
            ) => {
                take_extreme(&Evaluated::Owned(later), *rule, collation, best);
            }
            (Accumulator::First(..), AccumulatorState::One(Some(_)), _) => {}
            (_, AccumulatorState::One(current), AccumulatorState::One(Some(later))) => *current = Some(later),
            (_, AccumulatorState::Array { bytes, count }, AccumulatorState::Array { bytes: later, .. }) => {
                self.check_size(bytes.len() + later.len())?;
                let later = collect::close_array(later);
                for value in Doc::from_bytes(&later).unwrap_or(Doc::EMPTY).values().counted() {
                    collect::push(value, bytes, count);
                }
            }
            (_, AccumulatorState::Set(set), AccumulatorState::Set(later)) => {
                insert_all(set, &later);
                self.check_size(set.memory_bytes())?;
            }
            (
                _,
                AccumulatorState::Deviation { count, mean, squares },
                AccumulatorState::Deviation { count: more, mean: their_mean, squares: their_squares },
            ) => {
                let all = (*count + more) as f64;
                if all > 0.0 {
                    let (ours, theirs, distance) = (*count as f64, more as f64, their_mean - *mean);
                    *squares += their_squares + distance * distance * ours * theirs / all;
                    *mean = (*mean * ours + their_mean * theirs) / all;
                    *count += more;
                }
            }
            (_, AccumulatorState::Merged(merged), AccumulatorState::Merged(later)) => {
                let later = DocBuf::build(|writer| later.write(writer));
                merged.merge(later.as_doc());
                self.check_size(merged.memory_bytes())?;
            }
            (
                Accumulator::SelectN(select_n),
                AccumulatorState::SelectN { limit, selected: kept, bytes, .. },
                AccumulatorState::SelectN { selected: later, .. },
            ) => {
                let room = limit.saturating_sub(kept.len());
                let take_max = if let Selection::First = select_n.selection() { room } else { usize::MAX };
                for value in later.values().take(take_max) {
                    *bytes = bytes.saturating_add_signed(select_n.add_value(*limit, kept, value.clone()));
                }
                self.check_size(*bytes)?;
            }
            (
                Accumulator::Top(top),
                AccumulatorState::Top { limit, ranked, arrivals, bytes },
                AccumulatorState::Top { ranked: later, arrivals: more, .. },
            ) => {
                for ((key, arrival), value) in later {
                    let grown = top.insert(*limit, ranked, (key, *arrivals + arrival), value);
                    *bytes = bytes.saturating_add_signed(grown);
                }
                *arrivals += more;
                self.check_size(*bytes)?;
            }
            _ => {}
        }
        Ok(())
    }
}

fn insert_all(set: &mut ValueSet, later: &ValueSet) {
    for value in later.values().counted() {
        set.insert(value.as_value());
    }
}

fn write_count(count: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&(count as u32).to_le_bytes());
}

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    write_count(bytes.len(), out);
    out.extend_from_slice(bytes);
}

pub(crate) fn write_value(value: &ValueBuf, out: &mut Vec<u8>) {
    out.push(value.kind() as u8);
    write_bytes(value.raw_value(), out);
}

fn take_bytes<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*first)
}

fn read_count(bytes: &mut &[u8]) -> Option<usize> {
    take_bytes(bytes).map(|count| u32::from_le_bytes(count) as usize)
}

fn read_bytes<'b>(bytes: &mut &'b [u8]) -> Option<&'b [u8]> {
    let count = read_count(bytes)?;
    let (first, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(first)
}

pub(crate) fn read_value(bytes: &mut &[u8]) -> Option<ValueBuf> {
    let [kind] = take_bytes(bytes)?;
    Some(ValueBuf::from_raw(Kind::from_byte(kind)?, read_bytes(bytes)?.to_vec()))
}
