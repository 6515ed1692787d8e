//! `loopbreaker demo`.
use crate::args::DemoArgs;
use crate::exit::Exit;
use crate::failure::Failure;
pub(crate) fn run(_args: &DemoArgs) -> Result<Exit, Failure> {
    Ok(Exit::Fine)
}
