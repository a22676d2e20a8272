//! A few lives in every test run; `./test simulation` lives a hundred thousand.

use gatewright_simulation::{campaign::campaign, live};

#[test]
fn whole_lives_of_runs_hold() {
    let runs = std::env::var("SIM_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(300);
    let tally = campaign(0, runs, 2);
    if let Some((seed, problem)) = tally.failed {
        panic!("seed {seed}: {problem}\nrepeat it: cargo run -p gatewright-simulation -- {seed}");
    }
    assert_eq!(tally.runs, runs);
    assert!(tally.crashes > runs / 2 && tally.disk_errors > 0, "the weather was too good to show anything");
    assert!(tally.ended.contains_key("done") && tally.ended.contains_key("failed"), "{:?}", tally.ended);
}

#[test]
fn a_life_is_the_same_every_time() {
    for seed in [3, 17, 40] {
        let (first, second) = (live(seed, true), live(seed, true));
        assert_eq!(first.story, second.story, "seed {seed}");
        assert!(!first.story.is_empty());
    }
}
