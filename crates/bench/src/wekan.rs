//! A load like WeKan's: sessions that poll the cards of a board, whether or not anything has
//! changed. The number of polls per second is the same on every server, so the result is their CPU
//! time.
//!
//! Fields, indexes and filters follow WeKan's cards; the texts are generated.

use crate::idle::wait_until_idle;
use crate::round_robin::order_of_turn;
use anyhow::{Context, Result};
use document::{ArrayWriter, Doc, DocBuf, Value, ValueBuf, array, doc};
use harness::connection::Connection;
use harness::message::{Message, check_ok, cursor_batch};
use harness::random::SplitMix;
use harness::report::{Report, Row, Samples, Stopwatch};
use harness::target::{Target, TargetArgs};
use std::thread::sleep;
use std::time::{Duration, Instant};

#[derive(clap::Args, Debug, Clone)]
pub struct WekanArgs {
    #[command(flatten)]
    pub target: TargetArgs,

    /// Cards on all boards, of 9 KB each
    #[arg(long, default_value_t = 53_000, value_parser = clap::value_parser!(u64).range(1000..))]
    pub cards: u64,

    /// Sessions that poll, each on a connection of its own
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub sessions: u64,

    /// Length of one turn of a server, in seconds
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,

    /// Turns of each server
    #[arg(long, default_value_t = 3)]
    pub rounds: u64,

    /// Reuse the cards of an earlier run with the same number of cards
    #[arg(long)]
    pub reuse: bool,

    /// 2,000 cards and two seconds, to try it out
    #[arg(long)]
    pub quick: bool,
}

const COLLECTION: &str = "wekan_cards";
/// Cards of one insert.
const LOAD_BATCH: u64 = 500;
/// The longest wait for an idle machine after the cards are loaded.
const LOADED_SETTLING_MAX: Duration = Duration::from_secs(60);
/// Cards of a board; they are on some of its lists and swimlanes.
const BOARD_CARDS: u64 = 265;
const LISTS: u64 = 6;
const SWIMLANES: u64 = 4;
const USERS: u64 = 200;
/// Filters of a session, each sent once a second.
const FILTERS: usize = 20;
const DAY_MS: i64 = 86_400_000;
const BEGIN_MS: i64 = 1_700_000_000_000;
const DESCRIPTION_BYTES: usize = 7_060;
const WORDS: [&str; 12] =
    ["board", "list", "before", "release", "customer", "again", "see", "attached", "estimate", "the", "of", "moved"];

pub fn run(args: &WekanArgs) -> Result<()> {
    let mut args = args.clone();
    if args.quick {
        (args.cards, args.seconds, args.rounds) = (2_000, 2, 1);
    }
    let targets = args.target.targets()?;
    if !args.reuse {
        for target in &targets {
            load(target, args.cards).with_context(|| target.name.clone())?;
        }
        // Deferred writes of the load must not count as part of the polls.
        wait_until_idle(if args.quick { Duration::ZERO } else { LOADED_SETTLING_MAX });
    }
    let mut samples = targets.iter().map(|_| Samples::new()).collect::<Result<Vec<_>>>()?;
    for round in 0..args.rounds as usize {
        for index in order_of_turn(round, targets.len()) {
            poll(&targets[index], &args, &mut samples[index]).with_context(|| targets[index].name.clone())?;
        }
    }
    let name = format!("{} sessions, {FILTERS} polls a second each", args.sessions);
    let rows = targets.iter().zip(&samples).map(|(target, samples)| Row {
        // Without a mean time, the ratio is of CPU time.
        mean_ms: None,
        ..samples.row(&name, target, false)
    });
    let mut report = Report::default();
    report.extend(rows.collect());
    report.publish(args.target.json.as_deref())
}

fn load(target: &Target, cards: u64) -> Result<()> {
    let mut connection = Connection::open_with_handshake(&target.address)?;
    connection.drop_collection(COLLECTION)?;
    check_ok(connection.round_trip(&create_indexes())?)?;
    let mut first = 0;
    while first < cards {
        let batch: Vec<DocBuf> = (first..cards.min(first + LOAD_BATCH)).map(card).collect();
        let insert =
            Message::with_sequence(doc! { "insert": COLLECTION }, "documents", batch.iter().map(DocBuf::as_doc));
        check_ok(connection.round_trip(&insert)?)?;
        first += LOAD_BATCH;
    }
    Ok(())
}

