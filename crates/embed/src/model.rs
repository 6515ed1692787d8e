//! Which model, which engine, how many threads.

use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loopbreaker_config::SemanticEngine;
use sha2::{Digest, Sha256};

use crate::correction::Correction;
use crate::embedder::{EmbedError, Embedder};
use crate::onnx_runtime::OnnxRuntime;
use crate::pure_rust::PureRust;
use crate::tokens::Tokens;

/// The content of a file, or of the binary.
pub(crate) type Bytes = Cow<'static, [u8]>;

/// The model inside the binary. Its pages are not read before they are needed.
static BUNDLED_MODEL: &[u8] = include_bytes!("../../../model/model_int8.onnx");
pub(crate) static BUNDLED_TOKENIZER: &[u8] = include_bytes!("../../../model/tokenizer.json");

/// What embeds: the bundled model on the built-in engine, if nothing else is said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelOptions {
    /// A folder with `model.onnx` and `tokenizer.json`, or the `.onnx` file itself; none is the bundled model.
    pub path: Option<PathBuf>,
    /// Who computes.
    pub engine: Engine,
    /// How many threads do; none is one for every two cores.
    pub threads: Option<NonZeroUsize>,
}

/// Who computes what a model says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Engine {
    /// The engine in this binary.
    #[default]
    PureRust,
    /// ONNX Runtime, about twice as fast, loaded from this library at run time.
    OnnxRuntime(PathBuf),
}

impl Engine {
    /// Where ONNX Runtime's library usually is, when nothing names it.
    const USUAL: [&'static str; 6] = [
        "/usr/lib/x86_64-linux-gnu/libonnxruntime.so",
        "/usr/lib/aarch64-linux-gnu/libonnxruntime.so",
        "/usr/lib/libonnxruntime.so",
        "/usr/local/lib/libonnxruntime.so",
        "/opt/onnxruntime/lib/libonnxruntime.so",
        "/opt/homebrew/lib/libonnxruntime.dylib",
    ];

    /// The engine that is wanted. `ORT_DYLIB_PATH` names ONNX Runtime's library; who asks for ONNX Runtime by name is
    /// told at once when it is missing.
    pub fn choose(wanted: SemanticEngine, get: impl Fn(&str) -> Option<String>) -> Result<Self, EmbedError> {
        let named = get("ORT_DYLIB_PATH").filter(|path| !path.is_empty()).map(PathBuf::from);
        match wanted {
            SemanticEngine::Pure => Ok(Self::PureRust),
            SemanticEngine::Auto => Ok(named.map_or(Self::PureRust, Self::OnnxRuntime)),
            SemanticEngine::OnnxRuntime => {
                let usual = || Self::USUAL.iter().map(PathBuf::from).find(|path| path.exists());
                let library = named.or_else(usual).ok_or(EmbedError::NoOnnxRuntime)?;
                if !library.exists() {
                    let reason = "there is no such file".to_owned();
                    return Err(EmbedError::OnnxRuntime { path: library, reason });
                }
                Ok(Self::OnnxRuntime(library))
            }
        }
    }
}

impl ModelOptions {
    /// Reads the model and makes it ready. Takes a tenth of a second and some 60 MB for the bundled one.
    pub fn load(&self) -> Result<Arc<dyn Embedder>, EmbedError> {
        let (model, tokenizer) = self.files()?;
        let tokens = Tokens::new(&tokenizer)?;
        let correction = Correction::for_model(&Sha256::digest(&model).into());
        let threads = self.threads.unwrap_or_else(usual_threads);
        Ok(match &self.engine {
            Engine::PureRust => Arc::new(PureRust::load(model, tokens, correction, threads)?),
            Engine::OnnxRuntime(library) => {
                Arc::new(OnnxRuntime::load(library, &model, tokens, correction, threads)?)
            }
        })
    }

