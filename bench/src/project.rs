//! The same graph as a workflow, run by the real program in a scratch project.

use std::{
    fmt::Write as _,
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::floor::Shape;

/// What one run took.
pub struct Measured {
    pub wall: Duration,
    /// Most memory that was resident.
    pub peak_kb: u64,
}

/// A new folder for one measurement.
pub fn scratch(name: &str) -> io::Result<PathBuf> {
    let stamp =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let dir = std::env::temp_dir().join(format!("gatewright-bench-{name}-{}-{stamp}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    Ok(dir)
}

pub fn run(program: &Path, shape: Shape, steps: usize, at_once: usize) -> io::Result<Measured> {
    let dir = scratch("run")?;
    let mut text =
        format!("workflow: bench\nparallel_max: {at_once}\nchecks: {{ t: {{ run: \"true\" }} }}\nsteps:\n");
    for index in 0..steps {
        let needs: Vec<String> = shape.needs(index).iter().map(|need| format!("s{need}")).collect();
        let _ = writeln!(text, "  - {{ id: s{index}, check: t, needs: [{}] }}", needs.join(", "));
    }
    std::fs::write(dir.join("bench.yaml"), text)?;
    let begin = Instant::now();
    let mut child = Command::new(program)
        .args(["run", "./bench.yaml", "x"])
        .current_dir(&dir)
        .env("GATEWRIGHT_STATE_DIR", dir.join("state"))
        .env("HOME", &dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let mut peak_kb = 0;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        peak_kb = peak_kb.max(resident(child.id()));
        std::thread::sleep(Duration::from_millis(5));
    };
    let wall = begin.elapsed();
    std::fs::remove_dir_all(&dir)?;
    if status.success() {
        Ok(Measured { wall, peak_kb })
    } else {
        Err(io::Error::other(format!("the run exited with {status}")))
    }
}

/// The high-water mark of a process, as far as it can be read.
fn resident(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("VmHWM:"));
    line.and_then(|line| line.split_whitespace().nth(1)).and_then(|number| number.parse().ok()).unwrap_or(0)
}
