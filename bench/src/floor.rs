//! The floor: a graph of `/bin/true` with a durable record before and after each child, group commit.

use std::{
    collections::VecDeque,
    fs::OpenOptions,
    io::{self, Write},
    process::{Command, Stdio},
    sync::mpsc::channel,
    time::{Duration, Instant},
};

/// The shape of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One after the other.
    Chain,
    /// Nobody needs anybody.
    Wide,
    /// Layers of twenty; each needs three of the layer before.
    Layered,
}

const WIDTH: usize = 20;

impl Shape {
    pub fn word(self) -> &'static str {
        match self {
            Shape::Chain => "chain",
            Shape::Wide => "wide",
            Shape::Layered => "layered",
        }
    }

    /// Whom step `index` needs.
    pub fn needs(self, index: usize) -> Vec<usize> {
        match self {
            Shape::Chain => index.checked_sub(1).into_iter().collect(),
            Shape::Wide => Vec::new(),
            Shape::Layered if index < WIDTH => Vec::new(),
            Shape::Layered => {
                let (layer, place) = (index / WIDTH, index % WIDTH);
                let mut needs: Vec<usize> = [place, (place + 1) % WIDTH, (place + 7) % WIDTH]
                    .iter()
                    .map(|other| (layer - 1) * WIDTH + other)
                    .collect();
                needs.sort_unstable();
                needs.dedup();
                needs
            }
        }
    }
}

/// Runs the graph and says how long it took.
pub fn run(shape: Shape, steps: usize, at_once: usize) -> io::Result<Duration> {
    let dir = crate::project::scratch("floor")?;
    let begin = Instant::now();
    let mut journal = OpenOptions::new().create(true).append(true).open(dir.join("journal"))?;
    let mut missing: Vec<usize> = Vec::with_capacity(steps);
    let mut dependents: Vec<Vec<usize>> = vec![Vec::new(); steps];
    for index in 0..steps {
        let needs = shape.needs(index);
        missing.push(needs.len());
        for need in needs {
            dependents[need].push(index);
        }
    }
    let mut ready: VecDeque<usize> = (0..steps).filter(|index| missing[*index] == 0).collect();
    let (sender, ended) = channel::<usize>();
    let (mut live, mut done) = (0, 0);
    let mut batch = String::new();
    while done < steps {
        let mut start = Vec::new();
        while live + start.len() < at_once
            && let Some(index) = ready.pop_front()
        {
            record(&mut batch, "started", index);
            start.push(index);
        }
        if !batch.is_empty() {
            journal.write_all(batch.as_bytes())?;
            journal.sync_data()?;
            batch.clear();
        }
        live += start.len();
        for index in start {
            let mut child = Command::new("/bin/true")
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()?;
            let sender = sender.clone();
            std::thread::spawn(move || {
                let _ = child.wait();
                let _ = sender.send(index);
            });
        }
        let first = ended.recv().map_err(io::Error::other)?;
        for index in std::iter::once(first).chain(ended.try_iter()) {
            live -= 1;
            done += 1;
            record(&mut batch, "ended", index);
            for dependent in std::mem::take(&mut dependents[index]) {
                missing[dependent] -= 1;
                if missing[dependent] == 0 {
                    ready.push_back(dependent);
                }
            }
        }
    }
    journal.write_all(batch.as_bytes())?;
    journal.sync_data()?;
    let took = begin.elapsed();
    std::fs::remove_dir_all(dir)?;
    Ok(took)
}

/// About as long as a real record.
fn record(batch: &mut String, kind: &str, index: usize) {
    batch.push_str(&format!("{{\"seq\":{index},\"at\":\"2026-01-01T00:00:00.000Z\",\"type\":\"step.attempt.{kind}\",\"step\":\"s{index}\",\"attempt\":1,\"detail\":\"{:<60}\"}}\n", ""));
}
