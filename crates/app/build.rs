//! Puts the built-in methods into the program: one `(path, text)` per file below `methods/`.

use std::{
    env,
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

fn main() -> io::Result<()> {
    // An executable at a fixed place: thirty thousand addresses need not be filled in at every start, which takes
    // longer than most commands. Libraries, stack and heap stay at random places.
    if env::var("PROFILE").is_ok_and(|profile| profile == "release")
        && env::var("TARGET").is_ok_and(|target| target.ends_with("-linux-gnu"))
    {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
    // Asked now, not when this was compiled: a script that was built for another checkout would find nothing.
    let package = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    let root = Path::new(&package).join("../../methods");
    println!("cargo:rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    collect(&root, &mut files)?;
    files.sort();
    let mut code = String::from("pub static METHOD_FILES: &[(&str, &str)] = &[\n");
    for file in files {
        let name = file.strip_prefix(&root).unwrap_or(&file).to_string_lossy().replace('\\', "/");
        let path = fs::canonicalize(&file)?;
        let _ = writeln!(code, "    ({name:?}, include_str!({:?})),", path.display().to_string());
    }
    code.push_str("];\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("method_files.rs"), code)
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    println!("cargo:rerun-if-changed={}", dir.display());
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
