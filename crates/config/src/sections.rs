//! The sections of a config, one file each.
//!
//! A new section is a new file here with a `read`, and one line below.

mod admin;
mod entropy;
mod hint;
mod kill_switches;
mod log;
mod pause;
mod policies;
mod redundancy;
mod reject;
pub(crate) mod semantic;
mod sentinel;
mod throttle;
mod upstreams;

use loopbreaker::DetectorsConfig;

use crate::cursor::{Cursor, Read};
use crate::kinds::{flag, percentage, text};
pub(crate) use policies::{Mode, Policy};
use semantic::SemanticService;

/// What all sections say together.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Sections {
    pub(crate) detectors: DetectorsConfig,
    pub(crate) service: SemanticService,
    pub(crate) policies: Vec<Policy>,
    pub(crate) global_shadow: bool,
    pub(crate) holdout: f64,
    pub(crate) kill_switches: usize,
}

/// Reads every section; what is wrong is on the report afterwards, and what is absent has its default.
pub(crate) fn read(root: Cursor<'_>) -> Read<Sections> {
    let mut fields = root.map()?;
    fields.check("listen", text);
    fields.check("admin_listen", |value| value.or_null(text));
    fields.check("data_dir", text);
    fields.check("upstreams", upstreams::check);
    fields.check("state", text);
    fields.check("log", log::check);
    fields.check("admin", admin::check);
    fields.check("pause", pause::check);
    fields.check("throttle", throttle::check);
    fields.check("reject", reject::check);
    let holdout = fields.field("holdout", 0.0, percentage);
    fields.check("hint", hint::check);
    let sentinel = fields.field("sentinel", <_>::default(), sentinel::read);
    let entropy = fields.field("entropy", <_>::default(), entropy::read);
    let redundancy = fields.field("redundancy", <_>::default(), redundancy::read);
    let semantic = fields.field("semantic", <_>::default(), semantic::read);
    let policies = fields.field("policies", Vec::new(), policies::read);
    let global_shadow = fields.field("global_shadow", false, flag);
    let kill_switches = fields.field("kill_switches", 0, kill_switches::count);
    fields.finish();

    let (policies, (semantic, service)) = (policies?, semantic?);
    let ladder = policies::ladder_in_force(&policies);
    Ok(Sections {
        detectors: DetectorsConfig {
            sentinel: sentinel?,
            entropy: entropy?,
            redundancy: redundancy?,
            semantic,
            ladder,
        },
        service,
        policies,
        global_shadow: global_shadow?,
        holdout: holdout?,
        kill_switches: kill_switches?,
    })
}
