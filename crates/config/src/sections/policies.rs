//! `policies`: what is done, for which requests.

mod bundle;
pub(crate) mod files;
mod id;
pub(crate) mod limit_key;
pub(crate) mod parts;
pub(crate) mod rule;
pub(crate) mod selector;
mod written;

use loopbreaker::{Action, Ladder, SemanticConfig};

pub(super) use bundle::head as bundle_head;
pub(super) use id::Ids;

use crate::cursor::{Cursor, Read};
use limit_key::LimitKey;
use parts::{Cache, ChantAction, LoopDetection, SemanticPolicy, ToolLoops};
use rule::Rule;
use selector::{PathPattern, Selector};

/// What is done, for which requests. A part that is `None` is off.
///
/// ```
/// use loopbreaker_config::{Config, Mode};
/// let policy = &Config::parse("policies: [{ id: agents, spec: { mode: shadow } }]").unwrap().policies[0];
/// assert_eq!((&*policy.id, policy.mode), ("agents", Mode::Shadow));
/// assert!(policy.tool_loops.is_none());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// What it is called in answers and logs; unlike every other policy.
    pub id: String,
    /// Whether it acts.
    pub mode: Mode,
    /// Which requests it is for.
    pub selector: Selector,
    /// What tells equal requests of different clients apart.
    pub limit_keys: Vec<LimitKey>,
    /// The same HTTP request again.
    pub loop_detection: Option<LoopDetection>,
    /// Tool loops in the transcript.
    pub tool_loops: Option<ToolLoops>,
    /// The same intent in other words.
    pub semantic: Option<SemanticPolicy>,
    /// An answer that repeats itself without end.
    pub chant: Option<ChantAction>,
    /// Answers that are given again.
    pub cache: Option<Cache>,
    /// Requests, tokens and money.
    pub rules: Vec<Rule>,
}

/// Whether a policy acts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// It does.
    #[default]
    Enforce,
    /// It only observes, with counters of its own, and changes nothing that a client can see.
    Shadow,
    /// It is as if it were not there.
    Off,
}

impl Policy {
    /// What is in force when no policy is written: every detector, for POST on the paths of the dialects. Equal
    /// requests only give a warning, since sampling and polling repeat legitimately; there are no rules.
    ///
    /// ```
    /// use loopbreaker::Action;
    /// use loopbreaker_config::Policy;
    /// let policy = Policy::default_policy();
    /// assert_eq!(policy.loop_detection.map(|it| it.action), Some(Action::Warn));
    /// assert!(policy.rules.is_empty());
    /// ```
    pub fn default_policy() -> Self {
        Self {
            id: "default".to_owned(),
            mode: Mode::Enforce,
            selector: Selector {
                paths: vec![PathPattern::Dialects],
                methods: vec!["POST".to_owned()],
                ..Selector::default()
            },
            limit_keys: vec![LimitKey::Tenant],
            loop_detection: Some(LoopDetection {
                action: Action::Warn,
                once_in_flight: true,
                ..LoopDetection::default()
            }),
            tool_loops: Some(ToolLoops::default()),
            semantic: Some(SemanticPolicy::at(SemanticConfig::default().threshold)),
            chant: Some(ChantAction::Cut),
            cache: None,
            rules: Vec::new(),
        }
    }
}

/// The ladder of the first policy that looks for tool loops, else the default one.
pub(super) fn ladder_in_force(policies: &[Policy]) -> Ladder {
    let mut acting = policies.iter().filter(|policy| policy.mode != Mode::Off);
    let found = acting.find_map(|policy| policy.tool_loops.as_ref());
    found.map(|loops| loops.ladder.clone()).unwrap_or_default()
}

/// A list of policies. `usual_similarity` is the threshold of the `semantic` section.
pub(super) fn read(section: Cursor<'_>, ids: &mut Ids, usual_similarity: f64) -> Read<Vec<Policy>> {
    section.list(|value| policy(value, ids, usual_similarity))
}

fn policy(value: Cursor<'_>, ids: &mut Ids, usual_similarity: f64) -> Read<Policy> {
    let mut fields = value.map()?;
    let id = fields.required("id", "give the policy a name, such as `id: agents`", |value| {
        let id = id::read(value)?;
        ids.claim(&id, value)?;
        Ok(id)
    });
    let hint = "write what the policy does below `spec:`, or remove it";
    let spec = fields.required("spec", hint, |value| spec(value, usual_similarity));
    fields.finish();
    Ok(Policy { id: id?, ..spec? })
}

/// All of a policy but its id.
fn spec(value: Cursor<'_>, usual_similarity: f64) -> Read<Policy> {
    let mut fields = value.map()?;
    let mode = fields.field("mode", Mode::Enforce, |value| {
        value.choice(&[("enforce", Mode::Enforce), ("shadow", Mode::Shadow), ("off", Mode::Off)])
    });
    let selector = fields.field("selector", Selector::default(), selector::read);
    let limit_keys = fields.field("limit_keys", Vec::new(), |value| value.list(limit_key::read));
    let loop_detection = fields.field("loop_detection", None, parts::loop_detection);
    let tool_loops = fields.field("tool_loops", None, parts::tool_loops);
    let semantic = fields.field("semantic", None, |value| parts::semantic(value, usual_similarity));
    let chant = fields.field("chant", None, parts::chant);
    let cache = fields.field("cache", None, parts::cache);
    let usual_key = limit_keys.as_deref().ok().and_then(<[_]>::first).unwrap_or(&LimitKey::Tenant);
    let rules = fields.field("rules", Vec::new(), |value| rule::read_all(value, usual_key));
    bundle::spec(&mut fields);
    fields.finish();
    Ok(Policy {
        id: String::new(),
        mode: mode?,
        selector: selector?,
        limit_keys: limit_keys?,
        loop_detection: loop_detection?,
        tool_loops: tool_loops?,
        semantic: semantic?,
        chant: chant?,
        cache: cache?,
        rules: rules?,
    })
}
