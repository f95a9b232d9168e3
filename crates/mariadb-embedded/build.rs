//! Compiles the few lines of C that know the library's structs, and says what to link with.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "libmariadbd")]
    link();
}

#[cfg(feature = "libmariadbd")]
fn link() {
    println!("cargo::rerun-if-changed=src/structs.c");
    println!("cargo::rerun-if-env-changed=MARIADB_EMBEDDED_INCLUDE");
    println!("cargo::rerun-if-env-changed=MARIADB_EMBEDDED_LIB");
    println!("cargo::rerun-if-env-changed=MARIADB_EMBEDDED_LINTS_ONLY");
    if std::env::var_os("MARIADB_EMBEDDED_LINTS_ONLY").is_some() {
        // Rust alone can be checked without the library's headers.
        return;
    }
    let include = std::env::var("MARIADB_EMBEDDED_INCLUDE").unwrap_or("/usr/include/mariadb/server".into());
    if !std::path::Path::new(&include).join("mysql.h").exists() {
        println!(
            "cargo::error=there is no mysql.h in {include}: install libmariadbd-dev (Debian, Ubuntu), or name the directory of the \
             server's headers in MARIADB_EMBEDDED_INCLUDE and that of libmariadbd.so in MARIADB_EMBEDDED_LIB"
        );
        return;
    }
    // Without the first definition, the headers rename functions for plugins.
    cc::Build::new()
        .file("src/structs.c")
        .include(include)
        .define("EMBEDDED_LIBRARY", None)
        .compile("mariadb_embedded_structs");
    if let Ok(directory) = std::env::var("MARIADB_EMBEDDED_LIB") {
        println!("cargo::rustc-link-search=native={directory}");
    }
    println!("cargo::rustc-link-lib=dylib=mariadbd");
}
