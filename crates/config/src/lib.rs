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

mod base_url;
mod compose;
mod cursor;
mod environment;
mod explain;
mod fields;
mod guard;
mod header_name;
mod kinds;
mod moment;
mod path;
mod problem;
mod report;
mod scalar;
mod sections;
mod store_url;
mod suggest;
mod syntax;
mod tree;
mod units;

use std::borrow::Cow;
use std::net::SocketAddr;

pub use base_url::{BaseUrl, BaseUrlError};
use cursor::Cursor;
pub use environment::BadVariable;
use path::Path;
pub use problem::Problem;
use report::Report;
pub use sections::admin::{Admin, Role, Token};
pub use sections::global_shadow::GlobalShadow;
pub use sections::hint::{Hint, Placement};
pub use sections::kill_switches::KillSwitch;
pub use sections::log::{LogPlace, LogStore};
pub use sections::pause::Pause;
pub use sections::policies::limit_key::LimitKey;
pub use sections::policies::parts::{
    Cache, ChantAction, LoopDetection, SemanticPolicy, Similarity, ToolLoops,
};
pub use sections::policies::rule::{Limit, Quantity, Rule, Window};
pub use sections::policies::selector::{PathPattern, Selector, Subject};
pub use sections::policies::{Mode, Policy};
pub use sections::prices::{Price, PriceOverrides};
pub use sections::reject::Reject;
pub use sections::semantic::{
    SemanticBackend, SemanticEngine, SemanticHistory, SemanticScope, SemanticService, SemanticTiming,
};
pub use sections::state::State;
pub use sections::throttle::Throttle;
pub use sections::tls::Tls;
pub use sections::upstreams::{Breaker, Dialect, Route, Upstreams};
pub use store_url::{StoreUrl, with_tls_advice, without_roots, without_timeout};

/// A config that was read and found sound. The default is what an empty file means.
///
/// ```
/// use loopbreaker_config::Config;
/// assert_eq!(Config::parse("# nothing but a comment"), Ok(Config::default()));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Where the gateway listens, and the API, the dashboard, health and metrics with it. `localhost` is read as
    /// 127.0.0.1; other names are refused, since nothing is looked up here.
    pub listen: SocketAddr,
    /// Where the API, the dashboard, health and metrics listen, when they have a port of their own.
    pub admin_listen: Option<SocketAddr>,
    /// The certificate to listen with; plain HTTP without.
    pub tls: Option<Tls>,
    /// Where files are kept; [`Config::DEFAULT_DATA_DIR`] when nobody says otherwise. A `~` at its start is not
    /// expanded here.
    pub data_dir: Option<String>,
    /// Where requests are sent on to.
    pub upstreams: Upstreams,
    /// Where counters, strikes and sessions are kept.
    pub state: State,
    /// Where decisions are kept, and for how long.
    pub log: LogStore,
    /// Who may look and who may act.
    pub admin: Admin,
    /// How long a paused call waits for an operator.
    pub pause: Pause,
    /// How many calls may wait at once.
    pub throttle: Throttle,
    /// How a refusal is answered.
    pub reject: Reject,
    /// Share of the sessions, from 0 to 1, in which loops are only observed.
    pub holdout: f64,
    /// What the model is told, and where.
    pub hint: Hint,
    /// Settings of every detector, and the ladder in force.
    pub detectors: loopbreaker::DetectorsConfig,
    /// Where and how the semantic detector's texts are embedded.
    pub semantic: SemanticService,
    /// What models cost, where the built-in list is wrong or silent.
    pub prices: PriceOverrides,
    /// What is done, for which requests; those of `policy_files` last. When there are none, the default policy is in
    /// force: see [`Config::policies_in_force`].
    pub policies: Vec<Policy>,
    /// Whether every policy only observes.
    pub global_shadow: GlobalShadow,
    /// Whose every request is refused.
    pub kill_switches: Vec<KillSwitch>,
    /// What is legal but rarely meant, such as a threshold of 1.
    pub notices: Vec<Problem>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: sections::listen::DEFAULT,
            admin_listen: None,
            tls: None,
            data_dir: None,
            upstreams: Upstreams::default(),
            state: State::default(),
            log: LogStore::default(),
            admin: Admin::default(),
            pause: Pause::default(),
            throttle: Throttle::default(),
            reject: Reject::default(),
            holdout: 0.0,
            hint: Hint::default(),
            detectors: loopbreaker::DetectorsConfig::default(),
            semantic: SemanticService::default(),
            prices: PriceOverrides::default(),
            policies: Vec::new(),
            global_shadow: GlobalShadow::default(),
            kill_switches: Vec::new(),
            notices: Vec::new(),
        }
    }
}

