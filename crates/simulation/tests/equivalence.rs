//! The same plan and inputs end in the same state in memory and on the journal, whatever is killed.

use gatewright_simulation::equivalence::compare;

const GRAPHS: u32 = 60;
const KILLS_EACH: u32 = 8;

#[test]
fn journal_and_memory_end_in_the_same_state_after_eight_kills() {
    let (mut graphs, mut kills, mut events) = (0, 0, 0);
    for seed in 0.. {
        let compared = compare(seed, KILLS_EACH).unwrap_or_else(|problem| panic!("seed {seed}: {problem}"));
        if let Some(compared) = compared {
            graphs += 1;
            kills += compared.kills;
            events += compared.events;
        }
        if graphs == GRAPHS {
            break;
        }
        assert!(seed < 20 * u64::from(GRAPHS), "only {graphs} of {seed} runs were long enough");
    }
    println!("{graphs} random graphs, {kills} kills, {events} events");
}
