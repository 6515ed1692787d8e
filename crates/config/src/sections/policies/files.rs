//! `policy_files`: policies in files of their own.

use super::id::Ids;
use super::{Policy, bundle};
use crate::compose::compose;
use crate::cursor::{Cursor, Read};
use crate::guard::guard;
use crate::kinds::filled;
use crate::path::{Path, quote};
use crate::report::Report;
use crate::sections::global_shadow::{self, GlobalShadow};
use crate::sections::kill_switches::{self, KillSwitch};

/// Gives the text of a file by the name that stands in the config, or says why it cannot.
pub(crate) type Loader<'l> = dyn FnMut(&str) -> Result<String, String> + 'l;

/// What policy files say, all of them together.
#[derive(Debug, Default)]
pub(in crate::sections) struct PolicyFiles {
    pub(in crate::sections) policies: Vec<Policy>,
    pub(in crate::sections) kill_switches: Vec<KillSwitch>,
    pub(in crate::sections) global_shadow: GlobalShadow,
}

impl PolicyFiles {
    fn add(&mut self, other: Self) {
        self.policies.extend(other.policies);
        self.kill_switches.extend(other.kill_switches);
        if other.global_shadow.enabled && !self.global_shadow.enabled {
            self.global_shadow = other.global_shadow;
        }
    }
}

/// Reads every file of the list. Its problems carry its name.
pub(in crate::sections) fn read(
    list: Cursor<'_>,
    load: &mut Loader<'_>,
    ids: &mut Ids,
    usual_similarity: f64,
) -> Read<PolicyFiles> {
    let named = list.list(|_| Ok(()))?.len();
    if named > MAX_FILES {
        let message = format!("{named} policy files are named, at most {MAX_FILES} are read");
        return Err(list.refuse(message, "put several policies into one file, below `policies:`"));
    }
    let mut all = PolicyFiles::default();
    list.list(|value| {
        let name = filled(value)?;
        let text = load(&name).map_err(|reason| {
            let reason: String =
                reason.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect();
            let message = format!("the policy file {} could not be read: {reason}", quote(&name));
            value.refuse(message, "check the path, or write its policies below `policies:`")
        })?;
        ids.enter(&name);
        let report = Report::default();
        match guard(&text).and_then(|text| compose(text, &report)) {
            Ok(Some(root)) => {
                if let Ok(content) = content(Cursor::new(&root, &Path::Root, &report), ids, usual_similarity)
                {
                    all.add(content);
                }
            }
            Ok(None) => {}
            Err(problem) => report.problem(problem),
        }
        value.report().adopt(&name, report);
        Ok(())
    })?;
    Ok(all)
}

/// One policy, a list of them, or a whole bundle.
pub(in crate::sections) fn content(
    root: Cursor<'_>,
    ids: &mut Ids,
    usual_similarity: f64,
) -> Read<PolicyFiles> {
    let policies = |policies| PolicyFiles { policies, ..PolicyFiles::default() };
    if root.is_list() {
        return super::read(root, ids, usual_similarity).map(policies);
    }
    let mut fields = root.map()?;
    if fields.has("id") || fields.has("spec") {
        return super::policy(root, ids, usual_similarity).map(|policy| policies(vec![policy]));
    }
    bundle::head(&mut fields);
    let policies = fields.field("policies", Vec::new(), |value| super::read(value, ids, usual_similarity));
    let kill_switches = fields.field("kill_switches", Vec::new(), kill_switches::read);
    let global_shadow = fields.field("global_shadow", GlobalShadow::default(), global_shadow::read);
    fields.finish();
    Ok(PolicyFiles { policies: policies?, kill_switches: kill_switches?, global_shadow: global_shadow? })
}

/// Each file may be as large as a config, so their number has a bound too.
const MAX_FILES: usize = 256;
