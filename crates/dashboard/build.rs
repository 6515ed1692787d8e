//! Lists the files of `dashboard/dist`, so that the binary carries them.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

fn main() -> io::Result<()> {
    let manifest = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    let dist = manifest.join("../../dashboard/dist");
    // Cargo runs this again and again while a watched folder is missing, so an empty one is made; where that is not
    // allowed, building is slower and nothing else.
    fs::create_dir_all(&dist).unwrap_or_default();
    println!("cargo::rerun-if-changed={}", dist.display());
    let mut files = Vec::new();
    if dist.is_dir() {
        find(&dist, &mut files)?;
    }
    files.sort();
    let copy = out.join("dist");
    fs::create_dir_all(&copy)?;
    fs::write(out.join("files.rs"), listed(&dist, &copy, &files)?)
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// A table of the files, each with its compressed twins, in Rust.
fn listed(dist: &Path, copy: &Path, files: &[PathBuf]) -> io::Result<String> {
    let mut table = String::from("const FILES: &[File] = &[\n");
    for file in files {
        let name = file.strip_prefix(dist).unwrap_or(file).to_string_lossy().replace('\\', "/");
        if [".gz", ".br"].iter().any(|ending| name.ends_with(ending)) {
            continue;
        }
        let digest = Sha256::digest(fs::read(file)?);
        let tag: u64 = digest.iter().take(8).fold(0, |tag, byte| tag << 8 | u64::from(*byte));
        let twin = |ending: &str| {
            let path = PathBuf::from(format!("{}{ending}", file.display()));
            if path.is_file() {
                included(&path, copy).map(|it| format!("Some({it})"))
            } else {
                Ok("None".to_owned())
            }
        };
        let (body, gzip, br) = (included(file, copy)?, twin(".gz")?, twin(".br")?);
        // A text that is written to a `String` is always written.
        writeln!(
            table,
            "    File {{ name: {name:?}, etag: \"\\\"{tag:016x}\\\"\", body: {body}, gzip: {gzip}, br: {br} }},"
        )
        .unwrap_or_default();
    }
    table.push_str("];\n");
    Ok(table)
}

/// The file is taken from a copy: the dashboard may be built again while the crate is compiled.
fn included(path: &Path, copy: &Path) -> io::Result<String> {
    let kept = copy.join(path.file_name().unwrap_or_default());
    fs::copy(path, &kept)?;
    Ok(format!("include_bytes!({:?})", kept.display().to_string()))
}
