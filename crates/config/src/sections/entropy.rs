//! `entropy`: how different the last decisions must be.

use loopbreaker::{ConfigError, EntropyConfig};

use crate::cursor::{Cursor, Read, Refused};
use crate::fields::Fields;
use crate::kinds::{flag, number, whole};

pub(super) fn read(section: Cursor<'_>) -> Read<EntropyConfig> {
    let default = EntropyConfig::default();
    let mut fields = section.map()?;
    let window_size = fields.field("window_size", default.window_size, whole);
    let loop_below = fields.field("loop_below", default.loop_below, number);
    let warn_up_to = fields.field("warn_up_to", default.warn_up_to, number);
    let include_input = fields.field("include_input", default.include_input, flag);

    // Each number alone first, beside ones that suit it, so that three wrong ones are three problems.
    let check = |config: Result<EntropyConfig, ConfigError>| config.map_err(|error| blame(&fields, &error));
    let window_size = window_size.and_then(|value| check(EntropyConfig::new(value, 0.0, 1.0)));
    let loop_below = loop_below.and_then(|value| check(EntropyConfig::new(1, value, 1.0)));
    let warn_up_to = warn_up_to.and_then(|value| check(EntropyConfig::new(1, 0.0, value)));
    let together = window_size.and_then(|window| {
        check(EntropyConfig::new(window.window_size, loop_below?.loop_below, warn_up_to?.warn_up_to))
    });
    fields.finish();
    Ok(EntropyConfig { include_input: include_input?, ..together? })
}

fn blame(fields: &Fields<'_>, error: &ConfigError) -> Refused {
    let (key, hint) = match error {
        ConfigError::WindowZero => {
            ("window_size", "write how many decisions to look at, 5 is usual".to_owned())
        }
        ConfigError::WindowTooLarge { max, .. } => ("window_size", format!("write at most {max}")),
        ConfigError::OutOfRange { field: "loop_below", .. } => {
            ("loop_below", "write a share of different decisions, such as 0.25".to_owned())
        }
        // It is below the other one; when only that one was written, that one is to blame.
        ConfigError::OutOfRange { .. } if !fields.has("warn_up_to") => {
            ("loop_below", "write a smaller value, or a larger `warn_up_to` beside it".to_owned())
        }
        _ => ("warn_up_to", "write a share of different decisions that is not below `loop_below`".to_owned()),
    };
    fields.about(key, |at| at.refuse(error.to_string(), hint))
}
