//! The config file of Loopbreaker: text in, checked settings or every problem at once out.
//!
//! YAML and JSON are read alike. Nothing here touches a file, a clock or the environment.
//!
//! ```
//! use loopbreaker_config::Config;
//!
//! let config = Config::parse("sentinel:\n  default: { threshold: 2, window_size: 5 }\n").unwrap();
//! assert_eq!(config.detectors.sentinel.default.threshold(), 2);
//!
//! let problems = Config::parse("sentinel:\n  default:\n    treshold: 2\n").unwrap_err();
//! assert_eq!(
//!     problems[0].to_string(),
//!     "3:5: sentinel.default.treshold: unknown key \"treshold\"\n  hint: did you mean `threshold`?"
//! );
//! ```
//!
//! The way of a text: `guard` (size, unprintable characters) → `compose` (parser events to a tree that
//! remembers lines and columns, within bounds) → `sections` (one file each: the tree to checked types, by
//! `cursor`, `fields` and `kinds`) → `report` (every problem, in the order of the text).

mod compose;
mod cursor;
mod explain;
mod fields;
mod guard;
mod kinds;
mod path;
mod problem;
mod report;
mod scalar;
mod sections;
mod suggest;
mod syntax;
mod tree;
mod units;

use cursor::Cursor;
use path::Path;
pub use problem::Problem;
use report::Report;
use sections::Sections;
pub use sections::semantic::{
    SemanticBackend, SemanticHistory, SemanticScope, SemanticService, SemanticTiming,
};

/// A config that was read and found sound. The default is what an empty file means.
///
/// ```
/// use loopbreaker_config::Config;
/// assert_eq!(Config::parse("# nothing but a comment"), Ok(Config::default()));
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Config {
    /// Settings of every detector, and the ladder in force.
    pub detectors: loopbreaker::DetectorsConfig,
    /// Where and how the semantic detector's texts are embedded.
    pub semantic: SemanticService,
    /// What is legal but rarely meant, such as a threshold of 1.
    pub notices: Vec<Problem>,
    /// What else [`Config::explain`] speaks about.
    gateway: explain::Gateway,
}

impl Config {
    /// Reads a config text, YAML or JSON. Every problem is told at once, in the order of the text.
    ///
    /// ```
    /// use loopbreaker_config::Config;
    /// let text = r#"{ "entropy": { "window_size": 0, "loop_below": 2 } }"#;
    /// let problems = Config::parse(text).unwrap_err();
    /// assert_eq!(problems.len(), 2);
    /// assert_eq!(problems[1].path, "entropy.loop_below");
    /// ```
    pub fn parse(text: &str) -> Result<Self, Vec<Problem>> {
        let report = Report::default();
        let sections = read(text, &report);
        let notices = report.verdict()?;
        let Sections { detectors, service, policies, global_shadow, holdout, kill_switches } =
            sections.unwrap_or_default();
        let gateway = explain::Gateway { policies, global_shadow, holdout, kill_switches };
        Ok(Self { detectors, semantic: service, notices, gateway })
    }

    /// One plain sentence per thing in force.
    ///
    /// ```
    /// use loopbreaker_config::Config;
    /// let sentences = Config::default().explain();
    /// assert!(sentences[0].starts_with("sentinel: "));
    /// ```
    pub fn explain(&self) -> Vec<String> {
        explain::sentences(&self.detectors, &self.semantic, &self.gateway)
    }
}

fn read(text: &str, report: &Report) -> Option<Sections> {
    let composed = guard::guard(text).and_then(|text| compose::compose(text, report));
    match composed {
        Ok(Some(root)) => sections::read(Cursor::new(&root, &Path::Root, report)).ok(),
        Ok(None) => None,
        Err(problem) => {
            report.problem(problem);
            None
        }
    }
}
