use super::*;

#[track_caller]
fn check(pattern: &str, options: &str, expected: &str) {
    let translated = translate(pattern, options).map(|translated| translated.pattern);
    assert_eq!(translated.as_deref(), Ok(expected), "/{pattern}/{options}");
}

#[track_caller]
fn refused(pattern: &str, reason: &str) {
    assert_eq!(translate(pattern, "").map(|_| ()), Err(reason), "/{pattern}/");
}

#[test]
fn what_stays() {
    for pattern in
        ["abc", r"^a\.b$", "a{1,2}+b{3}?", "(?:a|b)(?<n>c)", r"[a-z\]]+", r"(?<=a|bc)d\1", "[[:alpha:]]", "("]
    {
        check(pattern, "", pattern);
        check(pattern, "x", pattern);
    }
}

#[test]
fn hyphens_behind_sets_are_text() {
    check(r"[\w-.]", "", r"[\w\-.]");
    check(r"[\d--z]", "", r"[\d\--z]");
    check("[[:digit:]-z]", "", r"[[:digit:]\-z]");
    check(r"[\p{L}-z]", "", r"[\p{L}\-z]");
}

#[test]
fn braces_that_are_text() {
    check("a{,3}", "", r"a\{,3}");
    check("{,5}", "", r"\{,5}");
    check("a{1, 2}", "", r"a\{1, 2}");
    check("a{1", "", r"a\{1");
}

#[test]
fn escapes_that_are_text() {
    check(r"\i\F\y", "", "iFy");
    check(r"[\B\z\i]", "", "[Bzi]");
    check(r"\8(a)\9\88", "", "8(a)988");
    check(r"(a)(b)\2\12", "", r"(a)(b)\2\12");
    check(r"\x\xg\x4", "", r"\x00\x00g\x4");
    check(r"[\E]a]", "", r"[\]a]");
    check(r"[\E^\E]a]", "", r"[^\]a]");
    refused(r"[a-\R]", "invalid range in character class");
    check(r"[-\R]", "", "[-R]");
    check(r"[\Qa-]\E]", "", r"[a\-\]]");
}

#[test]
fn properties_have_the_meaning_of_old() {
    check(r"\p{Lu}\P{^Lu}\pL", "", r"\p{Lu}\p{Lu}\p{L}");
    check(r"\p{Lu}", "i", r"(?-i:\p{Lu})");
    check(r"(?i)a(?-i)\p{Lu}", "", r"(?i)a(?-i)\p{Lu}");
    check(r"((?i)\p{Ll})\p{Ll}", "", r"((?i)(?-i:\p{Ll}))\p{Ll}");
    check(r"[\p{Lu}\d]", "i", r"(?:(?-i:[\p{Lu}])|[\d])");
    check(r"[^\p{Lu}\d]", "i", r"(?:(?-i:(?![\p{Lu}]))[^\d])");
    check(r"[^\p{Lu}]", "i", r"(?-i:[^\p{Lu}])");
    check(r"\p{Han}", "", r"\p{sc:Han}");
    refused(r"\p{greek}", "unknown property name after \\P or \\p");
    refused(r"\p{Alphabetic}", "unknown property name after \\P or \\p");
    refused(r"\p{Lu", "malformed \\P or \\p sequence");
}

#[test]
fn calls_do_not_backtrack() {
    check(r"(a|b(?1)c)", "", r"(a|b(?>(?1))c)");
    check(r"(?<n>a)\g<n>(?&n)", "", r"(?<n>a)(?>\g<n>)(?>(?&n))");
    check(r"(a)\g{1}", "", r"(a)\g{1}");
}

#[test]
fn what_only_the_newer_engine_takes() {
    for pattern in ["(?^)a", "(?n)a", "(?[a])", "(?*a)"] {
        refused(pattern, UNKNOWN_GROUP);
    }
    refused("(*pla:a)", "(*VERB) not recognized or malformed");
    refused("(*ACCEPT)*", "nothing to repeat");
    refused(r"\N{U+41}", UNSUPPORTED_ESCAPE);
    refused(r"\x{ 41 }", "non-hex character in \\x{} (closing brace missing?)");
    refused("(?(VERSION>=10)a)", "malformed number or name after (?(");
    refused(&format!("(?<{}>a)", "n".repeat(33)), "subpattern name is too long (maximum 32 characters)");
    refused(r"(?X)\i", UNKNOWN_ESCAPE);
    check("(?xx)a", "", "(?x)a");
    check("a\u{2028}b", "x", "a\\x{2028}b");
}

#[test]
fn lookbehinds_have_one_length_a_branch() {
    for pattern in ["(?<=a|bc)", "(?<=a{2}(b|c))", r"(?<!\w\b.)", "(?<=(?=a*)b)"] {
        check(pattern, "", pattern);
    }
    for pattern in ["(?<=a*)", "(?<=(a|bc))", r"(?<=\R)", "(?<=a{1,2})", r"(a)(?<=\g1)", "(?<=a{2,})"] {
        refused(pattern, "lookbehind assertion is not fixed length");
    }
}

#[test]
fn ends_within_something() {
    let is_open = |pattern, options| translate(pattern, options).map(|translated| translated.is_open);
    assert_eq!(is_open("a # b", "x"), Ok(true));
    assert_eq!(is_open("a # b\n", "x"), Ok(false));
    assert_eq!(is_open("(?x)a # b", ""), Ok(true));
    assert_eq!(is_open("(?x:a )# b", ""), Ok(false));
    assert_eq!(is_open(r"\Qa", ""), Ok(true));
    assert_eq!(is_open(r"\Qa\E#", ""), Ok(false));
}
