//! The sections of a config, one file each.
//!
//! A new section is a new file here with a `read`, and one line below.

pub(crate) mod admin;
mod entropy;
pub(crate) mod global_shadow;
pub(crate) mod hint;
pub(crate) mod kill_switches;
pub(crate) mod listen;
pub(crate) mod log;
pub(crate) mod pause;
pub(crate) mod policies;
pub(crate) mod prices;
mod redundancy;
pub(crate) mod reject;
pub(crate) mod semantic;
mod sentinel;
pub(crate) mod state;
pub(crate) mod throttle;
pub(crate) mod tls;
pub(crate) mod upstreams;

use loopbreaker::{DetectorsConfig, SemanticConfig};

use crate::Config;
use crate::cursor::{Cursor, Read};
use crate::kinds::{filled, percentage};
use policies::files::{self, Loader, PolicyFiles};

/// Reads every section; what is wrong is on the report afterwards, and what is absent has its default.
pub(crate) fn read(root: Cursor<'_>, load: &mut Loader<'_>) -> Read<Config> {
    if root.is_list_of_maps() {
        return only_policies(root);
    }
    let default = Config::default();
    let mut fields = root.map()?;
    if fields.has("spec") {
        return only_policies(root);
    }
    let listen = fields.field("listen", default.listen, listen::read);
    let usual = listen.as_ref().ok().copied();
    let admin_listen = fields.field("admin_listen", None, |value| {
        let read = value.or_null(listen::read)?;
        if read.is_some_and(|admin| admin.port() != 0 && Some(admin) == usual) {
            let hint = "take another port, or leave it out: everything is served at `listen` then";
            return Err(value.refuse("`listen` has this address", hint));
        }
        Ok(read)
    });
    let tls = fields.field("tls", None, |value| value.or_null(tls::read));
    let data_dir = fields.field("data_dir", None, |value| filled(value).map(Some));
    let upstreams = fields.field("upstreams", default.upstreams, upstreams::read);
    let state = fields.field("state", default.state, state::read);
    let log = fields.field("log", default.log, log::read);
    let admin = fields.field("admin", default.admin, admin::read);
    let pause = fields.field("pause", default.pause, pause::read);
    let throttle = fields.field("throttle", default.throttle, throttle::read);
    let reject = fields.field("reject", default.reject, reject::read);
    let holdout = fields.field("holdout", 0.0, percentage);
    let hint = fields.field("hint", default.hint, hint::read);
    let sentinel = fields.field("sentinel", <_>::default(), sentinel::read);
    let entropy = fields.field("entropy", <_>::default(), entropy::read);
    let redundancy = fields.field("redundancy", <_>::default(), redundancy::read);
    let semantic = fields.field("semantic", <_>::default(), semantic::read);
    let prices = fields.field("prices", default.prices, prices::read);

    let usual_similarity =
        semantic.as_ref().map_or(SemanticConfig::default().threshold, |(detector, _)| detector.threshold);
    let mut ids = policies::Ids::of("policy");
    let policies =
        fields.field("policies", Vec::new(), |value| policies::read(value, &mut ids, usual_similarity));
    let files = fields.field("policy_files", PolicyFiles::default(), |value| {
        files::read(value, load, &mut ids, usual_similarity)
    });
    let global_shadow = fields.field("global_shadow", default.global_shadow, global_shadow::read);
    let kill_switches = fields.field("kill_switches", Vec::new(), kill_switches::read);
    // A config may be a whole policy bundle; the other keys of one mean nothing without its version.
    if fields.has("bundle_version") {
        policies::bundle_head(&mut fields);
    }
    fields.finish();

    let (mut policies, files, (semantic, service)) = (policies?, files?, semantic?);
    policies.extend(files.policies);
    let (mut kill_switches, global_shadow) = (kill_switches?, global_shadow?);
    kill_switches.extend(files.kill_switches);
    let ladder = policies::ladder_in_force(&policies);
    Ok(Config {
        listen: listen?,
        admin_listen: admin_listen?,
        tls: tls?,
        data_dir: data_dir?,
        upstreams: upstreams?,
        state: state?,
        log: log?,
        admin: admin?,
        pause: pause?,
        throttle: throttle?,
        reject: reject?,
        holdout: holdout?,
        hint: hint?,
        detectors: DetectorsConfig {
            sentinel: sentinel?,
            entropy: entropy?,
            redundancy: redundancy?,
            semantic,
            ladder,
        },
        semantic: service,
        prices: prices?,
        policies,
        global_shadow: if global_shadow.enabled { global_shadow } else { files.global_shadow },
        kill_switches,
        notices: Vec::new(),
    })
}

/// A file that is one policy, or a list of them, is a config in which all the rest has its default.
fn only_policies(root: Cursor<'_>) -> Read<Config> {
    let default = Config::default();
    let usual_similarity = SemanticConfig::default().threshold;
    let PolicyFiles { policies, .. } =
        files::content(root, &mut policies::Ids::of("policy"), usual_similarity)?;
    let detectors = DetectorsConfig { ladder: policies::ladder_in_force(&policies), ..default.detectors };
    Ok(Config { detectors, policies, ..default })
}
