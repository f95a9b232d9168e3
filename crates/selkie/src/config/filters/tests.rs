use crate::config::{Config, file};
use sql_filter::{FilterKind, Mode};

fn resolve(text: &str) -> Result<Config, String> {
    let written = file::read("selkie.toml".as_ref(), text).map_err(|error| error.to_string())?;
    Config::resolve(written).map_err(|error| error.to_string())
}

const SERVICE: &str = "[server.db1]\naddress = \"127.0.0.1:3306\"\n[service.app]\nservers = [\"db1\"]\n";

#[test]
fn filters_of_a_service() {
    let text = format!(
        "{SERVICE}filters = [\"log\", \"guard\"]\n[filter.guard]\nkind = \"firewall\"\nmode = \"report\"\n\
         deny = [\"table d.secret user joe\"]\n[filter.log]\nkind = \"query-log\"\npath = \"/x\"\nliterals = true\n"
    );
    let settings = resolve(&text).unwrap().servers;
    assert_eq!(settings.services[0].filters, ["log", "guard"]);
    let FilterKind::Firewall(firewall) = &settings.filters[0].kind else { panic!() };
    assert_eq!((firewall.mode, firewall.deny.len(), firewall.statements_max), (Mode::Report, 1, 10_000));
    let FilterKind::QueryLog(log) = &settings.filters[1].kind else { panic!() };
    assert!(log.shows_literals && log.duration_min.is_zero());
}

#[test]
fn errors_name_their_lines() {
    for (filters, expected) in [
        (
            "filters = [\"lag\"]\n[filter.log]\nkind = \"query-log\"\npath = \"/x\"",
            "5: there is no [filter.lag]; did you mean \"log\"?",
        ),
        ("filters = [\"log\", \"log\"]\n[filter.log]\nkind = \"query-log\"\npath = \"/x\"", "5: log is named twice"),
        ("[filter.log]\npath = \"/x\"", "5: log has no kind"),
        ("[filter.log]\nkind = \"query\"", "6: kind: \"query\" is not a kind of filter"),
        ("[filter.log]\nkind = \"query-log\"", "5: log has no path"),
        (
            "[filter.log]\nkind = \"query-log\"\npath = \"/x\"\nmode = \"learn\"",
            "8: mode is no setting of a filter of kind query-log",
        ),
        (
            "[filter.log]\nkind = \"query-log\"\npaht = \"/x\"",
            "7: there is no parameter \"paht\" in [filter.NAME]; did you mean \"path\"?",
        ),
        ("[filter.g]\nkind = \"firewall\"", "5: g refuses nothing"),
        ("[filter.g]\nkind = \"firewall\"\nmode = \"learn\"", "7: a filter that learns needs a file"),
        ("[filter.g]\nkind = \"firewall\"\ndeny = [\"tabel t\"]", "7: deny: \"tabel\" is no condition of a rule"),
        ("[filter.g]\nkind = \"firewall\"\ndeny = [\"user a\"]\nmax-statements = 5", "8: max-statements limits"),
        ("[filter.m]\nkind = \"mirror\"", "5: m has no server"),
        ("[filter.m]\nkind = \"mirror\"\nserver = \"db2\"", "7: there is no [server.db2]; did you mean \"db1\"?"),
        ("[filter.m]\nkind = \"masking\"", "5: m has no mask"),
        ("[filter.m]\nkind = \"masking\"\nmask = [\"column ssn\"]", "7: mask: \"ssn\" is no column"),
        (
            "[filter.m]\nkind = \"masking\"\nmask = [\"column t.ssn\"]\ntrusted = [\"a.b.c\"]",
            "8: trusted: \"a.b.c\" is no view or routine",
        ),
        ("[filter.l]\nkind = \"limits\"", "5: l limits nothing"),
        ("[filter.l]\nkind = \"limits\"\nmax-rows = -1", "7: max-rows: "),
        ("[filter.l]\nkind = \"limits\"\nmax-rows = 1\nwhen-exceeded = \"empty\"", "8: rows are held"),
        ("[filter.l]\nkind = \"limits\"\nmax-rows = 1\nwhen-too-fast = \"wait\"", "8: there is no rate"),
        (
            "[filter.l]\nkind = \"limits\"\nstatements-per-second = 1\nwhen-exceeded = \"error\"",
            "8: there is no limit that could be exceeded",
        ),
        ("[filter.r]\nkind = \"rewrite\"\nreplacement = \"x\"", "5: r has no pattern and no statement"),
        ("[filter.r]\nkind = \"rewrite\"\npattern = \"a\"", "5: r has no replacement"),
        (
            "[filter.r]\nkind = \"rewrite\"\npattern = \"(\"\nreplacement = \"x\"",
            "7: PCRE2: error compiling pattern at offset 1",
        ),
        (
            "[filter.r]\nkind = \"rewrite\"\npattern = \"(a)\"\nreplacement = \"$2\"",
            "7: the replacement has $2, and the pattern has no such group",
        ),
        (
            "[filter.r]\nkind = \"rewrite\"\npattern = \"a\"\nstatement = \"b\"\nreplacement = \"c\"",
            "8: pattern is set already",
        ),
    ] {
        let error = resolve(&format!("{SERVICE}{filters}\n")).unwrap_err();
        assert!(error.starts_with(&format!("selkie.toml:{expected}")), "{filters}: {error}");
    }
}