    fn files(&self) -> Result<(Bytes, Bytes), EmbedError> {
        let Some(path) = &self.path else {
            return Ok((Cow::Borrowed(BUNDLED_MODEL), Cow::Borrowed(BUNDLED_TOKENIZER)));
        };
        let model = if path.is_dir() { path.join("model.onnx") } else { path.clone() };
        let folder = model.parent().unwrap_or(Path::new(""));
        Ok((read(&model)?.into(), read(&folder.join("tokenizer.json"))?.into()))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, EmbedError> {
    let unreadable =
        |error: std::io::Error| EmbedError::Unreadable { path: path.to_owned(), reason: error.to_string() };
    std::fs::read(path).map_err(unreadable)
}

/// Half of the cores: the others carry requests.
fn usual_threads() -> NonZeroUsize {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    NonZeroUsize::new(cores / 2).unwrap_or(NonZeroUsize::MIN)
}

#[cfg(test)]
mod tests {
    use loopbreaker_config::SemanticEngine;

    use super::{Engine, ModelOptions};

    #[test]
    fn the_environment_chooses_onnx_runtime_unless_the_config_does() {
        let auto = |get: fn(&str) -> Option<String>| Engine::choose(SemanticEngine::Auto, get).unwrap();
        assert_eq!(auto(|_| None), Engine::PureRust);
        assert_eq!(auto(|_| Some(String::new())), Engine::PureRust);
        let named = |name: &str| (name == "ORT_DYLIB_PATH").then(|| "/lib/ort.so".to_owned());
        assert_eq!(auto(named), Engine::OnnxRuntime("/lib/ort.so".into()));
        assert_eq!(Engine::choose(SemanticEngine::Pure, named).unwrap(), Engine::PureRust);
    }

    #[test]
    fn an_engine_that_is_asked_for_by_name_and_missing_is_told_at_once() {
        let named = |_: &str| Some("/nowhere/libonnxruntime.so".to_owned());
        let told = Engine::choose(SemanticEngine::OnnxRuntime, named).unwrap_err().to_string();
        assert!(told.contains("/nowhere/libonnxruntime.so") && told.contains("ORT_DYLIB_PATH"), "{told}");
        // Where nothing names it, it may be in a usual place, or it is missing too.
        match Engine::choose(SemanticEngine::OnnxRuntime, |_| None) {
            Ok(engine) => assert!(matches!(engine, Engine::OnnxRuntime(_))),
            Err(error) => assert!(error.to_string().contains("ORT_DYLIB_PATH"), "{error}"),
        }
    }

    #[test]
    fn a_library_that_is_not_there_is_told_with_the_way_out() {
        let engine = Engine::OnnxRuntime("/nowhere/libonnxruntime.so".into());
        let error =
            ModelOptions { engine, ..ModelOptions::default() }.load().map(drop).unwrap_err().to_string();
        assert!(error.contains("/nowhere/libonnxruntime.so") && error.contains("ORT_DYLIB_PATH"), "{error}");
    }

    #[test]
    fn a_model_that_is_not_there_is_told_with_its_path() {
        let options = ModelOptions { path: Some("/nowhere".into()), ..ModelOptions::default() };
        let error = options.load().map(drop).unwrap_err().to_string();
        assert!(error.contains("/nowhere") && error.contains("tokenizer.json"), "{error}");
    }

    #[test]
    fn what_is_not_a_model_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("model.onnx"), b"not a model").unwrap();
        std::fs::write(folder.path().join("tokenizer.json"), super::BUNDLED_TOKENIZER).unwrap();
        let options = ModelOptions { path: Some(folder.path().into()), ..ModelOptions::default() };
        assert!(options.load().map(drop).unwrap_err().to_string().contains("ONNX"));
    }

    #[test]
    fn the_file_itself_may_be_named() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("my.onnx"), super::BUNDLED_MODEL).unwrap();
        std::fs::write(folder.path().join("tokenizer.json"), super::BUNDLED_TOKENIZER).unwrap();
        let options = ModelOptions { path: Some(folder.path().join("my.onnx")), ..ModelOptions::default() };
        assert_eq!(options.load().unwrap().dimensions(), 384);
    }
}