impl Config {
    /// Where files are kept when neither the config nor anybody else says so; `~` is the user's home.
    pub const DEFAULT_DATA_DIR: &str = "~/.local/state/loopbreaker";

    /// Reads a config text, YAML or JSON. Every problem is told at once, in the order of the text. One that names
    /// `policy_files` needs [`Config::parse_with`].
    ///
    /// ```
    /// use loopbreaker_config::Config;
    /// let text = r#"{ "entropy": { "window_size": 0, "loop_below": 2 } }"#;
    /// let problems = Config::parse(text).unwrap_err();
    /// assert_eq!(problems.len(), 2);
    /// assert_eq!(problems[1].path, "entropy.loop_below");
    /// ```
    pub fn parse(text: &str) -> Result<Self, Vec<Problem>> {
        Self::parse_with(text, &mut |_| Err("policy files are not read here".to_owned()))
    }

    /// The same for a config that names `policy_files`: `load` gives the text of each by the name in the config, or
    /// says why it cannot. What is wrong in a file carries its name.
    ///
    /// ```
    /// use loopbreaker_config::Config;
    /// let mut load = |name: &str| match name {
    ///     "agents.json" => Ok(r#"{ "id": "agents", "spec": { "mode": "shadow" } }"#.to_owned()),
    ///     _ => Err("there is no such file".to_owned()),
    /// };
    /// let config = Config::parse_with("policy_files: [agents.json]", &mut load).unwrap();
    /// assert_eq!(config.policies[0].id, "agents");
    ///
    /// let problems = Config::parse_with("policy_files: [other.json]", &mut load).unwrap_err();
    /// assert!(problems[0].message.contains("there is no such file"));
    /// ```
    pub fn parse_with(
        text: &str,
        load: &mut dyn FnMut(&str) -> Result<String, String>,
    ) -> Result<Self, Vec<Problem>> {
        let report = Report::default();
        let config = read(text, load, &report);
        let notices = report.verdict()?;
        Ok(Self { notices, ..config.unwrap_or_default() })
    }

    /// Where the value of a key stands in a text, line and column: for what is only seen when the value is used.
    ///
    /// ```
    /// use loopbreaker_config::Config;
    /// let text = "tls:\n  cert: cert.pem\n  key: key.pem\n";
    /// assert_eq!(Config::place_of(text, &["tls", "key"]), Some((3, 8)));
    /// assert_eq!(Config::place_of(text, &["tls", "roots"]), None);
    /// ```
    pub fn place_of(text: &str, keys: &[&str]) -> Option<(u64, u64)> {
        let text = guard::guard(text).ok()?;
        let root = compose::compose(text, &Report::default()).ok()??;
        let found = keys.iter().try_fold(&root, |node, key| match &node.value {
            tree::Value::Map(entries) => {
                entries.iter().find(|(known, _)| &*known.text == *key).map(|(_, node)| node)
            }
            tree::Value::Scalar { .. } | tree::Value::List(_) => None,
        });
        found.map(|node| (node.spot.line, node.spot.column))
    }

    /// The policies, or the default one when there are none.
    ///
    /// ```
    /// use loopbreaker_config::Config;
    /// assert_eq!(Config::default().policies_in_force()[0].id, "default");
    /// ```
    pub fn policies_in_force(&self) -> Cow<'_, [Policy]> {
        if !self.policies.is_empty() {
            return Cow::Borrowed(&self.policies);
        }
        let semantic = self.semantic.enabled.then(|| SemanticPolicy::at(self.detectors.semantic.threshold));
        Cow::Owned(vec![Policy { semantic, ..Policy::default_policy() }])
    }

    /// One plain sentence per thing in force.
    ///
    /// ```
    /// use loopbreaker_config::Config;
    /// let sentences = Config::default().explain();
    /// assert!(sentences[0].starts_with("sentinel: "));
    /// ```
    pub fn explain(&self) -> Vec<String> {
        explain::sentences(self)
    }
}

fn read(text: &str, load: &mut dyn FnMut(&str) -> Result<String, String>, report: &Report) -> Option<Config> {
    let composed = guard::guard(text).and_then(|text| compose::compose(text, report));
    match composed {
        Ok(Some(root)) => sections::read(Cursor::new(&root, &Path::Root, report), load).ok(),
        Ok(None) => None,
        Err(problem) => {
            report.problem(problem);
            None
        }
    }
}