fn create_indexes() -> Message {
    let keys = [
        doc! { "boardId": 1, "createdAt": -1 },
        doc! { "boardId": 1, "archived": 1 },
        doc! { "swimlaneId": 1, "listId": 1, "sort": 1 },
        doc! { "listId": 1, "archived": 1 },
        doc! { "modifiedAt": -1 },
        doc! { "parentId": 1 },
        doc! { "linkedId": 1 },
        doc! { "members": 1 },
        doc! { "assignees": 1 },
        doc! { "dueAt": 1 },
    ];
    let add = |mut array: ArrayWriter<'_>| {
        for (number, key) in keys.iter().enumerate() {
            array.push(&doc! { "name": format!("wekan{number}").as_str(), "key": key });
        }
    };
    Message::command(DocBuf::build(|writer| {
        writer.append("createIndexes", COLLECTION);
        add(writer.array("indexes"));
    }))
}

/// Polls a server for one turn: each session sends its filters one after the other, evenly over
/// each second.
fn poll(target: &Target, args: &WekanArgs, samples: &mut Samples) -> Result<()> {
    let boards = args.cards.div_ceil(BOARD_CARDS);
    let mut sessions = Vec::new();
    for session in 0..args.sessions {
        let connection = Connection::open_with_handshake(&target.address)?;
        let board = session * 7 % boards;
        sessions.push((connection, filters(board, session % USERS)));
    }
    let started = Stopwatch::start(target);
    let start = Instant::now();
    let step = Duration::from_secs(1) / FILTERS as u32;
    let times = std::thread::scope(|scope| -> Result<Vec<Duration>> {
        let threads: Vec<_> = (0_u32..)
            .zip(&mut sessions)
            .map(|(number, (connection, filters))| {
                // The sessions' polls are shifted against each other.
                let offset = step * number / args.sessions as u32;
                scope.spawn(move || poll_session(connection, filters, start + offset, args.seconds, step))
            })
            .collect();
        let mut times = Vec::new();
        for thread in threads {
            times.extend(thread.join().map_err(|_| anyhow::anyhow!("a session panicked"))??);
        }
        Ok(times)
    })?;
    samples.stop(target, started);
    times.into_iter().for_each(|time| samples.record(time));
    Ok(())
}

fn poll_session(
    connection: &mut Connection,
    filters: &[Message],
    begin: Instant,
    seconds: u64,
    step: Duration,
) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    for number in 0..seconds as u32 * FILTERS as u32 {
        // A late session polls at once, and is on time again when the server is.
        sleep((begin + step * number).saturating_duration_since(Instant::now()));
        let before = Instant::now();
        let reply = connection.round_trip(&filters[number as usize % filters.len()])?;
        times.push(before.elapsed());
        cursor_batch(check_ok(reply)?)?;
    }
    Ok(times)
}

/// Returns the queries of a session that shows a board.
fn filters(board: u64, user: u64) -> Vec<Message> {
    let first = board * BOARD_CARDS;
    let ids = |count: u64| -> Vec<String> { (0..count).map(|at| card_id(first + at * 13 % BOARD_CARDS)).collect() };
    let among = |ids: &[String]| doc! { "$in": &texts(ids) };
    let (board_id, user_id) = (board_id(board), user_id(user));
    let (board_id, user_id) = (board_id.as_str(), user_id.as_str());
    let mut all = vec![
        find(doc! { "boardId": board_id, "archived": false }, doc! {}, 0),
        find(doc! { "boardId": board_id }, doc! { "createdAt": -1 }, 30),
        find(
            doc! { "boardId": board_id, "modifiedAt": &doc! { "$gt": Value::DateTime(BEGIN_MS + 360 * DAY_MS) } },
            doc! {},
            0,
        ),
        find(doc! { "members": user_id, "archived": false }, doc! { "modifiedAt": -1 }, 20),
        find(
            doc! { "assignees": user_id, "dueAt": &doc! { "$gte": Value::DateTime(BEGIN_MS + 100 * DAY_MS), "$lt": Value::DateTime(BEGIN_MS + 130 * DAY_MS) } },
            doc! { "dueAt": 1 },
            20,
        ),
        find(doc! { "parentId": &among(&ids(20)) }, doc! {}, 0),
        find(doc! { "linkedId": &among(&ids(20)) }, doc! {}, 0),
        find(doc! { "_id": &among(&ids(20)) }, doc! {}, 0),
    ];
    for number in all.len()..FILTERS {
        let number = number as u64;
        let (swimlane, list) = (swimlane_id(board, number % SWIMLANES), list_id(board, number % LISTS));
        let filter = doc! { "swimlaneId": swimlane.as_str(), "listId": list.as_str(), "archived": false };
        all.push(find(filter, doc! { "sort": 1 }, 0));
    }
    all
}

