//! Results of a 6.0 server, as tables.

use super::words::{Sensitivity, TextRules, terms};
use super::{Language, TextIndex, TextSearch};
use document::{DocBuf, array, doc};
use std::sync::Arc;

fn index(weights: DocBuf) -> TextIndex {
    let key = doc! { "_fts": "text", "_ftsx": 1 };
    TextIndex::from_spec(doc! { "name": "words", "key": &key, "weights": &weights }.as_doc()).unwrap()
}

fn search(text: &str) -> TextSearch {
    let operand = doc! { "$search": text };
    TextSearch::parse((&operand).into(), Some(&Arc::new(index(doc! { "t": 1 })))).unwrap()
}

#[track_caller]
fn check_terms(language: &str, text: &str, expected: &[&str]) {
    let language = Language::named(language).unwrap();
    let rules = TextRules { language, is_ascii: false, has_stop_words: true };
    assert_eq!(terms(text, rules, Sensitivity::default()).collect::<Vec<_>>(), expected, "{text}");
}

#[test]
fn terms_of_older_versions() {
    let rules = TextRules { language: Language::English, is_ascii: true, has_stop_words: true };
    let found: Vec<_> = terms("The Café's foo_bar, RUNNING\u{a0}x ÜBER", rules, Sensitivity::default()).collect();
    assert_eq!(found, ["café", "foo_bar", "running\u{a0}x", "Über"]);
}

#[test]
fn terms_of_version_3() {
    check_terms("english", "The Coffee shops, running!", &["coffe", "shop", "run"]);
    check_terms("english", "isn't l'eau café-crème", &["l'eau", "cafe", "creme"]);
    check_terms("fr", "isn't l'eau", &["isn", "eau"]);
    check_terms("none", "The ´ Naïve\u{feff} İX", &["the", "", "naive", "Ix"]);
    check_terms("TURKISH", "IX İX", &["ıx", "ix"]);
    check_terms("german", "die Häuser aufeinander", &["haus", "aufeinand"]);
    check_terms("hungarian", "erdõbõl kertből könyveket", &["erdo", "kertbol", "konyv"]);
    check_terms("portuguese", "evolução biología evolución", &["evoluca", "biologi", "evolu"]);
    check_terms("russian", "и книги бегущие", &["книг", "бегущ"]);
}

#[test]
fn languages_have_long_and_short_names() {
    for (name, known) in [("en", true), ("ENGLISH", true), ("nb", true), ("eng", false), ("", false), ("arabic", false)]
    {
        assert_eq!(Language::named(name).is_some(), known, "{name}");
    }
}

#[track_caller]
fn check_search(text: &str, terms: &[&str], negated: &[&str], phrases: &[&str], negated_phrases: &[&str]) {
    let search = search(text);
    let found = |set: &std::collections::BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>();
    assert_eq!(found(&search.terms), terms, "{text}");
    assert_eq!(found(&search.negated_terms), negated, "{text}");
    assert_eq!(search.phrases, phrases, "{text}");
    assert_eq!(search.negated_phrases, negated_phrases, "{text}");
}

#[test]
fn search_strings_with_phrases_and_negations() {
    check_search("coffee the Shops", &["coffe", "shop"], &[], &[], &[]);
    check_search("tea -cake -the", &["tea"], &["cake"], &[], &[]);
    check_search("tea - cake", &["cake", "tea"], &[], &[], &[]);
    check_search("self-made -half-done", &["done", "made", "self"], &["half"], &[], &[]);
    check_search("\"Hot tea\" -\"cold tea\"", &["hot", "tea"], &[], &["Hot tea"], &["cold tea"]);
    check_search("tea \"cake", &["cake", "tea"], &[], &[], &[]);
    check_search("", &[], &[], &[], &[]);
}

#[track_caller]
fn check_score(weights: DocBuf, document: DocBuf, text: &str, expected: Option<f64>) {
    let operand = doc! { "$search": text };
    let search = TextSearch::parse((&operand).into(), Some(&Arc::new(index(weights)))).unwrap();
    let found = search.matches(document.as_doc()).then(|| search.score(document.as_doc()));
    assert_eq!(found, expected, "{document:?}: {text}");
}

#[test]
fn document_scores() {
    check_score(doc! { "t": 1 }, doc! { "t": "coffee shop" }, "coffee", Some(0.75));
    check_score(doc! { "t": 1 }, doc! { "t": "tea tea cake" }, "tea cake", Some(1.9166666666666665));
    check_score(doc! { "t": 1 }, doc! { "t": "tea" }, "tea", Some(1.1));
    check_score(doc! { "t": 3 }, doc! { "t": "tea" }, "tea", Some(3.3000000000000003));
    check_score(doc! { "$**": 2 }, doc! { "t": &array!["tea", &array!["tea"]] }, "tea", Some(2.2));
    check_score(doc! { "t": 1 }, doc! { "t": &array!["tea", &array!["tea"]] }, "tea", Some(1.1));
    check_score(doc! { "t.u": 1 }, doc! { "t": &array![&doc! { "u": "tea" }, &doc! { "u": "tea" }] }, "tea", Some(2.2));
    check_score(doc! { "t": 1 }, doc! { "t": "tea\0cake" }, "cake", None);
    check_score(doc! { "t": 1 }, doc! { "t": "tea cake" }, "-cake tea", None);
    check_score(doc! { "t": 1 }, doc! { "t": "tea cake" }, "\"a c\" tea", Some(0.75));
    check_score(doc! { "t": 1 }, doc! { "t": "teacake" }, "tea", None);
    check_score(doc! { "$**": 1 }, doc! { "language": "fr", "t": "est tea" }, "tea -est", None);
    check_score(doc! { "$**": 1 }, doc! { "language": "fr" }, "fr", None);
    check_score(doc! { "$**": 1 }, doc! { "language": "xx", "t": "tea" }, "tea", None);
}

#[test]
fn documents_in_unknown_languages_are_rejected() {
    let index = index(doc! { "$**": 1 });
    for (document, code) in [(doc! { "language": "xx" }, 17262), (doc! { "a": &doc! { "language": 5 } }, 17261)] {
        assert_eq!(index.check(document.as_doc()).unwrap_err().code().0, code, "{document:?}");
    }
}
