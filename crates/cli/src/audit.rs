//! `loopbreaker audit verify`: is the chain of what operators did whole?

use std::io::{self, Write as _};

use loopbreaker_config::{Config, LogPlace};
use loopbreaker_observatory::{AuditCheck, Options, verify_audit};
use serde_json::json;

use crate::args::{AuditArgs, AuditCommand, VerifyArgs};
use crate::config_file::{self, ConfigFile};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::serve;

pub(crate) fn run(args: &AuditArgs) -> Result<Exit, Failure> {
    match &args.command {
        AuditCommand::Verify(args) => verify(args),
    }
}

fn verify(args: &VerifyArgs) -> Result<Exit, Failure> {
    match look_at(args) {
        // A machine reads this, too.
        Err(Failure::Told { message, hint }) if args.json => {
            let told = json!({ "intact": null, "problem": message, "hint": hint });
            writeln!(io::stdout().lock(), "{told}")?;
            Ok(Exit::Problem)
        }
        looked_at => looked_at,
    }
}

fn look_at(args: &VerifyArgs) -> Result<Exit, Failure> {
    let mut file = config_file::find(args.config.file.as_deref())?;
    let parsed = file.as_mut().map_or_else(|| Ok(Config::default()), ConfigFile::parse);
    let config = parsed.map_err(|problems| serve::not_sound(file.as_ref(), &problems))?;
    let options = match &config.log.place {
        LogPlace::Off => {
            return Err(Failure::told(
                "the config keeps no log",
                "set `log.url`, or name another config with `-c`",
            ));
        }
        LogPlace::Postgres(url) => Options::url(url.as_str()),
        LogPlace::Sqlite => {
            let folder = serve::data_dir(args.data_dir.as_deref(), &config);
            let path = folder.map(|folder| folder.join("decisions.db")).filter(|path| path.exists());
            let Some(path) = path else {
                return Err(Failure::told(
                    "there is no log yet",
                    "say where it is kept with `--data-dir DIR`",
                ));
            };
            Options::at(path)
        }
    };
    let check = verify_audit(&options).map_err(|error| {
        Failure::told(format!("the log cannot be read: {error}"), "is it in use, or on another host?")
    })?;
    let mut out = io::stdout().lock();
    match (&check, args.json) {
        (AuditCheck::Intact { entries }, true) => {
            writeln!(out, "{}", json!({ "intact": true, "entries": entries }))?;
        }
        (AuditCheck::Broken { seq }, true) => {
            writeln!(out, "{}", json!({ "intact": false, "broken_at": seq }))?;
        }
        (AuditCheck::Intact { entries }, false) => {
            writeln!(out, "{entries} entries, and the chain is whole")?;
        }
        (AuditCheck::Broken { seq }, false) => {
            writeln!(out, "the chain is broken: entry {seq} is not as it was written, or is missing")?;
        }
    }
    Ok(if matches!(check, AuditCheck::Intact { .. }) { Exit::Fine } else { Exit::Problem })
}