fn find(filter: DocBuf, sort: DocBuf, limit: i32) -> Message {
    let command = doc! { "find": COLLECTION, "filter": &filter, "sort": &sort, "limit": limit, "batchSize": 1000, "singleBatch": true };
    Message::command(command)
}

/// Returns the card with this number; a number always returns the same card.
fn card(number: u64) -> DocBuf {
    let mut random = SplitMix(number);
    let board = number / BOARD_CARDS;
    let time = |days: u64| Value::DateTime(BEGIN_MS + days as i64 * DAY_MS + (number % 86_400) as i64 * 1000);
    let mut users = |most: u64| -> Vec<String> {
        let mut all: Vec<String> = (0..random.below(most + 1)).map(|_| user_id(random.below(USERS))).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let (members, assignees) = (texts(&users(3)), texts(&users(2)));
    let created = random.below(300);
    let mut description = String::with_capacity(DESCRIPTION_BYTES + 16);
    while description.len() < DESCRIPTION_BYTES {
        description.push_str(WORDS[random.below(WORDS.len() as u64) as usize]);
        description.push(' ');
    }
    let custom_fields = DocBuf::build(|writer| {
        let mut fields = writer.array("customFields");
        for at in 0..20 {
            let (id, value) = (format!("field{board:05}{at:08}"), format!("{} of {}", random.below(1000), number));
            fields.push(&doc! { "_id": id.as_str(), "value": value.as_str(), "showOnCard": at % 3 == 0 });
        }
    });
    let (id, title) = (card_id(number), format!("Card {number} of board {board}"));
    let (list, swimlane) = (list_id(board, random.below(LISTS)), swimlane_id(board, random.below(SWIMLANES)));
    let parent =
        if random.below(10) == 0 { card_id(board * BOARD_CARDS + random.below(BOARD_CARDS)) } else { String::new() };
    let linked =
        if random.below(20) == 0 { card_id(board * BOARD_CARDS + random.below(BOARD_CARDS)) } else { String::new() };
    let mut card = doc! {
        "_id": id.as_str(), "title": title.as_str(), "boardId": board_id(board).as_str(), "listId": list.as_str(),
        "swimlaneId": swimlane.as_str(), "parentId": parent.as_str(), "linkedId": linked.as_str(), "members": &members,
        "assignees": &assignees, "labelIds": &array!["bug", "blue"], "archived": random.below(10) == 0,
        "sort": random.below(1000) as i32, "cardNumber": number as i32, "userId": user_id(number % USERS).as_str(),
        "createdAt": time(created), "modifiedAt": time(created + random.below(65)), "description": description.as_str(),
        "spentTime": random.below(100) as f64 / 4.0, "isOvertime": false, "type": "cardType-card",
    };
    if random.below(2) == 0 {
        card.append("dueAt", time(created + 30));
    }
    if let Some(fields) = custom_fields.as_doc().get("customFields") {
        card.append("customFields", fields);
    }
    card
}

fn texts(texts: &[String]) -> ValueBuf {
    let mut bytes = Vec::new();
    let mut writer = ArrayWriter::begin(&mut bytes);
    texts.iter().for_each(|text| writer.push(text.as_str()));
    drop(writer);
    Value::Array(Doc::from_bytes(&bytes).unwrap_or(Doc::EMPTY)).to_owned()
}

fn card_id(number: u64) -> String {
    format!("card{number:013}")
}

fn board_id(number: u64) -> String {
    format!("board{number:012}")
}

fn user_id(number: u64) -> String {
    format!("user{number:013}")
}

fn list_id(board: u64, number: u64) -> String {
    format!("list{board:09}{number:04}")
}

fn swimlane_id(board: u64, number: u64) -> String {
    format!("lane{board:09}{number:04}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_has_nine_kilobytes() {
        let mean = (0..100).map(|number| card(number).as_bytes().len()).sum::<usize>() / 100;
        assert!((8_500..9_500).contains(&mean), "{mean}");
        assert_eq!(card(4711), card(4711));
    }

    #[test]
    fn a_session_has_twenty_filters() {
        assert_eq!(filters(3, 5).len(), FILTERS);
    }
}
