//! Valid packets of clients and of MariaDB, and the traffic of other clients.

use crate::packets::{CAPABILITIES, DEPRECATES_EOF, LENGTH_OF_PROOF, Payload, frame, put};
use frame_mutator::Frame;

/// Only other clients send this.
pub const CANARY: &[u8] = b"CANARY";

/// The side that sends a frame, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// A client, in the place of its login.
    ClientAtLogin,
    /// A client that has logged in.
    Client,
    /// A client that has logged in, and changes its account.
    ClientAtChange,
    /// MariaDB, in the place of its greeting, or of its reply to a login or a query that contains
    /// these words.
    Server(&'static str),
}

pub const GREETING: &str = "the greeting";
pub const LOGIN: &str = "the login";
/// The gateway's own queries at a login.
pub const SETTINGS: &str = "VALUES (HEX";
pub const GRANTS: &str = "SHOW GRANTS";
pub const HOSTILE: &str = "hostile";
pub const HOSTILE_STATEMENT: &str = "hostile statement";

/// A valid frame.
pub struct Kind {
    pub frame: Frame,
    pub sender: Sender,
    /// A part of what the client or MariaDB receives if the frame is unchanged.
    pub expected: &'static [u8],
}

pub fn kinds() -> Vec<Kind> {
    let by_client = [
        (query("SELECT a FROM t WHERE id = 1"), &b"\x1cSELECT a FROM t WHERE id = 1"[..]),
        (query("INSERT INTO t VALUES (1, 'some text')"), b"INSERT INTO t"),
        (query("no statement at all"), b"near 'no statement at all'"),
        (query(&format!("SELECT '{}' FROM t", "long ".repeat(300))), b"long long"),
        (text("schema", 0x02, b"absent"), b"Unknown database 'absent'"),
        (text("fields", 0x04, b"t\0%"), b"def"),
        (text("unknown command", 0x21, b"some bytes"), b"Unknown command '!some bytes'"),
        (several("two statements", &[b"\x03SELECT a FROM t", b"\x03nonsense"]), b"near 'nonsense'"),
        (several("a cached statement", &[b"\x03SELECT a FROM t LIMIT 1", b"\x03SELECT a FROM t LIMIT 1"]), b"LIMIT 1"),
        (several("ping and quit", &[b"\x0e", b"\x01"]), b"\x0e"),
        (execution("execution", 0x17), b"a parameter"),
        (execution("bulk execution", 0xFA), b"a parameter"),
        (long_data(), b"a piece"),
    ];
    let mut kinds: Vec<Kind> =
        by_client.into_iter().map(|(frame, expected)| Kind { frame, sender: Sender::Client, expected }).collect();
    for (user, expected) in [("joe", &b"joe"[..]), ("stranger", b"Access denied for 'stranger'")] {
        for capabilities in [CAPABILITIES, CAPABILITIES & !LENGTH_OF_PROOF] {
            let sender = Sender::ClientAtLogin;
            kinds.push(Kind { frame: login_frame(user, capabilities), sender, expected });
        }
    }
    let expected = b"Access denied for 'stranger'";
    kinds.push(Kind { frame: change_user(), sender: Sender::ClientAtChange, expected });
    let by_server = [
        (GREETING, frame("greeting", 0, vec![greeting()]), &b"5.5.5-10.11.19-MariaDB"[..]),
        (LOGIN, frame("switch", 2, vec![Payload::new(b"\xfeclient_ed25519\0").with(&[7; 33])]), b"client_ed25519"),
        (LOGIN, frame("error of a login", 2, vec![error(1045, "not today")]), b"not today"),
        (HOSTILE, frame("result set", 1, result_set(&[b"one", b"two"], true)), b"two"),
        (HOSTILE, frame("ok", 1, vec![ok()]), b"an info"),
        (HOSTILE, frame("error", 1, vec![error(1064, "a message")]), b"a message"),
        (HOSTILE_STATEMENT, frame("prepared", 1, prepared(7)), b"def"),
        (SETTINGS, frame("settings", 1, settings()), b"SHOW GRANTS"),
        (GRANTS, frame("grants", 1, result_set(&[b"GRANT USAGE ON *.* TO joe"], true)), b"SHOW GRANTS"),
        ("SHOW CREATE TABLE", frame("table", 1, table()), b"SELECT a FROM t"),
    ];
    kinds.extend(by_server.into_iter().map(|(when, frame, expected)| Kind {
        frame,
        sender: Sender::Server(when),
        expected,
    }));
    kinds
}

