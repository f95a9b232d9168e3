use super::*;
use crate::hint::RouteHint;

fn scan(sql: &str, lexis: Lexis) -> Result<Vec<(TokenKind, &str)>, Unclear> {
    let mut scanner = Scanner::new(sql, lexis);
    let mut tokens = Vec::new();
    while let Some(token) = scanner.next_token()? {
        tokens.push((token.kind, token.text));
    }
    assert_eq!(scanner.position(), sql.len());
    Ok(tokens)
}

fn texts(sql: &str) -> Vec<&str> {
    scan(sql, Lexis::default()).unwrap().into_iter().map(|(_, text)| text).collect()
}

#[test]
fn strings_end_where_the_server_ends_them() {
    for (sql, tokens) in [
        (r"'it''s' 'a\'b' 'c\\' x", &[r"'it''s'", r"'a\'b'", r"'c\\'", "x"][..]),
        (r#""a""b" "c\"d" 'e"f'"#, &[r#""a""b""#, r#""c\"d""#, r#"'e"f'"#]),
        ("`a``b`.`c` `d\\`", &["`a``b`", ".", "`c`", "`d\\`"]),
        ("N'x' X'4142' b'01' _utf8'x' n 'x'", &["N'x'", "X'4142'", "b'01'", "_utf8", "'x'", "n", "'x'"]),
        ("''''", &["''''"]),
        ("'日本' 日本", &["'日本'", "日本"]),
    ] {
        assert_eq!(texts(sql), tokens, "{sql}");
    }
    let plain = Lexis { plain_backslashes: true, ..Lexis::default() };
    assert_eq!(scan(r"'a\' x", plain).unwrap(), [(TokenKind::String, r"'a\'"), (TokenKind::Word, "x")]);
    for sql in ["'a", r"'a\'", r"'a\", "\"a", "`a", "'a''", "N'a"] {
        assert_eq!(scan(sql, Lexis::default()), Err(Unclear::Unterminated), "{sql}");
    }
    for sql in ["x'4'", "x'4g'", "b'2'"] {
        assert_eq!(scan(sql, Lexis::default()), Err(Unclear::Literal), "{sql}");
    }
}

#[test]
fn double_quotes_are_names_with_ansi_quotes() {
    let with = |double_quotes| Lexis { double_quotes, ..Lexis::default() };
    assert_eq!(scan(r#""a""#, with(DoubleQuotes::Strings)).unwrap()[0].0, TokenKind::String);
    assert_eq!(scan(r#""a\" b"#, with(DoubleQuotes::Names)).unwrap()[0], (TokenKind::Name, r#""a\""#));
    assert_eq!(scan(r#""a""#, with(DoubleQuotes::Unknown)).unwrap()[0].0, TokenKind::NameOrString);
    assert_eq!(scan(r#""a\" b""#, with(DoubleQuotes::Unknown)), Err(Unclear::DoubleQuotes));
}

#[test]
fn numbers_and_names_with_digits() {
    for (sql, tokens) in [
        ("1 1.5 .5 1. 1e5 1E+5 1.5e-3", &["1", "1.5", ".5", "1.", "1e5", "1E+5", "1.5e-3"][..]),
        ("1a 1e 1e+ 0x 0xg 0x1F 0b01 0b2 0X1", &["1a", "1e", "1e", "+", "0x", "0xg", "0x1F", "0b01", "0b2", "0X1"]),
        (
            "t.1a t.5 `t`.5 t .5 a.b.c",
            &["t", ".", "1a", "t", ".", "5", "`t`", ".5", "t", ".5", "a", ".", "b", ".", "c"],
        ),
        ("1.e5 1.a 1e5a 1..2", &["1.e5", "1.", "a", "1e5", "a", "1.", ".2"]),
        ("-1 - -1 a--1", &["-", "1", "-", "-", "1", "a", "-", "-", "1"]),
        ("$a a$b _x é", &["$a", "a$b", "_x", "é"]),
    ] {
        assert_eq!(texts(sql), tokens, "{sql}");
    }
    let kinds: Vec<TokenKind> =
        scan("0x1F 0xg t.5 \\N ?", Lexis::default()).unwrap().into_iter().map(|it| it.0).collect();
    use TokenKind::{Number, Parameter, Symbol, Word};
    assert_eq!(kinds, [Number, Word, Word, Symbol, Word, Number, Parameter]);
}

#[test]
fn variables_and_operators() {
    assert_eq!(
        texts("@a @a.b @'x y' @`z` @@sql_mode @@global.x @x:=1 'u'@'h' 'u'@h.x"),
        [
            "@a",
            "@a.b",
            "@'x y'",
            "@`z`",
            "@@sql_mode",
            "@@global",
            ".",
            "x",
            "@x",
            ":=",
            "1",
            "'u'",
            "@'h'",
            "'u'",
            "@h.x"
        ]
    );
    assert_eq!(
        texts("a<=>b<>c!=d>=e<=f<<g>>h||i&&j"),
        ["a", "<=>", "b", "<>", "c", "!=", "d", ">=", "e", "<=", "f", "<<", "g", ">>", "h", "||", "i", "&&", "j"]
    );
}

#[test]
fn comments_are_skipped_and_executable_ones_are_read() {
    let at = |server_version| Lexis { server_version, ..Lexis::default() };
    for (sql, tokens) in [
        ("a -- b\nc --d\n#e\nf", &["a", "c", "-", "-", "d", "f"][..]),
        ("a/* b '*/c/**/d/*/ e*/f", &["a", "c", "d", "f"]),
        ("a --", &["a"]),
        ("/*! a */ b /*!50699 c */ d /*!50700 e */ f", &["a", "b", "c", "d", "f"]),
        ("/*M! a */ /*M!100000 b */ /*M!101100 c */ /*!100000 d */ /*!080000 e */", &["a", "b", "d"]),
        ("/*!99999 a /* b */ c */ d", &["d"]),
        ("/*!40101 a /* b */ c */ d", &["a", "c", "d"]),
        ("/*!401 a*/", &["401", "a"]),
        ("a */ b", &["a", "*", "/", "b"]),
    ] {
        let found: Vec<&str> = scan(sql, at(100_500)).unwrap().into_iter().map(|it| it.1).collect();
        assert_eq!(found, tokens, "{sql}");
    }
    assert_eq!(scan("/*!100500 a */", at(0)), Err(Unclear::VersionComment));
    for sql in ["/* a", "/*! a", "/*!99999 a /* b */"] {
        assert_eq!(scan(sql, at(101_100)), Err(Unclear::Unterminated), "{sql}");
    }
    for sql in ["a\0", "a -- b\0c\nd", "a \x01"] {
        assert_eq!(scan(sql, at(0)), Err(Unclear::ControlCharacter), "{sql}");
    }
}

#[test]
fn characters_beyond_ascii_need_a_known_character_set() {
    let with = |charset| Lexis { charset, ..Lexis::default() };
    for (sql, single_byte, other) in
        [("'é'", true, false), ("é", false, false), ("`é`", false, false), ("'e'", true, true)]
    {
        assert_eq!(scan(sql, with(Charset::SingleByte)).is_ok(), single_byte, "{sql}");
        assert_eq!(scan(sql, with(Charset::Other)).is_ok(), other, "{sql}");
    }
}

#[test]
fn hints_in_comments() {
    for (sql, expected) in [
        ("SELECT 1 -- maxscale route to master", Some(Hint::Route(RouteHint::Primary))),
        ("/* selkie route to replica */ SELECT 1", Some(Hint::Route(RouteHint::Replica))),
        ("SELECT 1 # Selkie ROUTE TO server db2\n", Some(Hint::Route(RouteHint::Server("db2")))),
        ("SELECT 1 -- maxscale max_slave_replication_lag=5", Some(Hint::Parameter("max_slave_replication_lag", "5"))),
        ("SELECT 1 -- maxscale route to last", Some(Hint::Route(RouteHint::Last))),
        ("SELECT 1 -- route to master", None),
        ("SELECT '-- maxscale route to master'", None),
        ("SELECT 1 -- selkie", None),
    ] {
        let mut scanner = Scanner::new(sql, Lexis::default());
        while scanner.next_token().unwrap().is_some() {}
        assert_eq!(scanner.hint().copied(), expected, "{sql}");
    }
}
