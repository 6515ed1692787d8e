//! The code in the repository is what the proto file says, so building needs neither `protoc` nor a generator.

use std::path::{Path, PathBuf};

const PACKAGE: &str = "loopbreaker.embedding.v1";

/// Run with `BLESS=1` after a change of the proto file.
#[test]
fn the_generated_code_is_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let descriptors =
        protox::compile(["loopbreaker/embedding/v1/embedding.proto"], [root.join("../../proto")]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let binary = folder.path().join(format!("{PACKAGE}.bin"));
    tonic_prost_build::configure()
        .file_descriptor_set_path(&binary)
        .out_dir(folder.path())
        .compile_fds(descriptors.clone())
        .unwrap();
    std::fs::write(&binary, prost::Message::encode_to_vec(&descriptors)).unwrap();
    for extension in ["rs", "bin"] {
        let name = format!("{PACKAGE}.{extension}");
        let (fresh, kept): (Vec<u8>, PathBuf) =
            (std::fs::read(folder.path().join(&name)).unwrap(), root.join("src/proto").join(&name));
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&kept, &fresh).unwrap();
        }
        assert!(
            std::fs::read(&kept).unwrap_or_default() == fresh,
            "{name} is out of date: run `BLESS=1 cargo test -p loopbreaker-embed --test embed proto`"
        );
    }
}
