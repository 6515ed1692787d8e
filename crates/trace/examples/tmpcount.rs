//! tmp
#![allow(warnings, clippy::all)]
use loopbreaker_trace::*;
#[derive(Default)]
struct C(u64, u64, Vec<Problem>);
impl Sink for C {
    fn step(&mut self, _r: &str, _s: &loopbreaker::Step<'_>) {
        self.0 += 1;
    }
    fn end(&mut self, _r: &str) {
        self.1 += 1;
    }
    fn problem(&mut self, p: Problem) {
        if self.2.len() < 5 {
            self.2.push(p);
        }
    }
}
fn main() {
    for f in std::env::args().skip(1) {
        let mut c = C::default();
        let t = std::time::Instant::now();
        let r: Box<dyn std::io::Read> =
            if f == "-" { Box::new(std::io::stdin()) } else { Box::new(std::fs::File::open(&f).unwrap()) };
        let s = read(std::io::BufReader::with_capacity(1 << 16, r), &Options::named("x"), &mut c);
        println!("{f}: {s:?} steps {} ends {} problems {:?} {:?}", c.0, c.1, c.2, t.elapsed());
    }
    for l in std::fs::read_to_string("/proc/self/status").unwrap().lines() {
        if l.starts_with("VmHWM") {
            println!("{l}");
        }
    }
}