// --- clients

fn text(name: &str, command: u8, rest: &[u8]) -> Frame {
    frame(name, 0, vec![Payload::new(&[command]).with(rest)])
}

fn query(sql: &str) -> Frame {
    text(sql.get(..20).unwrap_or(sql), 0x03, sql.as_bytes())
}

/// Several commands, each numbered from zero.
fn several(name: &str, commands: &[&[u8]]) -> Frame {
    joined(name, commands.iter().map(|command| Payload::new(command)).collect())
}

fn joined(name: &str, commands: Vec<Payload>) -> Frame {
    let mut all = frame(name, 0, commands);
    let ends: Vec<usize> = all.fields.iter().filter(|field| field.width == 3).map(|field| field.at + 3).collect();
    for number in ends {
        if let Some(byte) = all.bytes.get_mut(number) {
            *byte = 0;
        }
    }
    all
}

fn execution(name: &str, command: u8) -> Frame {
    let prepare = Payload::new(b"\x16SELECT ?, ?, ? FROM t");
    let execute = match command {
        // Number, flags, iterations, NULLs, types: text, a blob, a time.
        0x17 => Payload::new(b"\x17\x01\0\0\0\0\x01\0\0\0\0\x01\xfe\0\xfc\0\x0c\0")
            .with_length_encoded(b"a parameter")
            .with_length_encoded(&[b'y'; 300])
            .with_length_encoded(&[0xE6, 7, 1, 2, 3, 4, 5]),
        // Types are sent, and each value has an indicator.
        _ => Payload::new(b"\xfa\x01\0\0\0\x80\0\xfe\0\xfc\0\x0c\0\0")
            .with_length_encoded(b"a parameter")
            .with(&[0])
            .with_length_encoded(&[b'y'; 300])
            .with(&[1]),
    };
    joined(name, vec![prepare, execute])
}

fn long_data() -> Frame {
    let prepare = Payload::new(b"\x16INSERT INTO t VALUES (?)");
    let data = Payload::new(b"\x18\x01\0\0\0\0\0a piece");
    let execute = Payload::new(b"\x17\x01\0\0\0\0\x01\0\0\0\0\x01\xfc\0");
    joined("long data", vec![prepare, data, execute, Payload::new(b"\x1c\x01\0\0\0\x05\0\0\0"), Payload::new(b"\x0e")])
}

fn attributes() -> Payload {
    let pairs = [("_client_name", "a client"), ("program_name", "a program")];
    pairs.iter().fold(Payload::default(), |all, (key, value)| {
        all.with_length_encoded(key.as_bytes()).with_length_encoded(value.as_bytes())
    })
}

/// The user, the proof, the schema.
fn account(payload: Payload, user: &str) -> Payload {
    payload.with(user.as_bytes()).with(&[0]).with_length_encoded(&[0x50; 20]).with(b"d\0")
}

fn change_user() -> Frame {
    let payload = account(Payload::new(&[0x11]), "stranger").with(b"\x2d\0mysql_native_password\0");
    frame("change of the user", 0, vec![payload.with_payload(attributes())])
}

fn login(user: &str, capabilities: u32) -> Payload {
    let head = Payload::new(&capabilities.to_le_bytes()).with(&[0, 0, 0, 1, 45]).with(&[0; 23]);
    account(head, user).with(b"mysql_native_password\0").with_payload(attributes())
}

fn login_frame(user: &str, capabilities: u32) -> Frame {
    let name = format!("login of {user}, {capabilities:x}");
    frame(&name, 1, vec![login(user, capabilities)])
}

/// Returns the login of the client that sends a frame.
pub fn own_login() -> Vec<u8> {
    frame("login", 1, vec![login("joe", CAPABILITIES)]).bytes
}

/// Returns the login of another client, which wants EOF packets.
pub fn login_of_others() -> Vec<u8> {
    frame("login", 1, vec![login("joe", CAPABILITIES & !DEPRECATES_EOF)]).bytes
}

