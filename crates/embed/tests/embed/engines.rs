//! ONNX Runtime gives what the built-in engine gives, wherever its library is.

use std::path::PathBuf;

use loopbreaker::similarity;
use loopbreaker_embed::{Engine, ModelOptions};

use crate::reference::{INT8_LEAST, INT8_MEAN, agreement};

/// The library of the Python package that `make setup` fetches, or the one that `ORT_DYLIB_PATH` names.
fn library() -> PathBuf {
    if let Some(path) = std::env::var_os("ORT_DYLIB_PATH") {
        return path.into();
    }
    let target = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let folder = target.join("services/onnxruntime");
    let files = std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let library = files.into_iter().find(|path| path.to_string_lossy().contains("libonnxruntime.so"));
    library.expect("ONNX Runtime is missing: run `make setup`")
}

#[test]
fn onnx_runtime_and_the_built_in_engine_agree() {
    let options = ModelOptions { engine: Engine::OnnxRuntime(library()), ..ModelOptions::default() };
    let (theirs, ours) = (options.load().unwrap(), ModelOptions::default().load().unwrap());
    let (least, mean) = agreement(theirs.as_ref());
    assert!(least > INT8_LEAST && mean > INT8_MEAN, "least {least}, mean {mean}");
    let texts = ["let me look at the logs", "", "漢字 and 🦀"];
    let pairs = theirs.embed(&texts).unwrap().into_iter().zip(ours.embed(&texts).unwrap());
    for ((theirs, ours), text) in pairs.zip(texts) {
        let similarity = similarity(theirs.as_slice(), ours.as_slice());
        assert!(similarity > 0.995, "{text}: {similarity}");
    }
    assert_eq!(theirs.correction(), ours.correction());
}
