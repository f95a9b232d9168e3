//! Runs the checks of the repository itself (tests/tidy/checks.py). This crate runs them because it
//! has no dependencies, so they come early in `cargo test`.

use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

#[test]
fn the_repository_is_tidy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = match Command::new("python3").arg(root.join("tests/tools/tidy")).output() {
        Ok(output) => output,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("skipped: there is no python3");
            return;
        }
        Err(error) => panic!("running python3: {error}"),
    };
    let printed = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{}", printed.concat());
}