/// Returns all that another client sends then: statements, parameters and names with the canary.
pub fn of_others(letter: u8) -> Vec<u8> {
    let text = format!("CANARY-{}-", char::from(letter)).repeat(200);
    let mut all = Vec::new();
    let long = text.repeat(30);
    for command in [
        format!("\x03SELECT '{text}' FROM t"),
        format!("\x03SELECT '{text}' FROM t"),
        format!("\x03nonsense {text}"),
        format!("\x03INSERT INTO t VALUES ('{long}')"),
        format!("\x02{text}"),
        "\x16SELECT ? FROM t".to_owned(),
    ] {
        put(&mut all, 0, command.as_bytes());
    }
    let execute = Payload::new(b"\x17\x01\0\0\0\0\x01\0\0\0\0\x01\xfe\0").with_length_encoded(text.as_bytes());
    put(&mut all, 0, &execute.bytes);
    put(&mut all, 0, b"\x01");
    all
}

// --- MariaDB

pub fn greeting() -> Payload {
    let capabilities = (CAPABILITIES | 1 << 29).to_le_bytes();
    Payload::new(b"\x0a5.5.5-10.11.19-MariaDB\0\x21\0\0\0abcdefgh\0")
        .with(&capabilities[..2])
        .with(b"\x2d\x02\0")
        .with(&capabilities[2..])
        .with(&[21])
        .counting(1)
        .with(&[0; 6])
        .with(&[0x1d, 0, 0, 0])
        .with(b"ijklmnopqrst\0mysql_native_password\0")
}

pub fn ok() -> Payload {
    Payload::new(b"\0\0\0\x02\0\0\0").with_length_encoded(b"an info")
}

pub fn error(code: u16, message: &str) -> Payload {
    Payload::new(&[0xFF]).with(&code.to_le_bytes()).with(b"#HY000").with(message.as_bytes())
}

fn column() -> Payload {
    [&b"def"[..], b"d", b"t", b"t", b"a", b"a"]
        .iter()
        .fold(Payload::default(), |all, name| all.with_length_encoded(name))
        .with(&[12])
        .counting(1)
        .with(&[45, 0, 255, 0, 0, 0, 253, 0, 0, 0, 0, 0])
}

fn end(deprecates_eof: bool) -> Payload {
    match deprecates_eof {
        true => Payload::new(b"\xfe\0\0\x02\0\0\0"),
        false => Payload::new(b"\xfe\0\0\x02\0"),
    }
}

/// A result set of one column.
pub fn result_set(rows: &[&[u8]], deprecates_eof: bool) -> Vec<Payload> {
    table_of(&rows.iter().map(|row| vec![Some(*row)]).collect::<Vec<_>>(), deprecates_eof)
}

/// A result set of text.
pub fn table_of(rows: &[Vec<Option<&[u8]>>], deprecates_eof: bool) -> Vec<Payload> {
    let columns = rows.first().map_or(1, Vec::len);
    let mut packets = vec![Payload::new(&[columns as u8]).counting(1)];
    packets.extend((0..columns).map(|_| column()));
    if !deprecates_eof {
        packets.push(end(false));
    }
    packets.extend(rows.iter().map(|row| {
        row.iter().fold(Payload::default(), |all, field| match field {
            Some(text) => all.with_length_encoded(text),
            None => all.with(&[0xFB]),
        })
    }));
    packets.push(end(deprecates_eof));
    packets
}

/// The reply to a prepared statement with three parameters and one column, for a client that does
/// not want the end of the definitions.
pub fn prepared(params: u16) -> Vec<Payload> {
    let mut packets =
        vec![Payload::new(b"\0\x01\0\0\0\x01\0").counting(2).with(&params.to_le_bytes()).counting(2).with(b"\0\0\0")];
    packets.extend((0..=params).map(|_| column()));
    packets
}

/// The settings of a session, as the gateway asks for them.
pub fn settings() -> Vec<Payload> {
    let mut row: Vec<Option<&[u8]>> = vec![Some(b"0"); 33];
    row[0] = Some(b"64");
    row[1] = Some(b"utf8mb4");
    row[2] = Some(b"REPEATABLE-READ");
    row[4] = Some(b"STRICT_TRANS_TABLES");
    row[5] = Some(b"6A6F6540256C6F63616C");
    row[6] = Some(b"6A6F654025");
    row[7] = None;
    row[31] = Some(b"28800");
    row[32] = Some(b"");
    table_of(&[row], true)
}

/// The definition of a plain table.
pub fn table() -> Vec<Payload> {
    let row: Vec<Option<&[u8]>> = vec![Some(b"t"), Some(b"CREATE TABLE `t` (\n  `a` int(11)\n) ENGINE=InnoDB")];
    table_of(&[row], true)
}
